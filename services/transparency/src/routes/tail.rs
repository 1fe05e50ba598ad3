//! Streams of entries: server-sent events, resumable.
//!
//! A stream begins after the newest entry, or at a position of the request: `Last-Event-ID` (which browsers send when
//! they reconnect), `after` or `from`. A position beyond the next leaf is refused: it comes from another log, or from
//! this one before it lost entries, and waiting would hide that.

// utoipa names the query type by its path.
#![allow(unused_qualifications)]

use axum::Extension;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, StatusCode};
use serde::Deserialize;
use serving::connections::ConnectionCloser;
use utoipa::IntoParams;

use super::entry_query::EntryValues;
use super::{canonical, wrong_query};
use crate::edge::problem::{Problem, shortened_to};
use crate::edge::rate_limit::RequestCharge;
use crate::routes::app::App;
use crate::tail::{self, EntryFilter, NONE, NoStreamSlot};

/// The header field with the position of a browser that reconnects.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// `Cache-Control` of a stream: a cache would store it without end, and one that compresses would delay it.
const UNCACHED: &str = "no-store, no-transform";
/// Header field that makes proxies forward each event at once.
const UNBUFFERED: (HeaderName, &str) = (HeaderName::from_static("x-accel-buffering"), "no");

/// Where a stream begins, and what it tells. `Last-Event-ID` goes before both.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct StreamQuery {
    /// Begin after this leaf; `none`: with the first. Without any of the three, only future entries are sent.
    after: Option<String>,
    /// Begin with this leaf.
    #[serde(default, deserialize_with = "super::plain_number")]
    from: Option<u64>,
    /// What must be true of the entries.
    #[serde(flatten)]
    #[param(ignore)]
    values: EntryValues,
}

/// Every entry from a position on, and those to come, one event each and in order; with values, only those that say all of
/// them. `id` is the leaf index, the event is `entry`, and the data what `/v1/entries` lists. Only entries under a signed
/// head are told. A stream ends with an event `end` that names why (`too-slow`, `stopping`, `unavailable`): come back with
/// `Last-Event-ID`, and nothing is lost.
#[utoipa::path(
    get,
    path = "/v1/entries/stream",
    operation_id = "entries_as_events",
    tag = "Log",
    params(
        StreamQuery,
        EntryValues,
        ("Last-Event-ID" = Option<String>, Header, description = "The last event that was seen: a leaf index, or `none`")
    ),
    responses(
        (status = 200, description = "Server-sent events; a comment every 15 seconds when there is nothing to tell, and more often at first",
         body = String, content_type = "text/event-stream"),
        (status = 400, description = "A parameter is unknown, or no position in this log"),
        (status = 429, description = "Too many requests, or this client has too many open streams; Retry-After gives the time to wait"),
        (status = 503, description = "Too many streams are open, or the database does not answer; Retry-After gives the time to wait")
    )
)]
pub async fn stream(
    State(app): State<App>,
    Extension(charge): Extension<RequestCharge>,
    cut: Option<Extension<ConnectionCloser>>,
    position: Result<Query<StreamQuery>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let Query(position) = position.map_err(|refused| wrong(shortened_to(&wrong_query(&refused), 200)))?;
    let wanted = EntryFilter { terms: position.values.terms()? };
    let next = next(&app, requested_position(&position, &headers)?).await?;
    let cut = cut.map(|Extension(cut)| cut).unwrap_or_default();
    let events =
        tail::open(&app.tail, charge.bucket(), wanted, next, cut).map_err(|why| no_place(&app, why))?;
    let headers = [(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, UNCACHED), UNBUFFERED];
    Ok((headers, events).into_response())
}

/// The first leaf according to the request; `None` if it names no position.
fn requested_position(position: &StreamQuery, headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let mut seen = headers.get_all(LAST_EVENT_ID).iter();
    match (seen.next(), seen.next()) {
        (Some(_), Some(_)) => return Err(wrong("Last-Event-ID stands there twice".into())),
        (Some(seen), None) if !seen.is_empty() => {
            let seen = seen.to_str().map_err(|_| wrong("Last-Event-ID is not a leaf index".into()))?;
            return behind("Last-Event-ID", seen).map(Some);
        }
        _ => {}
    }
    match (&position.after, position.from) {
        (Some(_), Some(_)) => Err(wrong("Give `after` or `from`, one of the two".into())),
        (Some(after), None) => behind("after", after).map(Some),
        (None, from) => Ok(from),
    }
}

fn behind(name: &str, seen: &str) -> Result<u64, Problem> {
    if seen == NONE {
        return Ok(0);
    }
    let next = canonical(seen).and_then(|seen| seen.checked_add(1));
    next.ok_or_else(|| wrong(format!("{name} is a leaf index, or {NONE:?}")))
}

/// The first leaf of the stream; 400 `stream-ahead` if it is beyond the log's size.
async fn next(app: &App, requested: Option<u64>) -> Result<u64, Problem> {
    let Some(next) = requested else { return Ok(tail::signed_size(&app.log).await?) };
    let committed = app.log.store.head().await?.size().get().max(app.log.committed_size().get());
    if next > committed {
        let detail = format!("The log has size {committed}, and cannot continue at leaf {next}");
        return Err(Problem::malformed("stream-ahead", detail));
    }
    Ok(next)
}

fn no_place(app: &App, why: NoStreamSlot) -> Problem {
    let wait = u64::from(app.edge.limits.load().retry_after.max(1));
    match why {
        NoStreamSlot::Full => Problem::busy("streams-full", "Too many streams of entries are open", wait),
        NoStreamSlot::TooMany { most } => {
            let detail = format!("One client has at most {most} streams of entries open");
            let problem =
                Problem::new(StatusCode::TOO_MANY_REQUESTS, "streams-too-many", "Too Many Requests", detail);
            problem.retry_after(wait)
        }
    }
}

fn wrong(detail: String) -> Problem {
    Problem::malformed("stream-position", detail)
}
