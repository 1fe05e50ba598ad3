//! [`WorkingCopy`]: a stream as the items of one batch have changed it so far.

use bytes::Bytes;
use evidence::{Change, Claim, Record, RecordKind};
use merkle::EntryDigest;

use crate::decision_writer::committed_stream::CommittedStream;
use crate::decision_writer::error::WriterError;
use crate::decision_writer::record_signer::SignedRecord;
use crate::decision_writer::states::StreamState;

/// The working copy of a stream, with its changes.
#[derive(Clone, Debug)]
pub struct WorkingCopy {
    /// The stream with all changes; its version is the one before them.
    current: CommittedStream,
    was_closed: bool,
    was_due_at: u64,
    is_changed: bool,
    is_agreed_changed: bool,
    records: Vec<Record>,
    claims: Vec<Claim>,
    opened: Vec<EntryDigest>,
    settled: Vec<EntryDigest>,
}

/// A signed statement that is to be appended to a stream.
pub struct NewRecord {
    /// The name of the stream.
    pub stream: String,
    /// The kind of the record.
    pub kind: RecordKind,
    /// The signed statement.
    pub signed: SignedRecord,
    /// The signed Verdict, for a decision.
    pub verdict: Option<Bytes>,
    /// The annex, which is stored and never sent to the log.
    pub annex: Bytes,
}

impl NewRecord {
    /// Returns the number of bytes that the record takes in the database.
    pub fn bytes(&self) -> usize {
        self.signed.statement.len() + self.annex.len() + self.verdict.as_ref().map_or(0, Bytes::len)
    }
}

impl WorkingCopy {
    /// An unchanged copy of a stream.
    pub fn of(committed: CommittedStream) -> Self {
        Self {
            was_closed: committed.closed,
            was_due_at: committed.keep_until,
            current: committed,
            is_changed: false,
            is_agreed_changed: false,
            records: Vec::new(),
            claims: Vec::new(),
            opened: Vec::new(),
            settled: Vec::new(),
        }
    }

    /// Returns the version of the stream in the database; `None` if there is no such stream yet.
    pub fn version(&self) -> Option<u64> {
        self.current.version
    }

    pub fn is_changed(&self) -> bool {
        self.is_changed
    }

    pub fn is_closed(&self) -> bool {
        self.current.closed
    }

    /// Returns whether the stream has a state and is not closed.
    pub fn is_open(&self) -> bool {
        self.current.state.is_some() && !self.current.closed
    }

    /// Returns whether the stream is closed by the batch.
    pub fn is_newly_closed(&self) -> bool {
        self.current.closed && !self.was_closed
    }

    /// Returns when the stream is due, in Unix seconds.
    pub fn due_at(&self) -> u64 {
        self.current.keep_until
    }

    /// Returns the sequence number of the next record.
    pub fn next_seq(&self) -> u64 {
        self.current.next_seq
    }

    pub fn state(&self) -> Option<&StreamState> {
        self.current.state.as_ref()
    }

    /// Returns whether the batch uses up this claim.
    pub fn uses_claim(&self, claim: &Claim) -> bool {
        self.claims.contains(claim)
    }

    /// Commits an open stream with the batch although nothing of it is changed, which wakes the next call that waits for it.
    pub fn mark_as_changed_if_open(&mut self) {
        self.is_changed |= self.is_open();
    }

    /// Replaces the state, without its seldom changing part ([`StreamState::agreed`]).
    pub fn set_state(&mut self, state: StreamState) {
        self.is_changed = true;
        self.current.state = Some(state);
    }

    /// Replaces the state with its seldom changing part ([`StreamState::agreed`]).
    pub fn set_state_and_agreed(&mut self, state: StreamState) {
        self.is_agreed_changed = true;
        self.set_state(state);
    }

    /// Changes the number of forwarded calls without an outcome, of a stream that belongs to no session.
    pub fn change_open_calls(&mut self, change: impl Fn(u64) -> u64) {
        if let Some(StreamState::Unbound(unbound)) = &mut self.current.state {
            unbound.open = change(unbound.open);
            self.is_changed = true;
        }
    }

    /// Sets when the stream is due, in Unix seconds.
    pub fn set_due(&mut self, due_at: u64) {
        self.is_changed = true;
        self.current.keep_until = due_at;
    }

    /// Closes the stream. Its name stays taken until `until`, in Unix seconds.
    pub fn close(&mut self, until: u64) {
        self.set_due(until);
        self.current.closed = true;
    }

    /// Reopens a stream that was closed without a closing record, such as the account of a principal that returns. It is
    /// due at `due_at`, in Unix seconds.
    pub fn reopen(&mut self, due_at: u64) {
        self.set_due(due_at);
        self.current.closed = false;
    }

    /// Uses up a claim; the commit fails if it was used before.
    pub fn use_claim(&mut self, claim: Claim) {
        self.is_changed = true;
        self.claims.push(claim);
    }

    /// Marks a decision as about to be forwarded, without an outcome.
    pub fn open_decision(&mut self, decision: EntryDigest) {
        self.is_changed = true;
        self.opened.push(decision);
    }

    /// Marks a decision as settled by an outcome.
    pub fn settle_decision(&mut self, decision: EntryDigest) {
        self.is_changed = true;
        self.settled.push(decision);
    }

    /// Adds the stream's next record, at a time in milliseconds since the Unix epoch.
    pub(super) fn append(&mut self, new: NewRecord, now: u64) {
        self.is_changed = true;
        self.records.push(Record {
            id: new.signed.id,
            stream: new.stream,
            seq: self.current.next_seq,
            kind: new.kind,
            at: now / 1000,
            statement: new.signed.statement,
            verdict: new.verdict,
            annex: new.annex,
        });
        self.current.next_seq += 1;
    }

    /// Returns the change to commit, and the stream as it is after the commit.
    pub(super) fn into_change(
        self,
        stream: String,
        now: u64,
    ) -> Result<(Change, CommittedStream), WriterError> {
        let state = self.current.state.as_ref();
        let running = state.map(StreamState::running).transpose()?.unwrap_or_default();
        let agreed = state.filter(|_| self.is_agreed_changed).map(StreamState::agreed).transpose()?;
        let stores_due = self.current.version.is_none()
            || self.current.closed
            || self.was_closed
            || self.current.keep_until != self.was_due_at;
        let change = Change {
            stream,
            from: self.current.version,
            first: now.max(1),
            agreed,
            running,
            closed: self.current.closed,
            keep_until: stores_due.then_some(self.current.keep_until),
            records: self.records,
            claims: self.claims,
            opened: self.opened,
            settled: self.settled,
            relies_on: Vec::new(),
        };
        let committed = CommittedStream { version: Some(change.to()), ..self.current };
        Ok((change, committed))
    }
}
