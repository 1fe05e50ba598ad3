//! Evidence: the data with which a third party can check an accusation after the accuser is gone.
//!
//! Notes are kept byte for byte, because their signatures are the evidence. Facts that rest only on the monitor's
//! statement are documented as such ("the monitor's word").

use data_encoding::BASE64URL_NOPAD;
use index_audit::WrongRun;
use merkle::EntryDigest;
use scitt::SignedStatement;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::config::WatchedLog;
use crate::limits::MAX_STATEMENT_KEPT;

/// A checkpoint note as received.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sighting {
    /// The note, byte for byte. A `String`, because C2SP signed notes are UTF-8.
    pub note: String,
    /// Source of the note: a URL or a file path.
    pub from: String,
    /// Time of receipt by the monitor's clock, in Unix seconds. The monitor's word.
    pub at: u64,
}

/// An entry of the log, or a statement that the log refused because of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntrySeen {
    /// The entry's leaf index; `None` for a refused statement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<u64>,
    /// SHA-256 of the statement, in hex.
    pub entry_id: String,
    /// The statement, base64url without padding; `None` if the log did not serve it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statement: Option<String>,
}

/// A receipt as received from a SCITT service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiptSeen {
    /// SHA-256 of the statement that the receipt is for, in hex.
    pub entry_id: String,
    /// The statement, base64url without padding; `None` if unknown or larger than `MAX_STATEMENT_KEPT`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statement: Option<String>,
    /// The receipt, base64url without padding.
    pub receipt: String,
    /// URL of the service that issued the receipt.
    pub from: String,
    /// Time of receipt by the monitor's clock, in Unix seconds. The monitor's word.
    pub at: u64,
}

impl ReceiptSeen {
    /// Records a receipt, with its statement if that is not larger than [`MAX_STATEMENT_KEPT`].
    pub(crate) fn of(
        entry: EntryDigest,
        statement: Option<&SignedStatement>,
        receipt: &[u8],
        from: &Url,
        at: u64,
    ) -> Self {
        let statement = statement.filter(|statement| statement.bytes().len() <= MAX_STATEMENT_KEPT);
        Self {
            entry_id: entry.to_string(),
            statement: statement.map(|statement| BASE64URL_NOPAD.encode(statement.bytes())),
            receipt: BASE64URL_NOPAD.encode(receipt),
            from: from.to_string(),
            at,
        }
    }

    /// Decodes the entry digest, the statement if present, and the receipt. Fails if the statement does not match the
    /// digest.
    pub(crate) fn parts(&self) -> Result<(EntryDigest, Option<SignedStatement>, Vec<u8>), String> {
        let bytes =
            |text: &str| BASE64URL_NOPAD.decode(text.as_bytes()).map_err(|_| "not base64url".to_owned());
        let entry: EntryDigest = self.entry_id.parse().map_err(|why| format!("{}: {why}", self.entry_id))?;
        let statement = match &self.statement {
            Some(text) => Some(SignedStatement::parse(bytes(text)?).map_err(|why| why.to_string())?),
            None => None,
        };
        match statement.as_ref().is_none_or(|statement| statement.digest() == entry) {
            true => Ok((entry, statement, bytes(&self.receipt)?)),
            false => Err("the statement is another one than its digest says".into()),
        }
    }
}

/// Evidence for an accusation, by its kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "evidence", rename_all = "kebab-case")]
pub enum Evidence {
    /// Two checkpoints signed by the log's key that cannot belong to one append-only tree: self-contained proof.
    Contradiction {
        /// The log's key in C2SP vkey format.
        vkey: String,
        /// The log's origin, if it is not the key's name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        origin: Option<String>,
        /// The checkpoint with fewer leaves; for equal sizes the one seen first.
        older: Sighting,
        /// The other checkpoint.
        newer: Sighting,
        /// Hashes that lead to the newer root and to a different older root; `None` if the sizes are equal.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<TwoRootPath>,
    },
    /// The log showed the larger checkpoint first and the smaller one later. The order is the monitor's word, unless
    /// cosignature timestamps show it.
    Rollback {
        /// The log's key in C2SP vkey format.
        vkey: String,
        /// The log's origin, if it is not the key's name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        origin: Option<String>,
        /// The checkpoint shown first.
        larger: Sighting,
        /// The checkpoint shown later.
        smaller: Sighting,
    },
    /// A single checkpoint; the alarm's kind tells the fault.
    Checkpoint {
        /// The log's key in C2SP vkey format.
        vkey: String,
        /// The log's origin, if it is not the key's name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        origin: Option<String>,
        /// The note as received.
        seen: Sighting,
    },
    /// Bytes that do not belong to the tree signed by the checkpoint. That the log served them is the monitor's word.
    Served {
        /// The log's key in C2SP vkey format.
        vkey: String,
        /// The checkpoint that signs the tree.
        checkpoint: Sighting,
        /// The request path of the bytes, as in C2SP tlog-tiles.
        path: String,
        /// The bytes in base64.
        bytes: String,
    },
    /// Receipts of a SCITT service. Two verified receipts may contradict each other: self-contained proof.
    Receipts {
        /// The service's receipt keys, as a `trust.toml`.
        trust: String,
        /// The receipts in the order in which they were received.
        receipts: Vec<ReceiptSeen>,
    },
    /// An accusation against the search index of the log (`verifier::index::IndexAccusationFile`): self-contained proof.
    Index {
        /// The encoded file, in base64.
        file: String,
    },
    /// A head of the search index, and the runs that were computed from the statements in its place. That these are right
    /// is the monitor's word; whoever computes them again from the log can check it.
    IndexHead {
        /// The statement of the head, base64url without padding.
        statement: String,
        /// A receipt of it, base64url without padding; `None` if the log gave none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        receipt: Option<String>,
        /// The runs that differ; empty if the head breaks a rule of its form.
        runs: Vec<ComputedRun>,
    },
    /// Entries of the log, signed by their issuers.
    Entries {
        /// A checkpoint of a tree that contains the entries.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        checkpoint: Option<Sighting>,
        /// The entries.
        entries: Vec<EntrySeen>,
    },
}

/// A run of a search index as it was computed from the statements.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComputedRun {
    /// Level of the run; 255 for the tail.
    pub level: u8,
    /// Number of the run in its level.
    pub number: u64,
    /// The first leaf.
    pub from: u64,
    /// The leaf after the last one.
    pub to: u64,
    /// The number of postings.
    pub postings: u64,
    /// The number of blind postings among them.
    pub blind: u64,
    /// Root of the run, in hex.
    pub root: String,
}

impl From<&WrongRun> for ComputedRun {
    fn from(wrong: &WrongRun) -> Self {
        let (run, computed) = (&wrong.run, &wrong.computed);
        Self {
            level: run.id.level,
            number: run.id.number,
            from: run.leaves.start.get(),
            to: run.leaves.end.get(),
            postings: computed.postings,
            blind: computed.blind,
            root: computed.root.to_string(),
        }
    }
}

impl Evidence {
    /// A single checkpoint of this log.
    pub(crate) fn checkpoint(log: &WatchedLog, seen: &Sighting) -> Self {
        Self::Checkpoint { vkey: log.vkey.to_string(), origin: log.stated_origin(), seen: seen.clone() }
    }

    /// Two checkpoints of this log that contradict each other.
    pub(crate) fn contradiction(
        log: &WatchedLog,
        (older, newer): (&Sighting, &Sighting),
        path: Option<TwoRootPath>,
    ) -> Self {
        let (vkey, origin) = (log.vkey.to_string(), log.stated_origin());
        Self::Contradiction { vkey, origin, older: older.clone(), newer: newer.clone(), path }
    }

    /// The log's origin, if it is not the name of its key; the monitor's word.
    pub fn origin(&self) -> Option<&str> {
        match self {
            Self::Contradiction { origin, .. }
            | Self::Rollback { origin, .. }
            | Self::Checkpoint { origin, .. } => origin.as_deref(),
            _ => None,
        }
    }

    /// Returns `true` for self-contained proof, which a third party can check without trust in the monitor.
    pub fn is_proof(&self) -> bool {
        matches!(self, Self::Contradiction { .. } | Self::Index { .. })
    }
}

/// Hashes from a node to two roots: the newer tree's root, and the root that the older tree would need.
///
/// Like a consistency proof (RFC 9162, 2.1.4.2), except that the first node is always included.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TwoRootPath {
    /// The largest perfect subtree at the right edge of the older tree, in hex.
    pub start: String,
    /// The siblings from the bottom up, in hex.
    pub siblings: Vec<String>,
}
