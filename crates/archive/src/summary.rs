//! What is in an archive: its last record, and what a check of it comes to.

use data_encoding::HEXLOWER;
use merkle::{LeafIndex, RootHash, TreeSize};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use store::{HeadSignature, LogKey, Source};

use crate::Purpose;

/// How much of each there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    /// Entries.
    pub entries: u64,
    /// Those of them without bytes.
    pub erased: u64,
    /// Committed heads.
    pub heads: u64,
    /// Keys that sign heads.
    pub keys: u64,
    /// Signatures over heads.
    pub signatures: u64,
    /// Cosignatures of witnesses.
    pub cosignatures: u64,
    /// Holds, ended ones included.
    pub holds: u64,
    /// Reports of contradictions.
    pub reports: u64,
    /// Rows that lead to an entry by a digest.
    pub seen: u64,
    /// Rows that lead to an entry by a claim.
    pub guards: u64,
    /// Statements that wait for their place.
    pub waiting: u64,
}

/// The last record: what the others come to, and their checksum.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct End {
    /// Which log.
    pub origin: String,
    /// Its size.
    pub size: u64,
    /// Its root, in hexadecimal.
    pub root: String,
    /// The batch that brought it there.
    pub batch: u64,
    /// The epoch in force when the archive was made.
    pub epoch: u64,
    /// The policy in force.
    pub policy: u64,
    /// What is in the archive.
    pub counts: Counts,
    /// The newest checkpoint, as it was signed.
    pub checkpoint: Option<String>,
    /// SHA-256 of every byte before this record and of this text with nothing in this place, in
    /// hexadecimal.
    pub sha256: String,
}

impl End {
    pub(crate) fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }

    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, String> {
        let end: Self = serde_json::from_slice(bytes).map_err(|error| format!("the last record: {error}"))?;
        match end.to_text().as_bytes() == bytes {
            true => Ok(end),
            false => Err("the last record is not as it is written".into()),
        }
    }

    /// The checksum that belongs here, given that of the bytes before.
    pub(crate) fn checksum_after(&self, before: Sha256) -> [u8; 32] {
        let blank = Self { sha256: String::new(), ..self.clone() };
        before.chain_update(blank.to_text()).finalize().into()
    }

    /// The checksum, if it is one.
    pub(crate) fn checksum(&self) -> Option<[u8; 32]> {
        HEXLOWER.decode(self.sha256.as_bytes()).ok()?.try_into().ok()
    }
}

/// What a checked archive holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Which log.
    pub origin: String,
    /// Made for what.
    pub purpose: Purpose,
    /// Unix seconds at which it was begun.
    pub made_at: u64,
    /// Its size.
    pub size: TreeSize,
    /// Its root.
    pub root: RootHash,
    /// The batch that brought it there.
    pub batch: u64,
    /// The epoch in force when the archive was made.
    pub epoch: u64,
    /// Unix seconds of the newest head.
    pub at: u64,
    /// The policy in force.
    pub policy: LeafIndex,
    /// What is in the archive.
    pub counts: Counts,
    /// The log's keys.
    pub keys: Vec<LogKey>,
    /// The signatures over the newest head.
    pub signatures: Vec<HeadSignature>,
    /// The root of the size that was asked for ([`verify_wanting`](crate::verify_wanting)).
    pub wanted_root: Option<RootHash>,
    /// The checksum of its last record: which archive this is.
    pub source: Source,
}
