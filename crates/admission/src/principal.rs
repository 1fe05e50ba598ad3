//! The principal that owns a session (reading V-2). An agent chooses its `session_id`, so knowledge of the id must not
//! be enough to spend from the session.
//!
//! The principal is fixed at the commitment as the first of these that exists: access token, certificate or DPoP
//! thumbprint, legacy `Mcp-Session-Id`, the key that signed the commitment. Every later message has to present the same
//! one. In the legacy era the `Mcp-Session-Id` has to be equal too.
//!
//! A client can send any `Mcp-Session-Id`, and two servers may issue the same one. So it identifies the principal of a
//! commitment only if the gateway saw the server of the same route issue it. Later messages of that principal need only
//! present it, since a gateway that was restarted does not know which ids were issued.
//!
//! The agent's name is independent of the principal: a commitment may contain any `agent_id`. [`ProvenBy`] records the
//! evidence for the name.
//!
//! Not here: the validation of tokens and certificates, which the gateway does before it calls this crate.

use serde::{Deserialize, Serialize};

/// The generation of MCP revisions that the caller speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Era {
    /// 2025-06-18 and 2025-11-25: with `initialize` and sessions.
    Legacy,
    /// 2026-07-28: stateless, without sessions.
    Modern,
}

/// The identity of a client as the transport established it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The generation of MCP revisions that the client speaks.
    pub era: Era,
    /// The subject of the client's validated access token.
    pub token: Option<TokenSubject>,
    /// The thumbprint of the client's certificate or DPoP key.
    pub certificate: Option<String>,
    /// The client's `Mcp-Session-Id`; on `initialize`, the one in the server's response.
    pub mcp_session: Option<String>,
    /// `true` if the gateway saw the route's server issue `mcp_session`. Otherwise that id identifies no principal.
    pub is_session_issued: bool,
    /// The route of the request; an `Mcp-Session-Id` is valid only for one route.
    pub route: String,
}

/// The evidence that a message is from the agent named in `agent_id`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProvenBy {
    /// No evidence: the agent only claims the name.
    #[default]
    Asserted,
    /// A key or access token of the agent proved the session's commitment, and the message is from the same principal.
    Session,
    /// The request has an access token that the operator assigned to the agent.
    Token,
    /// A key of the agent signed the message.
    Key,
    /// The operator named the agent, in a commitment for clients without VAP.
    Operator,
}

impl ProvenBy {
    /// Returns the name used in records and in the operator's rules.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            ProvenBy::Asserted => "asserted",
            ProvenBy::Session => "session",
            ProvenBy::Token => "token",
            ProvenBy::Key => "key",
            ProvenBy::Operator => "operator",
        }
    }
}

/// The subject of an access token.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenSubject {
    /// The issuer (`iss` claim).
    pub iss: String,
    /// The subject (`sub` claim).
    pub sub: String,
    /// The OAuth client (`client_id` claim), if the token has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
}

/// The evidence by which a [`Principal`] is recognised.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Identity {
    /// An access token with this subject.
    Token(TokenSubject),
    /// A client certificate or DPoP key with this thumbprint.
    Certificate(String),
    /// A legacy MCP session of the server behind a route.
    McpSession {
        /// The name of the route.
        route: String,
        /// The `Mcp-Session-Id`.
        id: String,
    },
    /// A signing key with this RFC 7638 thumbprint.
    SigningKey(String),
    /// Nothing: all callers of a route that nothing identifies, together. Only a session that the operator committed has
    /// this principal.
    Unidentified {
        /// The name of the route.
        route: String,
    },
}

/// The owner of a session.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Principal {
    identity: Identity,
    /// In the legacy era, the `Mcp-Session-Id` that later messages must present too, for every kind of identity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mcp_session: Option<String>,
}

impl Principal {
    /// Determines the principal of a commitment; `None` if the request identifies no principal. `signed_by` is the
    /// thumbprint of the key whose signature was verified.
    pub fn of(caller: &Caller, signed_by: Option<&str>) -> Option<Principal> {
        let token = caller.token.clone().map(Identity::Token);
        let certificate = || caller.certificate.clone().map(Identity::Certificate);
        let mcp_session =
            || caller.legacy_session().filter(|_| caller.is_session_issued).map(|id| caller.identity_by(id));
        let key = || signed_by.map(|key| Identity::SigningKey(key.to_owned()));
        let identity = token.or_else(certificate).or_else(mcp_session).or_else(key)?;
        Some(Principal { identity, mcp_session: caller.legacy_session().map(str::to_owned) })
    }

    /// Determines the principal of a session that the operator commits for this caller.
    #[must_use]
    pub fn under_operator(caller: &Caller) -> Principal {
        Principal::of(caller, None).unwrap_or_else(|| Principal {
            identity: Identity::Unidentified { route: caller.route.clone() },
            mcp_session: None,
        })
    }

    /// Returns `true` if a later message presents the same principal.
    pub fn is_presented_by(&self, caller: &Caller, signed_by: Option<&str>) -> bool {
        let identity = match &self.identity {
            Identity::Unidentified { route } => {
                return caller.route == *route && caller.token.is_none() && caller.certificate.is_none();
            }
            Identity::Token(token) => caller.token.as_ref() == Some(token),
            Identity::Certificate(thumbprint) => caller.certificate.as_ref() == Some(thumbprint),
            Identity::McpSession { route, id } => {
                caller.route == *route && caller.legacy_session() == Some(id)
            }
            Identity::SigningKey(thumbprint) => signed_by == Some(thumbprint),
        };
        identity && self.mcp_session.as_deref() == caller.legacy_session()
    }

    /// Returns the identity under which the principal's spending is counted over all its sessions: a token, a
    /// certificate or the key that signed the commitment. `None` if only an MCP session identifies the principal, since
    /// a client can open any number of them.
    #[must_use]
    pub fn ledger(&self, signed_by: Option<&str>) -> Option<Identity> {
        match &self.identity {
            Identity::McpSession { .. } | Identity::Unidentified { .. } => {
                signed_by.map(|key| Identity::SigningKey(key.to_owned()))
            }
            Identity::Token(_) | Identity::Certificate(_) | Identity::SigningKey(_) => {
                Some(self.identity.clone())
            }
        }
    }

    /// Returns the evidence by which the principal is recognised.
    pub const fn identity(&self) -> &Identity {
        &self.identity
    }
}

impl Caller {
    /// Creates a caller without token, certificate, MCP session or route.
    pub const fn unknown(era: Era) -> Caller {
        Caller {
            era,
            token: None,
            certificate: None,
            mcp_session: None,
            is_session_issued: false,
            route: String::new(),
        }
    }

    /// Returns the caller with an `Mcp-Session-Id` that the route's server issued.
    #[must_use]
    pub fn with_issued_session(self, mcp_session: Option<String>) -> Caller {
        Caller { is_session_issued: mcp_session.is_some(), mcp_session, ..self }
    }

    /// Returns the caller as if its `Mcp-Session-Id` had been issued by the route's server, if this id is its only
    /// identification and no issuance was seen. Otherwise `None`. Only for lookups of existing sessions and for the
    /// owner of a task, since a client may have invented the id.
    #[must_use]
    pub fn presumed(&self) -> Option<Caller> {
        let anonymous = self.token.is_none() && self.certificate.is_none() && !self.is_session_issued;
        self.legacy_session()
            .filter(|_| anonymous)
            .map(|id| self.clone().with_issued_session(Some(id.to_owned())))
    }

    fn identity_by(&self, session: &str) -> Identity {
        Identity::McpSession { route: self.route.clone(), id: session.to_owned() }
    }

    /// Returns the `Mcp-Session-Id` in the legacy era. The modern era has no sessions, so the header is ignored.
    fn legacy_session(&self) -> Option<&str> {
        self.mcp_session.as_deref().filter(|_| self.era == Era::Legacy)
    }
}

/// Returns the key of the caller's [`Account`](crate::session::Account); `None` if the request identifies no principal.
/// `signed_by` is the thumbprint of the key whose signature was verified.
///
/// The key of a principal with a token, a certificate or a signing key does not depend on its MCP session: a new session
/// does not give a new budget (reading V-3).
#[must_use]
pub fn account_key(caller: &Caller, signed_by: Option<&str>) -> Option<String> {
    Principal::of(caller, signed_by).map(|principal| principal_key(&principal))
}

/// Returns the account key of a principal.
#[must_use]
pub fn principal_key(principal: &Principal) -> String {
    identity_key(principal.identity())
}

/// Returns the account key of an identity: a digest of its kind and parts.
#[must_use]
pub fn identity_key(identity: &Identity) -> String {
    let (kind, parts) = match identity {
        Identity::Token(token) => {
            let client = token.client_id.as_deref().unwrap_or_default();
            ("token", vec![token.iss.as_str(), token.sub.as_str(), client])
        }
        Identity::Certificate(thumbprint) => ("certificate", vec![thumbprint.as_str()]),
        Identity::McpSession { route, id } => ("mcp", vec![route.as_str(), id.as_str()]),
        Identity::SigningKey(thumbprint) => ("key", vec![thumbprint.as_str()]),
        Identity::Unidentified { route } => ("route", vec![route.as_str()]),
    };
    let mut all = vec![kind];
    all.extend(parts);
    vap::digest::Digest::of(&jose::jcs::canonical(&serde_json::json!(all))).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(sub: &str) -> TokenSubject {
        TokenSubject { iss: "https://as.example".into(), sub: sub.into(), client_id: Some("cli".into()) }
    }

    fn modern() -> Caller {
        Caller::unknown(Era::Modern)
    }

    fn legacy(session: &str) -> Caller {
        let caller = Caller { route: "/mcp".into(), ..Caller::unknown(Era::Legacy) };
        caller.with_issued_session(Some(session.into()))
    }

    #[test]
    fn v_2_the_first_that_exists_is_the_principal() {
        let mut caller =
            Caller { token: Some(token("alice")), certificate: Some("thumb".into()), ..legacy("mcp-1") };
        let identity = |caller: &Caller| Principal::of(caller, Some("key")).unwrap().identity().clone();
        assert_eq!(identity(&caller), Identity::Token(token("alice")));
        caller.token = None;
        assert_eq!(identity(&caller), Identity::Certificate("thumb".into()));
        caller.certificate = None;
        let by_session = Identity::McpSession { route: "/mcp".into(), id: "mcp-1".into() };
        assert_eq!(identity(&caller), by_session);
        caller.mcp_session = None;
        assert_eq!(identity(&caller), Identity::SigningKey("key".into()));
    }

    #[test]
    fn v_2_modern_with_nothing_has_no_principal() {
        assert_eq!(Principal::of(&modern(), None), None);
        let header_without_meaning = Caller { mcp_session: Some("mcp-1".into()), ..modern() };
        assert_eq!(Principal::of(&header_without_meaning, None), None);
    }

    #[test]
    fn v_2_an_mcp_session_that_nobody_gave_out_makes_no_principal() {
        let invented = Caller { is_session_issued: false, ..legacy("mcp-1") };
        assert_eq!(Principal::of(&invented, None), None);
        let signed = Principal::of(&invented, Some("key")).unwrap();
        assert_eq!(signed.identity(), &Identity::SigningKey("key".into()));
        assert!(
            !signed.is_presented_by(&Caller { is_session_issued: false, ..legacy("mcp-2") }, Some("key"))
        );
    }

    #[test]
    fn v_2_after_a_restart_an_mcp_session_goes_on_with_what_it_committed() {
        let principal = Principal::of(&legacy("mcp-1"), None).unwrap();
        assert!(principal.is_presented_by(&Caller { is_session_issued: false, ..legacy("mcp-1") }, None));
        assert!(!principal.is_presented_by(&Caller { is_session_issued: false, ..legacy("mcp-2") }, None));
    }

    #[test]
    fn v_2_the_mcp_session_of_one_server_is_not_that_of_another() {
        let elsewhere = Caller { route: "/other".into(), ..legacy("mcp-1") };
        assert!(!Principal::of(&legacy("mcp-1"), None).unwrap().is_presented_by(&elsewhere, None));
        assert_ne!(Principal::of(&legacy("mcp-1"), None), Principal::of(&elsewhere, None));
    }

    #[test]
    fn v_2_knowing_a_session_id_is_not_enough() {
        let alice = Caller { token: Some(token("alice")), ..modern() };
        let mallory = Caller { token: Some(token("mallory")), ..modern() };
        let principal = Principal::of(&alice, None).unwrap();
        assert!(principal.is_presented_by(&alice, Some("any key")));
        assert!(!principal.is_presented_by(&mallory, None));
        assert!(!principal.is_presented_by(&modern(), None));
        let other_client = TokenSubject { client_id: Some("other".into()), ..token("alice") };
        assert!(!principal.is_presented_by(&Caller { token: Some(other_client), ..modern() }, None));
    }

    #[test]
    fn v_2_in_the_legacy_era_the_mcp_session_is_equal_too() {
        let alice = |session: &str| Caller { token: Some(token("alice")), ..legacy(session) };
        let principal = Principal::of(&alice("mcp-1"), None).unwrap();
        assert!(principal.is_presented_by(&alice("mcp-1"), None));
        assert!(!principal.is_presented_by(&alice("mcp-2"), None));
        assert!(!principal.is_presented_by(&Caller { mcp_session: None, ..alice("") }, None));
        assert!(!principal.is_presented_by(&Caller { era: Era::Modern, ..alice("mcp-1") }, None));
    }

    #[test]
    fn v_2_a_principal_known_by_its_key_signs_every_message() {
        let principal = Principal::of(&modern(), Some("key")).unwrap();
        assert!(principal.is_presented_by(&modern(), Some("key")));
        assert!(!principal.is_presented_by(&modern(), Some("other")));
        assert!(!principal.is_presented_by(&modern(), None));
    }

    #[test]
    fn a_principal_reads_back() {
        let principal =
            Principal::of(&Caller { token: Some(token("alice")), ..legacy("mcp-1") }, None).unwrap();
        let text = serde_json::to_string(&principal).unwrap();
        assert_eq!(serde_json::from_str::<Principal>(&text).unwrap(), principal);
    }
}
