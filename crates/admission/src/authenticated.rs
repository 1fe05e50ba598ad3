//! Messages with the check of their signature (readings V-19 to V-22).
//!
//! [`Authenticated::new`] does the costly part once, before the decision, since it does not depend on the session: it
//! computes the canonical form of the message, and tries its signature with each key that its `kid` names. The decision
//! then only [looks up](Authenticated::signer) who may sign for the session's agent at that time, under the rules in
//! force. It tries a key that came into force in between.

use std::collections::BTreeMap;
use std::ops::Deref;

use jiff::Timestamp;
use jose::jcs;
use jose::jws::Jws;
use serde_json::Value;

use crate::limits::IAT_WINDOW;
use crate::principal::ProvenBy;
use crate::signature::{AgentKey, Demands, Freshness, Holder, Keyring};
use vap::message::slot::Received;
use vap::message::{MessageType, is_operator_session};
use vap::reason::Reason;

/// A parsed message whose signature was tried with the keys that its `kid` names.
#[derive(Clone, Debug, PartialEq)]
pub struct Authenticated {
    received: Received,
    signature: Signature,
}

/// The signature of a message.
#[derive(Clone, Debug, PartialEq)]
enum Signature {
    Absent,
    /// The operator wrote the message for a client without VAP; the gateway did not receive it.
    Operators,
    /// The signature cannot be checked, for this reason.
    Unusable(Reason),
    /// The signature with the thumbprint of each key that was tried, and whether it verifies.
    Tried(Box<Jws>, BTreeMap<String, bool>),
}

/// A verified signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signed {
    /// The holder of the signing key.
    pub holder: Holder,
    /// The RFC 7638 thumbprint of the key.
    pub thumbprint: String,
    /// The signing time in Unix seconds, if the header has it.
    pub iat: Option<u64>,
    /// The unique id of the signed message, if the header has it; it may be used once in a session.
    pub jti: Option<String>,
}

impl Authenticated {
    /// Tries the signature of a message with all keys that its `kid` names.
    #[must_use]
    pub fn new(received: Received, keyring: &Keyring) -> Authenticated {
        let signature = Signature::of(&received, keyring);
        Authenticated { received, signature }
    }

    /// Wraps a message that the operator's commitment wrote for a client without VAP. It has no signature and needs none.
    #[must_use]
    pub fn by_operator(received: Received) -> Authenticated {
        Authenticated { received, signature: Signature::Operators }
    }

    /// Returns `true` for a message that the operator wrote.
    #[must_use]
    pub fn is_by_operator(&self) -> bool {
        self.signature == Signature::Operators
    }

    /// Checks that the operator's messages, and no others, name a session that the operator committed.
    ///
    /// # Errors
    /// [`Reason::ReservedSessionId`].
    pub(crate) fn check_author(&self) -> Result<(), Reason> {
        match is_operator_session(self.received.message.session_id()) == self.is_by_operator() {
            true => Ok(()),
            false => Err(Reason::ReservedSessionId),
        }
    }

    /// Returns the verified signature of a message of the agent `agent_id`; `None` if it is unsigned and no signature is
    /// required.
    ///
    /// # Errors
    /// The [`Reason`] why the message is denied.
    pub fn signer(
        &self,
        agent_id: &str,
        keyring: &Keyring,
        demands: &Demands,
        now: Timestamp,
    ) -> Result<Option<Signed>, Reason> {
        let kind = self.received.message.kind();
        let (jws, tried) = match &self.signature {
            Signature::Absent => return unsigned(kind, agent_id, keyring, demands),
            Signature::Operators => return Ok(None),
            Signature::Unusable(reason) => return Err(reason.clone()),
            Signature::Tried(jws, tried) => (jws, tried),
        };
        let keys = keyring.find(jws.kid(), agent_id, kind, now)?;
        let is_by =
            |key: &&AgentKey| tried.get(key.thumbprint()).copied().unwrap_or_else(|| key.has_signed(jws));
        let signer = keys.into_iter().find(is_by).ok_or(Reason::InvalidSignature)?;
        check_freshness(demands, jws, now)?;
        Ok(Some(Signed {
            holder: signer.holder().clone(),
            thumbprint: signer.thumbprint().to_owned(),
            iat: jws.iat(),
            jti: jws.text("jti").map(str::to_owned),
        }))
    }
}

impl Deref for Authenticated {
    type Target = Received;

    fn deref(&self) -> &Received {
        &self.received
    }
}

impl Signature {
    fn of(received: &Received, keyring: &Keyring) -> Signature {
        let Some(text) = received.message.signature() else { return Signature::Absent };
        match opened(received, text) {
            Ok(jws) => {
                let tried = keyring.keys_with_kid(jws.kid());
                let tried = tried.map(|key| (key.thumbprint().to_owned(), key.has_signed(&jws))).collect();
                Signature::Tried(Box::new(jws), tried)
            }
            Err(reason) => Signature::Unusable(reason),
        }
    }
}

fn opened(received: &Received, signature: &str) -> Result<Jws, Reason> {
    match received.canon_raw {
        true => Err(Reason::NotCanonical),
        false => Jws::open(signature, &payload(received)?, &[]).map_err(|_| Reason::InvalidSignature),
    }
}

/// Returns the signed bytes: the canonical message without its `signature`.
pub(crate) fn payload(received: &Received) -> Result<Vec<u8>, Reason> {
    let mut message: Value = jose::json::parse_text(&received.text).map_err(|_| Reason::Malformed)?;
    message.as_object_mut().ok_or(Reason::Malformed)?.remove("signature");
    Ok(jcs::canonical(&message))
}

/// Accepts an unsigned message, unless the route or the keys of its agent require a signature.
fn unsigned(
    kind: MessageType,
    agent_id: &str,
    keyring: &Keyring,
    demands: &Demands,
) -> Result<Option<Signed>, Reason> {
    let begins = kind == MessageType::ScopeCommitment;
    match demands.demand(kind) || (begins && keyring.has_keys_of(agent_id)) {
        true => Err(Reason::SignatureRequired),
        false => Ok(None),
    }
}

fn check_freshness(demands: &Demands, jws: &Jws, now: Timestamp) -> Result<(), Reason> {
    let (iat, jti, aud) = (jws.iat(), jws.text("jti"), jws.text("aud"));
    if demands.freshness == Freshness::Required && (iat.is_none() || jti.is_none() || aud.is_none()) {
        return Err(Reason::FreshnessRequired);
    }
    if aud.is_some_and(|aud| aud != demands.audience) {
        return Err(Reason::WrongAudience);
    }
    match iat {
        Some(iat) if is_stale(iat, now) => Err(Reason::Stale),
        _ => Ok(()),
    }
}

fn is_stale(iat: u64, now: Timestamp) -> bool {
    let off = i64::try_from(iat).map_or(u64::MAX, |iat| now.as_second().abs_diff(iat));
    off > IAT_WINDOW
}

impl Signed {
    /// Returns the evidence for the agent's name. An approver's signature is not evidence for it.
    #[must_use]
    pub fn proves(&self) -> ProvenBy {
        match self.holder {
            Holder::Agent(_) => ProvenBy::Key,
            Holder::Approver => ProvenBy::Asserted,
        }
    }
}
