//! Signatures of messages (readings V-19 to V-22): a compact JWS over the canonical message without its signature, by a
//! key that the operator assigned to the agent.
//!
//! A key is identified by its `kid` or its RFC 7638 thumbprint; keys in a message are never used. `iat`, `jti` and
//! `aud` are checked if present, and a route can require all three. A signature must verify if it is present, required
//! or not.
//!
//! An agent with keys must sign its commitments even on routes that require no signatures. Otherwise anyone could use
//! its name.
//!
//! Not here: the check of a message's signature with these keys ([`authenticated`](crate::authenticated)), whether a
//! `jti` was seen before ([`decide`](crate::decide), with the session), and the loading of key
//! files.

use jiff::Timestamp;
use jose::jwk::{Curve, PublicJwk};
use jose::jws::{Jws, JwsAlgorithm};
use scitt::PublicKey;
use serde_json::{Value, json};

use crate::principal::{ProvenBy, TokenSubject};
use vap::message::MessageType;
use vap::reason::Reason;

/// The requirements of a route on signatures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Demands {
    /// `true` if commitments, envelopes and amendments must be signed.
    pub signed: bool,
    /// `true` if amendments must be signed even where `signed` is not set; the default (reading V-19).
    pub amendments_signed: bool,
    /// The requirement for `iat`, `jti` and `aud`.
    pub freshness: Freshness,
    /// The gateway's issuer name, which `aud` must equal.
    pub audience: String,
}

/// The requirement for `iat`, `jti` and `aud` in a signature's header (reading V-21).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Freshness {
    /// Each is checked if it is present.
    #[default]
    Optional,
    /// All three must be present.
    Required,
}

/// The holder of a key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Holder {
    /// The agent with this id.
    Agent(String),
    /// An approver, with the right to sign amendments for every agent.
    Approver,
}

/// A public key that the operator assigned to a [`Holder`].
#[derive(Clone, Debug)]
pub struct AgentKey {
    holder: Holder,
    kid: Option<String>,
    thumbprint: String,
    key: PublicKey,
    not_before: Option<Timestamp>,
    not_after: Option<Timestamp>,
}

/// The reason why a key cannot be used in a [`Keyring`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnusableKey {
    /// The curve is neither Ed25519 nor P-256.
    #[error("messages are signed with Ed25519 or P-256, not with {0}")]
    Curve(Curve),
    /// The JWK's `alg` does not match its curve.
    #[error("the key is for {0:?}, but signs EdDSA, Ed25519 or ES256, as its curve says")]
    Algorithm(String),
    /// The coordinates are not a point of the curve.
    #[error("the key is not a point of its curve")]
    Point,
    /// The validity period is empty.
    #[error("the key's validity ends before it begins")]
    Validity,
    /// Two keys of one holder have the same `kid`.
    #[error("two keys of one holder are called {0:?}")]
    SecondOfThatName(String),
}

/// The subject of access tokens that identify an agent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AgentSubject {
    /// The agent's id.
    pub agent_id: String,
    /// The tokens' issuer (`iss`).
    pub issuer: String,
    /// The tokens' subject (`sub`).
    pub subject: String,
}

/// The keys that a route accepts, and the access tokens that identify agents.
#[derive(Clone, Debug, Default)]
pub struct Keyring {
    keys: Vec<AgentKey>,
    subjects: Vec<AgentSubject>,
}

impl AgentKey {
    /// Assigns a key to a holder, valid from `not_before` (inclusive) to `not_after` (exclusive).
    ///
    /// # Errors
    /// [`UnusableKey`] if the key cannot sign messages, or the validity is empty.
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

    pub(crate) fn key(&self) -> &PublicKey {
        &self.key
    }

    /// Returns the key's RFC 7638 thumbprint.
    #[must_use]
    pub fn thumbprint(&self) -> &str {
        &self.thumbprint
    }

    /// Returns the holder, the key and its validity as JSON, for the digest of the rules.
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

    /// Returns the holder of the key.
    #[must_use]
    pub fn holder(&self) -> &Holder {
        &self.holder
    }

    /// Returns `true` if the signature verifies with this key.
    pub(crate) fn has_signed(&self, jws: &Jws) -> bool {
        self.key.verify_jws(jws).is_ok()
    }

    pub(crate) fn has_kid(&self, kid: &str) -> bool {
        self.kid.as_deref() == Some(kid) || self.thumbprint == kid
    }

    /// Returns `true` if the holder may sign a message of this type for the agent (reading V-19).
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

/// Returns the JWS algorithms accepted for a curve, or `None` if agents cannot use it.
const fn algorithms(curve: Curve) -> Option<&'static [JwsAlgorithm]> {
    match curve {
        Curve::Ed25519 => Some(&[JwsAlgorithm::EdDsa, JwsAlgorithm::Ed25519]),
        Curve::P256 => Some(&[JwsAlgorithm::Es256]),
        Curve::P384 | Curve::P521 => None,
    }
}

impl Keyring {
    /// Creates a keyring. The keys of one holder must have different `kid`s; two holders may use the same one.
    ///
    /// # Errors
    /// [`UnusableKey::SecondOfThatName`].
    pub fn new(keys: Vec<AgentKey>) -> Result<Keyring, UnusableKey> {
        let clash = |(at, key): (usize, &AgentKey)| {
            let same = |kid: &str, other: &AgentKey| {
                other.holder == key.holder && other.thumbprint != key.thumbprint && other.has_kid(kid)
            };
            key.kid.as_ref().filter(|kid| keys[..at].iter().any(|other| same(kid, other))).cloned()
        };
        match keys.iter().enumerate().find_map(clash) {
            Some(kid) => Err(UnusableKey::SecondOfThatName(kid)),
            None => Ok(Keyring { keys, subjects: Vec::new() }),
        }
    }

    /// Keeps, of the approvers' keys, only those with these thumbprints.
    #[must_use]
    pub fn with_approvers(self, thumbprints: &[String]) -> Keyring {
        let Keyring { mut keys, subjects } = self;
        keys.retain(|key| key.holder != Holder::Approver || thumbprints.contains(&key.thumbprint));
        Keyring { keys, subjects }
    }

    /// Sets the access tokens that identify agents.
    #[must_use]
    pub fn with_subjects(self, subjects: Vec<AgentSubject>) -> Keyring {
        Keyring { subjects, ..self }
    }

    /// Returns the id of the agent that an access token belongs to.
    #[must_use]
    pub fn agent_of(&self, token: &TokenSubject) -> Option<&str> {
        let of = |known: &&AgentSubject| known.issuer == token.iss && known.subject == token.sub;
        self.subjects.iter().find(of).map(|known| known.agent_id.as_str())
    }

    /// Returns the evidence that an access token gives for this agent's name. A token of another agent contradicts the
    /// name, and an agent with registered tokens must present one.
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

    /// Returns the keys and tokens as JSON, for the digest of the rules.
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

    /// Returns `true` if any agent has a key.
    #[must_use]
    pub fn has_agents(&self) -> bool {
        self.keys.iter().any(|key| matches!(key.holder, Holder::Agent(_)))
    }

    /// Returns `true` if the agent has keys, valid now or not. Such an agent must sign, so that no one else can use its
    /// name.
    #[must_use]
    pub fn has_keys_of(&self, agent_id: &str) -> bool {
        self.keys.iter().any(|key| matches!(&key.holder, Holder::Agent(id) if id == agent_id))
    }

    /// Checks that the key with this RFC 7638 thumbprint is the agent's, and valid now.
    ///
    /// # Errors
    /// [`Reason::UnknownKey`] or [`Reason::KeyNotValidNow`].
    pub(crate) fn check_key(&self, thumbprint: &str, agent_id: &str, now: Timestamp) -> Result<(), Reason> {
        let is_agents = |key: &AgentKey| {
            key.thumbprint == thumbprint && matches!(&key.holder, Holder::Agent(id) if id == agent_id)
        };
        let keys = narrowed(self.keys.iter(), is_agents, Reason::UnknownKey)?;
        narrowed(keys.into_iter(), |key| key.is_valid(now), Reason::KeyNotValidNow)?;
        Ok(())
    }

    /// Returns the keys with this `kid` or thumbprint.
    pub(crate) fn keys_with_kid<'a>(&'a self, kid: &str) -> impl Iterator<Item = &'a AgentKey> {
        self.keys.iter().filter(move |key| key.has_kid(kid))
    }

    /// Finds the keys with this `kid` or thumbprint whose holder may sign such a message now.
    pub(crate) fn find(
        &self,
        kid: &str,
        agent_id: &str,
        kind: MessageType,
        now: Timestamp,
    ) -> Result<Vec<&AgentKey>, Reason> {
        let named = narrowed(self.keys_with_kid(kid), |_| true, Reason::UnknownKey)?;
        let is_authorised = |key: &AgentKey| key.is_authorised(agent_id, kind);
        let authorised = narrowed(named.into_iter(), is_authorised, Reason::KeyNotAuthorised)?;
        narrowed(authorised.into_iter(), |key| key.is_valid(now), Reason::KeyNotValidNow)
    }
}

/// Returns the matching keys, or the reason `none` if there are none.
fn narrowed<'a>(
    keys: impl Iterator<Item = &'a AgentKey>,
    fits: impl Fn(&AgentKey) -> bool,
    none: Reason,
) -> Result<Vec<&'a AgentKey>, Reason> {
    let keys: Vec<_> = keys.filter(|key| fits(key)).collect();
    if keys.is_empty() { Err(none) } else { Ok(keys) }
}

impl Demands {
    /// Returns `true` if messages of this type must be signed.
    #[must_use]
    pub fn demand(&self, kind: MessageType) -> bool {
        match kind {
            MessageType::ScopeCommitment | MessageType::IntentCall => self.signed,
            MessageType::ScopeAmendment => self.signed || self.amendments_signed,
        }
    }
}
