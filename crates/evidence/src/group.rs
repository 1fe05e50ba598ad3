//! [`Group`]: the changes of one commit, checked against each other and combined by stream.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use merkle::EntryDigest;

use crate::{Change, Claim, Record, StoreError, StreamVersion, limits};

/// Rows that one commit writes.
#[derive(Clone, Debug, Default)]
pub struct Group<'a> {
    /// One move for each stream, in order of name, so that stores that take locks in this order cannot deadlock.
    pub moves: Vec<Move<'a>>,
    /// All records, in the order given.
    pub records: Vec<&'a Record>,
    /// All claims, in the order given.
    pub claims: Vec<&'a Claim>,
    /// Decisions that are opened, without those that the same commit settles.
    pub opened: Vec<EntryDigest>,
    /// Decisions that are settled, without those that the same commit opens.
    pub settled: Vec<EntryDigest>,
    /// Streams that must have these versions and are not moved, in order of name.
    pub relied_on: Vec<&'a StreamVersion>,
}

/// Combined changes of one stream.
#[derive(Clone, Debug)]
pub struct Move<'a> {
    /// Name of the stream.
    pub stream: &'a str,
    /// Version that the stream must have; `None`: it must not exist.
    pub from: Option<u64>,
    /// Version after the commit.
    pub to: u64,
    /// New [`StoredStream::agreed`](crate::StoredStream::agreed); `None` keeps the stored value.
    pub agreed: Option<&'a Bytes>,
    /// State after the last change.
    pub running: &'a Bytes,
    /// `true` if the stream is closed by the commit.
    pub closed: bool,
    /// Time as in [`StoredStream::keep_until`](crate::StoredStream::keep_until); `None` keeps the stored one, and
    /// [`StoredStream::closed`](crate::StoredStream::closed) as well.
    pub keep_until: Option<u64>,
    /// Number of the stream's first record in this commit, if there is one.
    pub first_seq: Option<u64>,
    /// Number of the stream's records in this commit.
    pub records: u64,
}

impl<'a> Group<'a> {
    /// Combines changes by stream.
    ///
    /// # Errors
    ///
    /// [`StoreError::Refused`] if they contradict themselves: a change of a stream that does not start where the
    /// one before it ended, records or claims of another stream, records out of sequence or repeated, opened
    /// decisions that are not among the records, or names that are too long.
    pub fn of(changes: &'a [Change]) -> Result<Self, StoreError> {
        let mut group = Self::default();
        let mut indexes: HashMap<&str, usize> = HashMap::with_capacity(changes.len());
        for change in changes {
            check(change)?;
            match indexes.get(change.stream.as_str()) {
                Some(&index) => group.moves[index].follow(change)?,
                None => {
                    indexes.insert(&change.stream, group.moves.len());
                    group.moves.push(Move::first(change)?);
                }
            }
            group.records.extend(&change.records);
            group.claims.extend(&change.claims);
            group.opened.extend(&change.opened);
            group.settled.extend(&change.settled);
            group.relied_on.extend(&change.relies_on);
        }
        group.moves.sort_unstable_by_key(|moved| moved.stream);
        group.relied_on.sort_unstable();
        group.relied_on.dedup();
        group.refuse_repetitions()?;
        group.drop_decisions_opened_and_settled();
        Ok(group)
    }

    fn refuse_repetitions(&self) -> Result<(), StoreError> {
        let mut ids = HashSet::with_capacity(self.records.len());
        if let Some(record) = self.records.iter().find(|record| !ids.insert(record.id)) {
            return Err(refused(format!("the record {} comes twice in one commit", record.id)));
        }
        let mut claims = HashSet::with_capacity(self.claims.len());
        if let Some(claim) = self.claims.iter().find(|claim| !claims.insert(**claim)) {
            return Err(refused(format!("{} claims something twice in one commit", claim.stream)));
        }
        let moved: HashSet<&str> = self.moves.iter().map(|moved| moved.stream).collect();
        match self.relied_on.iter().find(|read| moved.contains(read.stream.as_str())) {
            Some(read) => Err(refused(format!("{} is moved by a commit that relies on it", read.stream))),
            None => Ok(()),
        }
    }

    /// Leaves out the decisions that the same commit opens and settles.
    fn drop_decisions_opened_and_settled(&mut self) {
        if self.opened.is_empty() || self.settled.is_empty() {
            return;
        }
        let opened: HashSet<EntryDigest> = self.opened.iter().copied().collect();
        let settled: HashSet<EntryDigest> = self.settled.iter().copied().collect();
        self.opened.retain(|id| !settled.contains(id));
        self.settled.retain(|id| !opened.contains(id));
    }
}

impl<'a> Move<'a> {
    fn first(change: &'a Change) -> Result<Self, StoreError> {
        let mut moved = Self {
            stream: &change.stream,
            from: change.from,
            to: change.to(),
            agreed: change.agreed.as_ref(),
            running: &change.running,
            closed: change.closed,
            keep_until: change.keep_until,
            first_seq: None,
            records: 0,
        };
        moved.count(&change.records)?;
        match (change.from, moved.first_seq) {
            (None, Some(1..)) => Err(refused(format!("{}: a new stream's first record is 0", change.stream))),
            _ => Ok(moved),
        }
    }

    fn follow(&mut self, change: &'a Change) -> Result<(), StoreError> {
        if change.from != Some(self.to) {
            return Err(refused(format!(
                "{}: a change is from version {:?}, and the one before it made {}",
                change.stream, change.from, self.to
            )));
        }
        self.to = change.to();
        self.agreed = change.agreed.as_ref().or(self.agreed);
        self.running = &change.running;
        if change.keep_until.is_some() {
            (self.closed, self.keep_until) = (change.closed, change.keep_until);
        }
        self.count(&change.records)
    }

    fn count(&mut self, records: &[Record]) -> Result<(), StoreError> {
        for record in records {
            let first = *self.first_seq.get_or_insert(record.seq);
            if record.seq != first + self.records {
                let expected = first + self.records;
                return Err(refused(format!(
                    "{}: record {} comes where {expected} is due",
                    self.stream, record.seq
                )));
            }
            self.records += 1;
        }
        Ok(())
    }

    /// Computes the stream's next record number after the commit, if it is `next` now.
    ///
    /// # Errors
    ///
    /// [`StoreError::Refused`] if the records do not follow the stored ones.
    pub fn next_seq(&self, next: u64) -> Result<u64, StoreError> {
        match self.first_seq {
            Some(first) if first != next => {
                Err(refused(format!("{}: record {first} comes where {next} is due", self.stream)))
            }
            _ => Ok(next + self.records),
        }
    }
}

fn check(change: &Change) -> Result<(), StoreError> {
    let Change { stream, .. } = change;
    if stream.is_empty() || stream.len() > limits::STREAM_NAME || stream.contains('\0') {
        return Err(refused(format!(
            "a stream's name has 1 to {} bytes and no NUL, this one has {}",
            limits::STREAM_NAME,
            stream.len()
        )));
    }
    if !(1..limits::NUMBER).contains(&change.from.unwrap_or(change.first)) {
        return Err(refused(format!("{stream}: there is no such version")));
    }
    if change.keep_until.is_none() && (change.from.is_none() || change.closed) {
        return Err(refused(format!("{stream}: it is made or ended without a time")));
    }
    let is_foreign = change.records.iter().any(|record| record.stream != *stream)
        || change.claims.iter().any(|claim| claim.stream != *stream);
    if is_foreign {
        return Err(refused(format!("{stream}: a change has records of another stream")));
    }
    if let Some(id) = change.opened.iter().find(|id| change.records.iter().all(|record| record.id != **id)) {
        return Err(refused(format!("{stream}: the decision {id} is opened by another change than made it")));
    }
    if change.claims.iter().any(|claim| claim.key.len() > limits::CLAIM_KEY) {
        return Err(refused(format!("{stream}: a claim's key has at most {} bytes", limits::CLAIM_KEY)));
    }
    Ok(())
}

fn refused(why: String) -> StoreError {
    StoreError::Refused(why)
}
