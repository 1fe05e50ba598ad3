//! What the pages have in common: their frame, their response, and the stylesheet.

use axum::response::{IntoResponse, Response};
use display::counted;
use explorer::{PageFrame, STYLE};
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use sequencer::{Halt, Role};

use crate::background::readiness::refusals;
use crate::edge::html::{self, ErrorPage};
use crate::edge::media;
use crate::log::state::Log;

/// A page as a response.
pub fn page(html: String) -> Response {
    let mut response = ([(CONTENT_TYPE, media::HTML)], html).into_response();
    html::confine(response.headers_mut());
    response
}

/// A page that says why the request was refused, as a response with this status.
pub fn refusal(status: StatusCode, html: String) -> Response {
    let mut response = page(html);
    *response.status_mut() = status;
    response.extensions_mut().insert(ErrorPage);
    response
}

/// `GET /ui/style.css`.
pub async fn style() -> Response {
    let headers = [(CONTENT_TYPE, "text/css; charset=utf-8"), (CACHE_CONTROL, "public, max-age=300")];
    (headers, STYLE).into_response()
}

/// The frame of a page about this log.
pub fn frame(log: &Log) -> PageFrame {
    let identity = &log.identity;
    PageFrame { log: identity.origin.clone(), path: identity.public_path.clone(), alarm: alarm(log) }
}

/// What this process does, in words.
pub fn state(log: &Log) -> &'static str {
    let status = log.sequencer.status().borrow().clone();
    match &status.role {
        Role::Halted(Halt::Frozen) => {
            "frozen: no more entries are added; all entries can still be read and proven"
        }
        Role::Halted(_) => "registration stopped",
        Role::Stopped => "stopping",
        _ if status.obstacle().is_some() || refusals(log).next().is_some() => "registration stopped",
        Role::Leading { .. } => "registers statements",
        Role::Following => "reads the log; another process registers statements",
    }
}

/// The text of the banner while the stored log contradicts what was signed, or sequencing stopped for that reason.
fn alarm(log: &Log) -> Option<String> {
    let (findings, omitted) = log.fsck.all();
    let count = findings.len() as u64 + omitted;
    if count > 0 {
        let findings = counted(count, "finding", "findings");
        return Some(format!("The stored log contradicts signed tree heads: {findings}."));
    }
    match &log.sequencer.status().borrow().role {
        Role::Halted(Halt::Frozen) | Role::Leading { .. } | Role::Following | Role::Stopped => None,
        Role::Halted(_) => Some("This log stopped signing, and its operator has to act.".to_owned()),
    }
}
