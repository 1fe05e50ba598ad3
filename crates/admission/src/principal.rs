//! Whose session it is (reading V-2): an agent chooses its `session_id`, so knowing one must not be enough to spend from it.
//!
//! The principal is fixed at the commitment as the first that exists of: access token, certificate or DPoP thumbprint,
//! legacy `Mcp-Session-Id`, the key that signed the commitment. Every later message has to show the same. In the legacy era
//! the MCP session has to be the same too.
//!
//! Anybody can write any `Mcp-Session-Id`, and two servers may give out the same one: it makes a principal only where the
//! server of that very route was seen to give it out. A principal that it has made is shown by it ever after, even to a
//! gateway that was started again and has seen nothing.
//!
//! The name of an agent is another matter: a commitment may say any `agent_id`. [`ProvenBy`] says whether a name was shown.
//!
//! Not here: how a token or a certificate is checked (the gateway's front).

use serde::{Deserialize, Serialize};

/// Which revisions of MCP the caller speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Era {
    /// 2025-06-18 and 2025-11-25: `initialize`, sessions.
    Legacy,
    /// 2026-07-28: every request stands alone.
    Modern,
}

/// Who calls, as the transport knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Which revisions of MCP it speaks.
    pub era: Era,
    /// Whose access token it showed.
    pub token: Option<TokenSubject>,
    /// The thumbprint of its certificate or DPoP key.
    pub certificate: Option<String>,
    /// Its `Mcp-Session-Id`. On `initialize` that is the one of the answer.
    pub mcp_session: Option<String>,
    /// Whether the route's server was seen to give out that id. If it was not, it makes no principal.
    pub is_given: bool,
    /// The route it came in on: an `Mcp-Session-Id` means something there alone.
    pub route: String,
}

/// How it was shown that a message is of the agent whose `agent_id` it says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProvenBy {
    /// It was not: the name is the agent's word.
    #[default]
    Asserted,
    /// A key of the agent signed the commitment, and the message came from the same principal.
    Session,
    /// The message came with an access token that the operator has given to the agent.
    Token,
    /// A key of the agent signed the message.
    Key,
}

impl ProvenBy {
    /// The word of records and rules.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            ProvenBy::Asserted => "asserted",
            ProvenBy::Session => "session",
            ProvenBy::Token => "token",
            ProvenBy::Key => "key",
        }
    }
}

/// Whose access token it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenSubject {
    /// Who issued it.
    pub iss: String,
    /// To whom.
    pub sub: String,
    /// Through which client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
}

/// What a principal is known by.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Identity {
    /// An access token of this subject.
    Token(TokenSubject),
    /// A certificate or DPoP key with this thumbprint.
    Certificate(String),
    /// A legacy MCP session of the server behind a route.
    McpSession {
        /// The route.
        route: String,
        /// The session's id.
        id: String,
    },
    /// The signing key with this RFC 7638 thumbprint.
    SigningKey(String),
}

/// Whose session it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Principal {
    identity: Identity,
    /// In the legacy era this has to be shown too, whatever the identity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mcp_session: Option<String>,
}

impl Principal {
    /// The principal of a commitment; none if nothing says who it is. `signed_by` is the thumbprint of the key whose
    /// signature was verified.
    pub fn of(caller: &Caller, signed_by: Option<&str>) -> Option<Principal> {
        let token = caller.token.clone().map(Identity::Token);
        let certificate = || caller.certificate.clone().map(Identity::Certificate);
        let mcp_session =
            || caller.legacy_session().filter(|_| caller.is_given).map(|id| caller.identity_by(id));
        let key = || signed_by.map(|key| Identity::SigningKey(key.to_owned()));
        let identity = token.or_else(certificate).or_else(mcp_session).or_else(key)?;
        Some(Principal { identity, mcp_session: caller.legacy_session().map(str::to_owned) })
    }

    /// Whether a later message shows the same principal.
    pub fn is_shown_by(&self, caller: &Caller, signed_by: Option<&str>) -> bool {
        let identity = match &self.identity {
            Identity::Token(token) => caller.token.as_ref() == Some(token),
            Identity::Certificate(thumbprint) => caller.certificate.as_ref() == Some(thumbprint),
            Identity::McpSession { route, id } => {
                caller.route == *route && caller.legacy_session() == Some(id)
            }
            Identity::SigningKey(thumbprint) => signed_by == Some(thumbprint),
        };
        identity && self.mcp_session.as_deref() == caller.legacy_session()
    }

    /// What it spends is counted under this, over all its sessions: a token, a certificate or the key that signed the commitment.
    /// None if only an MCP session says who it is, for a caller can open as many as it likes.
    #[must_use]
    pub fn ledger(&self, signed_by: Option<&str>) -> Option<Identity> {
        match &self.identity {
            Identity::McpSession { .. } => signed_by.map(|key| Identity::SigningKey(key.to_owned())),
            Identity::Token(_) | Identity::Certificate(_) | Identity::SigningKey(_) => {
                Some(self.identity.clone())
            }
        }
    }

    /// What it is known by.
    pub const fn identity(&self) -> &Identity {
        &self.identity
    }
}

impl Caller {
    /// A caller of the modern era of whom nothing is known.
    pub const fn unknown(era: Era) -> Caller {
        Caller {
            era,
            token: None,
            certificate: None,
            mcp_session: None,
            is_given: false,
            route: String::new(),
        }
    }

    /// The same caller in an MCP session that the route's server gives out.
    #[must_use]
    pub fn given(self, mcp_session: Option<String>) -> Caller {
        Caller { is_given: mcp_session.is_some(), mcp_session, ..self }
    }

    /// The same caller, if its `Mcp-Session-Id` is all that could say who it is and was not seen to be given out: as if it had
    /// been. Only for looking up what is on record already.
    #[must_use]
    pub fn presumed(&self) -> Option<Caller> {
        let anonymous = self.token.is_none() && self.certificate.is_none() && !self.is_given;
        self.legacy_session().filter(|_| anonymous).map(|id| self.clone().given(Some(id.to_owned())))
    }

    fn identity_by(&self, session: &str) -> Identity {
        Identity::McpSession { route: self.route.clone(), id: session.to_owned() }
    }

    /// The modern era has no sessions: a header of that name means nothing there.
    fn legacy_session(&self) -> Option<&str> {
        self.mcp_session.as_deref().filter(|_| self.era == Era::Legacy)
    }
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
        caller.given(Some(session.into()))
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
        let invented = Caller { is_given: false, ..legacy("mcp-1") };
        assert_eq!(Principal::of(&invented, None), None);
        let signed = Principal::of(&invented, Some("key")).unwrap();
        assert_eq!(signed.identity(), &Identity::SigningKey("key".into()));
        assert!(!signed.is_shown_by(&Caller { is_given: false, ..legacy("mcp-2") }, Some("key")));
    }

    #[test]
    fn v_2_after_a_restart_an_mcp_session_goes_on_with_what_it_committed() {
        let principal = Principal::of(&legacy("mcp-1"), None).unwrap();
        assert!(principal.is_shown_by(&Caller { is_given: false, ..legacy("mcp-1") }, None));
        assert!(!principal.is_shown_by(&Caller { is_given: false, ..legacy("mcp-2") }, None));
    }

    #[test]
    fn v_2_the_mcp_session_of_one_server_is_not_that_of_another() {
        let elsewhere = Caller { route: "/other".into(), ..legacy("mcp-1") };
        assert!(!Principal::of(&legacy("mcp-1"), None).unwrap().is_shown_by(&elsewhere, None));
        assert_ne!(Principal::of(&legacy("mcp-1"), None), Principal::of(&elsewhere, None));
    }

    #[test]
    fn v_2_knowing_a_session_id_is_not_enough() {
        let alice = Caller { token: Some(token("alice")), ..modern() };
        let mallory = Caller { token: Some(token("mallory")), ..modern() };
        let principal = Principal::of(&alice, None).unwrap();
        assert!(principal.is_shown_by(&alice, Some("any key")));
        assert!(!principal.is_shown_by(&mallory, None));
        assert!(!principal.is_shown_by(&modern(), None));
        let other_client = TokenSubject { client_id: Some("other".into()), ..token("alice") };
        assert!(!principal.is_shown_by(&Caller { token: Some(other_client), ..modern() }, None));
    }

    #[test]
    fn v_2_in_the_legacy_era_the_mcp_session_is_equal_too() {
        let alice = |session: &str| Caller { token: Some(token("alice")), ..legacy(session) };
        let principal = Principal::of(&alice("mcp-1"), None).unwrap();
        assert!(principal.is_shown_by(&alice("mcp-1"), None));
        assert!(!principal.is_shown_by(&alice("mcp-2"), None));
        assert!(!principal.is_shown_by(&Caller { mcp_session: None, ..alice("") }, None));
        assert!(!principal.is_shown_by(&Caller { era: Era::Modern, ..alice("mcp-1") }, None));
    }

    #[test]
    fn v_2_a_principal_known_by_its_key_signs_every_message() {
        let principal = Principal::of(&modern(), Some("key")).unwrap();
        assert!(principal.is_shown_by(&modern(), Some("key")));
        assert!(!principal.is_shown_by(&modern(), Some("other")));
        assert!(!principal.is_shown_by(&modern(), None));
    }

    #[test]
    fn a_principal_reads_back() {
        let principal =
            Principal::of(&Caller { token: Some(token("alice")), ..legacy("mcp-1") }, None).unwrap();
        let text = serde_json::to_string(&principal).unwrap();
        assert_eq!(serde_json::from_str::<Principal>(&text).unwrap(), principal);
    }
}
