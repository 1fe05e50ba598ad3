//! The agreed part of a session: the commitment in force and its owner.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::effective::Effective;
use crate::principal::{Principal, ProvenBy};
use vap::digest::Digest;
use vap::message::{Budget, Scope, is_operator_session};
use vap::record_key::StreamKey;

/// The commitment in force and its owner. Changes only with an accepted amendment. The content is shared between
/// clones, since every call clones it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AgreedTerms(Arc<Terms>);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Terms {
    effective: Effective,
    /// The canonical text of `effective`, and whether a number in it is not representable in JCS.
    text: String,
    raw: bool,
    digest: Digest,
    principal: Principal,
    /// The commitment's evidence for the agent's name.
    proven_by: ProvenBy,
    /// The RFC 7638 thumbprint of the key that signed the commitment. Older states do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signed_by: Option<String>,
    account: String,
    /// The account key for spending over all sessions. `None` if only an MCP session identifies the principal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ledger: Option<String>,
    route: String,
    committed: Timestamp,
    key: StreamKey,
}

/// The owner of a session, fixed at its commitment.
#[derive(Clone, Debug)]
pub struct Owner {
    /// The principal of the commitment.
    pub principal: Principal,
    /// The RFC 7638 thumbprint of the key that signed the commitment.
    pub signed_by: Option<String>,
    /// The commitment's evidence for the agent's name.
    pub proven_by: ProvenBy,
    /// The route of the commitment.
    pub route: String,
    /// The time of the commitment.
    pub committed: Timestamp,
    /// The secret for the HMAC commitments in the session's records.
    pub key: StreamKey,
}

impl AgreedTerms {
    /// Creates the agreed state of an accepted commitment.
    #[must_use]
    pub fn new(effective: Effective, owner: Owner) -> Self {
        let canon = effective.canon();
        let Owner { principal, signed_by, proven_by, route, committed, key } = owner;
        let ledger = principal.ledger(signed_by.as_deref());
        AgreedTerms(Arc::new(Terms {
            digest: canon.digest(),
            text: String::from_utf8_lossy(&canon.bytes).into_owned(),
            raw: canon.raw,
            effective,
            account: crate::principal::principal_key(&principal),
            ledger: ledger.as_ref().map(crate::principal::identity_key),
            principal,
            proven_by,
            signed_by,
            route,
            committed,
            key,
        }))
    }

    /// Returns the agreed state with an amended commitment and the same owner.
    #[must_use]
    pub(crate) fn amended(&self, effective: Effective) -> Self {
        let canon = effective.canon();
        AgreedTerms(Arc::new(Terms {
            digest: canon.digest(),
            text: String::from_utf8_lossy(&canon.bytes).into_owned(),
            raw: canon.raw,
            effective,
            ..Terms::clone(&self.0)
        }))
    }

    /// Returns the session's id.
    #[must_use]
    pub fn session_id(&self) -> &str {
        &self.0.effective.session_id
    }

    /// Returns `true` if the operator committed the session for a client without VAP.
    #[must_use]
    pub fn is_by_operator(&self) -> bool {
        is_operator_session(self.session_id())
    }

    /// Returns E(n), the commitment in force.
    #[must_use]
    pub fn effective(&self) -> &Effective {
        &self.0.effective
    }

    /// Returns the canonical text of E(n), which the agent receives and the digest covers.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// Returns `true` if a number in that text is not representable in JCS (reading V-22).
    #[must_use]
    pub fn is_raw(&self) -> bool {
        self.0.raw
    }

    /// Returns the digest of E(n), which the next amendment has to contain.
    #[must_use]
    pub fn digest(&self) -> &Digest {
        &self.0.digest
    }

    /// Returns the session's goal.
    #[must_use]
    pub fn goal(&self) -> &str {
        &self.0.effective.goal
    }

    /// Returns the scope in force.
    #[must_use]
    pub fn scope(&self) -> &Scope {
        &self.0.effective.scope
    }

    /// Returns the budget in force.
    #[must_use]
    pub fn budget(&self) -> &Budget {
        &self.0.effective.budget
    }

    /// Returns the agent's id as the commitment claims it.
    #[must_use]
    pub fn agent_id(&self) -> &str {
        &self.0.effective.principal.agent_id
    }

    /// Returns the evidence for the agent's name in a message of this session. `signed` is the message's own evidence;
    /// without any, the commitment's counts as [`ProvenBy::Session`].
    #[must_use]
    pub fn proven_by(&self, signed: ProvenBy) -> ProvenBy {
        match (signed, self.0.proven_by) {
            (ProvenBy::Key | ProvenBy::Token, _) => signed,
            (_, ProvenBy::Asserted) => ProvenBy::Asserted,
            (_, ProvenBy::Operator) => ProvenBy::Operator,
            (_, ProvenBy::Session | ProvenBy::Token | ProvenBy::Key) => ProvenBy::Session,
        }
    }

    /// Returns whether an access token was the commitment's evidence for the agent's name.
    #[must_use]
    pub fn is_opened_by_token(&self) -> bool {
        self.0.proven_by == ProvenBy::Token
    }

    /// Returns the RFC 7638 thumbprint of the key that signed the commitment.
    #[must_use]
    pub fn signed_by(&self) -> Option<&str> {
        self.0.signed_by.as_deref()
    }

    /// Returns the principal that owns the session.
    #[must_use]
    pub fn principal(&self) -> &Principal {
        &self.0.principal
    }

    /// Returns the key of the account for spending over all sessions; `None` if a client can create any number of such
    /// principals.
    #[must_use]
    pub fn ledger(&self) -> Option<&str> {
        self.0.ledger.as_deref()
    }

    /// Returns the key of the principal's [`Account`](super::Account).
    #[must_use]
    pub fn account(&self) -> &str {
        &self.0.account
    }

    /// Returns the route of the commitment; the session is valid only there.
    #[must_use]
    pub fn route(&self) -> &str {
        &self.0.route
    }

    /// Returns the time of the commitment.
    #[must_use]
    pub fn committed(&self) -> Timestamp {
        self.0.committed
    }

    /// Returns the secret for the HMAC commitments in the session's records.
    #[must_use]
    pub fn key(&self) -> &StreamKey {
        &self.0.key
    }

    /// Returns the deadline of the budget, if there is one.
    #[must_use]
    pub fn ends(&self) -> Option<Timestamp> {
        self.budget().deadline.as_ref().map(vap::message::Deadline::at)
    }
}
