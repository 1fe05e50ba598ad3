//! The roles of callers, the scope of a token, and the closed content types.

use std::fmt;
use std::str::FromStr;

use registration::conversation::AGENT_CONVERSATION;
use registration::policy::essence;
use vap::audit::VAP_AUDIT;

/// A caller's permissions. Each role includes the ones before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CallerRole {
    /// May read keys, checkpoints, tiles, proofs, receipts and policies.
    Public,
    /// May also read facts, search, streams, and the bodies of content types that are not closed.
    Reader,
    /// May also read the bodies of closed content types.
    Auditor,
    /// May also give the commands of the admin listener.
    Operator,
}

/// Roles by their names in the configuration.
const NAMES: [(&str, CallerRole); 4] = [
    ("public", CallerRole::Public),
    ("reader", CallerRole::Reader),
    ("auditor", CallerRole::Auditor),
    ("operator", CallerRole::Operator),
];

impl FromStr for CallerRole {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = NAMES.iter().find(|(name, _)| *name == text);
        named
            .map(|(_, role)| *role)
            .ok_or_else(|| format!("{text:?} is not a role: public, reader, auditor or operator"))
    }
}

impl fmt::Display for CallerRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = NAMES.iter().find(|(_, role)| role == self);
        f.write_str(named.map_or("", |(name, _)| name))
    }
}

/// The issuers and content types that a token is restricted to. An empty list does not restrict.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Issuers (`iss`).
    pub issuers: Vec<String>,
    /// Content types, without parameters.
    pub content_types: Vec<String>,
}

impl Scope {
    /// Returns `true` if a statement of this issuer and content type is within the scope.
    pub fn covers(&self, issuer: Option<&str>, content_type: Option<&str>) -> bool {
        let is_issuer = |issuer: &str| self.issuers.iter().any(|listed| listed == issuer);
        let is_type = |content_type: &str| is_listed(&self.content_types, content_type);
        (self.issuers.is_empty() || issuer.is_some_and(is_issuer))
            && (self.content_types.is_empty() || content_type.is_some_and(is_type))
    }
}

/// Returns `true` if the list contains the content type. Parameters and case are ignored, as in a registration policy.
fn is_listed(types: &[String], content_type: &str) -> bool {
    let wanted = essence(content_type);
    types.iter().any(|listed| essence(listed) == wanted)
}

impl ClosedTypes {
    /// Returns `true` if bodies of this content type are closed. A statement without a content type, such as a hash
    /// envelope, contains no body.
    pub fn holds(&self, content_type: Option<&str>) -> bool {
        content_type.is_some_and(|content_type| is_listed(&self.0, content_type))
    }
}

/// Content types, without parameters, whose statements and payloads only auditors may read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosedTypes(pub Vec<String>);

impl Default for ClosedTypes {
    /// The default closes conversation records, which contain whole prompts, and audit records, which contain agents,
    /// tools and budgets in clear.
    fn default() -> Self {
        Self(vec![AGENT_CONVERSATION.to_owned(), VAP_AUDIT.to_owned()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_type_is_closed_however_it_is_spelt() {
        let closed = ClosedTypes::default();
        for spelt in [
            "application/agent-conversation",
            "Application/Agent-Conversation",
            "application/vap-audit+json ; v=1",
        ] {
            assert!(closed.holds(Some(spelt)), "{spelt}");
        }
        assert!(!closed.holds(Some("application/json")) && !closed.holds(None));
        assert!(ClosedTypes(vec!["Application/JSON".into()]).holds(Some("application/json")));
    }

    #[test]
    fn a_scope_covers_what_it_lists_and_an_empty_list_covers_everything() {
        let scope = Scope { issuers: vec!["a".into()], content_types: vec!["application/json".into()] };
        assert!(scope.covers(Some("a"), Some("application/JSON; charset=utf-8")));
        for (issuer, content_type) in [
            (Some("b"), Some("application/json")),
            (Some("a"), Some("text/plain")),
            (None, None),
            (Some("a"), None),
        ] {
            assert!(!scope.covers(issuer, content_type), "{issuer:?} {content_type:?}");
        }
        assert!(Scope::default().covers(None, None));
    }
}
