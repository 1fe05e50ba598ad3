//! Links between entries of different kinds about the same subject.
//!
//! The output that a verification receipt covers may also be in a gateway's decision or in a conversation record: such
//! entries share a digest, a call or a session. A link means only that two entries name the same value, not which of
//! them is right.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::CACHE_CONTROL;
use merkle::EntryDigest;
use registration::{Lookup, LookupKind};
use serde::Serialize;
use store::{Order, Term};
use utoipa::ToSchema;

use super::EntryId;
use super::statements::stored_entry;
use crate::edge::problem::Problem;
use crate::limits::{LINKED_ENTRIES, LINKED_VALUES};
use crate::routes::app::App;
use crate::view::entry_view::EntryView;
use crate::view::pages::views;

/// The links of an entry.
#[derive(Debug, Serialize, ToSchema)]
pub struct Links {
    /// The entry.
    pub entry_id: String,
    /// The values that link it with other entries. Values that it shares with none are left out.
    pub links: Vec<Link>,
    /// Whether there are more values than were looked for.
    pub truncated: bool,
    /// Entries of this tree were searched.
    pub indexed_to: u64,
}

/// Entries that share a value with this one.
#[derive(Debug, Serialize, ToSchema)]
pub struct Link {
    /// What is shared: `digest`, `call_id`, `session`, `answers` (this one answers that), `answered_by`, `erases`,
    /// `erased_by`.
    pub by: &'static str,
    /// The value.
    pub value: String,
    /// The others, in the order of their leaves.
    pub entries: Vec<EntryView>,
    /// Whether there are more of them: search for the value.
    pub more: bool,
}

/// A search for entries that share a value, with the name of the link.
struct LinkSearch {
    by: &'static str,
    value: String,
    terms: Vec<Term>,
}

/// Entries that speak of the same thing: the output that a receipt verified, the input of a call, the call itself, its
/// session, the decision that an outcome answers.
#[utoipa::path(
    get,
    path = "/v1/entries/{entry_id}/links",
    tag = "Log",
    params(("entry_id" = String, Path, description = "64 lowercase hex digits")),
    responses(
        (status = 200, description = "The entries that this one refers to, and those that refer to it", body = Links),
        (status = 400, description = "Invalid locator"),
        (status = 404, description = "Not Found; with Retry-After, the statement is accepted and waits for its place in the log", headers(("Retry-After" = u32)))
    )
)]
pub async fn links(State(app): State<App>, EntryId(digest): EntryId) -> Result<Response, Problem> {
    let links = read(&app, digest).await?;
    Ok(([(CACHE_CONTROL, "no-cache")], Json(links)).into_response())
}

/// Reads the links of an entry; 404 if the log does not have it.
pub async fn read(app: &App, digest: EntryDigest) -> Result<Links, Problem> {
    let entry = stored_entry(app, digest).await?;
    let reached = app.index.caught_up().await?;
    let rows = app.index.values_of(entry.index).await?;
    let id = digest.to_string();
    let mut wanted = wanted(&rows, &id);
    let truncated = wanted.len() > LINKED_VALUES;
    wanted.truncate(LINKED_VALUES);
    let mut links = entries_named(app, &rows).await?;
    for LinkSearch { by, value, terms } in wanted {
        let page = app.index.search(terms, 0..u64::MAX, Order::OldestFirst, LINKED_ENTRIES + 1).await?;
        let mut others = page.entries;
        others.retain(|leaf| *leaf != entry.index);
        let more = page.more_after.is_some() || others.len() > LINKED_ENTRIES;
        others.truncate(LINKED_ENTRIES);
        if !others.is_empty() {
            links.push(Link { by, value, entries: views(&app.log, &others).await?, more });
        }
    }
    Ok(Links { entry_id: id, links, truncated, indexed_to: reached.indexed.to.get() })
}

fn wanted(rows: &[Lookup], id: &str) -> Vec<LinkSearch> {
    let of = |kind: LookupKind| rows.iter().filter(move |row| row.kind == kind);
    let sessions: Vec<String> = of(LookupKind::Session).map(|row| row.value.clone()).collect();
    // The values of index rows are in canonical form already.
    let one = |by, kind: LookupKind, value: &str| LinkSearch {
        by,
        value: value.to_owned(),
        terms: vec![Term::exactly(kind.number(), value)],
    };
    let mut wanted: Vec<LinkSearch> =
        vec![one("answered_by", LookupKind::BackLink, id), one("erased_by", LookupKind::Erasure, id)];
    wanted.extend(of(LookupKind::Digest).map(|row| one("digest", LookupKind::Digest, &row.value)));
    wanted.extend(of(LookupKind::Session).map(|row| one("session", LookupKind::Session, &row.value)));
    wanted.extend(of(LookupKind::CallId).map(|row| {
        let mut call = one("call_id", LookupKind::CallId, &row.value);
        // The ID of a call is unique within its session only.
        if !sessions.is_empty() && sessions.len() <= store::lookup::VALUES_PER_TERM {
            call.terms.push(Term { kind: LookupKind::Session.number(), values: sessions.clone() });
        }
        call
    }));
    wanted
}

/// The entries that this one names by their entry IDs.
async fn entries_named(app: &App, rows: &[Lookup]) -> Result<Vec<Link>, Problem> {
    let mut links = Vec::new();
    for (by, kind) in [("answers", LookupKind::BackLink), ("erases", LookupKind::Erasure)] {
        for row in rows.iter().filter(|row| row.kind == kind).take(LINKED_VALUES) {
            let Ok(digest) = row.value.parse() else { continue };
            let Some(leaf) = app.log.index_of(digest).await? else { continue };
            let entries = views(&app.log, &[leaf]).await?;
            links.push(Link { by, value: row.value.clone(), entries, more: false });
        }
    }
    Ok(links)
}
