//! What shows to a third party that an accusation is true, with the accuser gone.
//!
//! Notes are kept as they came: their signatures are the evidence. What only the monitor's word stands for says so.

use data_encoding::BASE64URL_NOPAD;
use merkle::EntryDigest;
use scitt::SignedStatement;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::limits::MAX_STATEMENT_KEPT;

/// A checkpoint note as it came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sighting {
    /// The note, byte for byte: it is UTF-8, or it would be no note.
    pub note: String,
    /// Where it came from: a URL, or the path of a file.
    pub from: String,
    /// When it came, by the monitor's clock, in Unix seconds. The monitor's word.
    pub at: u64,
}

/// An entry of the log, or a statement that was refused because of one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntrySeen {
    /// Its leaf, if it is an entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<u64>,
    /// SHA-256 of the statement, hex.
    pub entry_id: String,
    /// The statement, base64url without padding, if it was served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statement: Option<String>,
}

/// A receipt as it came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiptSeen {
    /// SHA-256 of the statement that it is for, hex.
    pub entry_id: String,
    /// The statement, base64url without padding, where it was at hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statement: Option<String>,
    /// The receipt, base64url without padding.
    pub receipt: String,
    /// Which service gave it.
    pub from: String,
    /// When, by the monitor's clock, in Unix seconds. The monitor's word.
    pub at: u64,
}

impl ReceiptSeen {
    /// What came from there.
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

    /// The entry, its statement if there is one, and the receipt.
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

/// What shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "evidence", rename_all = "kebab-case")]
pub enum Evidence {
    /// Two checkpoints signed by the log's key that no tree can both have: proof, without anybody's word.
    Contradiction {
        /// The log's key, as a vkey.
        vkey: String,
        /// The one of fewer leaves, or the one seen first where both have as many.
        older: Sighting,
        /// The other one.
        newer: Sighting,
        /// Where the sizes differ: hashes, hex, that lead to the newer root and to another older root.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<Path>,
    },
    /// The log showed the larger checkpoint first and the smaller one later. The order is the monitor's word, unless
    /// cosignatures tell it.
    Rollback {
        /// The log's key, as a vkey.
        vkey: String,
        /// What it showed first.
        larger: Sighting,
        /// What it showed then.
        smaller: Sighting,
    },
    /// One checkpoint, and what is wrong with it.
    Checkpoint {
        /// The log's key, as a vkey.
        vkey: String,
        /// The note as it came.
        seen: Sighting,
    },
    /// Bytes that do not belong to the tree which the checkpoint signs. That the log served them is the monitor's word.
    Served {
        /// The log's key, as a vkey.
        vkey: String,
        /// The checkpoint.
        checkpoint: Sighting,
        /// The name under which the bytes were served.
        path: String,
        /// The bytes, base64.
        bytes: String,
    },
    /// Receipts of a SCITT service. Two verified ones may contradict each other: proof, without anybody's word.
    Receipts {
        /// Whose receipts are believed, as a `trust.toml`.
        trust: String,
        /// What came, in that order.
        receipts: Vec<ReceiptSeen>,
    },
    /// Entries of the log, which their issuers signed.
    Entries {
        /// The checkpoint that holds them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        checkpoint: Option<Sighting>,
        /// The entries.
        entries: Vec<EntrySeen>,
    },
}

/// The way from a node to two roots: that of the newer tree, and what the older tree's root would have to be.
///
/// As in a consistency proof (RFC 9162, 2.1.4.2), but the first node is always written down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Path {
    /// The largest perfect subtree at the right edge of the older tree, hex.
    pub start: String,
    /// Its siblings upwards, hex.
    pub siblings: Vec<String>,
}
