//! The registry as a signed document: a file, or the payload of a statement on the log.

use jose::json::Limits;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use scitt::{Curve, PublicKey};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::denial::RevocationPosition;
use crate::envelope::SchemaVersion;
use crate::limits::{self, MAX_ENTRIES, MAX_INTEGER};
use crate::signed::{BrokenMemberRule, Document, Signatures, present};
use crate::text::{AgentId, AttestationId, EnvelopeId, Reference, Sha256Digest, Text, UtcTime};

/// A version of an Agent Identity Registry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "AgentROA Agent Identity Registry")]
pub struct RegistryDocument {
    /// The version of the format.
    pub schema_version: SchemaVersion,
    /// The name of the registry.
    pub registry_id: Text,
    /// The epoch, which only grows. A new epoch may drop revocations.
    #[schemars(range(max = MAX_INTEGER))]
    pub epoch: u64,
    /// The number of the version in its epoch, which only grows.
    #[schemars(range(max = MAX_INTEGER))]
    pub sequence: u64,
    /// The time of issue.
    pub issued_at: UtcTime,
    /// The number of seconds for which the version counts as current after it was fetched.
    #[schemars(range(min = 1))]
    pub ttl_seconds: u32,
    /// Signing keys with their roles.
    #[schemars(length(max = MAX_ENTRIES))]
    pub keys: Vec<KeyEntry>,
    /// Agents with the identities by which transports know them.
    #[schemars(length(max = MAX_ENTRIES))]
    pub agents: Vec<AgentEntry>,
    /// Servers with the tools of their manifests.
    #[schemars(length(max = MAX_ENTRIES))]
    pub servers: Vec<ServerEntry>,
    /// Policies with the digests in force.
    #[schemars(length(max = MAX_ENTRIES))]
    pub policies: Vec<PolicyEntry>,
    /// Classifications of data from the lowest to the highest.
    #[schemars(length(max = MAX_ENTRIES))]
    pub classifications: Vec<Text>,
    /// Revocations of this epoch.
    #[schemars(length(max = MAX_ENTRIES))]
    pub revocations: Vec<RevocationEntry>,
    /// The signatures of the registry's operators.
    pub signatures: Signatures,
}

/// The revocations that were added to a version of a registry (section 8.4.1).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "AgentROA revocation delta")]
pub struct RevocationDelta {
    /// The version of the format.
    pub schema_version: SchemaVersion,
    /// The name of the registry.
    pub registry_id: Text,
    /// The epoch of the registry.
    #[schemars(range(max = MAX_INTEGER))]
    pub epoch: u64,
    /// The number of the version that the delta is applied to.
    pub previous_sequence: u64,
    /// The number of the version that results.
    #[schemars(range(max = MAX_INTEGER))]
    pub sequence: u64,
    /// The time of issue.
    pub issued_at: UtcTime,
    /// The added revocations.
    #[schemars(length(min = 1, max = MAX_ENTRIES))]
    pub revocations: Vec<RevocationEntry>,
    /// The signatures of the registry's operators.
    pub signatures: Signatures,
}

/// A signing key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KeyEntry {
    /// The name of the key: `signer` of its signatures. Several keys may have one name, for rotation.
    pub signer: Text,
    /// The role of the key.
    pub role: KeyRole,
    /// The organisation of the key's owner.
    pub organization: Text,
    /// The agent whose key it is; required for the role `agent` and only there.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "AgentId")]
    pub agent_id: Option<AgentId>,
    /// For an authorizer, the policies under which it may issue envelopes; empty for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_ENTRIES))]
    pub policies: Vec<Text>,
    /// The Ed25519 key as a JWK.
    pub public_key: Ed25519Jwk,
    /// The beginning of the key's validity.
    pub not_before: UtcTime,
    /// The end of the key's validity. An object that was signed before it stays valid.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "UtcTime")]
    pub not_after: Option<UtcTime>,
}

/// The role of a key: what it may sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KeyRole {
    /// Signs envelopes for agents of its organisation.
    Authorizer,
    /// Signs attestations of its agent, and proofs of possession.
    Agent,
    /// Signs execution receipts.
    Gateway,
}

/// An Ed25519 public key as a JWK (RFC 8037).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ed25519Jwk(pub PublicKey);

impl<'de> Deserialize<'de> for Ed25519Jwk {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let jwk = Value::deserialize(deserializer)?;
        let key = PublicKey::from_jwk_json(jwk.to_string().as_bytes()).map_err(serde::de::Error::custom)?;
        match key.curve() {
            Curve::Ed25519 => Ok(Ed25519Jwk(key)),
            other => Err(serde::de::Error::custom(format!("needed: an Ed25519 key, not one of {other}"))),
        }
    }
}

impl Serialize for Ed25519Jwk {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.to_jwk().to_value().serialize(serializer)
    }
}

impl JsonSchema for Ed25519Jwk {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Ed25519Jwk".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "required": ["kty", "crv", "x"],
            "properties": {
                "kty": { "const": "OKP" },
                "crv": { "const": "Ed25519" },
                "x": { "type": "string", "pattern": "^[A-Za-z0-9_-]{43}$" },
            },
        })
    }
}

/// An agent with the identities by which transports know it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentEntry {
    /// The agent.
    pub agent_id: AgentId,
    /// OAuth clients of the agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub oauth_clients: Vec<OAuthClient>,
    /// SHA-256 digests of the agent's client certificates (DER).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub certificates: Vec<Sha256Digest>,
    /// References to device attestations that the registry has verified.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub device_attestations: Vec<Reference>,
}

/// A client of an OAuth authorization server.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OAuthClient {
    /// The issuer of the access tokens (`iss`).
    pub issuer: Text,
    /// The client (`client_id`, or `azp`).
    pub client_id: Text,
}

/// A server with the tools of its manifest (section 7.2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerEntry {
    /// The identifier of the server: the part of a capability before its first dot.
    pub server_id: Text,
    /// The names of its tools.
    pub tools: Vec<Text>,
}

/// A policy with its digest in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyEntry {
    /// The name of the policy.
    pub policy_id: Text,
    /// The digest of the policy document in force.
    pub policy_digest: Sha256Digest,
    /// Digests of earlier documents under which envelopes are still accepted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub previous_digests: Vec<Sha256Digest>,
}

/// A revocation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RevocationEntry {
    /// The number of the version that added the revocation.
    pub sequence: u64,
    /// The time of the revocation.
    pub revoked_at: UtcTime,
    /// The object that is revoked.
    pub subject: RevokedSubject,
}

/// The object of a revocation. All chains with it are denied, whenever they were made.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RevokedSubject {
    /// A root envelope.
    Envelope(EnvelopeId),
    /// An attestation.
    Attestation(AttestationId),
    /// A key, by the thumbprint of its JWK (RFC 7638) in base64url.
    Key(Text),
}

impl RegistryDocument {
    /// Returns the position of the version.
    pub fn version(&self) -> RevocationPosition {
        RevocationPosition { epoch: self.epoch, sequence: self.sequence }
    }
}

impl RevocationDelta {
    /// Returns the position of the version that results.
    pub fn version(&self) -> RevocationPosition {
        RevocationPosition { epoch: self.epoch, sequence: self.sequence }
    }

    /// Returns the position of the version that the delta is applied to.
    pub fn previous_version(&self) -> RevocationPosition {
        RevocationPosition { epoch: self.epoch, sequence: self.previous_sequence }
    }
}

impl Document for RegistryDocument {
    const LIMITS: Limits = limits::REGISTRY;

    fn signatures(&self) -> &Signatures {
        &self.signatures
    }

    fn check(&self) -> Result<(), BrokenMemberRule> {
        let broken = |pointer, rule| Err(BrokenMemberRule { pointer, rule });
        let agents_fit = self.keys.iter().all(|key| (key.role == KeyRole::Agent) == key.agent_id.is_some());
        let owner = |key: &KeyEntry| {
            key.agent_id.as_ref().is_none_or(|agent| agent.organization() == key.organization.as_str())
        };
        if !agents_fit {
            return broken("/keys", "agent_id is required for the role agent, and only there");
        }
        if !self.keys.iter().all(owner) {
            return broken("/keys", "the organization of an agent's key is that of the agent");
        }
        check_version(self.version())?;
        self.check_lengths()?;
        if self.revocations.iter().any(|revocation| revocation.sequence > self.sequence) {
            return broken("/revocations", "a revocation of a later version");
        }
        if self.ttl_seconds == 0 {
            return broken("/ttl_seconds", "at least 1 second");
        }
        if has_repetition(self.servers.iter().map(|server| &server.server_id)) {
            return broken("/servers", "a server occurs twice");
        }
        if has_repetition(self.agents.iter().map(|agent| &agent.agent_id)) {
            return broken("/agents", "an agent occurs twice");
        }
        if has_repetition(self.policies.iter().map(|policy| &policy.policy_id)) {
            return broken("/policies", "a policy occurs twice");
        }
        if has_repetition(self.classifications.iter()) {
            return broken("/classifications", "a classification occurs twice");
        }
        Ok(())
    }
}

impl RegistryDocument {
    fn check_lengths(&self) -> Result<(), BrokenMemberRule> {
        let lists = [
            ("/keys", self.keys.len()),
            ("/keys", self.keys.iter().map(|key| key.policies.len()).max().unwrap_or(0)),
            ("/agents", self.agents.len()),
            ("/servers", self.servers.len()),
            ("/policies", self.policies.len()),
            ("/classifications", self.classifications.len()),
            ("/revocations", self.revocations.len()),
        ];
        lists.into_iter().try_for_each(|(pointer, length)| check_length(pointer, length))
    }
}

impl Document for RevocationDelta {
    const LIMITS: Limits = limits::REGISTRY;

    fn signatures(&self) -> &Signatures {
        &self.signatures
    }

    fn check(&self) -> Result<(), BrokenMemberRule> {
        check_version(self.version())?;
        check_length("/revocations", self.revocations.len())?;
        if self.revocations.is_empty() {
            return Err(BrokenMemberRule { pointer: "/revocations", rule: "at least one revocation" });
        }
        let fits =
            |entry: &RevocationEntry| (self.previous_sequence + 1..=self.sequence).contains(&entry.sequence);
        match self.sequence > self.previous_sequence && self.revocations.iter().all(fits) {
            true => Ok(()),
            false => Err(BrokenMemberRule {
                pointer: "/revocations",
                rule: "the sequence of a revocation is larger than previous_sequence and at most sequence",
            }),
        }
    }
}

/// Checks that a receipt can state the position of a revocation.
fn check_version(version: RevocationPosition) -> Result<(), BrokenMemberRule> {
    let rule = "at most 9007199254740991";
    let members = [("/epoch", version.epoch), ("/sequence", version.sequence)];
    match members.into_iter().find(|(_, number)| *number > MAX_INTEGER) {
        None => Ok(()),
        Some((pointer, _)) => Err(BrokenMemberRule { pointer, rule }),
    }
}

/// Checks that a list has at most [`MAX_ENTRIES`] entries.
fn check_length(pointer: &'static str, length: usize) -> Result<(), BrokenMemberRule> {
    match length <= MAX_ENTRIES {
        true => Ok(()),
        false => Err(BrokenMemberRule { pointer, rule: "at most 65536 entries" }),
    }
}

fn has_repetition<T: Eq + std::hash::Hash>(items: impl Iterator<Item = T>) -> bool {
    let mut seen = std::collections::HashSet::new();
    !items.into_iter().all(|item| seen.insert(item))
}
