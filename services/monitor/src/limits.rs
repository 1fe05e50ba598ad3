//! Bounds and defaults of this crate, in one place.

use std::time::Duration;

/// Maximum number of logs and SCITT services of one monitor.
pub const MAX_LOGS: usize = 64;
/// Maximum number of watch lists, vantage points and witnesses of one log, each.
pub const MAX_LISTED: usize = 256;
/// Default interval between two rounds of a log.
pub const EVERY: Duration = Duration::from_secs(60);
/// Minimum interval between two rounds of a log.
pub const EVERY_AT_LEAST: Duration = Duration::from_secs(1);
/// Default maximum age of the newest witness cosignature on a checkpoint.
pub const STALE_AFTER: Duration = Duration::from_secs(15 * 60);
/// Default time for which a vantage point may be ahead of the log. Logs publish a checkpoint only after enough
/// witnesses have cosigned it.
pub const LAG: Duration = Duration::from_secs(2 * 60);
/// Default time without an answer before `AlarmKind::Unreachable` is raised.
pub const UNREACHABLE_AFTER: Duration = Duration::from_secs(10 * 60);
/// Default maximum time between a gateway's decision and its outcome.
pub const OUTCOME_WITHIN: Duration = Duration::from_secs(3600);
/// Default maximum difference between two honest clocks.
pub const CLOCK_TOLERANCE: Duration = Duration::from_secs(5 * 60);
/// Maximum size of a state file, except for the audit's (`audit::limits::MAX_AUDIT_STATE_BYTES`).
pub const MAX_STATE_BYTES: u64 = 64 << 20;
/// Maximum number of unproven checkpoints remembered for each log and each of its vantage points.
pub const MAX_UNPROVEN: usize = 16;
/// Maximum number of ongoing troubles remembered for each log.
pub const MAX_TROUBLES: usize = 1024;
/// Fetch attempts in a round for a checkpoint smaller than the last verified one.
pub const FETCH_ATTEMPTS: u32 = 3;
/// Pause between two fetch attempts of a checkpoint.
pub const FETCH_PAUSE: Duration = Duration::from_secs(1);
/// Sightings after which a doubt about a SCITT service becomes an alarm.
pub const DOUBT_SIGHTINGS: u32 = 3;
/// Maximum number of entries in one step of the entries check; progress is saved after each step.
pub const ENTRIES_STEP: u64 = 1 << 18;
/// Time limit of the entries check and of the decisions check in one round, in a continuously running monitor:
/// checkpoints are still checked regularly while it catches up.
pub const DEEP_FOR: Duration = Duration::from_secs(60);
/// Additional time for requests in flight after [`DEEP_FOR`]. Half of it is reserved for finding the wrong entry once
/// the entries are known not to yield the root, and for the statements that complete the evidence of alarms.
pub const DEEP_GRACE: Duration = Duration::from_secs(30);
/// Number of entry bundles fetched concurrently.
pub const BUNDLES_AT_ONCE: usize = 4;
/// Number of receipts of tree heads fetched concurrently.
pub const HEADS_AT_ONCE: usize = 4;
/// Time for which requests for evidence of decisions are retried in one round.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum number of claims, of verdicts and of missing numbers in the memory of watch lists, each.
pub const MAX_REMEMBERED: usize = 100_000;
/// Reports of refused statements in one page of `/v1/equivocations`.
pub const REPORT_PAGE: usize = 16;
/// Maximum number of pages of reports read in one round; the rest follows in the next rounds.
pub const REPORT_PAGES: usize = 64;
/// Maximum number of alarms in one round for which statements are fetched.
pub const MAX_COMPLETED: usize = 64;
/// Maximum number of alarms of one kind about one party in one round.
pub const MAX_NAMED: usize = 16;
/// Maximum number of proofs that are fetched for one wrong run of a search index: each one goes at least one bit deeper.
pub const MAX_INDEX_PROOFS: usize = 64;
/// Maximum number of entries that are fetched to find one with a term that is searched by.
pub const MAX_INDEX_QUESTIONS: usize = 16;
/// Maximum size of an accusation against a search index, and of a head's receipt, as evidence of an alarm. The log makes
/// both as long as it likes; an honest one has a few KiB, and an accusation also one entry with its payload.
pub const MAX_INDEX_EVIDENCE_BYTES: usize = 256 << 10;
/// Maximum length in characters of the reason why no file shows an accusation alone. It may quote the log.
pub const MAX_INDEX_REASON: usize = 1024;
/// Maximum number of attestations of a log that are kept, about 300 bytes each.
pub const MAX_ATTESTATIONS: usize = 1024;
/// Interval at which the state of a running audit of decisions is saved.
pub const AUDIT_KEPT_EVERY: Duration = Duration::from_secs(5);

/// Maximum size of a webhook body: an alarm, and its evidence if that is small.
pub const WEBHOOK_BYTES: usize = 256 << 10;
/// Maximum number of queued messages for each receiver: about three days of one alarm per minute.
pub const WEBHOOK_QUEUE: usize = 4096;
/// Maximum number of webhook receivers.
pub const MAX_WEBHOOKS: usize = 16;
/// Time after which a message is given up at the next failed attempt.
pub const WEBHOOK_LIFE: Duration = Duration::from_secs(24 * 3600);
/// Timeout of one delivery attempt.
pub const WEBHOOK_EXCHANGE: Duration = Duration::from_secs(20);
/// Timeout for establishing a connection to a receiver.
pub const WEBHOOK_CONNECT: Duration = Duration::from_secs(10);
/// Seconds to wait after the first failed attempt, the second, and so on; the last value applies to all further
/// attempts.
pub const WEBHOOK_WAITS: [u64; 9] = [1, 5, 30, 120, 600, 1800, 3600, 7200, 10_800];
/// Maximum accepted `Retry-After` of a receiver.
pub const WEBHOOK_RETRY_LONGEST: Duration = Duration::from_secs(3600);
/// Maximum time between two passes over the queue.
pub const WEBHOOK_IDLE: Duration = Duration::from_secs(60);
/// Maximum size of a file with a webhook key or secret.
pub const KEY_FILE_BYTES: u64 = 4096;
/// Maximum length of a shared secret (Standard Webhooks 1.0).
pub const WEBHOOK_SECRET_BYTES: usize = 64;
/// Minimum length of a shared secret (Standard Webhooks 1.0).
pub const WEBHOOK_SECRET_BYTES_MIN: usize = 24;

/// Maximum number of standing alarms of one kind and log; more would not help an operator.
pub const MAX_ALARMS_OF_KIND: usize = 512;
/// Maximum number of standing alarms of one kind about the log itself that differ only in `which`; the first ones stay.
pub const MAX_ALARMS_OF_LOG: usize = 64;
/// Maximum number of ended alarms that are remembered.
pub const MAX_ALARMS_OVER: usize = 256;
/// Maximum size of the list of alarms.
pub const MAX_ALARMS_BYTES: u64 = 64 << 20;
/// Maximum size of an evidence file: two statements of maximum size in base64, and their notes.
pub const MAX_EVIDENCE_BYTES: u64 = 32 << 20;
/// Maximum size of evidence that is included in a webhook message.
pub const EVIDENCE_TOLD_BYTES: usize = 64 << 10;

/// Time for which one receipt request to a SCITT service is retried.
pub const SERVICE_EXCHANGE: Duration = Duration::from_secs(10);
/// Maximum number of tree heads remembered for each SCITT service, each by one receipt (about 2 KiB without its
/// statement).
pub const MAX_PLACES: usize = 1024;
/// Maximum total size of these remembered receipts.
pub const MAX_PLACES_BYTES: usize = 12 << 20;
/// Maximum size of a SCITT service's receipt, because one is kept for every watched entry; larger ones are rejected.
pub const MAX_RECEIPT_KEPT: usize = 64 << 10;
/// Maximum size of a statement that is kept with its receipts; logs whose leaves are whole statements have no larger
/// ones.
pub const MAX_STATEMENT_KEPT: usize = u16::MAX as usize;
