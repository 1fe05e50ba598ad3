//! What a session agreed to: the commitment in force, and whose it is.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::effective::Effective;
use crate::message::{Budget, Scope};
use crate::principal::{Principal, ProvenBy};
use crate::record::StreamKey;

/// What was agreed. It changes only with an accepted amendment; copies, of which every call makes one, share it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Agreed(Arc<Terms>);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Terms {
    effective: Effective,
    /// Its canonical text, and whether a number in it is beyond JCS.
    text: String,
    raw: bool,
    digest: Digest,
    principal: Principal,
    /// How the commitment showed that it is the agent's.
    #[serde(default)]
    proven_by: ProvenBy,
    account: String,
    /// None if nothing but an MCP session says who the principal is, or in a session that an earlier build committed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ledger: Option<String>,
    route: String,
    committed: Timestamp,
    key: StreamKey,
}

/// Whose a session is, and since when.
#[derive(Clone, Debug)]
pub struct Owner {
    /// The principal.
    pub principal: Principal,
    /// The thumbprint of the key that signed the commitment.
    pub signed_by: Option<String>,
    /// How the commitment showed that it is the agent's.
    pub proven_by: ProvenBy,
    /// The route on which it was committed.
    pub route: String,
    /// When it was committed.
    pub committed: Timestamp,
    /// The secret behind the commitments in its records.
    pub key: StreamKey,
}

impl Agreed {
    /// A commitment that is accepted.
    #[must_use]
    pub fn new(effective: Effective, owner: Owner) -> Self {
        let canon = effective.canon();
        let Owner { principal, signed_by, proven_by, route, committed, key } = owner;
        let ledger = principal.ledger(signed_by.as_deref());
        Agreed(Arc::new(Terms {
            digest: canon.digest(),
            text: String::from_utf8_lossy(&canon.bytes).into_owned(),
            raw: canon.raw,
            effective,
            account: crate::decide::principal_key(&principal),
            ledger: ledger.as_ref().map(crate::decide::identity_key),
            principal,
            proven_by,
            route,
            committed,
            key,
        }))
    }

    /// The same session under an amended commitment.
    #[must_use]
    pub(crate) fn amended(&self, effective: Effective) -> Self {
        let canon = effective.canon();
        Agreed(Arc::new(Terms {
            digest: canon.digest(),
            text: String::from_utf8_lossy(&canon.bytes).into_owned(),
            raw: canon.raw,
            effective,
            ..Terms::clone(&self.0)
        }))
    }

    /// The session's name.
    #[must_use]
    pub fn session_id(&self) -> &str {
        &self.0.effective.session_id
    }

    /// E(n), the commitment in force.
    #[must_use]
    pub fn effective(&self) -> &Effective {
        &self.0.effective
    }

    /// Its canonical text: what the agent is given, and what its digest is over.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// Whether a number in that text is beyond JCS (reading V-22).
    #[must_use]
    pub fn is_raw(&self) -> bool {
        self.0.raw
    }

    /// The digest that an amendment has to name.
    #[must_use]
    pub fn digest(&self) -> &Digest {
        &self.0.digest
    }

    /// What the session is for.
    #[must_use]
    pub fn goal(&self) -> &str {
        &self.0.effective.goal
    }

    /// Which tools may be called.
    #[must_use]
    pub fn scope(&self) -> &Scope {
        &self.0.effective.scope
    }

    /// How much may be spent.
    #[must_use]
    pub fn budget(&self) -> &Budget {
        &self.0.effective.budget
    }

    /// The agent, as it calls itself.
    #[must_use]
    pub fn agent_id(&self) -> &str {
        &self.0.effective.principal.agent_id
    }

    /// How a message of this session shows that it is the agent's, if it was signed so or not.
    #[must_use]
    pub fn proven_by(&self, signed: ProvenBy) -> ProvenBy {
        match (signed, self.0.proven_by) {
            (ProvenBy::Key | ProvenBy::Token, _) => signed,
            (_, ProvenBy::Asserted) => ProvenBy::Asserted,
            (_, ProvenBy::Session | ProvenBy::Token | ProvenBy::Key) => ProvenBy::Session,
        }
    }

    /// Whose session it is.
    #[must_use]
    pub fn principal(&self) -> &Principal {
        &self.0.principal
    }

    /// The key of the account on which consumption is counted over all sessions; none if the principal can take any number of
    /// names.
    #[must_use]
    pub fn ledger(&self) -> Option<&str> {
        let by_account = || self.0.principal.ledger(None).map(|_| self.account());
        self.0.ledger.as_deref().or_else(by_account)
    }

    /// The key of its principal's [`Account`](super::Account).
    #[must_use]
    pub fn account(&self) -> &str {
        &self.0.account
    }

    /// The route it was committed on, and is good for.
    #[must_use]
    pub fn route(&self) -> &str {
        &self.0.route
    }

    /// When it was committed.
    #[must_use]
    pub fn committed(&self) -> Timestamp {
        self.0.committed
    }

    /// The secret behind the commitments in its records.
    #[must_use]
    pub fn key(&self) -> &StreamKey {
        &self.0.key
    }

    /// When it ends by itself.
    #[must_use]
    pub fn ends(&self) -> Option<Timestamp> {
        self.budget().deadline.as_ref().map(crate::message::Deadline::at)
    }
}
