//! All bounds of the service with their defaults.
//!
//! All of them are always enforced. `GET /v1/limits` shows those that concern clients; a reload (SIGHUP) may change all
//! of them but those marked "at start".

use std::collections::BTreeMap;
use std::time::Duration;

use sequencer::INBOX_BOUNDS;
use serving::limits::COUNTED_CLIENTS;
pub use serving::rate_limit::Rate;
use store::InboxBounds;

/// Upper bound of the configured limit on one statement, in bytes.
pub const STATEMENT_BYTES_CAP: usize = 8 << 20;
/// Upper bound of the configured time for which a busy sequencer waits to fill a batch.
pub const LINGER_CAP: Duration = Duration::from_millis(5);
/// hyper's own limit on header fields, above [`Limits::headers`], so that a refusal by this service has a body.
pub const HYPER_HEADERS: usize = 256;
/// hyper's own limit on the request head in bytes, above [`Limits::head_bytes`]. Beyond it hyper responds with a bare
/// 431.
pub const HYPER_HEAD_BYTES: usize = 128 << 10;
/// Bytes of the path of a Unix socket (`sun_path` without its terminator, unix(7)).
pub const SOCKET_PATH_BYTES: usize = 107;
/// Divisor for the share of one address in a listener's connections, and of one client in the memory for bodies.
pub const SHARE_PART: usize = 4;
/// Divisor for the additional reserve of callers with a token, as a part of the memory for bodies.
pub const TOKENS_PART: usize = 4;
/// Divisor for the additional pool of the first bytes of bodies, as a part of the memory for bodies.
pub const SMALL_BODIES_PART: usize = 4;
/// Number of first bytes per body from that pool, unless the memory for bodies is small.
pub const SMALL_BODY_BYTES: usize = 64 << 10;
/// One client's share of that pool holds the first bytes of at least this many bodies.
pub const SMALL_BODIES: usize = 64;
/// Time for which a freeze waits for the last head to be signed, and again for its signature to be stored.
pub const FREEZE_TIME: Duration = Duration::from_secs(10);
/// Time limit of a complete stop.
pub const STOP_TIME: Duration = Duration::from_millis(9_500);
/// Characters of a multipart boundary (RFC 2046, section 5.1.1).
pub const BOUNDARY_BYTES: usize = 70;
/// Headers of one part of a multipart body.
pub const PART_HEADERS: usize = 8;
/// Bytes of the headers of one part.
pub const PART_HEADER_BYTES: usize = 2048;
/// Bytes of delimiters and headers in a form, besides its statement and its payload.
pub const FORM_FRAME_BYTES: usize = 8 << 10;
/// Statements in one batch.
pub const BATCH_STATEMENTS: usize = 256;
/// Upper bound of the configured limit on one batch, in bytes.
pub const BATCH_BYTES_CAP: usize = 32 << 20;
/// Entries on one page of evidence.
pub const EVIDENCE_PAGE: usize = 256;
/// Bytes on one page of evidence; only its first entry may be larger.
pub const EVIDENCE_BYTES: usize = 4 << 20;
/// Entries read for a page of evidence at one time.
pub const EVIDENCE_CHUNK: usize = 4;
/// Largest payload that a page decodes, in bytes. A larger one is shown as it is.
pub const DECODED_PAYLOAD_BYTES: usize = 1 << 20;
/// Most CBOR items of a payload that a page decodes.
pub const DECODED_ITEMS: usize = 1 << 16;
/// Entries in the short lists of newest entries on pages for people.
pub const HOME_ENTRIES: usize = 10;
/// Audit streams whose gaps are shown on the page of a session.
pub const SESSION_STREAMS: usize = 8;
/// Execution receipts whose delegation chains are looked up for the page of a session.
pub const SESSION_EXECUTIONS: usize = 128;
/// Delegation chains that are drawn on the page of a session.
pub const SESSION_CHAINS: usize = 8;
/// Entries of one delegation chain that are tried, of several issuers, until one can be read.
pub const CHAIN_ENTRIES: usize = 4;
/// Tools of a hop that a page names.
pub const HOP_NAMES: usize = 16;
/// Conversation records on the page of a session of which the record before them is looked up.
pub const SESSION_PREVIOUS_RECORDS: usize = 128;
/// Entries among which a page looks for copies of a record, and for the record that follows it.
pub const RECORD_COPIES: usize = 8;
/// Entries in an evidence bundle that a page offers, which is not less than [`CHAIN_PAGE`].
pub const BUNDLE_ENTRIES: usize = 1000;
/// Bytes of the statements and payloads in an evidence bundle that a page offers.
pub const BUNDLE_BYTES: usize = 16 << 20;
/// Entries and policies of an evidence bundle that are charged to the client as one read.
pub const BUNDLE_STATEMENTS_A_READ: usize = 16;
/// Evidence bundles that are packed at one time, each in a few times [`BUNDLE_BYTES`] of memory; others wait.
pub const BUNDLES_AT_ONCE: usize = 4;
/// Heads in the chart of the tree's growth.
pub const GROWTH_POINTS: u64 = 120;
/// Bytes of statements read at one time for a page.
pub const ENTRIES_BYTES: usize = 8 << 20;
/// Number of entries read at one time before their size is known.
pub const ENTRIES_FIRST: usize = 8;
/// Largest number of entries read at one time for a page: 32 MiB, if they are as large as the default settings allow.
pub const ENTRIES_MOST: usize = 32;
/// Number of heads read at one time for the commit times of a page.
pub const HEADS_CHUNK: usize = 256;
/// Reports of equivocation on one page.
pub const REPORTS_PAGE: usize = 64;
/// Default number of equivocation reports on a page.
pub const REPORTS_DEFAULT: usize = 16;
/// Bytes of statements after which a page of equivocation reports ends.
pub const REPORTS_BYTES: usize = 4 << 20;
/// Equivocation reports read at one time.
pub const REPORTS_CHUNK: usize = 4;
/// Policies listed by `/v1/policy`, newest first; all of them are at `/v1/policy/{revision}`.
pub const POLICY_HISTORY: usize = 1000;
/// Entries read for the lookup index at one time, before their size is known.
pub const INDEX_FIRST: usize = 8;
/// Largest number of entries read for the lookup index at one time.
pub const INDEX_ENTRIES: usize = 512;
/// Target size of the entries read for the lookup index at one time, in bytes.
pub const INDEX_BYTES: usize = 8 << 20;
/// Number of entries whose search terms wait for the index in memory.
pub const DECIDED_TERMS: usize = 16_384;
/// Pause of indexing after it has caught up, unless a search waits: entries indexed together cost least, and those that
/// this process registers are known by then.
pub const INDEX_PAUSE: Duration = Duration::from_millis(250);
/// Interval at which indexing checks for erasures and drops of the index, which send no notification.
pub const INDEX_POLL: Duration = Duration::from_millis(500);
/// Pause of indexing after an error of the database.
pub const INDEX_RETRY: Duration = Duration::from_secs(1);
/// Time for which a full run must be unwritten before a process that does not lead writes it.
pub const INDEX_PATIENCE: Duration = Duration::from_secs(2);
/// Time for which a search waits for an index that lags behind.
pub const INDEX_WAIT: Duration = Duration::from_millis(500);
/// Interval at which a waiting search checks how far the index goes, and asks the indexing task to continue.
pub const SEARCH_POLL: Duration = Duration::from_millis(25);
/// Interval at which the leading process checks whether a head of the index is due.
pub const INDEX_HEAD_POLL: Duration = Duration::from_millis(250);
/// Pause of the making of heads after an error.
pub const INDEX_HEAD_RETRY: Duration = Duration::from_secs(5);
/// Seconds by which the clocks of two leading processes may differ without a head of the earlier one coming after a head of
/// the later one.
pub const INDEX_HEAD_CLOCKS: u64 = 2;
/// Heads of the index read at one time, newest first, to find one of the policy's series.
pub const INDEX_HEADS_READ: usize = 16;
/// Erasures read at one time, to find the entries that left the index after a head was made.
pub const ERASURES_READ: u64 = 16;
/// Postings of one term, or of one reason why entries may match, on a page of a search that is proven.
pub const PROVEN_POSTINGS: usize = 4096;
/// Entries that may match, listed on a page of a search without proof.
pub const BLIND_LEAVES: usize = 1000;
/// Entries with one name that `GET /entries/{entry_id}` refers to.
pub const NAMED_ENTRIES: usize = 16;
/// Receipts of a chain on one page.
pub const CHAIN_PAGE: usize = 1000;
/// Values of an entry that are searched for links.
pub const LINKED_VALUES: usize = 64;
/// Linked entries shown for each value.
pub const LINKED_ENTRIES: usize = 16;
/// Receipts in the smallest group that is shown (VRF reading 23).
pub const SMALL_GROUP: u64 = 5;
/// Counts cached for being continued.
pub const TALLIES: usize = 256;
/// Counts that go on in the background at one time.
pub const TALLIES_COUNTING: usize = 2;
/// Age at which a count begins anew: entries are erased meanwhile.
pub const TALLY_AGE: Duration = Duration::from_secs(300);
/// Age up to which a count is shown while a new one is made.
pub const TALLY_KEPT: Duration = Duration::from_secs(3600);
/// Entries counted at one time, and by one request.
pub const TALLY_PAGE: usize = 250;
/// Pause of a count in the background after each page, so that it takes no processor for itself.
pub const TALLY_PAUSE: Duration = Duration::from_millis(5);
/// Values distinguished by one count.
pub const TALLY_GROUPS: usize = 4096;
/// Bytes of input quoted by an error.
pub const ECHO_BYTES: usize = 64;
/// Buckets kept by the quota of issuers; beyond it, new issuers share one bucket.
pub const RATE_BUCKETS: usize = COUNTED_CLIENTS;
/// Interval at which replenished rate buckets are removed.
pub const RATE_SWEEP: Duration = Duration::from_secs(60);
/// Issuers that have a rate of their own.
pub const MAX_ISSUER_RATES: usize = 1000;
/// Divisor: a process takes an issuer's quota from the shared counter in this many chunks, so that most registrations
/// need no query.
pub const QUOTA_CHUNKS: u64 = 64;
/// Time limit of a query to the shared counter.
pub const QUOTA_TIME: Duration = Duration::from_millis(500);
/// Pause of queries to the shared counter after one failed.
pub const QUOTA_RETRY: Duration = Duration::from_secs(1);
/// Characters of a kid in the name of its key file.
pub const KID_IN_FILE_NAME: usize = 8;
/// Interval at which each process reads the key table.
pub const KEY_POLL: Duration = Duration::from_secs(1);
/// Time from the leader's first sight of an announced key to its activation: every process lists the key by then.
pub const KEY_LISTED: Duration = Duration::from_secs(2);
/// Interval at which the database's durability settings are checked.
pub const DURABILITY_CHECK: Duration = Duration::from_secs(60);
/// Interval at which the size of the inbox and the age of its oldest item are measured.
pub const INBOX_MEASURE: Duration = Duration::from_secs(5);
/// Inbox items on one page.
pub const INBOX_PAGE: usize = 1000;
/// Bytes of an operator's reason for refusing an inbox item.
pub const INBOX_REASON_BYTES: usize = 1024;
/// Newest entries whose repeated registration is answered from memory: at least half as many, in 20 MiB.
pub const RECENT_ENTRIES: usize = 1 << 18;
/// Bytes of statement and payload together above which parsing and deciding move other tasks to another thread first.
pub const INLINE_BYTES: usize = 64 << 10;
/// Decisions about one statement while the log changes in between.
pub const DECISIONS: usize = 4;
/// Duration of a sequencing step (a commit, its settlement, the pin, a signature) after which `/readyz` reports it.
pub const STALLED_STEP: Duration = Duration::from_secs(5);
/// Time without reading the inbox after which the leader's `/readyz` reports it.
pub const STALLED_DRAIN: Duration = Duration::from_secs(10);
/// Duration of a sequencing step after which it is stuck: `/livez` fails, so that a supervisor restarts the process.
pub const STUCK_STEP: Duration = Duration::from_secs(90);
/// Time without a signature of the committed head after which `/readyz` reports it.
pub const UNSIGNED_HEAD_TIME: Duration = Duration::from_secs(5);
/// Nesting of statement headers (CBOR) that the parser accepts.
pub const HEADER_DEPTH: usize = 16;
/// Nesting of payloads that the profiles accept.
pub const PAYLOAD_DEPTH: usize = 64;

/// Interval at which the leader looks for erasures without a notification.
pub const ERASURE_POLL: Duration = Duration::from_secs(1);
/// Pause of erasing after an error of the database.
pub const ERASURE_RETRY: Duration = Duration::from_secs(10);
/// Erasures on one page.
pub const ERASURES_PAGE: u64 = 16;
/// Records of one audit stream read by one request.
pub const STREAM_RECORDS: usize = 5_000;
/// Records of an audit stream read at one time.
pub const STREAM_PAGE: usize = 256;
/// Records of an audit stream that are charged to the client as one read.
pub const STREAM_RECORDS_A_READ: usize = 16;
/// Missing numbers of an audit stream that are looked up as erased.
pub const STREAM_GAPS: u64 = 1_000;
/// Maximum number of digests of a session's page by which verification receipts are searched.
pub const SESSION_DIGESTS: usize = 1024;
/// Number of entries of a session's page whose digests are read at one time. Each has at most 4,096.
pub const SESSION_ENTRIES_A_READ: usize = 32;
/// Maximum number of verification receipts on a session's page.
pub const SESSION_RECEIPTS: usize = 256;
/// Policies cached by a check of the storage.
pub const POLICIES_AT_HAND: usize = 16;
/// Entries read by the storage check at one time.
pub const FSCK_PAGE: usize = 16;
/// Interval at which the storage check saves its progress.
pub const FSCK_KEPT_EVERY: Duration = Duration::from_secs(5);
/// Interval at which a process that does not lead checks its role for the storage check.
pub const FSCK_POLL: Duration = Duration::from_secs(1);
/// Pause of the storage check after an error of the database.
pub const FSCK_RETRY: Duration = Duration::from_secs(10);
/// Findings of the storage check that are kept as text; more are only counted.
pub const FSCK_FINDINGS: usize = 100;
/// Findings shown by `/readyz`.
pub const FSCK_NAMED: usize = 8;
/// Bytes of the state file of the storage check.
pub const FSCK_STATE_BYTES: u64 = 4 << 20;
/// Default interval at which an unchanged newest head is sent to the witnesses again.
pub const WITNESS_EVERY: Duration = Duration::from_secs(60);
/// Shortest interval between two new heads sent to the witnesses.
pub const WITNESS_PACE: Duration = Duration::from_secs(5);
/// Upper bound of the pause that a witness may request.
pub const WITNESS_LONGEST_PAUSE: Duration = Duration::from_secs(300);
/// Interval at which the signature of a new head is looked up.
pub const WITNESS_SIGNATURE_POLL: Duration = Duration::from_millis(20);
/// Interval at which a process looks for cosignatures stored by another one.
pub const WITNESS_POLL: Duration = Duration::from_secs(1);
/// Pause of the witness tasks after an error of the database.
pub const WITNESS_RETRY: Duration = Duration::from_secs(5);
/// Cosignatures read at one time.
pub const WITNESS_PAGE: usize = 256;
/// Cosignatures read before a service listens, newest first, to find the checkpoint that was served before.
pub const WITNESS_RECALL: usize = 1024;
/// Cosignatures read once the service listens, if the checkpoint was not among [`WITNESS_RECALL`].
pub const WITNESS_SCAN: usize = 1 << 20;
/// Number of intervals without a cosignature after which a witness does not count as fresh.
pub const WITNESS_FRESH_ROUNDS: u64 = 3;
/// Difference between a witness's clock and this process's that is tolerated. A larger one is logged, and a cosignature
/// further ahead is not stored.
pub const WITNESS_CLOCK_TOLERANCE: Duration = Duration::from_secs(60);
/// Age of a cosignature above which it is not evidence of this process's clock, because the monotonic clock may have
/// drifted too.
pub const WITNESS_CLOCK_AGE: Duration = Duration::from_secs(3600);
/// Locks for reads of tiles, by number of the tile: of the requests that need the same tile, one reads it.
pub const TILE_LOCKS: usize = 64;
/// Longest wait for the request that reads the same tile: when the database does not answer, no request waits for the errors
/// of all before it.
pub const TILE_WAIT: Duration = Duration::from_millis(500);
/// Memory for the tiles of consistency proofs for witnesses, in bytes.
pub const WITNESS_TILES_BYTES: u64 = 4 << 20;
/// Largest number of checkpoints on one page.
pub const CHECKPOINTS_PAGE: usize = 100;
/// Default number of checkpoints on a page.
pub const CHECKPOINTS_DEFAULT: usize = 25;
/// Holds on one page.
pub const HOLDS_PAGE: usize = 1000;
/// Open streams of entries; beyond it: 503.
pub const TAIL_PLACES: usize = 256;
/// Open streams of entries of one client; beyond it: 429.
pub const TAIL_PLACES_PER_CLIENT: usize = 32;
/// Time without an event after which a stream sends a heartbeat.
pub const TAIL_HEARTBEAT: Duration = Duration::from_secs(15);
/// Time before the first heartbeat of a stream; doubled with each, up to [`TAIL_HEARTBEAT`].
pub const TAIL_FIRST_HEARTBEAT: Duration = Duration::from_secs(1);
/// Time for which a reader may leave the buffer of its stream full.
pub const TAIL_PATIENCE: Duration = Duration::from_secs(30);
/// Time for which a slow reader may leave the last event untaken; then its connection is closed.
pub const TAIL_GRACE: Duration = Duration::from_secs(5);
/// Entries read for a stream at one time.
pub const TAIL_PAGE: usize = 256;
/// Entries found for a filtered stream at one time.
pub const TAIL_FOUND: usize = 64;
/// Concurrent reads for streams that are not at the end of the log.
pub const TAIL_READS: usize = 4;
/// Lifetime of the shared page at the end of the log: entries are erased meanwhile.
pub const TAIL_SHARED_FOR: Duration = Duration::from_secs(1);
/// Bytes of events after which a chunk is sent.
pub const TAIL_CHUNK: usize = 32 << 10;
/// Chunks buffered for a reader.
pub const TAIL_CHUNKS: usize = 4;

/// The bounds of streams of entries. None of them is a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TailLimits {
    /// Open streams.
    pub places: usize,
    /// Open streams of one client.
    pub places_per_client: usize,
    /// Time without an event after which a heartbeat is sent.
    pub heartbeat: Duration,
    /// Time for which a reader may leave its buffer full.
    pub patience: Duration,
    /// Time from the last event of a slow reader to closing its connection.
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

/// Interval at which the free space is measured. At the highest rate one second writes far less than `min_free_bytes`.
pub const SPACE_CHECK: Duration = Duration::from_secs(1);

/// The bounds that an operator may set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest statement, and the largest detached payload, in bytes; at most [`STATEMENT_BYTES_CAP`]. The largest
    /// size that the policy in force admits is a further limit.
    pub statement_bytes: usize,
    /// The largest body of a batch in bytes; at most [`BATCH_BYTES_CAP`].
    pub batch_bytes: usize,
    /// Memory for all request bodies in flight, in bytes (at start); beyond it: 503.
    pub bodies_in_flight_bytes: usize,
    /// Header fields in one request; beyond it: 431.
    pub headers: usize,
    /// Request line and headers in bytes; beyond it: 431 (or 414 when the target alone is too long).
    pub head_bytes: usize,
    /// Time limit for a client to send a request head (at start).
    pub header_time: Duration,
    /// Time limit for a client to send a request body; beyond it: 408.
    pub body_time: Duration,
    /// Time limit for the service's work on one request; beyond it: 503.
    pub request_time: Duration,
    /// Open connections (at start), a quarter of them from one address. Beyond either, the longest idle connection is
    /// closed, or the new one if none is idle.
    pub connections: usize,
    /// Time for which `POST /entries` waits for the receipt before it responds with 202 (at start).
    pub receipt_wait: Duration,
    /// Statements in the sequencer's queue (at start); beyond it: 503.
    pub queue_entries: usize,
    /// Bytes of the statements in the queue (at start); beyond it: 503.
    pub queue_bytes: usize,
    /// Accepted statements that are not in the log yet, in total and per issuer (at start); beyond it: 503.
    pub inbox: InboxBounds,
    /// Time for which a busy sequencer waits to fill a batch (at start).
    pub linger: Duration,
    /// `Retry-After` of 202, 204 and 503, in seconds.
    pub retry_after: u32,
    /// Rate of `POST` requests per client: a token, or an address (IPv6: its /64).
    pub writes: Rate,
    /// Rate of `GET` requests per client.
    pub reads: Rate,
    /// Registrations per issuer (`iss`), charged once its signature has been verified. `None`: no limit.
    pub issuer: Option<Rate>,
    /// Issuers with a rate of their own, by name; at most `MAX_ISSUER_RATES`.
    pub named_issuers: BTreeMap<String, Rate>,
    /// Entries that one page lists at most.
    pub page: usize,
    /// Interval at which entries past their retention are searched (at start).
    pub retention_every: Duration,
    /// Rows of the log checked per second (at start); 0 turns the check off.
    pub fsck_rate: u32,
    /// Pause between two checks of the whole log (at start).
    pub fsck_every: Duration,
    /// Bytes that must be free on the file systems of the state directory and of a SQLite database (at start); with
    /// fewer, registration is refused: 503. 0 turns the check off.
    pub min_free_bytes: u64,
    /// Memory for cached tiles, in bytes (at start).
    pub tile_cache_bytes: u64,
    /// Bounds of streams of entries (at start; not settings).
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
            linger: Duration::ZERO,
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
