//! What is kept, and what is asked for.

use bytes::Bytes;
use merkle::EntryDigest;

/// A stream's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Raised by one with every change, from [`Change::first`] on.
    pub version: u64,
    /// What changes seldom; `None` until a change brings it.
    pub agreed: Option<Bytes>,
    /// What changes with every call.
    pub running: Bytes,
    /// Whether the stream has ended; its name is remembered until `keep_until`.
    pub closed: bool,
    /// Unix seconds. Open: when the stream is due to be looked at. Closed: until when its name is taken.
    pub keep_until: u64,
    /// The number that the stream's next record has.
    pub next_seq: u64,
}

/// One step of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The stream.
    pub stream: String,
    /// The version that is changed, and makes the next one; `None` makes a new stream.
    pub from: Option<u64>,
    /// The version that a new stream gets: one that its name has never had, as the time is. So whoever still knows a
    /// stream that was forgotten does not take one that was begun anew for it.
    pub first: u64,
    /// `None`: as it was.
    pub agreed: Option<Bytes>,
    /// What changes with every call.
    pub running: Bytes,
    /// Whether the stream has ended.
    pub closed: bool,
    /// As in [`Kept::keep_until`].
    pub keep_until: u64,
    /// The stream's next records, in order of `seq`.
    pub records: Vec<Record>,
    /// What must not have been claimed before in this stream.
    pub claims: Vec<Claim>,
    /// Those of the records that are decisions about to be forwarded.
    pub opened: Vec<EntryDigest>,
    /// Decisions of this stream that now have an outcome. One that is not open is passed over.
    pub settled: Vec<EntryDigest>,
}

impl Change {
    /// The version that this change makes.
    pub fn to(&self) -> u64 {
        self.from.map_or(self.first, |from| from + 1)
    }
}

/// What a record is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RecordKind {
    /// A Scope Commitment, accepted or denied.
    Commitment,
    /// A Scope Amendment, accepted or denied.
    Amendment,
    /// A verdict on a call.
    Decision,
    /// What became of a served call.
    Outcome,
    /// How many messages were denied without a record of their own.
    Denials,
    /// Tools that changed, or were approved.
    Tools,
    /// The stream's end.
    Closed,
    /// The keys that the gateway signs with.
    Keys,
}

impl RecordKind {
    /// All of them, in the order of their declaration.
    pub const ALL: [Self; 8] = [
        Self::Commitment,
        Self::Amendment,
        Self::Decision,
        Self::Outcome,
        Self::Denials,
        Self::Tools,
        Self::Closed,
        Self::Keys,
    ];

    /// The kind's name, as it is stored.
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
        }
    }

    /// The kind of that name.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

/// A signed statement and what belongs to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// SHA-256 of the statement with an empty unprotected header: the id of its entry in the log.
    pub id: EntryDigest,
    /// The stream it belongs to.
    pub stream: String,
    /// Its place in the stream, from 0 without gaps.
    pub seq: u64,
    /// What it is about.
    pub kind: RecordKind,
    /// Unix seconds.
    pub at: u64,
    /// The statement as it is sent to the log. It is never signed again, so what is sent twice is one leaf.
    pub statement: Bytes,
    /// The verdict exactly as it is returned to the caller.
    pub verdict: Option<Bytes>,
    /// The plaintext behind the statement's commitments (V-40): never leaves this database.
    pub annex: Bytes,
}

/// A record as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The record.
    pub record: Record,
    /// Which instance made it.
    pub instance: String,
    /// Where it stands.
    pub standing: Standing,
}

/// Where a record stands on its way to the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It waits in the outbox.
    Pending,
    /// The log refused it, and why.
    Stuck(String),
    /// The log has it.
    Delivered {
        /// Its place in the log, where that was said.
        leaf_index: Option<u64>,
        /// The log's receipt, where there is one.
        receipt: Option<Bytes>,
    },
}

/// What can be claimed only once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ClaimKind {
    /// The `jti` of a signed message (V-21).
    MessageId,
    /// The nonce of a question that was asked and may be answered once (V-26).
    Question,
}

impl ClaimKind {
    /// The kind's number, as it is stored.
    pub const fn number(self) -> i16 {
        match self {
            Self::MessageId => 1,
            Self::Question => 2,
        }
    }
}

/// Something that a stream uses once.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Claim {
    /// The stream.
    pub stream: String,
    /// What it is.
    pub kind: ClaimKind,
    /// Which one it is.
    pub key: Bytes,
}

/// A record that is to be delivered to the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// Its id.
    pub id: EntryDigest,
    /// Its stream.
    pub stream: String,
    /// Its place in the stream.
    pub seq: u64,
    /// What it is about.
    pub kind: RecordKind,
    /// Since when it waits, in Unix seconds.
    pub at: u64,
    /// What is sent.
    pub statement: Bytes,
}

/// A record that the log has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// Its id.
    pub id: EntryDigest,
    /// Its place in the log, where that was said.
    pub leaf_index: Option<u64>,
    /// The log's receipt, where there is one.
    pub receipt: Option<Bytes>,
}

/// A record that the log refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// Its id.
    pub id: EntryDigest,
    /// Its stream.
    pub stream: String,
    /// Its place in the stream.
    pub seq: u64,
    /// What the log said.
    pub why: String,
}

/// What waits in the outbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// How many records wait, the stuck ones among them.
    pub records: u64,
    /// How many bytes their statements have.
    pub bytes: u64,
    /// How many of the records are stuck.
    pub stuck: u64,
    /// Since when the oldest one waits that is not stuck and never was, in Unix seconds: one that the log refused says nothing
    /// about whether the log takes records.
    pub oldest_at: Option<u64>,
}

/// A decision that was served and has no outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Open {
    /// The decision's record.
    pub id: EntryDigest,
    /// Its stream.
    pub stream: String,
    /// Who made it.
    pub instance: String,
}

/// A stream, without its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its name.
    pub stream: String,
    /// Its version.
    pub version: u64,
    /// How many records it has had.
    pub next_seq: u64,
    /// Whether it has ended.
    pub closed: bool,
    /// As in [`Kept::keep_until`].
    pub keep_until: u64,
}

/// How far back [`prune`](crate::EvidenceStore::prune) leaves everything; Unix seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Horizon {
    /// For streams, by `keep_until`.
    pub streams: u64,
    /// For records, by `at`.
    pub records: u64,
}

/// How much was forgotten.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Streams.
    pub streams: u64,
    /// Records.
    pub records: u64,
}

/// As much of a reason as is kept.
pub fn stuck_reason(why: &str) -> &str {
    &why[..why.floor_char_boundary(crate::limits::STUCK_REASON)]
}
