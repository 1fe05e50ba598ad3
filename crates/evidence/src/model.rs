//! Types of the arguments and results of [`EvidenceStore`](crate::EvidenceStore).

use bytes::Bytes;
use merkle::EntryDigest;

/// State of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredStream {
    /// Version of the stream: raised by one with every change, from [`Change::first`] on.
    pub version: u64,
    /// Part of the state that changes seldom; `None` until a change sets it.
    pub agreed: Option<Bytes>,
    /// Part of the state that changes with every call.
    pub running: Bytes,
    /// `true` once the stream has ended; its name is remembered until `keep_until`.
    pub closed: bool,
    /// Unix seconds. Open stream: the time at which it is [due](crate::EvidenceStore::due). Closed stream: the
    /// time until which its name is taken.
    pub keep_until: u64,
    /// Number of the stream's next record.
    pub next_seq: u64,
}

/// One step of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Name of the stream.
    pub stream: String,
    /// Version that is changed, and raised by one; `None` creates a new stream.
    pub from: Option<u64>,
    /// Version that a new stream gets: one that its name has never had, such as the time. A process that still
    /// holds the state of a pruned stream then does not confuse it with a new one of the same name.
    pub first: u64,
    /// New value of [`StoredStream::agreed`]; `None` keeps the stored one.
    pub agreed: Option<Bytes>,
    /// New value of [`StoredStream::running`].
    pub running: Bytes,
    /// `true` if the stream ends.
    pub closed: bool,
    /// Time as in [`StoredStream::keep_until`]; `None` keeps the stored one, and leaves an open stream open and a closed one
    /// closed. A change that makes or ends a stream has a time.
    pub keep_until: Option<u64>,
    /// Next records of the stream, in order of `seq`.
    pub records: Vec<Record>,
    /// Claims that must not have been taken before in this stream.
    pub claims: Vec<Claim>,
    /// Ids of those records that are decisions about to be forwarded.
    pub opened: Vec<EntryDigest>,
    /// Decisions of this stream that now have an outcome. One that is not open is skipped.
    pub settled: Vec<EntryDigest>,
    /// Other streams that were read for the change and must still have these versions.
    pub relies_on: Vec<StreamVersion>,
}

/// Version of a stream as a reader found it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamVersion {
    /// Name of the stream.
    pub stream: String,
    /// Its version; `None`: there is no such stream.
    pub version: Option<u64>,
}

impl Change {
    /// Version after this change.
    pub fn to(&self) -> u64 {
        self.from.map_or(self.first, |from| from + 1)
    }
}

/// Subject of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RecordKind {
    /// Scope Commitment, accepted or denied.
    Commitment,
    /// Scope Amendment, accepted or denied.
    Amendment,
    /// Verdict on a call.
    Decision,
    /// Outcome of a served call.
    Outcome,
    /// Number of messages that were denied without a record of their own.
    Denials,
    /// Tools that changed, or were approved.
    Tools,
    /// End of the stream.
    Closed,
    /// Keys with which the gateway signs.
    Keys,
    /// Execution receipt of a decision (AgentROA).
    Receipt,
    /// Delegation chain that execution receipts name (AgentROA).
    Chain,
}

impl RecordKind {
    /// All kinds, in the order of their declaration.
    pub const ALL: [Self; 10] = [
        Self::Commitment,
        Self::Amendment,
        Self::Decision,
        Self::Outcome,
        Self::Denials,
        Self::Tools,
        Self::Closed,
        Self::Keys,
        Self::Receipt,
        Self::Chain,
    ];

    /// Name of the kind, as it is stored.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Commitment => "commitment",
            Self::Amendment => "amendment",
            Self::Decision => "decision",
            Self::Outcome => "outcome",
            Self::Denials => "denials",
            Self::Tools => "tools",
            Self::Closed => "closed",
            Self::Keys => "keys",
            Self::Receipt => "receipt",
            Self::Chain => "chain",
        }
    }

    /// Returns the kind of that name; the inverse of [`as_str`](Self::as_str).
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

/// Signed statement with its accompanying data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// SHA-256 of the statement with an empty unprotected header: the id of its entry in the log.
    pub id: EntryDigest,
    /// Name of the stream that the record belongs to.
    pub stream: String,
    /// Position in the stream, from 0 without gaps.
    pub seq: u64,
    /// Subject of the record.
    pub kind: RecordKind,
    /// Time of the record in Unix seconds.
    pub at: u64,
    /// Statement as it is sent to the log. It is never signed again, so if it is sent twice it is one leaf.
    pub statement: Bytes,
    /// Verdict exactly as it is returned to the caller.
    pub verdict: Option<Bytes>,
    /// Plaintext behind the statement's commitments (V-40); it never leaves this database.
    pub annex: Bytes,
}

/// Record as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRecord {
    /// The record as committed.
    pub record: Record,
    /// Name of the instance that made it.
    pub instance: String,
    /// State of its delivery.
    pub delivery: DeliveryState,
}

/// State of a record on its way to the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeliveryState {
    /// The record waits in the outbox.
    Pending,
    /// The log refused the record, for this reason.
    Stuck(String),
    /// The log has the record.
    Delivered {
        /// Index of the leaf, if the log returned it.
        leaf_index: Option<u64>,
        /// Receipt of the log, if there is one.
        receipt: Option<Bytes>,
    },
}

/// Kind of a value that can be claimed only once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ClaimKind {
    /// The `jti` of a signed message (V-21).
    MessageId,
    /// Nonce of a question that was asked and may be answered once (V-26).
    Question,
    /// Decision about a call that holds no reservation, which has one outcome.
    Outcome,
}

impl ClaimKind {
    /// Number of the kind, as it is stored.
    pub const fn number(self) -> i16 {
        match self {
            Self::MessageId => 1,
            Self::Question => 2,
            Self::Outcome => 3,
        }
    }
}

/// Value that a stream may use once.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Claim {
    /// Name of the stream.
    pub stream: String,
    /// Kind of the value.
    pub kind: ClaimKind,
    /// The value, at most [`CLAIM_KEY`](crate::limits::CLAIM_KEY) bytes.
    pub key: Bytes,
}

/// Record that is to be delivered to the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingRecord {
    /// Id of the record.
    pub id: EntryDigest,
    /// Name of the stream.
    pub stream: String,
    /// Position in the stream.
    pub seq: u64,
    /// Subject of the record.
    pub kind: RecordKind,
    /// Time since which it waits, in Unix seconds.
    pub at: u64,
    /// Statement to send.
    pub statement: Bytes,
}

/// Record that the log has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// Id of the record.
    pub id: EntryDigest,
    /// Index of the leaf, if the log returned it.
    pub leaf_index: Option<u64>,
    /// Receipt of the log, if there is one.
    pub receipt: Option<Bytes>,
}

/// Record that the log refuses permanently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedRecord {
    /// Id of the record.
    pub id: EntryDigest,
    /// Reason of the log; what exceeds [`STUCK_REASON`](crate::limits::STUCK_REASON) is cut off.
    pub why: String,
}

/// Record that the log refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StuckRecord {
    /// Id of the record.
    pub id: EntryDigest,
    /// Name of the stream.
    pub stream: String,
    /// Position in the stream.
    pub seq: u64,
    /// Reason that the log gave.
    pub why: String,
}

/// Size and age of the outbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Number of waiting records, including the stuck ones.
    pub records: u64,
    /// Bytes of their statements.
    pub bytes: u64,
    /// Number of stuck records.
    pub stuck: u64,
    /// Time since which the oldest record waits that is not stuck and never was, in Unix seconds. Records that the
    /// log refused are left out, as their age does not show whether the log takes records.
    pub oldest_at: Option<u64>,
}

/// Decision that was served and has no outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenDecision {
    /// Id of the decision's record.
    pub id: EntryDigest,
    /// Name of the stream.
    pub stream: String,
    /// Name of the instance that made the decision.
    pub instance: String,
}

/// Stream without its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamSummary {
    /// Name of the stream.
    pub stream: String,
    /// Version of the stream.
    pub version: u64,
    /// Number of records that the stream has had.
    pub next_seq: u64,
    /// `true` once the stream has ended.
    pub closed: bool,
    /// Time as in [`StoredStream::keep_until`].
    pub keep_until: u64,
}

/// Times before which [`prune`](crate::Upkeep::prune) may remove data; Unix seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Horizon {
    /// Bound for streams, compared with `keep_until`: the time by the caller's clock.
    pub streams: u64,
    /// Bound for records, compared with `at`: the same time less the retention period.
    pub records: u64,
}

/// Result of [`prune`](crate::Upkeep::prune).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Number of streams removed.
    pub streams: u64,
    /// Number of records removed.
    pub records: u64,
}

/// Cuts a reason at [`STUCK_REASON`](crate::limits::STUCK_REASON) bytes.
pub fn stuck_reason(why: &str) -> &str {
    &why[..why.floor_char_boundary(crate::limits::STUCK_REASON)]
}
