//! The Agent Identity Registry: verified, indexed, and replaced only by later versions.

mod document;

use std::collections::{BTreeSet, HashMap};

use scitt::PublicKey;
use serde::{Deserialize, Serialize};

pub use document::{
    AgentEntry, Ed25519Jwk, KeyEntry, KeyRole, OAuthClient, PolicyEntry, RegistryDocument, RevocationDelta,
    RevocationEntry, RevokedSubject, ServerEntry,
};

use crate::capability::Capability;
use crate::denial::RevocationPosition;
use crate::scope::Classifications;
use crate::signed::{Document, Signed};
use crate::text::{AgentId, Reference, Sha256Digest, Text, UtcTime};

/// The position of a registry's version: later versions have a higher one.
pub type RegistryVersion = RevocationPosition;

/// A verified registry.
#[derive(Clone, Debug)]
pub struct Registry {
    document: RegistryDocument,
    /// The digest of the signed document; `None` after a delta, until the whole version is read.
    digest: Option<Sha256Digest>,
    keys: HashMap<Text, Vec<usize>>,
    revoked: HashMap<RevokedSubject, u64>,
    classifications: Classifications,
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
    /// The delta is for another version than the one in force: the whole registry has to be fetched.
    #[error("a delta for version {}.{}, not for {}.{}", needed.epoch, needed.sequence, current.epoch, current.sequence)]
    Gap {
        /// The version in force.
        current: RegistryVersion,
        /// The version that the delta is for.
        needed: RegistryVersion,
    },
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
        Ok(Registry::index(signed.document().clone(), Some(signed.digest())))
    }

    fn index(document: RegistryDocument, digest: Option<Sha256Digest>) -> Registry {
        let mut keys: HashMap<Text, Vec<usize>> = HashMap::new();
        for (position, key) in document.keys.iter().enumerate() {
            keys.entry(key.signer.clone()).or_default().push(position);
        }
        let revoked =
            document.revocations.iter().map(|entry| (entry.subject.clone(), entry.sequence)).collect();
        let classifications = Classifications(document.classifications.clone());
        Registry { document, digest, keys, revoked, classifications }
    }

    /// Returns the next version of the registry. The version in force may come again, also as a whole after its
    /// delta.
    ///
    /// # Errors
    /// [`RegistryError`] if the document is not a later version of this registry, signed by its operators, or if it lacks
    /// a revocation that a delta brought.
    pub fn replaced_by(
        &self,
        next: &Signed<RegistryDocument>,
        operators: &[PublicKey],
    ) -> Result<Registry, RegistryError> {
        verify(next, operators)?;
        let document = next.document();
        self.must_be_named(&document.registry_id)?;
        let found = RegistryVersion { epoch: document.epoch, sequence: document.sequence };
        let current = self.version();
        match found > current || (found == current && self.is_in_force(next)) {
            true => Ok(Registry::index(document.clone(), Some(next.digest()))),
            false => Err(RegistryError::Rollback { current, found }),
        }
    }

    /// Returns the registry with the revocations of a delta added.
    ///
    /// # Errors
    /// [`RegistryError`] if the delta is not for this version, or not signed by the operators.
    pub fn extended_by(
        &self,
        delta: &Signed<RevocationDelta>,
        operators: &[PublicKey],
    ) -> Result<Registry, RegistryError> {
        verify(delta, operators)?;
        let delta = delta.document();
        self.must_be_named(&delta.registry_id)?;
        let (current, needed) =
            (self.version(), RegistryVersion { epoch: delta.epoch, sequence: delta.previous_sequence });
        if needed != current {
            return Err(RegistryError::Gap { current, needed });
        }
        let mut document = self.document.clone();
        document.sequence = delta.sequence;
        document.issued_at = delta.issued_at;
        document.revocations.extend(delta.revocations.iter().cloned());
        Ok(Registry::index(document, None))
    }

    /// Returns whether a document with the number of the version in force is this version. After a delta, only the
    /// revocations of the version are known: the document must have them all.
    fn is_in_force(&self, next: &Signed<RegistryDocument>) -> bool {
        match self.digest {
            Some(digest) => next.digest() == digest,
            None => {
                let revocations = &next.document().revocations;
                self.document.revocations.iter().all(|known| revocations.contains(known))
            }
        }
    }

    fn must_be_named(&self, name: &Text) -> Result<(), RegistryError> {
        let expected = &self.document.registry_id;
        match name == expected {
            true => Ok(()),
            false => {
                Err(RegistryError::OtherRegistry { expected: expected.to_string(), found: name.to_string() })
            }
        }
    }

    /// Returns the document of the version.
    pub fn document(&self) -> &RegistryDocument {
        &self.document
    }

    /// Returns the position of the version.
    pub fn version(&self) -> RegistryVersion {
        RegistryVersion { epoch: self.document.epoch, sequence: self.document.sequence }
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
