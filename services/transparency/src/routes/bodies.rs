//! Permission to read the bytes of an entry. Each read of a closed body is counted, and logged with its reader.

use http::StatusCode;
use registration::conversation::AGENT_CONVERSATION;
use registration::policy::essence;
use serde_json::Value;
use store::Entry;

use crate::config::roles::CallerRole;
use crate::edge::access::AuthenticatedCaller;
use crate::edge::media;
use crate::edge::problem::Problem;
use crate::routes::app::App;
use crate::run_blocking::run_blocking;
use crate::view::entry_facts::facts_of;
use crate::view::entry_view::EntryView;

/// Access of a caller to the body of an entry.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BodyAccess {
    /// The body is not closed.
    Open,
    /// The body is closed, and the caller may read it.
    Permitted,
    /// The body is closed to the caller.
    Refused,
}

/// Returns `true` if the caller may read the body of this entry. Counts and logs the permission if the body is closed;
/// a statement that cannot be read is.
pub fn is_open(app: &App, caller: &AuthenticatedCaller, entry: &Entry) -> bool {
    let access = body_access(app, caller, entry);
    if access == BodyAccess::Permitted {
        app.edge.metrics.closed_bodies_read.inc();
        let reader = caller.name.as_deref().unwrap_or("anonymous");
        tracing::info!(reader, entry = %entry.digest, "a closed body was read");
    }
    access != BodyAccess::Refused
}

/// Returns the answer of [`is_open`] for a caller that does not read the body now: nothing is counted or logged.
pub fn may_read(app: &App, caller: &AuthenticatedCaller, entry: &Entry) -> bool {
    body_access(app, caller, entry) != BodyAccess::Refused
}

/// Returns `true` if the caller may read bodies of this issuer and content type.
pub fn may_read_type(
    app: &App,
    caller: &AuthenticatedCaller,
    iss: Option<&str>,
    content_type: Option<&str>,
) -> bool {
    let is_closed = content_type.is_none() || app.edge.access.closed_types().holds(content_type);
    !is_closed || caller.may_read_closed(iss, content_type)
}

/// Returns the answer of [`may_read`] for the entry of a view.
pub fn may_read_viewed(app: &App, caller: &AuthenticatedCaller, view: &EntryView) -> bool {
    let (iss, content_type) = (view.iss.as_deref(), view.content_type.as_deref());
    let closed = content_type.is_none() || is_closed(app, content_type, view.facts.get(RECORD_ID));
    !closed || caller.may_read_closed(iss, content_type)
}

/// The fact that every conversation record has, and no payload that was not read as a record.
const RECORD_ID: &str = "record_id";

/// Returns `true` if bodies of this content type are closed. Conversation records may be registered as
/// `application/json` (`accept_application_json`), and are then closed like those of their own type.
fn is_closed(app: &App, content_type: Option<&str>, record_id: Option<&Value>) -> bool {
    let closed = app.edge.access.closed_types();
    let is_json = content_type.is_some_and(|name| essence(name) == media::JSON);
    let is_record = is_json && record_id.is_some();
    closed.holds(content_type) || (is_record && closed.holds(Some(AGENT_CONVERSATION)))
}

fn body_access(app: &App, caller: &AuthenticatedCaller, entry: &Entry) -> BodyAccess {
    let size = entry.statement.as_ref().map_or(0, bytes::Bytes::len);
    let facts = run_blocking(size, || facts_of(entry));
    let text = |name: &str| facts.get(name).and_then(Value::as_str);
    let (iss, content_type) = (text("iss"), text("content_type"));
    let is_readable = content_type.is_some() || entry.statement.is_none();
    if is_readable && !is_closed(app, content_type, facts.get(RECORD_ID)) {
        BodyAccess::Open
    } else if caller.may_read_closed(iss, content_type) {
        BodyAccess::Permitted
    } else {
        BodyAccess::Refused
    }
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
