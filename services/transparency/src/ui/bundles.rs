//! `/ui/bundle`: the evidence bundle of an entry, of a session, or of a chain of verification receipts, as a file. The page
//! `/ui/verify` fetches those of sessions and chains too.
//!
//! It is the bundle that `tabellion bundle` gathers, within closer bounds. Not here: the packing ([`super::packing`]).

use std::collections::BTreeMap;

use axum::Extension;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use bundle::{BundleSelection, EvidenceBundle, MEDIA_TYPE, SelectedBy};
use http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE};
use merkle::{EntryDigest, LeafIndex};
use serde::Deserialize;

use super::delegations::PageReader;
use super::packing::{BundlePacker, too_large};
use crate::edge::access::AuthenticatedCaller;
use crate::edge::problem::{Problem, shortened};
use crate::edge::rate_limit::RequestCharge;
use crate::limits::{BUNDLE_BYTES, BUNDLE_ENTRIES};
use crate::routes::app::App;
use crate::routes::issuers::{self, WhichChain};
use crate::routes::names::behind;
use crate::routes::sessions::{self, Session, SessionPaging};
use crate::routes::statements::leaf_of;
use crate::routes::wrong_query;
use crate::run_blocking::run_blocking;

/// What the bundle is about.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BundleQuery {
    /// The ID of an entry.
    entry: Option<String>,
    /// A session.
    session: Option<String>,
    /// The verifier of a chain of verification receipts.
    issuer: Option<String>,
    /// The agent that these receipts are about.
    sub: Option<String>,
}

/// The evidence bundle of an entry, of a session or of a chain.
pub async fn bundle(
    State(app): State<App>,
    Extension(charge): Extension<RequestCharge>,
    Extension(caller): Extension<AuthenticatedCaller>,
    query: Result<Query<BundleQuery>, QueryRejection>,
) -> Result<Response, Problem> {
    let Query(query) = query.map_err(|refused| wrong(&wrong_query(&refused)))?;
    let reader = PageReader { app: &app, caller: &caller, charge: &charge };
    let _turn = app.edge.bundles.acquire().await.map_err(|_| Problem::internal())?;
    match query {
        BundleQuery { entry: Some(id), session: None, issuer: None, sub: None } => {
            let digest = id.parse().map_err(|_| Problem::invalid_locator())?;
            Ok(file(&format!("{digest}.bundle"), &of_entry(reader, digest).await?))
        }
        BundleQuery { entry: None, session: Some(session), issuer: None, sub: None } => {
            Ok(file("session.bundle", &of_session(reader, session).await?))
        }
        BundleQuery { entry: None, session: None, issuer: Some(issuer), sub: Some(sub) } => {
            Ok(file("chain.bundle", &of_chain(reader, issuer, sub).await?))
        }
        _ => Err(wrong("give `entry`, or `session`, or `issuer` and `sub`")),
    }
}

fn wrong(why: &str) -> Problem {
    Problem::malformed("query", format!("The query cannot be read: {}", shortened(why)))
}

/// Packs one entry.
async fn of_entry(reader: PageReader<'_>, digest: EntryDigest) -> Result<EvidenceBundle, Problem> {
    let leaf = leaf_of(reader.app, digest).await?;
    BundlePacker::new(reader).await?.pack([leaf]).await
}

/// Packs all entries of a session, and the verification receipts that share a digest with them.
async fn of_session(reader: PageReader<'_>, session: String) -> Result<EvidenceBundle, Problem> {
    let listed = ListedEntries::of_session(reader, &session).await?;
    let selection = BundleSelection {
        by: SelectedBy::Session,
        entries: listed.entries.values().copied().collect(),
        indexed_to: listed.indexed_to,
        name: session,
    };
    let packed = BundlePacker::new(reader).await?.pack(listed.entries.keys().copied()).await?;
    Ok(EvidenceBundle { selections: vec![selection], ..packed })
}

/// The entries of a session, as its pages list them.
#[derive(Default)]
struct ListedEntries {
    entries: BTreeMap<LeafIndex, EntryDigest>,
    /// Bytes of their statements.
    bytes: usize,
    indexed_to: u64,
}

impl ListedEntries {
    /// Reads all pages of a session. Each one counts as a read of the client.
    async fn of_session(reader: PageReader<'_>, session: &str) -> Result<Self, Problem> {
        let limit = reader.app.edge.limits.load().page;
        let (mut listed, mut after) = (Self::default(), None);
        loop {
            reader.charge.charge()?;
            let paging = SessionPaging::page(after, Some(limit));
            let (view, next) = sessions::read(reader.app, reader.charge, session.to_owned(), &paging).await?;
            listed.add(&view)?;
            after = match (next, view.entries.last()) {
                (None, _) => return Ok(listed),
                (Some(_), Some(last)) => Some(last.index),
                (Some(_), None) => return Err(behind()),
            };
        }
    }

    fn add(&mut self, view: &Session) -> Result<(), Problem> {
        for entry in view.entries.iter().chain(&view.receipts) {
            let digest = entry.entry_id.parse().map_err(|_| Problem::internal())?;
            if self.entries.insert(LeafIndex::new(entry.index), digest).is_none() {
                self.bytes += entry.size.unwrap_or(0);
            }
        }
        self.indexed_to = view.indexed_to;
        match self.entries.len() > BUNDLE_ENTRIES || self.bytes > BUNDLE_BYTES {
            true => Err(too_large()),
            false => Ok(()),
        }
    }
}

/// Packs all receipts of a chain.
async fn of_chain(reader: PageReader<'_>, issuer: String, sub: String) -> Result<EvidenceBundle, Problem> {
    let (view, next) = issuers::read_chain(reader.app, issuer, &WhichChain { sub, after: None }).await?;
    // A chain is drawn on pages of as many entries as a bundle may have.
    if next.is_some() {
        return Err(too_large());
    }
    if view.receipts.is_empty() {
        return Err(issuers::unknown());
    }
    let mut leaves: Vec<LeafIndex> =
        view.receipts.iter().map(|receipt| LeafIndex::new(receipt.index)).collect();
    leaves.sort_unstable();
    BundlePacker::new(reader).await?.pack(leaves).await
}

fn file(name: &str, bundle: &EvidenceBundle) -> Response {
    let headers = [
        (CONTENT_TYPE, MEDIA_TYPE.to_owned()),
        (CACHE_CONTROL, "no-store".to_owned()),
        (CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\"")),
    ];
    (headers, run_blocking(BUNDLE_BYTES, || bundle.to_bytes())).into_response()
}
