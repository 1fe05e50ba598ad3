//! The bytes of entries, as far as the caller may have them. Each read of a closed body is counted, and logged with its reader.

use http::StatusCode;
use serde::Deserialize;
use store::Entry;

use crate::access::{Caller, CallerRole};
use crate::app::App;
use crate::problem::Problem;

/// What decides who may read an entry's body.
#[derive(Default, Deserialize)]
struct Facts {
    iss: Option<String>,
    content_type: Option<String>,
}

/// Whether the caller may have the body of this entry.
pub fn is_open(app: &App, caller: &Caller, entry: &Entry) -> bool {
    let closed = app.house.doors.closed_types();
    let facts: Facts = serde_json::from_str(&entry.facts).unwrap_or_default();
    if !closed.holds(facts.content_type.as_deref()) {
        return true;
    }
    let may = caller.may_read_closed(facts.iss.as_deref(), facts.content_type.as_deref());
    if may {
        app.house.metrics.closed_bodies_read.inc();
        let reader = caller.name.as_deref().unwrap_or("anonymous");
        tracing::info!(reader, entry = %entry.digest, "a closed body was read");
    }
    may
}

/// Refuses a caller that may not have the body of this entry.
///
/// # Errors
/// 401 without a token, 403 with one.
pub fn must_be_open(app: &App, caller: &Caller, entry: &Entry) -> Result<(), Problem> {
    match is_open(app, caller, entry) {
        true => Ok(()),
        false if caller.role < CallerRole::Auditor => Err(caller.refusal(CallerRole::Auditor)),
        false => {
            let detail = "The token is bound to other issuers or content types than this entry's";
            Err(Problem::new(StatusCode::FORBIDDEN, "token-scope", "Forbidden", detail))
        }
    }
}
