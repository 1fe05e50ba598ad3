//! Permission to read the bytes of an entry. Each read of a closed body is counted, and logged with its reader.

use http::StatusCode;
use serde::Deserialize;
use store::Entry;

use crate::config::roles::CallerRole;
use crate::edge::access::AuthenticatedCaller;
use crate::edge::problem::Problem;
use crate::routes::app::App;

/// The facts that decide about reading an entry's body.
#[derive(Default, Deserialize)]
struct BodyFacts {
    iss: Option<String>,
    content_type: Option<String>,
}

/// Returns `true` if the caller may read the body of this entry. Counts and logs the permission if the body is closed.
pub fn is_open(app: &App, caller: &AuthenticatedCaller, entry: &Entry) -> bool {
    let closed = app.edge.access.closed_types();
    let facts: BodyFacts = serde_json::from_str(&entry.facts).unwrap_or_default();
    if !closed.holds(facts.content_type.as_deref()) {
        return true;
    }
    let may = caller.may_read_closed(facts.iss.as_deref(), facts.content_type.as_deref());
    if may {
        app.edge.metrics.closed_bodies_read.inc();
        let reader = caller.name.as_deref().unwrap_or("anonymous");
        tracing::info!(reader, entry = %entry.digest, "a closed body was read");
    }
    may
}

/// Refuses a caller that may not read the body of this entry.
///
/// # Errors
/// 401 without a token, 403 with one of a lower role or of another scope.
pub fn must_be_open(app: &App, caller: &AuthenticatedCaller, entry: &Entry) -> Result<(), Problem> {
    match is_open(app, caller, entry) {
        true => Ok(()),
        false if caller.role < CallerRole::Auditor => Err(caller.refusal(CallerRole::Auditor)),
        false => {
            let detail = "The token is bound to other issuers or content types than this entry's";
            Err(Problem::new(StatusCode::FORBIDDEN, "token-scope", "Forbidden", detail))
        }
    }
}
