//! What is known of legacy sessions: that the server gave them out, and whether their clients can be asked (the elicitation
//! capability).
//!
//! In the modern era every request says so. In the legacy eras `initialize` says it once, for the MCP session that the
//! answer names; so it is remembered, for as many sessions as there is room. A session that is not remembered (the gateway
//! was restarted, or it is another replica's) cannot be asked: its calls are answered as those of a client without the
//! capability, and it is nobody that could commit anew; what it committed before goes on (V-2).

use std::sync::Arc;
use std::time::Duration;

use moka::sync::Cache;
use serde_json::Value;

use crate::frame::Frame;
use crate::limits::{KNOWN_CLIENT_IDLE, MAX_CLIENT_NAME, MAX_KNOWN_CLIENTS};

/// Where a modern request says what its client can do.
const MODERN_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// The requests that can be answered with a question in the modern era.
const ASKING: [&str; 3] = ["tools/call", "prompts/get", "resources/read"];

/// Where a modern request says which client it is of.
const MODERN_CLIENT: &str = "io.modelcontextprotocol/clientInfo";

/// The sessions that servers gave out, by their routes, and what is known of their clients.
#[derive(Clone)]
pub struct Clients(Cache<(String, String), Known>);

/// What is known of the client of a session.
#[derive(Clone, Default)]
struct Known {
    can_be_asked: bool,
    /// What it calls itself.
    name: Option<Arc<str>>,
}

impl Default for Clients {
    fn default() -> Self {
        let idle: Duration = KNOWN_CLIENT_IDLE;
        Self(Cache::builder().max_capacity(MAX_KNOWN_CLIENTS).time_to_idle(idle).build())
    }
}

impl Clients {
    /// Remembers what an `initialize` said, once its answer named the session.
    pub fn met(&self, route: &str, mcp_session: &str, initialize: &Frame) {
        let can_be_asked = initialize.param("capabilities").is_some_and(has_form);
        let name = initialize.param("clientInfo").and_then(name_in).map(Arc::from);
        self.0.insert((route.to_owned(), mcp_session.to_owned()), Known { can_be_asked, name });
    }

    /// Whether the route's server gave out this session.
    #[must_use]
    pub fn knows(&self, route: &str, mcp_session: &str) -> bool {
        self.0.get(&(route.to_owned(), mcp_session.to_owned())).is_some()
    }

    /// Whether the client of this session can be asked.
    #[must_use]
    pub fn can_be_asked(&self, route: &str, mcp_session: &str) -> bool {
        self.0.get(&(route.to_owned(), mcp_session.to_owned())).is_some_and(|known| known.can_be_asked)
    }

    /// What the client of this session calls itself.
    #[must_use]
    pub fn name(&self, route: &str, mcp_session: &str) -> Option<String> {
        let known = self.0.get(&(route.to_owned(), mcp_session.to_owned()))?;
        known.name.as_deref().map(str::to_owned)
    }

    /// Forgets a session.
    pub fn gone(&self, route: &str, mcp_session: &str) {
        self.0.invalidate(&(route.to_owned(), mcp_session.to_owned()));
    }
}

/// What the client of a modern request calls itself.
#[must_use]
pub fn modern_name(request: &Frame) -> Option<String> {
    name_in(request.meta(MODERN_CLIENT)?)
}

/// The name in a `clientInfo`, if it is no longer than what is kept.
fn name_in(client_info: &str) -> Option<String> {
    let client_info = jose::json::parse_text(client_info).ok()?;
    let name = client_info.get("name").and_then(Value::as_str)?;
    (name.len() <= MAX_CLIENT_NAME).then(|| name.to_owned())
}

/// Whether a modern request of this method can be answered with a question.
#[must_use]
pub fn asks(method: &str) -> bool {
    ASKING.contains(&method)
}

/// Whether the client of a modern request can be asked.
#[must_use]
pub fn modern_can_be_asked(request: &Frame) -> bool {
    request.meta(MODERN_CAPABILITIES).is_some_and(has_form)
}

/// Whether capabilities hold elicitation by form: said without a mode, it is the form (2025-06-18).
fn has_form(capabilities: &str) -> bool {
    let Ok(capabilities) = jose::json::parse_text(capabilities) else { return false };
    match capabilities.get("elicitation").and_then(Value::as_object) {
        Some(modes) => modes.is_empty() || modes.contains_key("form") || !modes.contains_key("url"),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
