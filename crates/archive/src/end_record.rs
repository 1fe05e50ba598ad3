//! The last record of an archive: the totals of the others, and the checksum.

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Numbers of records in an archive, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordCounts {
    /// Number of entries ([`ArchiveRecord::Entry`](crate::ArchiveRecord::Entry)).
    pub entries: u64,
    /// Number of entries without a statement.
    pub erased: u64,
    /// Number of committed heads ([`ArchiveRecord::Head`](crate::ArchiveRecord::Head)).
    pub heads: u64,
    /// Number of the log's keys ([`ArchiveRecord::Key`](crate::ArchiveRecord::Key)).
    pub keys: u64,
    /// Number of signatures over heads ([`ArchiveRecord::Signature`](crate::ArchiveRecord::Signature)).
    pub signatures: u64,
    /// Number of cosignatures by witnesses ([`ArchiveRecord::Cosignature`](crate::ArchiveRecord::Cosignature)).
    pub cosignatures: u64,
    /// Number of holds, including ended ones ([`ArchiveRecord::Hold`](crate::ArchiveRecord::Hold)).
    pub holds: u64,
    /// Number of reports of contradicting statements ([`ArchiveRecord::Report`](crate::ArchiveRecord::Report)).
    pub reports: u64,
    /// Number of index rows by digest ([`ArchiveRecord::Seen`](crate::ArchiveRecord::Seen)).
    pub seen: u64,
    /// Number of index rows by guard ([`ArchiveRecord::Guards`](crate::ArchiveRecord::Guards)).
    pub guards: u64,
    /// Number of statements in the inbox ([`ArchiveRecord::Waiting`](crate::ArchiveRecord::Waiting)).
    pub waiting: u64,
}

/// The last record: totals of the others, and the checksum.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndRecord {
    /// The log's origin.
    pub origin: String,
    /// Tree size of the newest head.
    pub size: u64,
    /// Root of the newest head, in hex.
    pub root: String,
    /// Number of the newest batch.
    pub batch: u64,
    /// The epoch when the archive was made.
    pub epoch: u64,
    /// Leaf index of the policy in force.
    pub policy: u64,
    /// The numbers of records.
    pub counts: RecordCounts,
    /// The newest checkpoint with its signature.
    pub checkpoint: Option<String>,
    /// SHA-256 in hex, over all bytes before this record and this record's text with an empty `sha256`.
    pub sha256: String,
}

impl EndRecord {
    pub(crate) fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }

    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, String> {
        let end: Self = serde_json::from_slice(bytes).map_err(|error| format!("the last record: {error}"))?;
        match end.to_text().as_bytes() == bytes {
            true => Ok(end),
            false => Err("the last record is not in its canonical form".into()),
        }
    }

    /// The checksum for this record, given the checksum state of all bytes before.
    pub(crate) fn checksum_after(&self, before: Sha256) -> [u8; 32] {
        let blank = Self { sha256: String::new(), ..self.clone() };
        before.chain_update(blank.to_text()).finalize().into()
    }

    /// The recorded checksum; `None` if it is not 32 bytes in hex.
    pub(crate) fn checksum(&self) -> Option<[u8; 32]> {
        HEXLOWER.decode(self.sha256.as_bytes()).ok()?.try_into().ok()
    }
}
