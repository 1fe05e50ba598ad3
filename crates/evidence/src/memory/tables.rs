//! Content of the memory store, in the shape of the SQL tables.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::time::Instant;

use bytes::Bytes;
use merkle::EntryDigest;

use crate::limits::places_for_fresh;
use crate::{
    Backlog, Claim, CommitError, Delivered, DeliveryState, Group, Horizon, OpenDecision, PendingRecord,
    Pruned, Record, StoreError, StoredRecord, StoredStream, StreamSummary, StuckRecord,
};

#[derive(Debug, Default)]
pub(super) struct EvidenceTables {
    streams: BTreeMap<String, StoredStream>,
    claims: BTreeSet<Claim>,
    /// Records in order of commit.
    records: BTreeMap<u64, RecordRow>,
    /// Number of the next record.
    next: u64,
    ids: HashMap<EntryDigest, u64>,
    positions: BTreeMap<(String, u64), u64>,
    outbox: BTreeMap<u64, OutboxRow>,
    open: BTreeSet<u64>,
    leases: HashMap<String, Instant>,
}

#[derive(Debug, Default)]
struct OutboxRow {
    /// Reason why the record is stuck, if it is.
    stuck: Option<String>,
    /// `true` if the record was stuck before.
    was_stuck: bool,
}

#[derive(Debug)]
struct RecordRow {
    record: Record,
    instance: String,
    leaf_index: Option<u64>,
    receipt: Option<Bytes>,
}

impl EvidenceTables {
    pub(super) fn stream(&self, name: &str) -> Option<StoredStream> {
        self.streams.get(name).cloned()
    }

    pub(super) fn is_claimed(&self, claim: &Claim) -> bool {
        self.claims.contains(claim)
    }

    pub(super) fn commit(&mut self, instance: &str, group: &Group<'_>) -> Result<(), CommitError> {
        self.refuse_conflicts(group)?;
        let next_seqs = self.next_seqs(group)?;
        if let Some(record) = group.records.iter().find(|record| self.ids.contains_key(&record.id)) {
            return Err(StoreError::Refused(format!("the record {} is there already", record.id)).into());
        }
        for (moved, next_seq) in group.moves.iter().zip(next_seqs) {
            let before = self.streams.remove(moved.stream);
            let kept_end = before.as_ref().map_or((false, 0), |before| (before.closed, before.keep_until));
            let (closed, keep_until) = moved.keep_until.map_or(kept_end, |until| (moved.closed, until));
            let kept = StoredStream {
                version: moved.to,
                agreed: moved.agreed.cloned().or(before.and_then(|before| before.agreed)),
                running: moved.running.clone(),
                closed,
                keep_until,
                next_seq,
            };
            self.streams.insert(moved.stream.to_owned(), kept);
        }
        self.claims.extend(group.claims.iter().map(|claim| (*claim).clone()));
        group.records.iter().for_each(|record| self.insert(instance, record));
        self.open_and_settle(group);
        Ok(())
    }

    fn refuse_conflicts(&self, group: &Group<'_>) -> Result<(), CommitError> {
        let moved = group.moves.iter().filter(|moved| self.version(moved.stream) != moved.from);
        let claimed = group.claims.iter().filter(|claim| self.claims.contains(claim));
        let relied = group.relied_on.iter().filter(|read| self.version(&read.stream) != read.version);
        let streams = moved.map(|moved| moved.stream).chain(claimed.map(|claim| claim.stream.as_str()));
        let streams: BTreeSet<&str> = streams.chain(relied.map(|read| read.stream.as_str())).collect();
        if streams.is_empty() {
            return Ok(());
        }
        Err(CommitError::Conflict(streams.into_iter().map(str::to_owned).collect()))
    }

    pub(super) fn amend(&mut self, stream: &str, from: u64, running: &Bytes) -> Result<(), CommitError> {
        let kept = self.streams.get_mut(stream).filter(|kept| kept.version == from && !kept.closed);
        let Some(kept) = kept else { return Err(CommitError::Conflict(vec![stream.to_owned()])) };
        (kept.version, kept.running) = (from + 1, running.clone());
        Ok(())
    }

    fn version(&self, stream: &str) -> Option<u64> {
        self.streams.get(stream).map(|kept| kept.version)
    }

    fn next_seqs(&self, group: &Group<'_>) -> Result<Vec<u64>, StoreError> {
        let next = |stream| self.streams.get(stream).map_or(0, |kept| kept.next_seq);
        group.moves.iter().map(|moved| moved.next_seq(next(moved.stream))).collect()
    }

    fn insert(&mut self, instance: &str, record: &Record) {
        let number = self.next;
        self.next += 1;
        self.ids.insert(record.id, number);
        self.positions.insert((record.stream.clone(), record.seq), number);
        self.outbox.insert(number, OutboxRow::default());
        let (record, instance) = (record.clone(), instance.to_owned());
        let row = RecordRow { record, instance, leaf_index: None, receipt: None };
        self.records.insert(number, row);
    }

    fn open_and_settle(&mut self, group: &Group<'_>) {
        self.open.extend(group.opened.iter().filter_map(|id| self.ids.get(id)));
        for number in group.settled.iter().filter_map(|id| self.ids.get(id)) {
            self.open.remove(number);
        }
    }

    pub(super) fn happened(&self, group: &Group<'_>) -> bool {
        match group.records.first() {
            Some(record) => self.ids.contains_key(&record.id),
            None => {
                !group.moves.is_empty()
                    && group.moves.iter().all(|moved| self.version(moved.stream) == Some(moved.to))
            }
        }
    }

    pub(super) fn pending(&self, instance: &str, limit: usize) -> Vec<PendingRecord> {
        let mine = |row: &&RecordRow| row.instance == instance || !self.has_lease(&row.instance);
        let waiting = |was_stuck: bool| {
            let rows = self.outbox.iter();
            let rows = rows.filter(move |(_, row)| row.stuck.is_none() && row.was_stuck == was_stuck);
            rows.filter_map(|(number, _)| self.records.get(number)).filter(mine)
        };
        let fresh = places_for_fresh(limit, waiting(true).count());
        let records = waiting(false).take(fresh).chain(waiting(true)).map(|row| &row.record);
        let pending = |record: &Record| PendingRecord {
            id: record.id,
            stream: record.stream.clone(),
            seq: record.seq,
            kind: record.kind,
            at: record.at,
            statement: record.statement.clone(),
        };
        records.take(limit).map(pending).collect()
    }

    pub(super) fn delivered(&mut self, delivery: &Delivered) {
        let Some(number) = self.ids.get(&delivery.id) else { return };
        self.outbox.remove(number);
        if let Some(row) = self.records.get_mut(number) {
            row.leaf_index = row.leaf_index.or(delivery.leaf_index);
            row.receipt = row.receipt.take().or_else(|| delivery.receipt.clone());
        }
    }

    pub(super) fn mark_stuck(&mut self, id: &EntryDigest, why: &str) {
        if let Some(waiting) = self.ids.get(id).and_then(|number| self.outbox.get_mut(number)) {
            waiting.stuck.get_or_insert_with(|| why.to_owned());
            waiting.was_stuck = true;
        }
    }

    pub(super) fn stuck_records(&self, limit: usize) -> Vec<StuckRecord> {
        let stuck = self.outbox.iter().filter_map(|(number, waiting)| {
            let (record, why) = (&self.records.get(number)?.record, waiting.stuck.clone()?);
            Some(StuckRecord { id: record.id, stream: record.stream.clone(), seq: record.seq, why })
        });
        stuck.take(limit).collect()
    }

    pub(super) fn unstick(&mut self) -> u64 {
        self.outbox.values_mut().filter_map(|waiting| waiting.stuck.take()).map(|_| 1).sum()
    }

    pub(super) fn backlog(&self) -> Backlog {
        let mut backlog = Backlog::default();
        for (number, waiting) in &self.outbox {
            let Some(RecordRow { record, .. }) = self.records.get(number) else { continue };
            backlog.records += 1;
            backlog.bytes += record.statement.len() as u64;
            match (&waiting.stuck, waiting.was_stuck) {
                (Some(_), _) => backlog.stuck += 1,
                (None, true) => {}
                (None, false) => backlog.oldest_at = backlog.oldest_at.or(Some(record.at)),
            }
        }
        backlog
    }

    pub(super) fn orphans(&self, limit: usize) -> Vec<OpenDecision> {
        let rows = self.open.iter().filter_map(|number| self.records.get(number));
        let orphan = |row: &RecordRow| OpenDecision {
            id: row.record.id,
            stream: row.record.stream.clone(),
            instance: row.instance.clone(),
        };
        rows.filter(|row| !self.has_lease(&row.instance)).take(limit).map(orphan).collect()
    }

    pub(super) fn record(&self, id: &EntryDigest) -> Option<StoredRecord> {
        self.ids.get(id).and_then(|number| self.stored(*number))
    }

    pub(super) fn records(&self, stream: &str, from: u64, limit: usize) -> Vec<StoredRecord> {
        let positions = self.positions.range((stream.to_owned(), from)..=(stream.to_owned(), u64::MAX));
        positions.take(limit).filter_map(|(_, number)| self.stored(*number)).collect()
    }

    fn stored(&self, number: u64) -> Option<StoredRecord> {
        let row = self.records.get(&number)?;
        let delivery = match self.outbox.get(&number).map(|waiting| &waiting.stuck) {
            None => DeliveryState::Delivered { leaf_index: row.leaf_index, receipt: row.receipt.clone() },
            Some(Some(why)) => DeliveryState::Stuck(why.clone()),
            Some(None) => DeliveryState::Pending,
        };
        Some(StoredRecord { record: row.record.clone(), instance: row.instance.clone(), delivery })
    }

    pub(super) fn due(&self, at: u64, limit: usize) -> Vec<StreamSummary> {
        let due = self.streams.iter().filter(|(_, kept)| !kept.closed && kept.keep_until <= at);
        let mut due: Vec<StreamSummary> = due.map(summary).collect();
        due.sort_by(|a, b| (a.keep_until, &a.stream).cmp(&(b.keep_until, &b.stream)));
        due.truncate(limit);
        due
    }

    pub(super) fn list(&self, after: Option<&str>, limit: usize) -> Vec<StreamSummary> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.streams.range::<str, _>((from, Bound::Unbounded)).take(limit).map(summary).collect()
    }

    pub(super) fn prune(&mut self, horizon: Horizon, limit: usize) -> Pruned {
        let old = |number: &u64, row: &RecordRow| {
            row.record.at < horizon.records
                && !self.outbox.contains_key(number)
                && !self.open.contains(number)
        };
        let records = self.records.iter().filter(|(number, row)| old(number, row));
        let records: Vec<u64> = records.map(|(number, _)| *number).take(limit).collect();
        for row in records.iter().filter_map(|number| self.records.remove(number)) {
            self.ids.remove(&row.record.id);
            self.positions.remove(&(row.record.stream, row.record.seq));
        }
        let streams = self.prunable_streams(horizon.streams, limit);
        streams.iter().for_each(|name| drop(self.streams.remove(name)));
        self.claims.retain(|claim| self.streams.contains_key(&claim.stream));
        self.leases.retain(|_, until| *until > Instant::now());
        Pruned { streams: streams.len() as u64, records: records.len() as u64 }
    }

    fn prunable_streams(&self, before: u64, limit: usize) -> Vec<String> {
        let needed: BTreeSet<&String> = self.positions.keys().map(|(stream, _)| stream).collect();
        let closed = self.streams.iter().filter(|(_, kept)| kept.closed && kept.keep_until < before);
        let free = closed.map(|(name, _)| name).filter(|name| !needed.contains(name));
        free.take(limit).cloned().collect()
    }

    pub(super) fn lease(&mut self, instance: &str, until: Instant) {
        self.leases.insert(instance.to_owned(), until);
    }

    pub(super) fn leave(&mut self, instance: &str) {
        self.leases.remove(instance);
    }

    fn has_lease(&self, instance: &str) -> bool {
        self.leases.get(instance).is_some_and(|until| *until > Instant::now())
    }
}

fn summary((stream, kept): (&String, &StoredStream)) -> StreamSummary {
    StreamSummary {
        stream: stream.clone(),
        version: kept.version,
        next_seq: kept.next_seq,
        closed: kept.closed,
        keep_until: kept.keep_until,
    }
}
