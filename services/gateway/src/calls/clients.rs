//! What is known of legacy sessions: that the server gave them out, and whether their clients can be asked (the elicitation
//! capability).
//!
//! In the modern era every request says so. In the legacy eras `initialize` says it once, for the MCP session that the
//! answer names; so it is remembered, for as many sessions as there is room. A session that is not remembered (the gateway
//! was restarted, or it is another replica's) cannot be asked: its calls are answered as those of a client without the
//! capability, and it is nobody that could commit anew; what it committed before goes on (V-2).

use std::time::Duration;

use moka::sync::Cache;
use serde_json::Value;

use crate::frame::Frame;
use crate::limits::{KNOWN_CLIENT_IDLE, MAX_KNOWN_CLIENTS};

/// Where a modern request says what its client can do.
const MODERN_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// The requests that can be answered with a question in the modern era.
const ASKING: [&str; 3] = ["tools/call", "prompts/get", "resources/read"];

/// The sessions that servers gave out, by their routes, and whether their clients can be asked.
#[derive(Clone)]
pub struct Clients(Cache<(String, String), bool>);

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
        self.0.insert((route.to_owned(), mcp_session.to_owned()), can_be_asked);
    }

    /// Whether the route's server gave out this session.
    #[must_use]
    pub fn knows(&self, route: &str, mcp_session: &str) -> bool {
        self.0.get(&(route.to_owned(), mcp_session.to_owned())).is_some()
    }

    /// Whether the client of this session can be asked.
    #[must_use]
    pub fn can_be_asked(&self, route: &str, mcp_session: &str) -> bool {
        self.0.get(&(route.to_owned(), mcp_session.to_owned())).unwrap_or(false)
    }

    /// Forgets a session.
    pub fn gone(&self, route: &str, mcp_session: &str) {
        self.0.invalidate(&(route.to_owned(), mcp_session.to_owned()));
    }
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
