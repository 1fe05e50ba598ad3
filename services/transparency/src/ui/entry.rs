//! `/ui/entries/{entry_id}`: one entry with its content.

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use explorer::{EntryBody, EntryPage, Excerpt, RelatedEntries};
use merkle::LeafIndex;
use scitt::SignedStatement;

use super::page::{frame, page};
use super::payload::content;
use super::rows::{row, rows};
use crate::edge::access::AuthenticatedCaller;
use crate::edge::problem::Problem;
use crate::routes::EntryId;
use crate::routes::app::App;
use crate::routes::bodies::is_open;
use crate::routes::links::{self, Link};
use crate::routes::payloads::kept;
use crate::routes::statements::stored_entry;
use crate::run_blocking::run_blocking;
use crate::view::entry_view::EntryView;

/// The page of an entry.
pub async fn entry(
    State(app): State<App>,
    Extension(caller): Extension<AuthenticatedCaller>,
    EntryId(digest): EntryId,
) -> Result<Response, Problem> {
    let stored = stored_entry(&app, digest).await?;
    let mut view = EntryView::of(&stored);
    view.committed_with(app.log.store.head_covering(stored.index).await?);
    let body = body(&app, &caller, &stored).await?;
    let entry = EntryPage {
        policy: (stored.policy.get(), policy_id(&app, stored.policy).await?),
        rule: stored.rule.clone(),
        row: row(&view),
        facts: view.facts,
        body,
        related: links::read(&app, digest).await?.links.iter().map(related).collect(),
        url: app.log.identity.public_url.clone(),
    };
    Ok(page(entry.html(&frame(&app.log))))
}

/// The ID of the policy's entry; `None` if the log is damaged.
async fn policy_id(app: &App, leaf: LeafIndex) -> Result<Option<String>, Problem> {
    Ok(app.log.store.entry(leaf).await?.map(|entry| entry.digest.to_string()))
}

async fn body(app: &App, caller: &AuthenticatedCaller, entry: &store::Entry) -> Result<EntryBody, Problem> {
    let Some(bytes) = entry.statement.clone() else { return Ok(EntryBody::Erased) };
    if !is_open(app, caller, entry) {
        return Ok(EntryBody::Closed);
    }
    let detached = kept(app, entry).await?;
    run_blocking(bytes.len(), || open(bytes, detached))
}

fn open(bytes: Bytes, detached: Option<Bytes>) -> Result<EntryBody, Problem> {
    let statement = SignedStatement::parse(bytes).map_err(|malformed| {
        tracing::error!(%malformed, "a registered statement cannot be read");
        Problem::internal()
    })?;
    let header = statement.header();
    let content_type = header.content_type().and_then(scitt::ContentType::as_text);
    let payload = statement.payload().or(detached.as_deref());
    Ok(EntryBody::Open {
        header: display::header(header),
        takes_receipts: scitt::transparent::takes_receipts(&statement),
        payload: payload.map(|payload| content(content_type, payload)),
        statement: Excerpt::hex(statement.bytes()),
    })
}

fn related(link: &Link) -> RelatedEntries {
    // A link between entries has an entry ID as its value, which the rows have too.
    let (relation, is_shared) = match link.by {
        "digest" => ("The same digest", true),
        "call_id" => ("The same call", true),
        "session" => ("The same session", true),
        "answers" => ("Answers", false),
        "answered_by" => ("Answered by", false),
        "erases" => ("Erases", false),
        "erased_by" => ("Erased by", false),
        other => (other, true),
    };
    RelatedEntries {
        relation,
        value: is_shared.then(|| link.value.clone()),
        rows: rows(&link.entries),
        more: link.more,
    }
}
