//! Evidence: the data an outside monitor needs to repeat the decision on an admission (RFC 9943, section 5.1.1).
//!
//! It consists of the statement, its detached payload and collateral, the policy that admitted it, and the log's time
//! at that moment. Guards are not included: they follow from statement and policy, and a monitor that repeats all
//! decisions in order detects two entries with the same guard. All data comes from the database, so a reader must
//! verify it with proofs and signatures.

// utoipa names the query type by its path.
#![allow(unused_qualifications)]

use std::collections::HashMap;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use data_encoding::BASE64URL_NOPAD;
use http::header::CACHE_CONTROL;
use merkle::{EntryDigest, LeafIndex};
use registration::{COLLATERAL_PAYLOAD, LookupKind};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use store::{Collateral, Entry, Order};
use utoipa::{IntoParams, ToSchema};

use super::bodies::is_open;
use super::paging::wrong_page_query;
use super::statements::{CACHED, stored_entry};
use super::{EntryId, add_next_link};
use crate::edge::access::AuthenticatedCaller;
use crate::edge::problem::Problem;
use crate::index::term;
use crate::limits::{EVIDENCE_BYTES, EVIDENCE_CHUNK, EVIDENCE_PAGE};
use crate::log::heads::Heads;
use crate::routes::app::App;
use crate::time::rfc3339;

/// All that one admission was decided by.
#[derive(Debug, Serialize, ToSchema)]
pub struct Evidence {
    /// The leaf.
    index: u64,
    /// SHA-256 of the statement, hex: the leaf's content.
    entry_id: String,
    /// The statement in base64url without padding; null once erased, and where it is closed to the caller.
    statement: Option<String>,
    /// The detached payload in base64url; absent if there was none, or it was not stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<String>,
    /// Further data that came with it and was needed.
    collateral: Vec<CollateralView>,
    /// The policy that admitted it.
    policy: PolicyReference,
    /// The rule of that policy.
    rule: String,
    /// What the decision found and the statement does not contain: canonical JSON. Nothing decides by it.
    #[schema(value_type = Object)]
    facts: Box<RawValue>,
    /// The committed time of its batch, in Unix seconds: what rules about time were asked with.
    at: Option<u64>,
    /// The same, RFC 3339.
    committed_at: Option<String>,
    /// Leaves of the tree that its batch made.
    tree_size_committed: Option<u64>,
    /// Whether its bytes were erased.
    erased: bool,
    /// That there are bytes, and this caller may not have them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    closed: bool,
    /// The erasure statement that explains it, once the index has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    erased_by: Option<EntryReference>,
}

/// Another entry.
#[derive(Debug, Serialize, ToSchema)]
pub struct EntryReference {
    /// Its leaf.
    index: u64,
    /// Its ID.
    entry_id: String,
}

/// Bytes that are stored with an entry.
#[derive(Debug, Serialize, ToSchema)]
pub struct CollateralView {
    /// The type: `x5chain` (COSE_X509), or the number of the kind.
    kind: String,
    /// In base64url without padding.
    bytes: String,
}

/// A policy on the log.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct PolicyReference {
    /// The leaf that holds it.
    index: u64,
    /// The ID of that entry.
    entry_id: String,
    /// SHA-256 of its canonical JSON, hex.
    digest: String,
    /// The number of earlier policies.
    revision: u64,
}

/// The evidence of one admission.
#[utoipa::path(
    get,
    path = "/v1/entries/{entry_id}/evidence",
    tag = "Log",
    params(("entry_id" = String, Path, description = "64 lowercase hex digits")),
    responses(
        (status = 200, description = "The basis of the decision about this entry", body = Evidence),
        (status = 400, description = "Invalid locator"),
        (status = 404, description = "Not Found; with Retry-After, the statement is accepted and waits for its place in the log", headers(("Retry-After" = u32)))
    )
)]
pub async fn evidence(
    State(app): State<App>,
    Extension(caller): Extension<AuthenticatedCaller>,
    EntryId(digest): EntryId,
) -> Result<Response, Problem> {
    let entry = stored_entry(&app, digest).await?;
    let evidence = AdmissionReader::of(&app, &caller).evidence(entry).await?.0;
    Ok(([(CACHE_CONTROL, CACHED)], Json(evidence)).into_response())
}

/// Which entries.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct EvidenceRange {
    /// The first leaf; 0 when absent.
    #[serde(default, deserialize_with = "super::plain_number")]
    from: Option<u64>,
    /// How many, at most.
    #[param(minimum = 1)]
    #[serde(default, deserialize_with = "super::plain_number")]
    limit: Option<usize>,
}

/// A page of evidence.
#[derive(Debug, Serialize, ToSchema)]
pub struct EvidencePage {
    /// In the order of their leaves. Fewer than asked for when they are large.
    evidence: Vec<Evidence>,
    /// The `from` of the next page, while there is more.
    next: Option<u64>,
}

/// The evidence of many admissions, oldest first.
#[utoipa::path(
    get,
    path = "/v1/evidence",
    tag = "Log",
    params(EvidenceRange),
    responses(
        (status = 200, description = "The evidence of these entries", body = EvidencePage, headers(("Link" = String, description = "rel=next, while there is more"))),
        (status = 400, description = "from or limit is not a number, or limit is too large")
    )
)]
pub async fn evidence_page(
    State(app): State<App>,
    Extension(caller): Extension<AuthenticatedCaller>,
    range: Result<Query<EvidenceRange>, QueryRejection>,
) -> Result<Response, Problem> {
    let (from, limit) = bounds(range)?;
    let size = app.log.readable_size().await?.get();
    let (mut page, mut next, mut bytes) = (Vec::new(), from, 0);
    let mut gathering = AdmissionReader::of(&app, &caller);
    'page: while page.len() < limit && next < size {
        let requested = EVIDENCE_CHUNK.min(limit - page.len());
        let entries = app.log.store.entries(LeafIndex::new(next), requested).await?;
        if entries.is_empty() {
            break;
        }
        for entry in entries {
            let (evidence, taken) = gathering.evidence(entry.verified()?).await?;
            if !page.is_empty() && bytes + taken > EVIDENCE_BYTES {
                break 'page;
            }
            page.push(evidence);
            bytes += taken;
            next += 1;
        }
    }
    Ok(answer(&app, EvidencePage { evidence: page, next: (next < size).then_some(next) }, limit))
}

fn bounds(range: Result<Query<EvidenceRange>, QueryRejection>) -> Result<(u64, usize), Problem> {
    let wrong = || {
        Problem::malformed("page", format!("from is a leaf index, limit a number from 1 to {EVIDENCE_PAGE}"))
    };
    let Query(range) = range.map_err(wrong_page_query)?;
    let limit = range.limit.unwrap_or(EVIDENCE_PAGE);
    if !(1..=EVIDENCE_PAGE).contains(&limit) {
        return Err(wrong());
    }
    Ok((range.from.unwrap_or(0), limit))
}

fn answer(app: &App, page: EvidencePage, limit: usize) -> Response {
    let next = page.next;
    let mut response = ([(CACHE_CONTROL, "no-cache")], Json(page)).into_response();
    if let Some(next) = next {
        add_next_link(app, &mut response, "v1/evidence", &format!("from={next}&limit={limit}"));
    }
    response
}

/// Collects the evidence of entries. The policies and heads that the entries of a page share are read once.
struct AdmissionReader<'a> {
    app: &'a App,
    caller: &'a AuthenticatedCaller,
    policies: HashMap<LeafIndex, PolicyReference>,
    heads: Heads<'a>,
}

impl<'a> AdmissionReader<'a> {
    fn of(app: &'a App, caller: &'a AuthenticatedCaller) -> Self {
        Self { app, caller, policies: HashMap::new(), heads: Heads::of(&*app.log.store) }
    }

    /// The evidence of an entry, and the size of its statement, collateral and facts in bytes.
    async fn evidence(&mut self, mut entry: Entry) -> Result<(Evidence, usize), Problem> {
        let erased = entry.statement.is_none();
        let closed = !erased && !is_open(self.app, self.caller, &entry);
        let collateral = if closed { Vec::new() } else { self.app.log.store.collateral(entry.index).await? };
        if closed {
            entry.statement = None;
        }
        let (payload, others): (Vec<_>, Vec<_>) =
            collateral.into_iter().partition(|item| item.kind == COLLATERAL_PAYLOAD);
        let policy = self.policy(entry.policy).await?;
        let head = self.heads.first_with(entry.index).await?;
        let erased_by = if erased { self.erased_by(entry.digest).await? } else { None };
        let bytes = entry.statement.as_ref().map_or(0, bytes::Bytes::len)
            + payload.iter().chain(&others).map(|item| item.bytes.len()).sum::<usize>()
            + entry.facts.len();
        let evidence = Evidence {
            index: entry.index.get(),
            entry_id: entry.digest.to_string(),
            erased,
            closed,
            erased_by,
            statement: entry.statement.map(|bytes| BASE64URL_NOPAD.encode(&bytes)),
            payload: payload.first().map(|item| BASE64URL_NOPAD.encode(&item.bytes)),
            collateral: others.iter().map(CollateralView::of).collect(),
            policy,
            rule: entry.rule,
            facts: RawValue::from_string(entry.facts).unwrap_or_else(|_| RawValue::NULL.to_owned()),
            at: head.map(|head| head.at),
            committed_at: head.and_then(|head| rfc3339(head.at)),
            tree_size_committed: head.map(|head| head.size.get()),
        };
        Ok((evidence, bytes))
    }

    async fn policy(&mut self, leaf: LeafIndex) -> Result<PolicyReference, Problem> {
        if let Some(known) = self.policies.get(&leaf) {
            return Ok(known.clone());
        }
        let read = self.app.log.policies.at(leaf).await?;
        let policy = read.in_force.policy();
        let reference = PolicyReference {
            index: leaf.get(),
            entry_id: read.entry.to_string(),
            digest: policy.digest().to_string(),
            revision: policy.contents().revision,
        };
        self.policies.insert(leaf, reference.clone());
        Ok(reference)
    }

    async fn erased_by(&self, digest: EntryDigest) -> Result<Option<EntryReference>, Problem> {
        let terms = vec![term(LookupKind::Erasure, &digest.to_string())];
        let found = self.app.index.search(terms, 0..u64::MAX, Order::OldestFirst, 1).await?;
        let Some(leaf) = found.entries.first() else { return Ok(None) };
        let erasure = self.app.log.store.entry(*leaf).await?;
        Ok(erasure.map(|entry| EntryReference { index: leaf.get(), entry_id: entry.digest.to_string() }))
    }
}

impl CollateralView {
    fn of(item: &Collateral) -> Self {
        let kind = match item.kind {
            registration::COLLATERAL_X5CHAIN => "x5chain".to_owned(),
            other => other.to_string(),
        };
        Self { kind, bytes: BASE64URL_NOPAD.encode(&item.bytes) }
    }
}
