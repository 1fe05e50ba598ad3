//! The records of an archive, and their encoding.
//!
//! Numbers are big-endian and of fixed width, byte strings are prefixed with their length, optional values with a byte
//! 0 or 1. The encoding is canonical: each record has exactly one, and trailing bytes are an error. The last record is
//! canonical JSON, so that it can be read with `tail`.

use bytes::Bytes;
use merkle::{EntryDigest, LeafIndex, RootHash, TreeSize};
use serde::{Deserialize, Serialize};
use store::{
    Collateral, CommittedHead, Cosignature, Entry, GuardKey, GuardRow, HeadSignature, Hold, InboxItem,
    LogKey, Report, SeenRow, SignatureKind,
};

use crate::end_record::EndRecord;
use crate::limits::{ITEMS, ROWS, TEXT_BYTES};

/// Kind of the last record ([`ArchiveRecord::End`]).
const LAST_KIND: u8 = 255;

/// Purpose of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ArchivePurpose {
    /// A copy of a log that continues in its database.
    Backup,
    /// A frozen log that continues in another database.
    Export,
}

/// Contents of the first record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveHeader {
    /// The log's origin.
    pub origin: String,
    /// The purpose of the archive.
    pub purpose: ArchivePurpose,
    /// Start of writing, in Unix seconds.
    pub made_at: u64,
}

/// A record. Records are in the order of the variants, except that each batch is its entries, followed by their head
/// and its signatures and cosignatures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArchiveRecord {
    /// The first record.
    Header(ArchiveHeader),
    /// A key of the log that signs heads.
    Key(LogKey),
    /// The next entry, with its collateral.
    Entry(Entry, Vec<Collateral>),
    /// The head over the entries so far.
    Head(CommittedHead),
    /// A signature over the preceding head.
    Signature(HeadSignature),
    /// A witness's cosignature of the preceding head.
    Cosignature(Cosignature),
    /// A hold on an entry.
    Hold(Hold),
    /// A report of a refused statement that contradicts an entry.
    Report(Report),
    /// Index rows from statement digests to entries, in order of key.
    Seen(Vec<SeenRow>),
    /// Index rows from guards (unique claims) to entries, in order of key.
    Guards(Vec<GuardRow>),
    /// An admitted statement in the inbox, not sequenced yet.
    Waiting(InboxItem),
    /// The last record.
    End(Box<EndRecord>),
}

impl ArchiveRecord {
    /// The kind byte of the frame; kinds are in the order of the records.
    pub(crate) fn kind(&self) -> u8 {
        match self {
            Self::Header(_) => 1,
            Self::Key(_) => 2,
            Self::Entry(..) => 3,
            Self::Head(_) => 4,
            Self::Signature(_) => 5,
            Self::Cosignature(_) => 6,
            Self::Hold(_) => 7,
            Self::Report(_) => 8,
            Self::Seen(_) => 9,
            Self::Guards(_) => 10,
            Self::Waiting(_) => 11,
            Self::End(_) => LAST_KIND,
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = FieldWriter(Vec::new());
        match self {
            Self::Header(ArchiveHeader { origin, purpose, made_at }) => {
                out.bytes(origin.as_bytes());
                out.byte(match purpose {
                    ArchivePurpose::Backup => 0,
                    ArchivePurpose::Export => 1,
                });
                out.number(*made_at);
            }
            Self::Key(key) => {
                out.bytes(&key.kid);
                out.bytes(&key.public);
                out.number(key.from_size.get());
                out.maybe(key.retired_at, FieldWriter::number);
                out.maybe(key.retired_size.map(TreeSize::get), FieldWriter::number);
                out.maybe(key.compromised_size.map(TreeSize::get), FieldWriter::number);
            }
            Self::Entry(entry, collateral) => out.entry(entry, collateral),
            Self::Head(head) => {
                out.number(head.batch);
                out.number(head.epoch);
                out.number(head.size.get());
                out.0.extend_from_slice(head.root.as_bytes());
                out.number(head.at);
            }
            Self::Signature(signature) => {
                out.number(signature.size.get());
                out.byte(signature.kind as u8);
                out.bytes(&signature.kid);
                out.bytes(&signature.bytes);
            }
            Self::Cosignature(cosignature) => {
                out.number(cosignature.size.get());
                out.bytes(&cosignature.witness);
                out.number(cosignature.at);
                out.bytes(&cosignature.line);
            }
            Self::Hold(hold) => {
                out.number(hold.entry.get());
                out.bytes(hold.case.as_bytes());
                out.number(hold.at);
                out.maybe(hold.released, FieldWriter::number);
            }
            Self::Report(report) => out.report(report),
            Self::Seen(rows) => {
                out.number(rows.len() as u64);
                for (key, entry) in rows {
                    out.0.extend_from_slice(key);
                    out.number(entry.get());
                }
            }
            Self::Guards(rows) => {
                out.number(rows.len() as u64);
                for (key, entry) in rows {
                    out.bytes(&key.0);
                    out.number(entry.get());
                }
            }
            Self::Waiting(item) => {
                out.0.extend_from_slice(item.digest.as_bytes());
                out.bytes(&item.submission);
            }
            Self::End(end) => out.0.extend_from_slice(end.to_text().as_bytes()),
        }
        out.0
    }

    /// Decodes the payload of a frame; `index` is the leaf index of the next entry.
    pub(crate) fn decode(kind: u8, payload: Bytes, index: u64) -> Result<Self, String> {
        let mut from = FieldReader(payload);
        let record = match kind {
            1 => Self::Header(ArchiveHeader {
                origin: from.text()?,
                purpose: match from.byte()? {
                    0 => ArchivePurpose::Backup,
                    1 => ArchivePurpose::Export,
                    other => return Err(format!("{other} is not a purpose")),
                },
                made_at: from.number()?,
            }),
            2 => Self::Key(LogKey {
                kid: from.bytes()?.into(),
                public: from.bytes()?,
                from_size: TreeSize::new(from.number()?),
                retired_at: from.maybe(FieldReader::number)?,
                retired_size: from.maybe(FieldReader::number)?.map(TreeSize::new),
                compromised_size: from.maybe(FieldReader::number)?.map(TreeSize::new),
            }),
            3 => from.entry(index)?,
            4 => Self::Head(CommittedHead {
                batch: from.number()?,
                epoch: from.number()?,
                size: TreeSize::new(from.number()?),
                root: RootHash::from_bytes(from.array()?),
                at: from.number()?,
            }),
            5 => Self::Signature(HeadSignature {
                size: TreeSize::new(from.number()?),
                kind: match from.byte()? {
                    1 => SignatureKind::Receipt,
                    2 => SignatureKind::Checkpoint,
                    3 => SignatureKind::Cosignature,
                    other => return Err(format!("{other} is not a kind of signature")),
                },
                kid: from.bytes()?.into(),
                bytes: from.bytes()?,
            }),
            6 => Self::Cosignature(Cosignature {
                size: TreeSize::new(from.number()?),
                witness: from.bytes()?.into(),
                at: from.number()?,
                line: from.bytes()?,
            }),
            7 => Self::Hold(Hold {
                entry: LeafIndex::new(from.number()?),
                case: from.text()?,
                at: from.number()?,
                released: from.maybe(FieldReader::number)?,
            }),
            8 => Self::Report(from.report()?),
            9 => Self::Seen(from.rows(|from| Ok((from.array()?, LeafIndex::new(from.number()?))))?),
            10 => Self::Guards(
                from.rows(|from| Ok((GuardKey(from.bytes()?.into()), LeafIndex::new(from.number()?))))?,
            ),
            11 => Self::Waiting(InboxItem {
                digest: EntryDigest::from_bytes(from.array()?),
                submission: from.bytes()?,
            }),
            LAST_KIND => return EndRecord::parse(&from.0).map(|end| Self::End(Box::new(end))),
            other => return Err(format!("there is no record of kind {other}")),
        };
        match from.0.is_empty() {
            true => Ok(record),
            false => Err("a record has more bytes than its fields".into()),
        }
    }
}

struct FieldWriter(Vec<u8>);

impl FieldWriter {
    fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_be_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn maybe<T>(&mut self, value: Option<T>, put: impl Fn(&mut Self, T)) {
        self.byte(u8::from(value.is_some()));
        if let Some(value) = value {
            put(self, value);
        }
    }

    fn entry(&mut self, entry: &Entry, collateral: &[Collateral]) {
        self.0.extend_from_slice(entry.digest.as_bytes());
        self.number(entry.policy.get());
        self.bytes(entry.rule.as_bytes());
        self.bytes(entry.facts.as_bytes());
        self.maybe(entry.statement.as_ref(), |out, statement| out.bytes(statement));
        self.number(collateral.len() as u64);
        for item in collateral {
            self.byte(item.kind);
            self.bytes(&item.bytes);
        }
    }

    fn report(&mut self, report: &Report) {
        self.bytes(&report.guard.0);
        self.number(report.registered.0.get());
        self.0.extend_from_slice(report.registered.1.as_bytes());
        self.0.extend_from_slice(report.refused.as_bytes());
        self.maybe(report.statement.as_ref(), |out, statement| out.bytes(statement));
        self.number(report.at);
    }
}

struct FieldReader(Bytes);

impl FieldReader {
    fn take(&mut self, length: usize) -> Result<Bytes, String> {
        match length <= self.0.len() {
            true => Ok(self.0.split_to(length)),
            false => Err("a record has fewer bytes than its fields".into()),
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let bytes = self.take(N)?;
        bytes[..].try_into().map_err(|_| "a record has fewer bytes than its fields".into())
    }

    fn byte(&mut self) -> Result<u8, String> {
        self.array().map(|[byte]| byte)
    }

    fn number(&mut self) -> Result<u64, String> {
        let number = u64::from_be_bytes(self.array()?);
        // Numbers must fit into an `i64`, the integer type of the databases; no valid number is larger.
        match i64::try_from(number) {
            Ok(_) => Ok(number),
            Err(_) => Err(format!("{number} is larger than 2^63 - 1")),
        }
    }

    fn count(&mut self, most: usize) -> Result<usize, String> {
        let count = self.number()?;
        match usize::try_from(count).ok().filter(|count| *count <= most) {
            Some(count) => Ok(count),
            None => Err(format!("{count} items, but at most {most} are allowed")),
        }
    }

    fn bytes(&mut self) -> Result<Bytes, String> {
        let length = self.count(usize::MAX >> 1)?;
        self.take(length)
    }

    fn text(&mut self) -> Result<String, String> {
        let bytes = self.bytes()?;
        if bytes.len() > TEXT_BYTES {
            return Err(format!("a text of {} bytes, where {TEXT_BYTES} are allowed", bytes.len()));
        }
        String::from_utf8(bytes.into()).map_err(|_| "a text is not UTF-8".into())
    }

    fn maybe<T>(&mut self, get: impl Fn(&mut Self) -> Result<T, String>) -> Result<Option<T>, String> {
        match self.byte()? {
            0 => Ok(None),
            1 => get(self).map(Some),
            other => Err(format!("a presence byte is {other}, not 0 or 1")),
        }
    }

    fn rows<T>(&mut self, row: impl Fn(&mut Self) -> Result<T, String>) -> Result<Vec<T>, String> {
        (0..self.count(ROWS)?).map(|_| row(self)).collect()
    }

    fn entry(&mut self, index: u64) -> Result<ArchiveRecord, String> {
        let entry = Entry {
            index: LeafIndex::new(index),
            digest: EntryDigest::from_bytes(self.array()?),
            policy: LeafIndex::new(self.number()?),
            rule: self.text()?,
            facts: self.text()?,
            statement: self.maybe(Self::bytes)?,
        };
        let item = |from: &mut Self| Ok(Collateral { kind: from.byte()?, bytes: from.bytes()? });
        let collateral = (0..self.count(ITEMS)?).map(|_| item(self)).collect::<Result<_, String>>()?;
        Ok(ArchiveRecord::Entry(entry, collateral))
    }

    fn report(&mut self) -> Result<Report, String> {
        Ok(Report {
            guard: GuardKey(self.bytes()?.into()),
            registered: (LeafIndex::new(self.number()?), EntryDigest::from_bytes(self.array()?)),
            refused: EntryDigest::from_bytes(self.array()?),
            statement: self.maybe(Self::bytes)?,
            at: self.number()?,
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// One record of each kind.
    fn records() -> Vec<ArchiveRecord> {
        let digest = EntryDigest::of(b"statement");
        let (entry, size) = (LeafIndex::new(0), TreeSize::new(1));
        let collateral = vec![Collateral { kind: 4, bytes: Bytes::from_static(b"beside") }];
        let stored = |statement| Entry {
            index: entry,
            digest,
            statement,
            policy: entry,
            rule: "rule".into(),
            facts: "{}".into(),
        };
        let report = Report {
            guard: GuardKey(b"guard".to_vec()),
            registered: (entry, digest),
            refused: digest,
            statement: Some(Bytes::from_static(b"refused")),
            at: 7,
        };
        vec![
            ArchiveRecord::Header(ArchiveHeader {
                origin: "log.example".into(),
                purpose: ArchivePurpose::Export,
                made_at: 7,
            }),
            ArchiveRecord::Key(LogKey {
                kid: vec![1],
                public: Bytes::from_static(b"public"),
                from_size: size,
                retired_at: Some(9),
                retired_size: Some(TreeSize::new(10)),
                compromised_size: None,
            }),
            ArchiveRecord::Entry(stored(Some(Bytes::from_static(b"statement"))), collateral),
            ArchiveRecord::Entry(stored(None), Vec::new()),
            ArchiveRecord::Head(CommittedHead {
                batch: 1,
                epoch: 2,
                size,
                root: RootHash::from_bytes([3; 32]),
                at: 4,
            }),
            ArchiveRecord::Signature(HeadSignature {
                size,
                kind: SignatureKind::Checkpoint,
                kid: vec![1],
                bytes: Bytes::from_static(b"signature"),
            }),
            ArchiveRecord::Cosignature(Cosignature {
                size,
                witness: vec![2],
                at: 5,
                line: Bytes::from_static(b"line"),
            }),
            ArchiveRecord::Hold(Hold { entry, case: "case".into(), at: 5, released: None }),
            ArchiveRecord::Report(report.clone()),
            ArchiveRecord::Report(Report { statement: None, ..report }),
            ArchiveRecord::Seen(vec![([1; 16], entry), ([2; 16], entry)]),
            ArchiveRecord::Guards(vec![(GuardKey(vec![5; 33]), entry)]),
            ArchiveRecord::Waiting(InboxItem { digest, submission: Bytes::from_static(b"waits") }),
        ]
    }

    #[test]
    fn a_record_comes_back_as_it_was_written() {
        for record in records() {
            let read = ArchiveRecord::decode(record.kind(), record.encode().into(), 0);
            assert_eq!(read.as_ref(), Ok(&record));
        }
    }

    proptest! {
        #[test]
        fn what_is_read_has_no_other_bytes(which in 0_usize..13, at in any::<prop::sample::Index>(), to in any::<u8>(), cut in 0_usize..3) {
            let record = &records()[which];
            let mut bytes = record.encode();
            let at = at.index(bytes.len());
            match cut {
                0 => bytes[at] = to,
                1 => bytes.truncate(at),
                _ => bytes.insert(at, to),
            }
            if let Ok(read) = ArchiveRecord::decode(record.kind(), bytes.clone().into(), 0) {
                prop_assert_eq!(read.encode(), bytes);
            }
        }

        #[test]
        fn any_bytes_have_an_answer(kind in any::<u8>(), bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(read) = ArchiveRecord::decode(kind, bytes.clone().into(), 0) {
                prop_assert_eq!(read.encode(), bytes);
            }
        }
    }
}
