//! Capabilities: `mcp:<server>.<tool>` and `mcp:<server>.*` (section 2; R-13 to R-15).
//!
//! The server is the identifier in the gateway's configuration and has no dot, so the first dot separates it from the
//! tool, whose name may have some. A wildcard stands for the tools of the manifest that was pinned when the envelope was
//! first used; it is therefore subsumed by the same wildcard only.

use std::collections::BTreeSet;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::limits::{MAX_CAPABILITIES, MAX_NAME};
use crate::text::NotOfForm;

/// A tool of a server, as a call names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Capability {
    server: String,
    tool: String,
}

impl Capability {
    /// Names a tool of a server. The server's name must have no dot.
    pub fn new(server: &str, tool: &str) -> Result<Capability, NotOfForm> {
        let fits = is_server(server) && !tool.is_empty();
        let capability = || Capability { server: server.to_owned(), tool: tool.to_owned() };
        fits.then(capability).ok_or(NotOfForm("a server without a dot, and a tool"))
    }

    /// Returns the identifier of the server.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Returns the name of the tool.
    pub fn tool(&self) -> &str {
        &self.tool
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "mcp:{}.{}", self.server, self.tool)
    }
}

/// An element of a scope: one tool of a server, or all tools of its pinned manifest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Grant {
    server: String,
    /// `None` for the wildcard.
    tool: Option<String>,
}

impl Grant {
    /// Returns the identifier of the server.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Returns `true` if the grant is for all tools of the server's pinned manifest.
    pub fn is_wildcard(&self) -> bool {
        self.tool.is_none()
    }
}

impl std::str::FromStr for Grant {
    type Err = NotOfForm;

    fn from_str(text: &str) -> Result<Self, NotOfForm> {
        text.to_owned().try_into()
    }
}

impl std::str::FromStr for Capability {
    type Err = NotOfForm;

    fn from_str(text: &str) -> Result<Self, NotOfForm> {
        let parts = text.strip_prefix("mcp:").and_then(|pair| pair.split_once('.'));
        let (server, tool) = parts.ok_or(NotOfForm("mcp:<server>.<tool>"))?;
        Capability::new(server, tool)
    }
}

impl TryFrom<String> for Grant {
    type Error = NotOfForm;

    fn try_from(text: String) -> Result<Self, NotOfForm> {
        let parts = text
            .strip_prefix("mcp:")
            .filter(|_| text.chars().count() <= MAX_NAME)
            .and_then(|pair| pair.split_once('.'));
        let grant =
            parts.filter(|(server, tool)| is_server(server) && is_tool(tool)).map(|(server, tool)| Grant {
                server: server.to_owned(),
                tool: (tool != "*").then(|| tool.to_owned()),
            });
        grant.ok_or(NotOfForm("mcp:<server>.<tool> or mcp:<server>.*"))
    }
}

impl From<Grant> for String {
    fn from(grant: Grant) -> String {
        grant.to_string()
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "mcp:{}.{}", self.server, self.tool.as_deref().unwrap_or("*"))
    }
}

impl JsonSchema for Grant {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Capability".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "maxLength": MAX_NAME,
            "pattern": r"^mcp:[A-Za-z0-9_-]+\.(\*|[^*\u0000-\u001f\u007f]+)$",
        })
    }
}

fn is_server(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// A star stands for all tools and in no other name: `delete*` would read like a pattern.
fn is_tool(name: &str) -> bool {
    name == "*" || (!name.is_empty() && !name.contains('*') && !name.chars().any(char::is_control))
}

/// The capabilities of a scope, without repetitions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<Grant>", into = "Vec<Grant>")]
pub struct Capabilities(BTreeSet<Grant>);

impl Capabilities {
    /// Returns the grants in order.
    pub fn grants(&self) -> impl Iterator<Item = &Grant> {
        self.0.iter()
    }

    /// Returns the first grant that the other capabilities have and these do not subsume.
    pub fn first_beyond<'a>(&self, other: &'a Capabilities) -> Option<&'a Grant> {
        self.beyond(other).next()
    }

    /// Returns the grants that the other capabilities have and these do not subsume, in order.
    pub fn beyond<'a>(&self, other: &'a Capabilities) -> impl Iterator<Item = &'a Grant> {
        other.0.iter().filter(move |grant| !self.subsume(grant))
    }

    fn subsume(&self, grant: &Grant) -> bool {
        let wildcard = Grant { server: grant.server.clone(), tool: None };
        self.0.contains(grant) || self.0.contains(&wildcard)
    }

    /// Returns whether a tool is granted, by its name or by a wildcard whose pinned manifest has it.
    pub fn admit(&self, capability: &Capability, is_pinned: bool) -> bool {
        let exact = Grant { server: capability.server.clone(), tool: Some(capability.tool.clone()) };
        let wildcard = Grant { tool: None, ..exact.clone() };
        self.0.contains(&exact) || (is_pinned && self.0.contains(&wildcard))
    }
}

impl TryFrom<Vec<Grant>> for Capabilities {
    type Error = NotOfForm;

    fn try_from(grants: Vec<Grant>) -> Result<Self, NotOfForm> {
        let count = grants.len();
        let set: BTreeSet<Grant> = grants.into_iter().collect();
        let fits = (1..=MAX_CAPABILITIES).contains(&count) && set.len() == count;
        fits.then_some(Capabilities(set)).ok_or(NotOfForm("1 to 1024 different capabilities"))
    }
}

impl From<Capabilities> for Vec<Grant> {
    fn from(capabilities: Capabilities) -> Vec<Grant> {
        capabilities.0.into_iter().collect()
    }
}

impl JsonSchema for Capabilities {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Capabilities".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let items = generator.subschema_for::<Grant>();
        json_schema!({
            "type": "array", "minItems": 1, "maxItems": MAX_CAPABILITIES, "uniqueItems": true, "items": items,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(text: &str) -> Grant {
        Grant::try_from(text.to_owned()).expect("a grant")
    }

    fn capabilities(texts: &[&str]) -> Capabilities {
        Capabilities::try_from(texts.iter().map(|text| grant(text)).collect::<Vec<_>>())
            .expect("capabilities")
    }

    #[test]
    fn r_13_the_first_dot_ends_the_server() {
        let all = capabilities(&["mcp:github.*"]);
        assert_eq!(all.first_beyond(&capabilities(&["mcp:github.enterprise.delete"])), None);
        let other = Capability::new("github-enterprise", "delete").expect("a capability");
        assert!(!all.admit(&other, true));
        assert!(Capability::new("github.enterprise", "delete").is_err());
    }

    #[test]
    fn r_14_a_wildcard_is_within_the_same_wildcard_only() {
        let named = capabilities(&["mcp:github.a", "mcp:github.b"]);
        let wildcard = capabilities(&["mcp:github.*"]);
        assert_eq!(named.first_beyond(&wildcard), Some(&grant("mcp:github.*")));
        assert_eq!(wildcard.first_beyond(&wildcard), None);
        assert_eq!(wildcard.first_beyond(&named), None);
    }

    #[test]
    fn r_14_a_wildcard_admits_a_tool_of_the_pinned_manifest_only() {
        let wildcard = capabilities(&["mcp:github.*", "mcp:files.read"]);
        let tool = |server, tool| Capability::new(server, tool).expect("a capability");
        assert!(wildcard.admit(&tool("github", "a"), true) && !wildcard.admit(&tool("github", "a"), false));
        assert!(
            wildcard.admit(&tool("files", "read"), false) && !wildcard.admit(&tool("files", "write"), true)
        );
    }

    #[test]
    fn a_name_is_as_long_as_its_characters() {
        let name = |length: usize| format!("mcp:a.{}", "é".repeat(length - 6));
        assert!(Grant::try_from(name(MAX_NAME)).is_ok());
        assert!(Grant::try_from(name(MAX_NAME + 1)).is_err());
    }

    #[test]
    fn patterns_other_than_the_wildcard_are_refused() {
        for bad in [
            "mcp:github",
            "mcp:github.",
            "mcp:.tool",
            "mcp:github.del*",
            "mcp:*.tool",
            "github.tool",
            "mcp:git hub.a",
        ] {
            assert!(Grant::try_from(bad.to_owned()).is_err(), "{bad}");
        }
        assert!(Capabilities::try_from(Vec::new()).is_err());
        assert!(Capabilities::try_from(vec![grant("mcp:a.b"), grant("mcp:a.b")]).is_err());
    }
}
