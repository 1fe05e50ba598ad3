//! Every bound this crate applies, in one place.

use std::time::Duration;

/// The most logs one monitor watches.
pub const MAX_LOGS: usize = 64;
/// The most watch lists, vantage points and witnesses of one log, each.
pub const MAX_LISTED: usize = 256;
/// How often a log is asked, unless said otherwise.
pub const EVERY: Duration = Duration::from_secs(60);
/// No log is asked more often.
pub const EVERY_AT_LEAST: Duration = Duration::from_secs(1);
/// A checkpoint that no witness cosigned for this long is stale, unless said otherwise.
pub const STALE_AFTER: Duration = Duration::from_secs(15 * 60);
/// A tree that is shown elsewhere and not here for this long is an alarm, unless said otherwise: a log publishes what
/// witnesses have seen once enough of them have.
pub const LAG: Duration = Duration::from_secs(2 * 60);
/// A log that does not answer for this long is an alarm, unless said otherwise.
pub const UNREACHABLE_AFTER: Duration = Duration::from_secs(10 * 60);
/// How long a decision of a gateway may be without an outcome, unless said otherwise.
pub const OUTCOME_WITHIN: Duration = Duration::from_secs(3600);
/// How far two honest clocks are apart, unless said otherwise.
pub const CLOCK_TOLERANCE: Duration = Duration::from_secs(5 * 60);
/// The longest file of state that is read.
pub const MAX_STATE_BYTES: u64 = 64 << 20;
/// How many checkpoints that were shown and could not be proven are remembered, of one log.
pub const MAX_UNPROVEN: usize = 16;
/// How many things that do not work are remembered, of one log.
pub const MAX_TROUBLES: usize = 1024;
/// How often a checkpoint that is smaller than it was is asked for again.
pub const LOOKS: u32 = 3;
/// How long is waited in between.
pub const LOOK: Duration = Duration::from_secs(1);
/// The most entries whose hashes are proven together: the monitor can stop and go on after so many.
pub const ENTRIES_STEP: u64 = 1 << 18;
/// How long a monitor that runs on reads entries, and how long it decides again, in one round: checkpoints are looked at in
/// between, however far behind it is.
pub const DEEP_FOR: Duration = Duration::from_secs(60);
/// How much longer what is on its way may take then, before it is given up. Half of it is for finding the entry that is
/// wrong, once it is known that one is.
pub const DEEP_GRACE: Duration = Duration::from_secs(30);
/// How many entry bundles are asked for at once.
pub const BUNDLES_AT_ONCE: usize = 4;
/// How many receipts of heads are asked for at once.
pub const HEADS_AT_ONCE: usize = 4;
/// How long a log is asked again for the evidence of its decisions, in one round.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// The most claims, verdicts and missing numbers that watch lists remember, of each.
pub const MAX_REMEMBERED: usize = 100_000;
/// Reports of refused statements in a page, and how many pages are read in one round.
pub const REPORT_PAGE: usize = 16;
/// The rest comes in the next round.
pub const REPORT_PAGES: usize = 64;
/// The most alarms of one round whose statements are fetched.
pub const MAX_COMPLETED: usize = 64;
/// The most alarms of one kind about one name in one round.
pub const MAX_NAMED: usize = 16;
/// How often an audit of decisions is written down on its way.
pub const AUDIT_KEPT_EVERY: Duration = Duration::from_secs(5);

/// The largest body of a webhook: an alarm, and its evidence if that is small.
pub const WEBHOOK_BYTES: usize = 256 << 10;
/// The most webhooks that wait: a day of an alarm a minute for three receivers.
pub const WEBHOOK_QUEUE: usize = 4096;
/// The most receivers.
pub const MAX_WEBHOOKS: usize = 16;
/// How long a webhook is tried.
pub const WEBHOOK_LIFE: Duration = Duration::from_secs(24 * 3600);
/// How long one attempt may take.
pub const WEBHOOK_EXCHANGE: Duration = Duration::from_secs(20);
/// How long its connection may take.
pub const WEBHOOK_CONNECT: Duration = Duration::from_secs(10);
/// Seconds to wait after the first failure, the second, and so on; the last counts for all that follow.
pub const WEBHOOK_WAITS: [u64; 9] = [1, 5, 30, 120, 600, 1800, 3600, 7200, 10_800];
/// A receiver that asks for more is asked again after this all the same.
pub const WEBHOOK_RETRY_LONGEST: Duration = Duration::from_secs(3600);
/// How long the sender sleeps when nothing waits.
pub const WEBHOOK_IDLE: Duration = Duration::from_secs(60);
/// The longest file of a key or secret for webhooks.
pub const KEY_FILE_BYTES: u64 = 4096;
/// Bytes of a secret that a receiver shares: what the standard allows.
pub const WEBHOOK_SECRET_BYTES: usize = 64;
/// The fewest.
pub const WEBHOOK_SECRET_BYTES_MIN: usize = 24;

/// The most alarms of one kind and log that stand: more than that nobody reads, and the first ones say enough.
pub const MAX_ALARMS_OF_KIND: usize = 512;
/// The most that are remembered once they are over.
pub const MAX_ALARMS_OVER: usize = 256;
/// The longest list of alarms that is read.
pub const MAX_ALARMS_BYTES: u64 = 64 << 20;
/// The longest file of evidence that is read: two statements of the largest size, in base64, and their notes.
pub const MAX_EVIDENCE_BYTES: u64 = 32 << 20;
/// Evidence that is shorter travels inside of the webhook.
pub const EVIDENCE_TOLD_BYTES: usize = 64 << 10;

/// How long a SCITT service is asked for one receipt.
pub const SERVICE_EXCHANGE: Duration = Duration::from_secs(10);
/// The most trees of one SCITT service that are remembered by a receipt: each takes some 2 KiB, without its statement.
pub const MAX_PLACES: usize = 1024;
/// What they take in all.
pub const MAX_PLACES_BYTES: usize = 12 << 20;
/// A receipt of a SCITT service that is larger is no answer: it could not be kept for every entry that is watched.
pub const MAX_RECEIPT_KEPT: usize = 64 << 10;
/// A statement that is larger is not kept beside its receipts. Logs whose leaves are whole statements have none.
pub const MAX_STATEMENT_KEPT: usize = u16::MAX as usize;
