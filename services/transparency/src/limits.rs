//! Every bound this service keeps, in one place, with its default.
//!
//! All of them are always on. `GET /v1/limits` shows the ones a client can run into; a reload
//! (SIGHUP) may change any of them but those marked "at start".

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use sequencer::INBOX_BOUNDS;
use store::InboxBounds;

/// No configuration raises the limit on one statement above this.
pub const STATEMENT_BYTES_CAP: usize = 8 << 20;
/// hyper's own header count limit, above ours so that ours refuses with a body.
pub const HYPER_HEADERS: usize = 256;
/// hyper's own head size limit, above ours for the same reason. Beyond it hyper answers a bare 431.
pub const HYPER_HEAD_BYTES: usize = 128 << 10;
/// Streams one HTTP/2 connection may have open.
pub const HTTP2_STREAMS: u32 = 128;
/// How often a process looks whether the one that has the admin socket has ended.
pub const ADMIN_SOCKET_LOOK: Duration = Duration::from_secs(2);
/// Bytes of the path of a Unix socket (`sun_path` less its end, unix(7)).
pub const SOCKET_PATH_BYTES: usize = 107;
/// One address may have this part of a listener's connections, and of the memory for bodies: one in so many.
pub const SHARE_PART: usize = 4;
/// Callers with a token have a reserve of this part of the memory for bodies, beyond what all share: one in so many.
pub const TOKENS_PART: usize = 4;
/// The first bytes of every body come from a budget of this part of the memory for bodies, beyond it: one in so many.
pub const SMALL_BODIES_PART: usize = 4;
/// So many first bytes, unless the memory for bodies is small.
pub const SMALL_BODY_BYTES: usize = 64 << 10;
/// One client may have the first bytes of at least so many bodies in memory.
pub const SMALL_BODIES: usize = 64;
/// How much of an oversized body is read and dropped so that the client can read our answer.
pub const DISCARD_BYTES: usize = 16 << 20;
/// How long that may take.
pub const DISCARD_TIME: Duration = Duration::from_secs(2);
/// How long a TLS handshake may take.
pub const HANDSHAKE_TIME: Duration = Duration::from_secs(10);
/// How long requests in flight may run on after a stop was asked for.
pub const DRAIN_TIME: Duration = Duration::from_secs(6);
/// How long a freeze waits for the last head to be signed, and again for its signature to be kept.
pub const FREEZE_TIME: Duration = Duration::from_secs(10);
/// How long a whole stop may take.
pub const STOP_TIME: Duration = Duration::from_millis(9_500);
/// Characters of a multipart boundary (RFC 2046, section 5.1.1).
pub const BOUNDARY_BYTES: usize = 70;
/// Headers of one part of a multipart body.
pub const PART_HEADERS: usize = 8;
/// Bytes of those headers.
pub const PART_HEADER_BYTES: usize = 2048;
/// What a form may hold besides its statement and its payload: delimiters and headers.
pub const FORM_FRAME_BYTES: usize = 8 << 10;
/// Statements in one batch.
pub const BATCH_STATEMENTS: usize = 256;
/// No configuration raises the limit on one batch above this.
pub const BATCH_BYTES_CAP: usize = 32 << 20;
/// Entries on one page of evidence.
pub const EVIDENCE_PAGE: usize = 256;
/// A page of evidence ends before it holds more bytes than this, unless its first entry does.
pub const EVIDENCE_BYTES: usize = 4 << 20;
/// Entries read for it at one time.
pub const EVIDENCE_CHUNK: usize = 4;
/// Number of heads read at one time for the commit times of a page.
pub const HEADS_CHUNK: usize = 256;
/// Reports of equivocation on one page.
pub const REPORTS_PAGE: usize = 64;
/// Reports of equivocation on a page, unless asked otherwise.
pub const REPORTS_DEFAULT: usize = 16;
/// A page of them ends once it holds this many bytes of statements.
pub const REPORTS_BYTES: usize = 4 << 20;
/// Reports read for it at one time.
pub const REPORTS_CHUNK: usize = 4;
/// Policies that `/v1/policy` lists, newest first; all of them are at `/v1/policy/{revision}`.
pub const POLICY_HISTORY: usize = 1000;
/// Entries read for the lookup index at one time, at first and at most.
pub const INDEX_FIRST: usize = 8;
/// The same, once their size is known.
pub const INDEX_ENTRIES: usize = 512;
/// Their bytes.
pub const INDEX_BYTES: usize = 8 << 20;
/// Rows that are written to it at one time; those of the last entry may go beyond.
pub const INDEX_ROWS: usize = 16_384;
/// How long the reading rests after it has caught up, unless somebody waits: a commit of its own costs what a batch's does.
pub const INDEX_PAUSE: Duration = Duration::from_millis(250);
/// How often somebody looks whether the index was dropped.
pub const INDEX_POLL: Duration = Duration::from_millis(500);
/// How long the reading waits when the database did not let it.
pub const INDEX_RETRY: Duration = Duration::from_secs(1);
/// How long the index stands still before a process reads that does not lead.
pub const INDEX_PATIENCE: Duration = Duration::from_secs(2);
/// How long a search waits for an index that is behind.
pub const INDEX_WAIT: Duration = Duration::from_millis(500);
/// How often it looks meanwhile, if another process reads.
pub const INDEX_LOOK: Duration = Duration::from_millis(25);
/// Entries that a name is told to be of.
pub const NAMED_ENTRIES: usize = 16;
/// Receipts of a chain on one page.
pub const CHAIN_PAGE: usize = 1000;
/// Values of an entry by which others are looked for.
pub const LINKED_VALUES: usize = 64;
/// Entries that are shown for each.
pub const LINKED_ENTRIES: usize = 16;
/// Groups of fewer receipts are not told of (VRF reading 23).
pub const SMALL_GROUP: u64 = 5;
/// Counts that are kept to go on with.
pub const TALLIES: usize = 256;
/// For how long: entries are erased meanwhile.
pub const TALLY_AGE: Duration = Duration::from_secs(300);
/// Entries that one request counts, at most.
pub const TALLY_ENTRIES: usize = 50_000;
/// Entries that are counted at one time.
pub const TALLY_PAGE: usize = 1000;
/// Values that one count tells apart.
pub const TALLY_GROUPS: usize = 4096;
/// Input that an error quotes, at most, in bytes.
pub const ECHO_BYTES: usize = 64;
/// Address buckets kept by a rate limit; beyond it, newcomers share one bucket.
pub const RATE_BUCKETS: usize = 100_000;
/// Buckets are counted once in so many requests.
pub const RATE_COUNT_EVERY: u64 = 256;
/// How often forgotten rate buckets are dropped.
pub const RATE_SWEEP: Duration = Duration::from_secs(60);
/// Issuers that have a rate of their own.
pub const MAX_ISSUER_RATES: usize = 1000;
/// An issuer's quota is taken from the shared counter in so many parts, so that most registrations need not ask.
pub const QUOTA_CHUNKS: u64 = 64;
/// How long the shared counter may take to answer.
pub const QUOTA_TIME: Duration = Duration::from_millis(500);
/// How long it is not asked again after that.
pub const QUOTA_RETRY: Duration = Duration::from_secs(1);
/// Characters of a kid in the name of the file in which a key with that kid is looked for.
pub const KID_IN_FILE_NAME: usize = 8;
/// How often each process reads which keys sign.
pub const KEY_POLL: Duration = Duration::from_secs(1);
/// How long the leader has known of a new key before it signs with it: every process lists the key by then.
pub const KEY_LISTED: Duration = Duration::from_secs(2);
/// How often the database's durability settings are checked again.
pub const DURABILITY_CHECK: Duration = Duration::from_secs(60);
/// How often the depth of the inbox and the age of its oldest item are measured.
pub const INBOX_MEASURE: Duration = Duration::from_secs(5);
/// Inbox items on one page.
pub const INBOX_PAGE: usize = 1000;
/// Bytes of an operator's reason for refusing one.
pub const INBOX_REASON_BYTES: usize = 1024;
/// A statement and payload of more bytes together are parsed and decided where no other task waits for it.
pub const INLINE_BYTES: usize = 64 << 10;
/// How often a decision is made again because the log moved while the statement waited.
pub const DECISIONS: usize = 4;
/// A step of sequencing (a commit, its settlement, the pin, a signature) may last this long before `/readyz` names it.
pub const STALLED_STEP: Duration = Duration::from_secs(5);
/// The process that leads may be unable to read the inbox this long before `/readyz` says so.
pub const STALLED_DRAIN: Duration = Duration::from_secs(10);
/// A step that lasts longer than this is stuck: `/livez` fails, so that a supervisor restarts the process.
pub const STUCK_STEP: Duration = Duration::from_secs(90);
/// A committed head may lack its signature this long before `/readyz` says so.
pub const UNSIGNED_HEAD_TIME: Duration = Duration::from_secs(5);
/// Nesting of statement headers (CBOR), as the parser keeps it.
pub const HEADER_DEPTH: usize = 16;
/// Nesting of payloads, as the profiles keep it.
pub const PAYLOAD_DEPTH: usize = 64;

/// How often the process that leads looks for erasures, if nobody tells it of one.
pub const ERASURE_LOOK: Duration = Duration::from_secs(1);
/// How long it waits when the database did not let it.
pub const ERASURE_RETRY: Duration = Duration::from_secs(10);
/// Erasures on one page.
pub const ERASURES_PAGE: u64 = 16;
/// Records of one stream that are read at once.
pub const STREAM_RECORDS: usize = 5_000;
/// Records that are looked up at one time.
pub const STREAM_PAGE: usize = 256;
/// Records of a stream that count as one read of the client who asks for them.
pub const STREAM_RECORDS_A_READ: usize = 16;
/// Numbers missing from a stream that are asked for, whether they were erased.
pub const STREAM_GAPS: u64 = 1_000;
/// Maximum number of digests of a session's page by which verification receipts are searched.
pub const SESSION_DIGESTS: usize = 1024;
/// Maximum number of verification receipts on a session's page.
pub const SESSION_RECEIPTS: usize = 256;
/// Policies that a check of the storage has at hand.
pub const POLICIES_AT_HAND: usize = 16;
/// Entries that the service checks at one time.
pub const FSCK_PAGE: usize = 16;
/// How often it writes down how far the check is.
pub const FSCK_KEPT_EVERY: Duration = Duration::from_secs(5);
/// How often a process looks whether it leads, and so checks.
pub const FSCK_LOOK: Duration = Duration::from_secs(1);
/// How long it waits when the database did not answer.
pub const FSCK_RETRY: Duration = Duration::from_secs(10);
/// Findings of the check that stand; more are only counted.
pub const FSCK_FINDINGS: usize = 100;
/// Findings that `/readyz` names.
pub const FSCK_NAMED: usize = 8;
/// The largest file that is read as the state of a check.
pub const FSCK_STATE_BYTES: u64 = 4 << 20;
/// How often a head that stays the newest is shown to the witnesses again, unless set otherwise.
pub const WITNESS_EVERY: Duration = Duration::from_secs(60);
/// Witnesses are shown a new head no more often than this.
pub const WITNESS_PACE: Duration = Duration::from_secs(5);
/// A witness that asks to be left alone for longer is asked after this.
pub const WITNESS_LONGEST_PAUSE: Duration = Duration::from_secs(300);
/// How often it is looked whether the signature of a new head is kept.
pub const WITNESS_SIGNATURE_LOOK: Duration = Duration::from_millis(100);
/// How often a process looks for cosignatures that another one kept.
pub const WITNESS_LOOK: Duration = Duration::from_secs(1);
/// How long it waits when the database did not let it.
pub const WITNESS_RETRY: Duration = Duration::from_secs(5);
/// Cosignatures read at one time.
pub const WITNESS_PAGE: usize = 256;
/// Cosignatures read before a service listens, newest first, to find the head that was served before.
pub const WITNESS_RECALL: usize = 1024;
/// The same once it does, if it was not among those.
pub const WITNESS_SCAN: usize = 1 << 20;
/// A witness that has not cosigned for so many intervals does not count as fresh.
pub const WITNESS_FRESH_ROUNDS: u64 = 3;
/// A witness's clock may be this far from ours before that is said; what it signs further ahead is not kept.
pub const WITNESS_CLOCK_TOLERANCE: Duration = Duration::from_secs(60);
/// A cosignature that is older says nothing of our clock: by then the steady clock may have drifted too.
pub const WITNESS_CLOCK_AGE: Duration = Duration::from_secs(3600);
/// Memory for the tiles that proofs for witnesses are made of.
pub const WITNESS_TILES_BYTES: u64 = 4 << 20;
/// Checkpoints on one page.
pub const CHECKPOINTS_PAGE: usize = 100;
/// The same, unless asked otherwise.
pub const CHECKPOINTS_DEFAULT: usize = 25;
/// Holds on one page.
pub const HOLDS_PAGE: usize = 1000;
/// Streams of entries open at one time; beyond it: 503.
pub const TAIL_PLACES: usize = 256;
/// Those of one client; beyond it: 429.
pub const TAIL_PLACES_PER_CLIENT: usize = 32;
/// A stream on which nothing was told for this long says that it lives.
pub const TAIL_HEARTBEAT: Duration = Duration::from_secs(15);
/// The first time; each time it is twice as long, up to that.
pub const TAIL_FIRST_HEARTBEAT: Duration = Duration::from_secs(1);
/// How long a reader may leave what he is told untaken.
pub const TAIL_PATIENCE: Duration = Duration::from_secs(30);
/// How long he may leave untaken that he is cut off; then his connection is.
pub const TAIL_GRACE: Duration = Duration::from_secs(5);
/// Entries read for a stream at one time.
pub const TAIL_PAGE: usize = 256;
/// Those that a search finds.
pub const TAIL_FOUND: usize = 64;
/// Pages that are read at one time for streams that are not at the end of the log.
pub const TAIL_READS: usize = 4;
/// How long a page at the end of the log is told to others: entries are erased meanwhile.
pub const TAIL_SHARED_FOR: Duration = Duration::from_secs(1);
/// A chunk of events is sent once it has this many bytes.
pub const TAIL_CHUNK: usize = 32 << 10;
/// Chunks that wait for a reader.
pub const TAIL_CHUNKS: usize = 4;

/// The bounds of streams of entries. None of them is a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TailLimits {
    /// Streams open at one time.
    pub places: usize,
    /// Those of one client.
    pub places_per_client: usize,
    /// After so much silence there is a sign of life.
    pub heartbeat: Duration,
    /// How long a reader may take nothing.
    pub patience: Duration,
    /// How long after the last word his connection is closed.
    pub grace: Duration,
}

impl Default for TailLimits {
    fn default() -> Self {
        Self {
            places: TAIL_PLACES,
            places_per_client: TAIL_PLACES_PER_CLIENT,
            heartbeat: TAIL_HEARTBEAT,
            patience: TAIL_PATIENCE,
            grace: TAIL_GRACE,
        }
    }
}

/// How often the free space is measured. A second at the highest rate writes far less than `min_free_bytes`.
pub const SPACE_CHECK: Duration = Duration::from_secs(1);

/// The bounds an operator may set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest statement, and the largest detached payload, in bytes; at most [`STATEMENT_BYTES_CAP`]. Never more
    /// is read than the most generous type of the policy in force admits.
    pub statement_bytes: usize,
    /// The largest body of a batch in bytes; at most [`BATCH_BYTES_CAP`].
    pub batch_bytes: usize,
    /// What all request bodies held at one time may take together (at start); beyond it: 503.
    pub bodies_in_flight_bytes: usize,
    /// Header lines in one request; beyond it: 431.
    pub headers: usize,
    /// Request line and headers in bytes; beyond it: 431 (or 414 when the target alone is too long).
    pub head_bytes: usize,
    /// How long a client may take to send a request head (at start).
    pub header_time: Duration,
    /// How long a client may take to send a request body; beyond it: 408.
    pub body_time: Duration,
    /// How long the service may work on one request; beyond it: 503.
    pub request_time: Duration,
    /// Connections open at one time (at start), a quarter of them from one address. Beyond either, the longest idle
    /// connection is closed for a newcomer, or the newcomer if none is idle.
    pub connections: usize,
    /// How long `POST /entries` waits for the receipt before it answers 202 (at start).
    pub receipt_wait: Duration,
    /// Statements that may wait to be sequenced (at start); beyond it: 503.
    pub queue_entries: usize,
    /// Their bytes together (at start); beyond it: 503.
    pub queue_bytes: usize,
    /// Accepted statements that may wait for their place in the log, in total and of one issuer (at start);
    /// beyond it: 503.
    pub inbox: InboxBounds,
    /// How long a busy sequencer waits to fill a batch (at start).
    pub linger: Duration,
    /// What 202, 204 and 503 say in `Retry-After`, in seconds.
    pub retry_after: u32,
    /// `POST` requests per client: a token's name, or an address (IPv6: its /64).
    pub writes: Rate,
    /// `GET` requests per client.
    pub reads: Rate,
    /// Registrations per issuer (`iss`), charged once its signature has been verified. `None`: no limit.
    pub issuer: Option<Rate>,
    /// Issuers with a rate of their own, by name; at most [`MAX_ISSUER_RATES`].
    pub named_issuers: BTreeMap<String, Rate>,
    /// Entries that one page lists at most.
    pub page: usize,
    /// How often entries past their retention are looked for (at start).
    pub retention_every: Duration,
    /// Rows of the log that are checked in a second (at start); 0 checks none.
    pub fsck_rate: u32,
    /// The pause between one check of the whole log and the next (at start).
    pub fsck_every: Duration,
    /// Bytes that must be free on the file systems of the state directory and of a SQLite database (at start); with fewer,
    /// nothing is registered: 503. 0 refuses nothing.
    pub min_free_bytes: u64,
    /// Memory for tiles (at start).
    pub tile_cache_bytes: u64,
    /// Streams of entries (at start; not settings).
    pub tail: TailLimits,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            statement_bytes: STATEMENT_BYTES_CAP,
            batch_bytes: 16 << 20,
            bodies_in_flight_bytes: 64 << 20,
            headers: 100,
            head_bytes: 32 << 10,
            header_time: Duration::from_secs(10),
            body_time: Duration::from_secs(30),
            request_time: Duration::from_secs(30),
            connections: 4096,
            receipt_wait: Duration::from_secs(1),
            queue_entries: 16_384,
            queue_bytes: 64 << 20,
            inbox: INBOX_BOUNDS,
            linger: Duration::from_millis(2),
            retry_after: 1,
            writes: Rate::per_second(500, 2_000),
            reads: Rate::per_second(2_000, 8_000),
            issuer: None,
            named_issuers: BTreeMap::new(),
            page: 1000,
            retention_every: Duration::from_secs(3600),
            fsck_rate: 500,
            fsck_every: Duration::from_secs(3600),
            min_free_bytes: 64 << 20,
            tile_cache_bytes: 64 << 20,
            tail: TailLimits::default(),
        }
    }
}

/// So many requests in a period, and how many may come at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rate {
    /// Requests per period, sustained.
    pub requests: NonZeroU32,
    /// The period.
    pub period: Duration,
    /// Requests that may come at once after a pause.
    pub burst: NonZeroU32,
}

impl Rate {
    /// `requests` a second, `burst` at once. Zero means one.
    pub fn per_second(requests: u32, burst: u32) -> Self {
        Self { requests: at_least_one(requests), period: Duration::from_secs(1), burst: at_least_one(burst) }
    }

    /// The time in which one request is earned back.
    pub fn interval(&self) -> Duration {
        (self.period / self.requests.get()).max(Duration::from_nanos(1))
    }

    /// "500 per second", for people.
    pub fn in_words(&self) -> String {
        match self.period.as_secs() {
            1 => format!("{} requests per second", self.requests),
            60 => format!("{} requests per minute", self.requests),
            3600 => format!("{} requests per hour", self.requests),
            seconds => format!("{} requests per {seconds} seconds", self.requests),
        }
    }
}

fn at_least_one(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN)
}
