//! The Agent Identity Registry: verified, indexed, extended by deltas, and replaced only by later versions (R-30, R-38,
//!

mod authorizers;
mod deltas;
mod document;

use std::collections::{BTreeSet, HashMap, HashSet};

use scitt::PublicKey;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use authorizers::Authorizers;
pub use deltas::DeltaList;
pub use document::{
    AgentEntry, Ed25519Jwk, KeyEntry, KeyRole, OAuthClient, PolicyEntry, RegistryDocument, RevocationDelta,
    RevocationEntry, RevokedSubject, ServerEntry,
};

use crate::capability::Capability;
use crate::denial::RevocationPosition;
use crate::scope::Classifications;
use crate::signed::{self, Document, Signed};
use crate::text::{AgentId, Reference, Sha256Digest, Text, UtcTime};

/// The position of a registry's version: later versions have a higher one.
pub type RegistryVersion = RevocationPosition;

/// A verified registry.
#[derive(Clone, Debug)]
pub struct Registry {
    /// The version in force: the one that was read as a whole, with the revocations of the deltas.
    document: RegistryDocument,
    /// The version that was read as a whole.
    whole: WholeVersion,
    /// The deltas that were added to it, in order.
    deltas: Vec<RevocationDelta>,
    keys: HashMap<Text, Vec<usize>>,
    authorizers: Authorizers,
    revoked: HashMap<RevokedSubject, u64>,
    classifications: Classifications,
}

/// A version of a registry that was read as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct WholeVersion {
    version: RegistryVersion,
    digest: Sha256Digest,
}

/// The error for a registry, or a delta of one, that is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    /// No signature, or not every signature, is by an operator of the registry.
    #[error("not signed by an operator of the registry")]
    Signature,
    /// The document belongs to another registry.
    #[error("a registry named {found}, not {expected}")]
    OtherRegistry {
        /// The name of the registry in force.
        expected: String,
        /// The name in the document.
        found: String,
    },
    /// The version is older than the one in force, or another one with its number.
    #[error("version {}.{} does not follow {}.{}", found.epoch, found.sequence, current.epoch, current.sequence)]
    Rollback {
        /// The version in force.
        current: RegistryVersion,
        /// The version of the document.
        found: RegistryVersion,
    },
    /// The version lacks a revocation of the one in force, which only a new epoch may drop.
    #[error("version {}.{} lacks a revocation of {}.{}", found.epoch, found.sequence, current.epoch, current.sequence)]
    MissingRevocation {
        /// The version in force.
        current: RegistryVersion,
        /// The version of the document.
        found: RegistryVersion,
    },
    /// The delta is for another version than the one in force: the whole registry has to be fetched.
    #[error("a delta for version {}.{}, not for {}.{}", needed.epoch, needed.sequence, current.epoch, current.sequence)]
    Gap {
        /// The version in force.
        current: RegistryVersion,
        /// The version that the delta is for.
        needed: RegistryVersion,
    },
}

impl RegistryError {
    fn other(expected: &Text, found: &Text) -> RegistryError {
        RegistryError::OtherRegistry { expected: expected.to_string(), found: found.to_string() }
    }
}

/// An identity by which a transport knows the presenter of a chain.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Presenter {
    /// A client of an OAuth authorization server.
    OAuthClient(OAuthClient),
    /// A client certificate, by the SHA-256 digest of its DER.
    Certificate(Sha256Digest),
    /// The agent itself, by a proof with its key.
    Proof(AgentId),
}

impl Registry {
    /// Verifies the signatures of a registry with the keys of its operators, and indexes it.
    ///
    /// # Errors
    /// [`RegistryError::Signature`] unless every signature verifies with one of the keys.
    pub fn open(
        signed: &Signed<RegistryDocument>,
        operators: &[PublicKey],
    ) -> Result<Registry, RegistryError> {
        verify(signed, operators)?;
        Ok(Registry::index(signed))
    }

    fn index(signed: &Signed<RegistryDocument>) -> Registry {
        let document = signed.document().clone();
        let mut keys: HashMap<Text, Vec<usize>> = HashMap::new();
        for (position, key) in document.keys.iter().enumerate() {
            keys.entry(key.signer.clone()).or_default().push(position);
        }
        let revoked =
            document.revocations.iter().map(|entry| (entry.subject.clone(), entry.sequence)).collect();
        let classifications = Classifications(document.classifications.clone());
        let whole = WholeVersion { version: document.version(), digest: signed.digest() };
        let authorizers = Authorizers::of(&document.keys);
        Registry { document, whole, deltas: Vec::new(), keys, authorizers, revoked, classifications }
    }

    /// Returns the registry after a document was read again. The version that was read as a whole may come again, and
    /// changes nothing. A later one replaces it; deltas that lead on from there stay in force.
    ///
    /// # Errors
    /// [`RegistryError`] if the document is not a later version of this registry, signed by its operators, or if a
    /// revocation of the epoch would no longer be in force.
    pub fn replaced_by(
        &self,
        next: &Signed<RegistryDocument>,
        operators: &[PublicKey],
    ) -> Result<Registry, RegistryError> {
        verify(next, operators)?;
        self.must_be_named(&next.document().registry_id)?;
        let (current, found) = (self.version(), next.document().version());
        if (WholeVersion { version: found, digest: next.digest() }) == self.whole {
            return Ok(self.clone());
        }
        let mut registry = Registry::index(next);
        let later = self.deltas.iter().skip_while(|delta| delta.previous_version() < found);
        let is_later = found > self.whole.version
            && later.cloned().try_for_each(|delta| registry.add(delta)).is_ok()
            && registry.version() >= current;
        match is_later {
            false => Err(RegistryError::Rollback { current, found }),
            true if found.epoch == current.epoch && !self.is_covered_by(&registry) => {
                Err(RegistryError::MissingRevocation { current, found })
            }
            true => Ok(registry),
        }
    }

    /// Returns the registry with the revocations of deltas added. Deltas up to the version in force change nothing, if
    /// their revocations are in force.
    ///
    /// # Errors
    /// [`RegistryError`] if one of the deltas is not for the version before it, or not signed by the operators.
    pub fn extended_by(
        &self,
        deltas: &DeltaList,
        operators: &[PublicKey],
    ) -> Result<Registry, RegistryError> {
        let mut registry = self.clone();
        for delta in deltas.iter() {
            verify(delta, operators)?;
            registry.must_be_named(&delta.document().registry_id)?;
            registry.add_or_know(delta.document())?;
        }
        Ok(registry)
    }

    /// Adds a later delta, and compares an earlier one.
    fn add_or_know(&mut self, delta: &RevocationDelta) -> Result<(), RegistryError> {
        let (current, found) = (self.version(), delta.version());
        let mut subjects = delta.revocations.iter().map(|entry| &entry.subject);
        match found > current {
            true => self.add(delta.clone()),
            false if found.epoch < current.epoch => Ok(()),
            false if subjects.all(|subject| self.revoked.contains_key(subject)) => Ok(()),
            false => Err(RegistryError::Rollback { current, found }),
        }
    }

    fn add(&mut self, delta: RevocationDelta) -> Result<(), RegistryError> {
        let (current, needed) = (self.version(), delta.previous_version());
        if needed != current {
            return Err(RegistryError::Gap { current, needed });
        }
        self.document.sequence = delta.sequence;
        self.document.issued_at = delta.issued_at;
        self.document.revocations.extend(delta.revocations.iter().cloned());
        let revoked = delta.revocations.iter().map(|entry| (entry.subject.clone(), entry.sequence));
        self.revoked.extend(revoked);
        self.deltas.push(delta);
        Ok(())
    }

    /// Returns whether another version has all revocations of this one.
    fn is_covered_by(&self, next: &Registry) -> bool {
        self.revoked.keys().all(|subject| next.revoked.contains_key(subject))
    }

    fn must_be_named(&self, name: &Text) -> Result<(), RegistryError> {
        let expected = &self.document.registry_id;
        (name == expected).then_some(()).ok_or_else(|| RegistryError::other(expected, name))
    }

    /// Returns the document of the version.
    pub fn document(&self) -> &RegistryDocument {
        &self.document
    }

    /// Returns the position of the version.
    pub fn version(&self) -> RegistryVersion {
        self.document.version()
    }

    /// Returns the digest of the content in force: the canonical form of the version without signatures and time of issue,
    /// its revocations in a fixed order. So a version that was read as a whole has the digest of the same one that deltas led
    /// to, and a second document with the number of a version has another one.
    pub fn content_digest(&self) -> Sha256Digest {
        let mut content =
            serde_json::to_value(&self.document).expect("a document that was read can be written");
        if let Some(members) = content.as_object_mut() {
            members.remove("issued_at");
        }
        if let Some(revocations) = content["revocations"].as_array_mut() {
            revocations.sort_by_key(Value::to_string);
        }
        Sha256Digest::of(&signed::content(content))
    }

    /// Returns the order of classifications.
    pub fn classifications(&self) -> &Classifications {
        &self.classifications
    }

    /// Returns the keys of a signer that were valid at a time, in any role.
    pub fn keys<'r>(&'r self, signer: &Text, at: UtcTime) -> impl Iterator<Item = &'r KeyEntry> {
        let positions = self.keys.get(signer).into_iter().flatten();
        let keys = positions.map(|position| &self.document.keys[*position]);
        keys.filter(move |key| key.not_before <= at && key.not_after.is_none_or(|end| at < end))
    }

    /// Counts the different authorizers among signers: signers that are connected by keys of the registry are one.
    pub fn count_authorizers<'t>(&self, signers: impl Iterator<Item = &'t Text>) -> usize {
        signers.filter_map(|signer| self.authorizers.number_of(signer)).collect::<HashSet<_>>().len()
    }

    /// Returns the position of the revocation of an object; `None` if it is not revoked.
    pub fn revocation(&self, subject: &RevokedSubject) -> Option<RevocationPosition> {
        let sequence = *self.revoked.get(subject)?;
        Some(RevocationPosition { epoch: self.document.epoch, sequence })
    }

    /// Returns the position of the revocation of a key.
    pub fn key_revocation(&self, key: &PublicKey) -> Option<RevocationPosition> {
        let thumbprint = Text::try_from(key.jwk_thumbprint()).ok()?;
        self.revocation(&RevokedSubject::Key(thumbprint))
    }

    fn agent(&self, agent: &AgentId) -> Option<&AgentEntry> {
        self.document.agents.iter().find(|entry| entry.agent_id == *agent)
    }

    /// Returns whether a presenter is this agent.
    pub fn is_presenter(&self, presenter: &Presenter, agent: &AgentId) -> bool {
        match presenter {
            Presenter::Proof(proven) => proven == agent,
            Presenter::OAuthClient(client) => {
                self.agent(agent).is_some_and(|entry| entry.oauth_clients.contains(client))
            }
            Presenter::Certificate(digest) => {
                self.agent(agent).is_some_and(|entry| entry.certificates.contains(digest))
            }
        }
    }

    /// Returns whether the registry has verified a device attestation of an agent.
    pub fn has_device_attestation(&self, agent: &AgentId, reference: &Reference) -> bool {
        self.agent(agent).is_some_and(|entry| entry.device_attestations.contains(reference))
    }

    /// Returns the tools in the manifest of a server; none if the registry does not know the server.
    pub fn manifest(&self, server_id: &str) -> BTreeSet<Text> {
        let server = self.document.servers.iter().find(|server| server.server_id.as_str() == server_id);
        server.map(|server| server.tools.iter().cloned().collect()).unwrap_or_default()
    }

    /// Returns whether the manifest of a capability's server has its tool.
    pub fn is_in_manifest(&self, capability: &Capability) -> bool {
        let server =
            self.document.servers.iter().find(|server| server.server_id.as_str() == capability.server());
        server.is_some_and(|server| server.tools.iter().any(|tool| tool.as_str() == capability.tool()))
    }

    /// Returns whether envelopes under this digest of a policy are accepted.
    pub fn accepts_policy(&self, policy: &Text, digest: Sha256Digest) -> bool {
        let entry = self.document.policies.iter().find(|entry| entry.policy_id == *policy);
        entry.is_some_and(|entry| entry.policy_digest == digest || entry.previous_digests.contains(&digest))
    }
}

/// Verifies that every signature of a document is by an operator.
fn verify<D: Document>(signed: &Signed<D>, operators: &[PublicKey]) -> Result<(), RegistryError> {
    let mut signatures = signed.document().signatures().iter();
    let by_operator = signatures.all(|signature| operators.iter().any(|key| signed.is_by(signature, key)));
    by_operator.then_some(()).ok_or(RegistryError::Signature)
}
