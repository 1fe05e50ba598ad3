//! Access control for reads: the role that each resource requires, and the closed content types.
//!
//! A caller's role comes from its bearer token, or from the setting `anonymous_role` without one. Roles are ordered:
//! each includes the permissions of the ones before it. Evidence of the log's conduct (keys, checkpoints, tiles,
//! proofs, receipts, the policy) is always public: offline verification, monitors and witnesses need no token for it.
//!
//! Statements and payloads of *closed* content types are readable by auditors only. Closing hides bytes, never entries:
//! digests, positions and proofs of closed entries stay public.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use http::StatusCode;
use registration::policy::essence;

use crate::config::ClosedTypes;
use crate::problem::Problem;

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

/// Returns the role that a route of the public listener requires, or `None` for a route not listed here, which refuses
/// every caller. A path without a route is public.
///
/// Registering and the dry run are not reads: `token_required` and the [`Scope`] of a token govern them.
pub fn needed(path: &str) -> Option<CallerRole> {
    use CallerRole::{Public, Reader};
    let role = match path {
        "/entries"
        | "/entries/{entry_id}"
        | "/v1/entries/batch"
        | "/v1/policy/evaluate"
        | "/.well-known/scitt-keys"
        | "/.well-known/scitt-keys/{kid_value}"
        | "/.well-known/scitt-configuration"
        | "/.well-known/transparency-configuration"
        | "/checkpoint"
        | "/tile/{*path}"
        | "/v1/checkpoints"
        | "/v1/checkpoints/{size}"
        | "/v1/proof/inclusion"
        | "/v1/proof/consistency"
        | "/v1/witnesses"
        | "/v1/limits"
        | "/v1/policy"
        | "/v1/policy/{revision}"
        | "/v1/erasures"
        | "/v1/erasures/{sequence}"
        | "/openapi.json" => Public,
        page if page.starts_with("/docs") => Public,
        "/v1/entries"
        | "/v1/entries/stream"
        | "/v1/entries/{entry_id}"
        | "/v1/entries/{entry_id}/links"
        | "/v1/entries/{entry_id}/statement"
        | "/v1/entries/{entry_id}/transparent"
        | "/v1/entries/{entry_id}/payload"
        | "/v1/entries/{entry_id}/evidence"
        | "/v1/evidence"
        | "/v1/equivocations"
        | "/v1/issuers/{iss}"
        | "/v1/issuers/{iss}/chain"
        | "/v1/agents/{sub}/summary"
        | "/v1/sessions/{session}"
        | "/v1/streams/{gateway}"
        | "/v1/streams/{gateway}/{stream}" => Reader,
        _ => return None,
    };
    Some(role)
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

/// The caller of a request, as the rate limiter's middleware authenticated it.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The token's name; `None` for a caller without a token.
    pub name: Option<Arc<str>>,
    /// The caller's permissions.
    pub role: CallerRole,
    /// The issuers and content types that the caller is restricted to.
    pub scope: Arc<Scope>,
}

impl Caller {
    /// A caller without a token.
    pub fn anonymous(role: CallerRole) -> Self {
        Self { name: None, role, scope: Arc::default() }
    }

    /// Refuses a caller whose role is below `needed`.
    ///
    /// # Errors
    /// 401 without a token, 403 with one ([`refusal`](Self::refusal)).
    pub fn must_be(&self, needed: CallerRole) -> Result<(), Problem> {
        if self.role >= needed { Ok(()) } else { Err(self.refusal(needed)) }
    }

    /// Refuses to register a statement outside the token's scope.
    ///
    /// # Errors
    /// 403 with the code `token-scope`.
    pub fn must_cover(&self, issuer: Option<&str>, content_type: Option<&str>) -> Result<(), Problem> {
        if self.scope.covers(issuer, content_type) {
            return Ok(());
        }
        let detail = "The token is bound to other issuers or content types than this statement's";
        Err(Problem::new(StatusCode::FORBIDDEN, "token-scope", "Forbidden", detail))
    }

    /// Returns `true` if the caller may read closed bodies of this issuer and content type.
    pub fn may_read_closed(&self, issuer: Option<&str>, content_type: Option<&str>) -> bool {
        self.role >= CallerRole::Auditor && self.scope.covers(issuer, content_type)
    }

    /// The problem for a caller whose role is below `needed`: 401 without a token, 403 with one.
    pub fn refusal(&self, needed: CallerRole) -> Problem {
        match &self.name {
            None => {
                let detail = format!("A bearer token with the role {needed} is required");
                Problem::new(StatusCode::UNAUTHORIZED, "token", "Unauthorized", detail)
            }
            Some(_) => {
                let detail = format!("The token has the role {}; {needed} is required", self.role);
                Problem::new(StatusCode::FORBIDDEN, "role-required", "Forbidden", detail)
            }
        }
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
