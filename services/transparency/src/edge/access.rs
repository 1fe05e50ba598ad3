//! Access control for reads: the role that each resource requires, and the closed content types.
//!
//! A caller's role comes from its bearer token, or from the setting `anonymous_role` without one. Roles are ordered:
//! each includes the permissions of the ones before it. Evidence of the log's conduct (keys, checkpoints, tiles,
//! proofs, receipts, the policy) is always public: offline verification, monitors and witnesses need no token for it.
//!
//! Statements and payloads of *closed* content types are readable by auditors only. Closing hides bytes, never entries:
//! digests, positions and proofs of closed entries stay public.

use std::sync::Arc;

use http::StatusCode;

use crate::config::roles::{CallerRole, Scope};
use crate::edge::problem::Problem;

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
        | "/openapi.json"
        | "/"
        | "/ui"
        | "/ui/"
        | "/ui/style.css"
        | "/ui/entries/{entry_id}/proof"
        | "/ui/entries/{entry_id}/receipt"
        | "/ui/checkpoints"
        | "/ui/consistency"
        | "/ui/policy"
        | "/ui/policy/{revision}"
        | "/ui/growth"
        | "/ui/status" => Public,
        page if page.starts_with("/docs") => Public,
        file if file == "/ui/verify" || file.starts_with("/ui/verify/") => Public,
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
        | "/v1/streams/{gateway}/{stream}"
        | "/ui/search"
        | "/ui/entries/{entry_id}"
        | "/ui/issuers/{iss}"
        | "/ui/issuers/{iss}/chain"
        | "/ui/sessions"
        | "/ui/sessions/{session}"
        | "/ui/bundle"
        | "/ui/alarms" => Reader,
        _ => return None,
    };
    Some(role)
}

/// The caller of a request, as the rate limiter's middleware authenticated it.
#[derive(Clone, Debug)]
pub struct AuthenticatedCaller {
    /// The token's name; `None` for a caller without a token.
    pub name: Option<Arc<str>>,
    /// The caller's permissions.
    pub role: CallerRole,
    /// The issuers and content types that the caller is restricted to.
    pub scope: Arc<Scope>,
}

impl AuthenticatedCaller {
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
