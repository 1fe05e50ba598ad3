//! Whose message it is (readings V-19 to V-22): a compact JWS over the canonical message without its signature, under a key
//! that the operator has given to that agent.
//!
//! A key is named by its `kid`, or by its RFC 7638 thumbprint; nothing in a message brings a key along. `iat`, `jti` and `aud`
//! count whenever they are there; a route can demand all three. A signature that is there has to hold, demanded or not.
//!
//! An agent that has keys must sign its commitments, whatever the route demands of others: its name would be anybody's.
//!
//! Not here: whether a `jti` was seen before (`decide`, which knows the session), and where key files are.

use jiff::Timestamp;
use jose::jcs;
use jose::jwk::{Curve, PublicJwk};
use jose::jws::{Jws, JwsAlgorithm};
use scitt::PublicKey;
use serde_json::{Value, json};

use crate::limits::IAT_WINDOW;
use crate::message::MessageType;
use crate::message::slot::Received;
use crate::principal::{ProvenBy, TokenSubject};
use crate::reason::Reason;

/// What a route demands of signatures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Demands {
    /// Whether commitments and envelopes have to be signed.
    pub signed: bool,
    /// Whether amendments have to be: by default they do (reading V-19).
    pub amendments_signed: bool,
    /// Whether a signature has to say when, for whom, and which one it is.
    pub freshness: Freshness,
    /// Our own name: what `aud` has to be.
    pub audience: String,
}

/// Whether `iat`, `jti` and `aud` are demanded (reading V-21).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Freshness {
    /// They count when they are there.
    #[default]
    Optional,
    /// All three have to be there.
    Required,
}

/// Whose key it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Holder {
    /// The agent with this id.
    Agent(String),
    /// Somebody who may sign amendments for every agent.
    Approver,
}

/// A key that the operator has given to somebody.
#[derive(Clone, Debug)]
pub struct AgentKey {
    holder: Holder,
    kid: Option<String>,
    thumbprint: String,
    key: PublicKey,
    not_before: Option<Timestamp>,
    not_after: Option<Timestamp>,
}

/// Why a key cannot be given to anybody.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnusableKey {
    /// Agents sign with Ed25519 or P-256.
    #[error("messages are signed with Ed25519 or P-256, not with {0}")]
    Curve(Curve),
    /// The key says it is for another algorithm.
    #[error("the key is for {0:?}, but signs EdDSA, Ed25519 or ES256, as its curve says")]
    Algorithm(String),
    /// It is no point of its curve.
    #[error("the key is no point of its curve")]
    Point,
    /// It is never valid.
    #[error("the key's validity ends before it begins")]
    Validity,
    /// Two keys of one holder have one name.
    #[error("two keys of one holder are called {0:?}")]
    SecondOfThatName(String),
}

/// An access token that an agent is known by: whoever presents one of this subject is the agent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AgentSubject {
    /// The agent.
    pub agent_id: String,
    /// Who issues the token.
    pub issuer: String,
    /// To whom.
    pub subject: String,
}

/// The keys that a route knows, and the access tokens that show an agent's name.
#[derive(Clone, Debug, Default)]
pub struct Keyring {
    keys: Vec<AgentKey>,
    subjects: Vec<AgentSubject>,
}

/// A signature that held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signed {
    /// Whose.
    pub holder: Holder,
    /// The key, by its RFC 7638 thumbprint.
    pub thumbprint: String,
    /// When it was made, in Unix seconds.
    pub iat: Option<u64>,
    /// Its own name, which may not be seen twice in a session.
    pub jti: Option<String>,
}

impl AgentKey {
    /// Gives a key to somebody, for a time: from `not_before` on, and before `not_after`.
    pub fn new(
        holder: Holder,
        jwk: &PublicJwk,
        not_before: Option<Timestamp>,
        not_after: Option<Timestamp>,
    ) -> Result<AgentKey, UnusableKey> {
        let algorithms = algorithms(jwk.curve()).ok_or(UnusableKey::Curve(jwk.curve()))?;
        match jwk.alg() {
            Some(name) if !algorithms.iter().any(|algorithm| algorithm.name() == name) => {
                return Err(UnusableKey::Algorithm(name.to_owned()));
            }
            _ => {}
        }
        if not_before.zip(not_after).is_some_and(|(begin, end)| end <= begin) {
            return Err(UnusableKey::Validity);
        }
        let key = PublicKey::from_jwk(jwk).map_err(|_| UnusableKey::Point)?;
        let kid = jwk.kid().map(str::to_owned);
        Ok(AgentKey { holder, kid, thumbprint: key.jwk_thumbprint(), key, not_before, not_after })
    }

    /// The key itself.
    pub(crate) fn key(&self) -> &PublicKey {
        &self.key
    }

    /// Its RFC 7638 thumbprint.
    #[must_use]
    pub fn thumbprint(&self) -> &str {
        &self.thumbprint
    }

    /// Whose it is, which one, and when it counts, for the digest of the rules.
    pub(crate) fn describe(&self) -> Value {
        let AgentKey { holder, kid, thumbprint, key: _, not_before, not_after } = self;
        let holder = match holder {
            Holder::Agent(id) => json!({ "agent": id }),
            Holder::Approver => json!("approver"),
        };
        json!({
            "holder": holder,
            "kid": kid,
            "thumbprint": thumbprint,
            "not_before": not_before.map(|time| time.to_string()),
            "not_after": not_after.map(|time| time.to_string()),
        })
    }

    pub(crate) fn is_called(&self, kid: &str) -> bool {
        self.kid.as_deref() == Some(kid) || self.thumbprint == kid
    }

    /// Whether its holder may sign such a message for this agent (reading V-19).
    fn is_authorised(&self, agent_id: &str, kind: MessageType) -> bool {
        match &self.holder {
            Holder::Agent(id) => id == agent_id,
            Holder::Approver => kind == MessageType::ScopeAmendment,
        }
    }

    pub(crate) fn is_valid(&self, now: Timestamp) -> bool {
        self.not_before.is_none_or(|begin| begin <= now) && self.not_after.is_none_or(|end| now < end)
    }
}

/// The algorithms of a key on this curve.
const fn algorithms(curve: Curve) -> Option<&'static [JwsAlgorithm]> {
    match curve {
        Curve::Ed25519 => Some(&[JwsAlgorithm::EdDsa, JwsAlgorithm::Ed25519]),
        Curve::P256 => Some(&[JwsAlgorithm::Es256]),
        Curve::P384 | Curve::P521 => None,
    }
}

impl Keyring {
    /// A ring of these keys. One holder's keys have different names; two holders may use one.
    pub fn new(keys: Vec<AgentKey>) -> Result<Keyring, UnusableKey> {
        let clash = |(at, key): (usize, &AgentKey)| {
            let same = |kid: &str, other: &AgentKey| {
                other.holder == key.holder && other.thumbprint != key.thumbprint && other.is_called(kid)
            };
            key.kid.as_ref().filter(|kid| keys[..at].iter().any(|other| same(kid, other))).cloned()
        };
        match keys.iter().enumerate().find_map(clash) {
            Some(kid) => Err(UnusableKey::SecondOfThatName(kid)),
            None => Ok(Keyring { keys, subjects: Vec::new() }),
        }
    }

    /// The same keys, but of approvers only these, by their thumbprints.
    #[must_use]
    pub fn with_approvers(self, thumbprints: &[String]) -> Keyring {
        let Keyring { mut keys, subjects } = self;
        keys.retain(|key| key.holder != Holder::Approver || thumbprints.contains(&key.thumbprint));
        Keyring { keys, subjects }
    }

    /// The same keys, and these access tokens.
    #[must_use]
    pub fn with_subjects(self, subjects: Vec<AgentSubject>) -> Keyring {
        Keyring { subjects, ..self }
    }

    /// The agent that an access token belongs to.
    #[must_use]
    pub fn agent_of(&self, token: &TokenSubject) -> Option<&str> {
        let of = |known: &&AgentSubject| known.issuer == token.iss && known.subject == token.sub;
        self.subjects.iter().find(of).map(|known| known.agent_id.as_str())
    }

    /// How an access token shows that its caller is this agent. A token of another agent does not name this one, and an agent that
    /// is known by tokens is not named without one.
    ///
    /// # Errors
    /// [`Reason::TokenNotOfAgent`].
    pub fn check_token(&self, agent_id: &str, token: Option<&TokenSubject>) -> Result<ProvenBy, Reason> {
        match token.and_then(|token| self.agent_of(token)) {
            Some(agent) if agent == agent_id => Ok(ProvenBy::Token),
            Some(_) => Err(Reason::TokenNotOfAgent),
            None if self.subjects.iter().any(|known| known.agent_id == agent_id) => {
                Err(Reason::TokenNotOfAgent)
            }
            None => Ok(ProvenBy::Asserted),
        }
    }

    /// The keys and tokens, for the digest of the rules.
    pub(crate) fn describe(&self) -> Value {
        let Keyring { keys, subjects } = self;
        let subjects = subjects.iter().map(|AgentSubject { agent_id, issuer, subject }| {
            json!({ "agent": agent_id, "issuer": issuer, "subject": subject })
        });
        json!({
            "keys": keys.iter().map(AgentKey::describe).collect::<Vec<_>>(),
            "subjects": subjects.collect::<Vec<_>>(),
        })
    }

    /// Whether any agent has a key.
    #[must_use]
    pub fn has_agents(&self) -> bool {
        self.keys.iter().any(|key| matches!(key.holder, Holder::Agent(_)))
    }

    /// Whether an agent has keys, valid now or not: its name is taken from nobody who does not sign.
    #[must_use]
    pub fn has_keys_of(&self, agent_id: &str) -> bool {
        self.keys.iter().any(|key| matches!(&key.holder, Holder::Agent(id) if id == agent_id))
    }

    /// The keys of this name that may sign such a message now.
    fn find(
        &self,
        kid: &str,
        agent_id: &str,
        kind: MessageType,
        now: Timestamp,
    ) -> Result<Vec<&AgentKey>, Reason> {
        let called = narrowed(self.keys.iter(), |key| key.is_called(kid), Reason::UnknownKey)?;
        let is_authorised = |key: &AgentKey| key.is_authorised(agent_id, kind);
        let authorised = narrowed(called.into_iter(), is_authorised, Reason::KeyNotAuthorised)?;
        narrowed(authorised.into_iter(), |key| key.is_valid(now), Reason::KeyNotValidNow)
    }
}

/// Those that fit, or the reason if none does.
fn narrowed<'a>(
    keys: impl Iterator<Item = &'a AgentKey>,
    fits: impl Fn(&AgentKey) -> bool,
    none: Reason,
) -> Result<Vec<&'a AgentKey>, Reason> {
    let keys: Vec<_> = keys.filter(|key| fits(key)).collect();
    if keys.is_empty() { Err(none) } else { Ok(keys) }
}

/// Checks the signature of a message that `agent_id` is to have signed. Without one, and where none is demanded: `None`.
pub fn check(
    received: &Received,
    agent_id: &str,
    keyring: &Keyring,
    demands: &Demands,
    now: Timestamp,
) -> Result<Option<Signed>, Reason> {
    let Some(signature) = received.message.signature() else {
        let kind = received.message.kind();
        let begins = kind == MessageType::ScopeCommitment;
        return if demands.demand(kind) || (begins && keyring.has_keys_of(agent_id)) {
            Err(Reason::SignatureRequired)
        } else {
            Ok(None)
        };
    };
    if received.canon_raw {
        return Err(Reason::NotCanonical);
    }
    let jws = Jws::open(signature, &payload(received)?, &[]).map_err(|_| Reason::InvalidSignature)?;
    let keys = keyring.find(jws.kid(), agent_id, received.message.kind(), now)?;
    let signer = keys.into_iter().find(|key| key.key.verify_jws(&jws).is_ok());
    let signer = signer.ok_or(Reason::InvalidSignature)?;
    demands.check_freshness(&jws, now)?;
    Ok(Some(Signed {
        holder: signer.holder.clone(),
        thumbprint: signer.thumbprint.clone(),
        iat: jws.iat(),
        jti: jws.text("jti").map(str::to_owned),
    }))
}

/// What was signed: the canonical message without its signature.
pub(crate) fn payload(received: &Received) -> Result<Vec<u8>, Reason> {
    let mut message: Value = jose::json::parse_text(&received.text).map_err(|_| Reason::Malformed)?;
    message.as_object_mut().ok_or(Reason::Malformed)?.remove("signature");
    Ok(jcs::canonical(&message))
}

impl Signed {
    /// How the signature shows the agent's name: an approver's says nothing of it.
    #[must_use]
    pub fn proves(&self) -> ProvenBy {
        match self.holder {
            Holder::Agent(_) => ProvenBy::Key,
            Holder::Approver => ProvenBy::Asserted,
        }
    }
}

impl Demands {
    fn demand(&self, kind: MessageType) -> bool {
        match kind {
            MessageType::ScopeCommitment | MessageType::IntentCall => self.signed,
            MessageType::ScopeAmendment => self.signed || self.amendments_signed,
        }
    }

    fn check_freshness(&self, jws: &Jws, now: Timestamp) -> Result<(), Reason> {
        let (iat, jti, aud) = (jws.iat(), jws.text("jti"), jws.text("aud"));
        if self.freshness == Freshness::Required && (iat.is_none() || jti.is_none() || aud.is_none()) {
            return Err(Reason::FreshnessRequired);
        }
        if aud.is_some_and(|aud| aud != self.audience) {
            return Err(Reason::WrongAudience);
        }
        match iat {
            Some(iat) if is_stale(iat, now) => Err(Reason::Stale),
            _ => Ok(()),
        }
    }
}

fn is_stale(iat: u64, now: Timestamp) -> bool {
    let off = i64::try_from(iat).map_or(u64::MAX, |iat| now.as_second().abs_diff(iat));
    off > IAT_WINDOW
}
