//! Permission to read the bytes of an entry. Each read of a closed body is counted, and logged with its reader.

use http::StatusCode;
use serde_json::Value;
use store::Entry;

use crate::config::roles::CallerRole;
use crate::edge::access::AuthenticatedCaller;
use crate::edge::problem::Problem;
use crate::routes::app::App;
use crate::run_blocking::run_blocking;
use crate::view::entry_facts::facts_of;

/// Returns `true` if the caller may read the body of this entry. Counts and logs the permission if the body is closed;
/// a statement that cannot be read is.
pub fn is_open(app: &App, caller: &AuthenticatedCaller, entry: &Entry) -> bool {
    let closed = app.edge.access.closed_types();
    let size = entry.statement.as_ref().map_or(0, bytes::Bytes::len);
    let facts = run_blocking(size, || facts_of(entry));
    let text = |name: &str| facts.get(name).and_then(Value::as_str);
    let (iss, content_type) = (text("iss"), text("content_type"));
    let is_readable = content_type.is_some() || entry.statement.is_none();
    if is_readable && !closed.holds(content_type) {
        return true;
    }
    let may = caller.may_read_closed(iss, content_type);
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
