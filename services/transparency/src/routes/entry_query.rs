//! The query of a list of entries: values, prefixes, times, order and position.

// utoipa names the query type by its path.
#![allow(unused_qualifications)]

use std::ops::Range;

use display::percent_encoded;
use registration::LookupKind;
use serde::Deserialize;
use store::lookup::VALUES_PER_TERM;
use store::{LogReader, Order, StoreError, Term};
use utoipa::{IntoParams, ToSchema};

use super::canonical;
use super::paging::{first_leaf, page_limit};
use crate::edge::problem::Problem;
use crate::index::{Index, term};

/// Which entries: all that is named must be true of one. Without any of the values, every entry is listed.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct EntryQuery {
    /// List entries after this leaf; from the first when absent.
    #[serde(default, deserialize_with = "super::plain_number")]
    after: Option<u64>,
    /// List entries before this leaf; to the last when absent.
    #[serde(default, deserialize_with = "super::plain_number")]
    before: Option<u64>,
    /// `oldest` first unless given, or `newest` first.
    #[serde(default)]
    #[param(inline)]
    order: ListOrder,
    /// How many, at most.
    #[param(minimum = 1)]
    #[serde(default, deserialize_with = "super::plain_number")]
    limit: Option<usize>,
    /// Committed at this time or later: RFC 3339, or Unix seconds.
    from_time: Option<String>,
    /// Committed before this time.
    to_time: Option<String>,
    /// `1` for a proof that the page is complete: needs at least one exact value, and no prefix.
    proof: Option<String>,
    /// What must be true of them.
    #[serde(flatten)]
    #[param(ignore)]
    values: EntryValues,
    /// How texts of them begin.
    #[serde(flatten)]
    #[param(ignore)]
    prefixes: EntryPrefixes,
}

/// The order of a list of entries.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ListOrder {
    /// Ascending leaves.
    #[default]
    Oldest,
    /// Descending leaves.
    Newest,
}

/// What entries are found by: everything that is named must be true of one.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct EntryValues {
    /// The `receipt_id` of a VRF receipt.
    receipt_id: Option<String>,
    /// The `aer_id` of an execution receipt.
    aer_id: Option<String>,
    /// A session, as its own document names it.
    session: Option<String>,
    /// The agent that acted.
    agent: Option<String>,
    /// `iss`.
    issuer: Option<String>,
    /// `sub`.
    subject: Option<String>,
    /// The content type, or that of the hashed content.
    content_type: Option<String>,
    /// A verdict or decision.
    verdict: Option<String>,
    /// A tool that was called.
    tool: Option<String>,
    /// SHA-256 of the payload: 64 hex digits, with or without `sha256:`.
    payload_digest: Option<String>,
    /// SHA-256 of anything that an entry speaks of: an output, a call's input, a payload.
    digest: Option<String>,
    /// A call within a session.
    call_id: Option<String>,
    /// The kind of the verified task.
    task_type: Option<String>,
    /// The tier of a verification.
    tier: Option<String>,
}

impl EntryValues {
    /// The given values, with their parameter's name and their kind in the index.
    fn values(&self) -> impl Iterator<Item = (&'static str, LookupKind, &str)> {
        let all = [
            ("receipt_id", LookupKind::ReceiptId, &self.receipt_id),
            ("aer_id", LookupKind::AerId, &self.aer_id),
            ("session", LookupKind::Session, &self.session),
            ("agent", LookupKind::Agent, &self.agent),
            ("issuer", LookupKind::Issuer, &self.issuer),
            ("subject", LookupKind::Subject, &self.subject),
            ("content_type", LookupKind::ContentType, &self.content_type),
            ("verdict", LookupKind::Verdict, &self.verdict),
            ("tool", LookupKind::Tool, &self.tool),
            ("payload_digest", LookupKind::PayloadDigest, &self.payload_digest),
            ("digest", LookupKind::Digest, &self.digest),
            ("call_id", LookupKind::CallId, &self.call_id),
            ("task_type", LookupKind::TaskType, &self.task_type),
            ("tier", LookupKind::Tier, &self.tier),
        ];
        all.into_iter().filter_map(|(name, kind, value)| Some((name, kind, value.as_deref()?)))
    }

    /// The terms for the index; 400 if a digest is malformed.
    pub fn terms(&self) -> Result<Vec<Term>, Problem> {
        self.values()
            .map(|(name, kind, value)| match kind {
                LookupKind::PayloadDigest | LookupKind::Digest => Ok(term(kind, &digest(name, value)?)),
                _ => Ok(term(kind, value)),
            })
            .collect()
    }
}

/// How the texts of entries begin. Values longer than 512 bytes are not found by their beginning.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct EntryPrefixes {
    /// The beginning of `sub`. A prefix that more than 64 subjects have is refused; so for the others.
    subject_prefix: Option<String>,
    /// The beginning of `iss`.
    issuer_prefix: Option<String>,
    /// The beginning of a session's name.
    session_prefix: Option<String>,
    /// The beginning of an agent's name.
    agent_prefix: Option<String>,
}

impl EntryPrefixes {
    /// The given prefixes, with their parameter's name and their kind in the index.
    fn values(&self) -> impl Iterator<Item = (&'static str, LookupKind, &str)> {
        let all = [
            ("subject_prefix", LookupKind::Subject, &self.subject_prefix),
            ("issuer_prefix", LookupKind::Issuer, &self.issuer_prefix),
            ("session_prefix", LookupKind::Session, &self.session_prefix),
            ("agent_prefix", LookupKind::Agent, &self.agent_prefix),
        ];
        all.into_iter().filter_map(|(name, kind, value)| Some((name, kind, value.as_deref()?)))
    }
}

impl EntryQuery {
    /// The order of the list.
    pub fn order(&self) -> Order {
        match self.order {
            ListOrder::Oldest => Order::OldestFirst,
            ListOrder::Newest => Order::NewestFirst,
        }
    }

    /// The size of the page; 400 unless it is from 1 to `most`.
    pub fn limit(&self, most: usize) -> Result<usize, Problem> {
        page_limit(self.limit, most)
    }

    /// The terms for the index; 400 if a digest is malformed, or too many values begin with a prefix.
    pub async fn terms(&self, index: &Index) -> Result<Vec<Term>, Problem> {
        let mut terms = self.values.terms()?;
        for (name, kind, prefix) in self.prefixes.values() {
            terms.push(values_with_prefix(index, name, kind, prefix).await?);
        }
        Ok(terms)
    }

    /// Returns whether the page is to be proven; 400 for another value than 1.
    pub fn wants_proof(&self) -> Result<bool, Problem> {
        match self.proof.as_deref() {
            None => Ok(false),
            Some("1") => Ok(true),
            Some(_) => Err(wrong("proof is 1, or is left out".to_owned())),
        }
    }

    /// The terms of a search that is to be proven; 400 unless it has exact values, and only those.
    pub fn provable_terms(&self) -> Result<Vec<Term>, Problem> {
        let unprovable = |detail: String| Problem::malformed("search-not-provable", detail);
        if let Some((name, ..)) = self.prefixes.values().next() {
            return Err(unprovable(format!(
                "No proof shows all values that begin with {name}: give whole values"
            )));
        }
        let terms = self.values.terms()?;
        match terms.is_empty() {
            true => {
                Err(unprovable("A proof needs a value to search for, such as agent or subject".to_owned()))
            }
            false => Ok(terms),
        }
    }

    /// The range of leaves to search.
    pub async fn within(&self, store: &dyn LogReader) -> Result<Range<u64>, Problem> {
        let mut within = first_leaf(self.after)?..self.before.unwrap_or(u64::MAX);
        if let Some(from) = &self.from_time {
            within.start = within.start.max(first_leaf_at(store, time("from_time", from)?).await?);
        }
        if let Some(to) = &self.to_time {
            within.end = within.end.min(first_leaf_at(store, time("to_time", to)?).await?);
        }
        Ok(within)
    }

    /// The query of the page that follows the one that ends with this leaf.
    pub fn next(&self, last: u64, limit: usize) -> String {
        let (after, before) = match self.order {
            ListOrder::Oldest => (Some(last), self.before),
            ListOrder::Newest => (self.after, Some(last)),
        };
        let order = (self.order == ListOrder::Newest).then(|| "newest".to_owned());
        let numbers = [("after", after.map(|n| n.to_string())), ("before", before.map(|n| n.to_string()))];
        let own = numbers.into_iter().chain([("order", order), ("proof", self.proof.clone())]);
        let mut query = format!("limit={limit}");
        let times = [("from_time", self.from_time.clone()), ("to_time", self.to_time.clone())];
        let values = self.values.values().chain(self.prefixes.values());
        let values = values.map(|(name, _, value)| (name, Some(value.to_owned())));
        for (name, value) in own.chain(times).chain(values) {
            if let Some(value) = value {
                query.push_str(&format!("&{name}={}", percent_encoded(&value)));
            }
        }
        query
    }
}

/// The term that an indexed value with this prefix fulfils. Its cost is bounded: a prefix of more than
/// [`VALUES_PER_TERM`] values is refused with 400 `prefix-too-common`.
async fn values_with_prefix(
    index: &Index,
    name: &'static str,
    kind: LookupKind,
    prefix: &str,
) -> Result<Term, Problem> {
    if prefix.is_empty() {
        return Err(wrong(format!("{name} is empty: leave it out")));
    }
    index.caught_up().await?;
    let values = index.values(kind, prefix, None, VALUES_PER_TERM + 1).await?;
    if values.len() > VALUES_PER_TERM {
        let detail =
            format!("More than {VALUES_PER_TERM} values begin with this {name}; a longer one is needed");
        return Err(Problem::malformed("prefix-too-common", detail));
    }
    Ok(Term { kind: kind.number(), values })
}

/// The first leaf committed at this time or later; `u64::MAX` if there is none yet.
async fn first_leaf_at(store: &dyn LogReader, time: u64) -> Result<u64, StoreError> {
    let (mut low, mut high) = (1, store.head().await?.batch);
    let mut first = u64::MAX;
    while low <= high {
        let middle = low + (high - low) / 2;
        // Read the batch and the one before, whose size is the first leaf of this one.
        let heads = store.heads(middle.saturating_sub(1).max(1), 2).await?;
        let Some(head) = heads.iter().find(|head| head.batch == middle) else { break };
        if head.at >= time {
            first = heads.iter().find(|head| head.batch + 1 == middle).map_or(0, |head| head.size.get());
            high = middle - 1;
        } else {
            low = middle + 1;
        }
    }
    Ok(first)
}

fn time(name: &'static str, text: &str) -> Result<u64, Problem> {
    let seconds = match canonical(text) {
        Some(seconds) => Some(seconds),
        None => text.parse::<jiff::Timestamp>().ok().and_then(|time| u64::try_from(time.as_second()).ok()),
    };
    seconds.ok_or_else(|| {
        wrong(format!("{name} is a time as in RFC 3339 (2026-01-31T12:00:00Z), or Unix seconds"))
    })
}

fn digest(name: &'static str, text: &str) -> Result<String, Problem> {
    sha256_text(text).ok_or_else(|| wrong(format!("{name} is a SHA-256: 64 lowercase hex digits")))
}

/// Returns a SHA-256 digest in the form of the index; `None` if the text is not a digest.
pub fn sha256_text(text: &str) -> Option<String> {
    let hex = text.strip_prefix("sha256:").unwrap_or(text);
    let is_digest = hex.len() == 64 && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    is_digest.then(|| format!("sha256:{hex}"))
}

fn wrong(detail: String) -> Problem {
    Problem::malformed("search", detail)
}
