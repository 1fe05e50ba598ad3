//! Known legacy sessions: that a server issued them, their revision, and whether their clients can be asked (the
//! elicitation capability).
//!
//! In the modern era every request states the capability. In the legacy eras `initialize` states it once, for the MCP
//! session that the answer names; so it is remembered, for a bounded number of sessions. A session may be unknown
//! (after a restart, or if it belongs to another replica): its calls are handled as those of a client without the
//! capability, and its client cannot make a new commitment; earlier commitments stay in force (V-2).

use std::sync::Arc;

use moka::policy::EvictionPolicy;
use moka::sync::Cache;
use serde_json::Value;

use crate::frame::Frame;
use crate::frame::reply::Reply;
use crate::limits::{KNOWN_CLIENT_IDLE, MAX_CLIENT_NAME, MAX_KNOWN_CLIENTS, MAX_REVISION_BYTES};

/// The `_meta` key of a modern client's capabilities.
const MODERN_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// The requests that can be answered with a question in the modern era.
const ASKING: [&str; 3] = ["tools/call", "prompts/get", "resources/read"];

/// The `_meta` key of a modern client's description.
const MODERN_CLIENT: &str = "io.modelcontextprotocol/clientInfo";

/// The sessions that servers issued, by route, with the data of their clients.
#[derive(Clone)]
pub struct Clients(Cache<(String, String), KnownClient>);

/// The data of a session's client.
#[derive(Clone, Default)]
struct KnownClient {
    can_be_asked: bool,
    /// The name that the client states for itself.
    name: Option<Arc<str>>,
    /// The revision that the server agreed to.
    revision: Option<Arc<str>>,
}

impl Default for Clients {
    fn default() -> Self {
        Self::with_capacity(MAX_KNOWN_CLIENTS)
    }
}

impl Clients {
    fn with_capacity(most: u64) -> Self {
        let all = Cache::builder().max_capacity(most).time_to_idle(KNOWN_CLIENT_IDLE);
        Self(all.eviction_policy(EvictionPolicy::lru()).build())
    }

    /// Remembers the data of an `initialize` request and of its answer, once that named the session.
    pub fn met(&self, route: &str, mcp_session: &str, initialize: &Frame, answer: &Reply) {
        let can_be_asked = initialize.param("capabilities").is_some_and(has_form);
        let name = initialize.param("clientInfo").and_then(name_in).map(Arc::from);
        let revision = answer.result_string_at(&["protocolVersion"]);
        let revision = revision.filter(|revision| revision.len() <= MAX_REVISION_BYTES).map(Arc::from);
        let known = KnownClient { can_be_asked, name, revision };
        self.0.insert((route.to_owned(), mcp_session.to_owned()), known);
    }

    /// Returns whether the route's server issued this session, as far as is remembered.
    #[must_use]
    pub fn knows(&self, route: &str, mcp_session: &str) -> bool {
        self.0.get(&(route.to_owned(), mcp_session.to_owned())).is_some()
    }

    /// Returns whether the client of this session can be asked.
    #[must_use]
    pub fn can_be_asked(&self, route: &str, mcp_session: &str) -> bool {
        self.0.get(&(route.to_owned(), mcp_session.to_owned())).is_some_and(|known| known.can_be_asked)
    }

    /// Returns the name that this session's client states for itself.
    #[must_use]
    pub fn name(&self, route: &str, mcp_session: &str) -> Option<String> {
        let known = self.0.get(&(route.to_owned(), mcp_session.to_owned()))?;
        known.name.as_deref().map(str::to_owned)
    }

    /// Returns the revision that the server agreed to in this session.
    #[must_use]
    pub fn revision(&self, route: &str, mcp_session: &str) -> Option<String> {
        let known = self.0.get(&(route.to_owned(), mcp_session.to_owned()))?;
        known.revision.as_deref().map(str::to_owned)
    }

    /// Removes a session.
    pub fn gone(&self, route: &str, mcp_session: &str) {
        self.0.invalidate(&(route.to_owned(), mcp_session.to_owned()));
    }
}

/// Returns the name that a modern request's client states for itself.
#[must_use]
pub fn modern_name(request: &Frame) -> Option<String> {
    name_in(request.meta(MODERN_CLIENT)?)
}

/// Returns the name in a `clientInfo`, if it has at most [`MAX_CLIENT_NAME`] bytes.
fn name_in(client_info: &str) -> Option<String> {
    let client_info = jose::json::parse_text(client_info).ok()?;
    let name = client_info.get("name").and_then(Value::as_str)?;
    (name.len() <= MAX_CLIENT_NAME).then(|| name.to_owned())
}

/// Returns whether a modern request of this method can be answered with a question.
#[must_use]
pub fn asks(method: &str) -> bool {
    ASKING.contains(&method)
}

/// Returns whether the client of a modern request can be asked.
#[must_use]
pub fn modern_can_be_asked(request: &Frame) -> bool {
    request.meta(MODERN_CAPABILITIES).is_some_and(has_form)
}

/// Returns whether the client of a modern request declares this extension.
#[must_use]
pub fn modern_has_extension(request: &Frame, extension: &str) -> bool {
    let capabilities = request.meta(MODERN_CAPABILITIES).and_then(|text| jose::json::parse_text(text).ok());
    let extensions = capabilities.as_ref().and_then(|capabilities| capabilities.get("extensions"));
    extensions.and_then(|extensions| extensions.get(extension)).is_some_and(Value::is_object)
}

/// Returns whether the capabilities include elicitation by form. Without a mode, elicitation is by form (2025-06-18).
fn has_form(capabilities: &str) -> bool {
    let Ok(capabilities) = jose::json::parse_text(capabilities) else { return false };
    match capabilities.get("elicitation").and_then(Value::as_object) {
        Some(modes) => modes.is_empty() || modes.contains_key("form") || !modes.contains_key("url"),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use bytes::Bytes;

    use super::*;

    #[test]
    fn a_new_session_takes_the_place_of_the_one_that_was_used_least_recently() {
        let clients = Clients::with_capacity(2);
        let initialize = br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#;
        let initialize = Frame::parse(Bytes::from_static(initialize)).unwrap();
        let answer = Bytes::from_static(br#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
        let answer = Reply::parse(answer).unwrap();
        let meet = |session| {
            clients.met("/mcp", session, &initialize, &answer);
            clients.0.run_pending_tasks();
        };
        meet("first");
        meet("second");
        for _ in 0..8 {
            assert!(clients.knows("/mcp", "first") && clients.knows("/mcp", "second"));
        }
        clients.0.run_pending_tasks();
        meet("third");
        assert!(clients.knows("/mcp", "third") && clients.knows("/mcp", "second"));
        assert!(!clients.knows("/mcp", "first"));
    }

    #[test]
    fn elicitation_without_a_mode_is_the_form() {
        assert!(has_form(r#"{"elicitation":{}}"#));
        assert!(has_form(r#"{"elicitation":{"form":{},"url":{}}}"#));
        assert!(!has_form(r#"{"elicitation":{"url":{}}}"#));
        assert!(!has_form(r#"{"sampling":{}}"#));
        assert!(!has_form(r#"{"elicitation":true}"#));
        assert!(!has_form("nonsense"));
    }
}
