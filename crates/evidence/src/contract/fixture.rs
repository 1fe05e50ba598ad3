//! Test fixtures: changes and records.

use bytes::Bytes;
use merkle::EntryDigest;

use crate::{
    Change, Claim, ClaimKind, CommitError, Delivered, EvidenceStore, Record, RecordKind, RefusedRecord,
    StreamVersion,
};

/// Stream with the state that its only user needs for the next change.
#[derive(Clone, Debug)]
pub struct Stream {
    /// Name of the stream.
    pub name: String,
    /// Version of the stream; `None` before the first change.
    pub version: Option<u64>,
    /// Version that the stream begins with ([`Change::first`]).
    pub first: u64,
    /// Number of the stream's next record.
    pub next_seq: u64,
}

impl Stream {
    /// Makes a stream that does not exist in the store yet.
    pub fn new(name: &str) -> Self {
        Self { name: name.into(), version: None, first: 1, next_seq: 0 }
    }

    /// Makes the next change, with this many new decisions as records.
    pub fn change(&mut self, records: u64) -> Change {
        let from = self.version;
        let seqs = self.next_seq..self.next_seq + records;
        self.version = Some(from.map_or(self.first, |from| from + 1));
        self.next_seq = seqs.end;
        Change {
            stream: self.name.clone(),
            from,
            first: self.first,
            agreed: None,
            running: Bytes::from(format!("running {} {:?}", self.name, self.version)),
            closed: false,
            keep_until: Some(1_000),
            records: seqs.map(|seq| record(&self.name, seq)).collect(),
            claims: Vec::new(),
            opened: Vec::new(),
            settled: Vec::new(),
            relies_on: Vec::new(),
        }
    }

    /// Makes the next change, with one decision that is served; returns the decision's id, too.
    pub fn serve(&mut self) -> (EntryDigest, Change) {
        let mut change = self.change(1);
        let id = change.records[0].id;
        change.opened = vec![id];
        (id, change)
    }

    /// Makes the next change, with an outcome for a decision.
    pub fn settle(&mut self, id: EntryDigest) -> Change {
        let mut change = self.change(1);
        change.records[0].kind = RecordKind::Outcome;
        change.settled = vec![id];
        change
    }

    /// Commits the next change, with this many records; returns their ids.
    ///
    /// # Panics
    ///
    /// If the commit fails.
    pub async fn grow(&mut self, store: &dyn EvidenceStore, records: u64) -> Vec<EntryDigest> {
        let change = self.change(records);
        store.commit(std::slice::from_ref(&change)).await.unwrap();
        change.records.iter().map(|record| record.id).collect()
    }

    /// Makes a claim of this stream.
    pub fn claim(&self, key: &str) -> Claim {
        let key = Bytes::copy_from_slice(key.as_bytes());
        Claim { stream: self.name.clone(), kind: ClaimKind::MessageId, key }
    }
}

/// Makes a decision whose bytes depend on its stream and number.
pub fn record(stream: &str, seq: u64) -> Record {
    let statement = Bytes::from(format!("statement {seq} of {stream}"));
    Record {
        id: EntryDigest::of(&statement),
        stream: stream.into(),
        seq,
        kind: RecordKind::Decision,
        at: at(seq),
        statement,
        verdict: Some(Bytes::from(format!("verdict {seq} of {stream}"))),
        annex: Bytes::from(format!("{{\"annex\":{seq}}}")),
    }
}

/// Time at which record `seq` was made.
pub fn at(seq: u64) -> u64 {
    100 + seq
}

/// Makes the first change of a stream, with one record.
pub fn first(name: &str) -> Change {
    Stream::new(name).change(1)
}

/// Makes a [`record`] with another statement, as if another process had decided at the same position.
pub fn decision(stream: &str, seq: u64, who: &str) -> Record {
    let statement = Bytes::from(format!("statement {seq} of {stream} by {who}"));
    Record { id: EntryDigest::of(&statement), statement, ..record(stream, seq) }
}

pub(super) fn delivered(id: EntryDigest) -> Delivered {
    Delivered { id, leaf_index: Some(7), receipt: Some(Bytes::from_static(b"receipt")) }
}

/// Makes the log's refusal of a record.
pub fn refused(id: EntryDigest) -> RefusedRecord {
    RefusedRecord { id, why: "why".to_owned() }
}

/// Makes the change rely on a version of another stream, too.
pub(super) fn relying_on(mut change: Change, stream: &str, version: Option<u64>) -> Change {
    change.relies_on.push(StreamVersion { stream: stream.to_owned(), version });
    change
}

pub(super) fn conflict(names: &[&str]) -> CommitError {
    CommitError::Conflict(names.iter().map(|name| (*name).to_owned()).collect())
}

pub(super) async fn version(store: &dyn EvidenceStore, name: &str) -> Option<u64> {
    store.streams(&[name]).await.unwrap().remove(0).map(|kept| kept.version)
}
