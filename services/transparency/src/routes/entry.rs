//! A single entry as JSON.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::CACHE_CONTROL;

use super::EntryId;
use crate::edge::problem::Problem;
use crate::routes::app::App;
use crate::view::entry_view::EntryView;

/// One entry as JSON.
#[utoipa::path(
    get,
    path = "/v1/entries/{entry_id}",
    tag = "Log",
    params(("entry_id" = String, Path, description = "64 lowercase hex digits")),
    responses(
        (status = 200, description = "The entry and its facts", body = EntryView),
        (status = 400, description = "Invalid locator"),
        (status = 404, description = "Not Found; with Retry-After, the statement is accepted and waits for its place in the log", headers(("Retry-After" = u32)))
    )
)]
pub async fn entry(State(app): State<App>, EntryId(digest): EntryId) -> Result<Response, Problem> {
    let entry = super::statements::stored_entry(&app, digest).await?;
    let head = app.log.store.head_covering(entry.index).await?;
    let mut view = EntryView::of(&entry);
    view.committed_with(head);
    Ok(([(CACHE_CONTROL, "public, max-age=60")], Json(view)).into_response())
}
