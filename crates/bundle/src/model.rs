//! The contents of a bundle, and how they are written.

use merkle::{EntryDigest, Hash};
use serde::{Deserialize, Serialize};

use crate::encoding::{base64url, hex_list, optional_base64url};

/// Version of the format, the value of the member `bundle`.
pub const VERSION: u64 = 1;
/// Media type of a bundle.
pub const MEDIA_TYPE: &str = "application/vnd.tabellion.bundle+json";
/// Content type of a registration policy.
pub const POLICY_TYPE: &str = "application/vnd.tabellion.policy+json";

/// An evidence bundle. Nothing in it is verified before [`verify`](Self::verify).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvidenceBundle {
    /// The version of the format, [`VERSION`].
    #[serde(rename = "bundle")]
    pub version: u64,
    /// The checkpoint of the tree that all proofs lead to, with its cosignatures: a signed note (C2SP tlog-checkpoint).
    pub checkpoint: String,
    /// What the bundle says of itself, unsigned.
    pub claims: BundleClaims,
    /// The entries, by ascending leaf index.
    pub entries: Vec<BundleEntry>,
    /// The registration policies that admitted the entries, by ascending leaf index.
    pub policies: Vec<BundleEntry>,
    /// The searches that the entries answer, unsigned; none if all entries were named one by one.
    pub selections: Vec<BundleSelection>,
}

/// Statements of the party that made the bundle. They are not signed, and no verification uses them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BundleClaims {
    /// The time at which the bundle was made (RFC 3339).
    pub created_at: String,
    /// The URL of the service from which the entries were fetched.
    pub log_url: String,
    /// The keys of the log and of the issuers as a `trust.toml`. A reader who wants to trust them has to compare them
    /// with keys from another source first.
    pub trust: String,
    /// The witnesses as a witness policy (C2SP tlog-policy).
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub witness_policy: Option<String>,
}

/// An entry of the log with its proofs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BundleEntry {
    /// The policy that admitted the entry, as the log said, unsigned; `None` for a policy in [`EvidenceBundle::policies`].
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub admitted_by: Option<AdmittedBy>,
    /// The detached payload, or the preimage of a hash envelope (RFC 9995).
    #[serde(default, skip_serializing_if = "Option::is_none", with = "optional_base64url")]
    pub payload: Option<Vec<u8>>,
    /// The path to the root of the checkpoint.
    pub proof: BundleProof,
    /// A receipt (RFC 9942), whose tree may be another than that of the checkpoint.
    #[serde(with = "base64url")]
    pub receipt: Vec<u8>,
    /// The Signed Statement (RFC 9943); SHA-256 of it, with an empty unprotected header, is the entry ID.
    #[serde(with = "base64url")]
    pub statement: Vec<u8>,
}

/// The decision that admitted an entry, as the log said. It is unsigned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdmittedBy {
    /// Leaf index of the policy.
    pub policy: u64,
    /// The rule of the policy.
    pub rule: String,
}

/// An inclusion proof in the tree of the checkpoint (RFC 9162, section 2.1.3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BundleProof {
    /// Leaf index.
    pub index: u64,
    /// Hashes from the leaf to the root.
    #[serde(with = "hex_list")]
    pub path: Vec<Hash>,
}

/// A search of the log's index, and its answer. The log does not sign it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BundleSelection {
    /// The kind of search.
    pub by: SelectedBy,
    /// The entries that the index named, by ascending leaf index.
    #[serde(with = "hex_list")]
    pub entries: Vec<EntryDigest>,
    /// The number of leaves that the index had read.
    pub indexed_to: u64,
    /// The session or agent.
    pub name: String,
}

/// The kind of a [`BundleSelection`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SelectedBy {
    /// All entries that name a session, and the verification receipts that share a digest with them.
    Session,
    /// All entries that name an agent.
    Agent,
}

impl SelectedBy {
    /// Returns the name of the kind, as it is written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Agent => "agent",
        }
    }
}

impl EvidenceBundle {
    /// Returns the file: canonical JSON (RFC 8785).
    pub fn to_bytes(&self) -> Vec<u8> {
        // Serialization cannot fail: a bundle consists of text, integers, and lists of them.
        jose::jcs::to_canonical(self).unwrap_or_default()
    }
}

/// Deserializes a member that may be missing, but not `null`.
fn present<'de, T: Deserialize<'de>, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}
