//! Limits of the gateway on size, count and time. Each module has its own block.

use std::time::Duration;

use jiff::SignedDuration;

// --- questions to people, and the judge -----------------------------------------------------------

/// Maximum length of a `requestState` that a client sends back, in characters.
pub const MAX_REQUEST_STATE_BYTES: usize = 64 << 10;
/// Maximum number of the gateway's own questions to users that are open at a time.
pub const MAX_OPEN_QUESTIONS: usize = 10_000;
/// Maximum number of legacy MCP sessions for which the gateway remembers that the server issued them and whether their
/// clients support elicitation.
pub const MAX_KNOWN_CLIENTS: u64 = 100_000;
/// Idle time after which a legacy session is forgotten (see [`MAX_KNOWN_CLIENTS`]).
pub const KNOWN_CLIENT_IDLE: Duration = Duration::from_secs(24 * 3600);
/// Interval between keep-alive comments on an event stream on which the gateway waits for a user's answer.
pub const QUESTION_KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Maximum number of remembered tasks of admitted calls.
pub const MAX_KNOWN_TASKS: u64 = 100_000;
/// Idle time after which a task is forgotten (see [`MAX_KNOWN_TASKS`]).
pub const KNOWN_TASK_IDLE: Duration = Duration::from_secs(24 * 3600);
/// Time for which the answer to a call is awaited on another stream after its own has ended (legacy era). It is awaited
/// until the call's own limit (see [`CALL_TIME`]) if that is later.
pub const LATE_ANSWER_TIME: Duration = Duration::from_secs(600);
/// Maximum time for a server to take the notification that a request was given up.
pub const CANCELLATION_TIME: Duration = Duration::from_secs(10);
/// Maximum wait for the answer to a call that its client cancelled (legacy era). The server may have sent it already.
pub const CANCELLED_TIME: Duration = Duration::from_secs(5);
/// Maximum wait until a legacy client fetches the result of a failed task. Some never do: the outcome is then `unknown`.
pub const FAILED_RESULT_TIME: Duration = Duration::from_secs(30);
/// Maximum number of calls with an awaited late answer. For further calls the outcome stays unknown.
pub const MAX_OWED_ANSWERS: usize = 10_000;
/// Maximum number of tasks with one name on one route that are kept apart by their owner.
pub const MAX_NAMESAKES: usize = 16;
/// Maximum total of other requests of the legacy eras whose answer is awaited on another stream after their own has ended,
/// for [`LATE_ANSWER_TIME`], in bytes: each counts its length and [`RESUMABLE_REQUEST_BYTES`]. Beyond it, the one that was
/// used least recently is forgotten.
pub const HELD_RESUMABLE_BYTES: u64 = 16 << 20;
/// Memory of a request besides its text that counts against [`HELD_RESUMABLE_BYTES`], in bytes.
pub const RESUMABLE_REQUEST_BYTES: u32 = 1 << 10;
/// Maximum number of remembered answers with the gateway's additions to them, in case a server sends them again.
pub const MAX_REMEMBERED_ANSWERS: u64 = 4_096;
/// Time that a user has to answer a question (V-26).
pub const QUESTION_TIME: Duration = Duration::from_secs(300);
/// Maximum length of a judge's HTTP response, in bytes.
pub const MAX_JUDGE_ANSWER_BYTES: usize = 1 << 20;

// --- configuration --------------------------------------------------------------------------------

/// Default limit on records in the outbox that wait for the log.
pub const OUTBOX_RECORDS: u64 = 1_000_000;
/// Default limit on the bytes of records in the outbox that wait for the log.
pub const OUTBOX_BYTES: u64 = 1 << 30;
/// Default limit on the age of a record in the outbox.
pub const OUTBOX_AGE: Duration = Duration::from_secs(24 * 3600);
/// Interval at which the configuration files are checked for changes.
pub const CONFIG_POLL: Duration = Duration::from_secs(2);
/// Maximum length of a file that the configuration names, unless another limit here applies, in bytes.
pub const MAX_SMALL_FILE_BYTES: u64 = 1 << 20;
/// Maximum time that one round of submissions to the log may retry.
pub const LOG_PATIENCE: Duration = Duration::from_secs(10);
/// Maximum time for a server to report its supported protocol revisions in `gateway check`.
pub const CHECK_TIME: Duration = Duration::from_secs(15);
/// Maximum length of a server's answer in `gateway check`, in bytes.
pub const MAX_CHECKED_ANSWER_BYTES: usize = 1 << 20;
/// Number of records that are read from the store at once to replay a session. Each may have about 300 KiB.
pub const REPLAY_PAGE: usize = 64;
/// Text for `rationale` and `expected_effect` in an `intent_call` that `explain` makes up.
pub const EXPLAINED_RATIONALE: &str = "explained";
/// Maximum length of a secret key file, in bytes.
pub const MAX_KEY_FILE_BYTES: u64 = 16 << 10;
/// Default wait for a receipt, where a receipt is required.
pub const RECEIPT_WAIT: Duration = Duration::from_secs(10);
/// Default limit on the length of a request body, in bytes (V-11).
pub const BODY_BYTES: usize = 4 << 20;
/// Default limit on the length of a tool call's arguments, in bytes.
pub const ARGUMENT_BYTES: usize = 64 << 10;
/// Largest value that the request body limit can be configured to, in bytes.
pub const MAX_BODY_BYTES: usize = 64 << 20;
/// Minimum of a duration in the configuration file.
pub const SHORTEST_SETTING: Duration = Duration::from_millis(1);
/// Default rate limit per client address, in requests per second (V-11).
pub const REQUESTS_PER_SECOND: u32 = 200;
/// Default burst of the rate limiter: requests at once from one address (V-11).
pub const REQUEST_BURST: u32 = 400;
/// Default limit on open connections.
pub const CONNECTIONS: usize = 16_384;
/// Default limit on open connections per client address (for IPv6: per /64 network). Loopback addresses are exempt.
pub const ADDRESS_CONNECTIONS: usize = 1_024;
/// Default idle time after which a VAP session is closed.
pub const VAP_SESSION_IDLE: Duration = Duration::from_secs(24 * 3600);
/// Default length of a session under an operator's commitment.
pub const OPERATOR_SESSION: SignedDuration = SignedDuration::from_hours(24);
/// Number of calls in a session under the operator's commitment of a first trial (`--dev`).
pub const TRIAL_CALLS: u64 = 1_000;
/// Default timeout for an upstream, from one received byte to the next.
pub const UPSTREAM_TIMEOUT: Duration = Duration::from_secs(300);
/// Default limit on the time from when a call is sent to the end of its answer.
pub const CALL_TIME: Duration = Duration::from_secs(3600);
/// Default limit on the time from when any other request is sent to the end of its answer, unless the timeout for the
/// upstream is longer. It is as long as a person may take to answer a server's question.
pub const REQUEST_TIME: Duration = Duration::from_secs(300);
/// Largest value that the limits on the time of a call and of other requests can be configured to.
pub const MAX_CALL_TIME: Duration = Duration::from_secs(7 * 86_400);
/// Environment variables that a child process inherits by default.
pub const PASSED_ENV: [&str; 8] = ["PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR", "SHELL"];
/// Default share of calls that a judge is asked about at random (V-28).
pub const JUDGE_SAMPLE_RATE: f64 = 0.01;
/// Default timeout of a judge.
pub const JUDGE_TIMEOUT: Duration = Duration::from_secs(5);
/// Default minimum confidence of a judge's answer. Below it the answer counts as unsure.
pub const JUDGE_CONFIDENCE: f64 = 0.5;
/// Default risk score from which on a judge is asked.
pub const JUDGE_THRESHOLD: f64 = 0.7;
/// Default time for which a judge's answer may be reused (V-29).
pub const JUDGE_CACHE: Duration = Duration::from_secs(600);
/// Default cost of one question in the meter `vap.judge`, where answers are counted.
pub const JUDGE_COST: &str = "1";
/// Default limit of `vap.judge` per session, where answers are counted.
pub const JUDGE_CAP: &str = "100";
/// Default reservation for one question in `vap.judge`, where tokens are counted.
pub const JUDGE_TOKENS: &str = "1000";
/// Default limit of `vap.judge` per session, where tokens are counted.
pub const JUDGE_TOKENS_CAP: &str = "100000";
/// Maximum length of a gateway's `issuer` name, in bytes.
pub const MAX_ISSUER_BYTES: usize = 1024;
/// Maximum number of routes of one gateway.
pub const MAX_ROUTES: usize = 256;
/// Maximum number of policy rules of one route.
pub const MAX_RULES: usize = 256;
/// Maximum number of servers behind one route.
pub const MAX_SERVERS: usize = 32;
/// Maximum length of the separator between a server's prefix and a name, in bytes.
pub const MAX_SEPARATOR_BYTES: usize = 4;
/// Maximum length of the prefix of a server's names, in bytes.
pub const MAX_PREFIX_BYTES: usize = 32;
/// Maximum number of meters named in one place.
pub const MAX_METERS: usize = 64;
/// Maximum length of an amount in the configuration, in bytes.
pub const MAX_AMOUNT_BYTES: usize = 64;
/// Maximum length of a JWK set, in a file or at a URL, in bytes.
pub const MAX_JWKS_BYTES: usize = 256 << 10;
/// Maximum nesting depth of a JWK set.
pub const MAX_JWKS_DEPTH: usize = 8;
/// Maximum number of keys in a JWK set.
pub const MAX_JWKS_KEYS: usize = 100;

// --- tokens -----------------------------------------------------------------------------------------

/// Maximum length of an access token, in bytes.
pub const MAX_TOKEN_BYTES: usize = 16 << 10;
/// Maximum nesting depth of a token's header and claims.
pub const MAX_TOKEN_DEPTH: usize = 16;
/// Maximum length of a claim that the gateway reads, in bytes.
pub const MAX_CLAIM_TEXT: usize = 1024;
/// Tolerated difference between an issuer's clock and ours, in seconds.
pub const CLOCK_LEEWAY_SECONDS: i64 = 30;
/// Time after which a fetched JWK set is fetched again.
pub const JWKS_FRESH: Duration = Duration::from_secs(300);
/// Time for which a JWK set is still used while fetching it again fails.
pub const JWKS_STALE: Duration = Duration::from_secs(3600);
/// Minimum pause between fetches that an unknown key id triggers.
pub const JWKS_UNKNOWN_PAUSE: Duration = Duration::from_secs(30);
/// Minimum pause after a failed fetch of a JWK set.
pub const JWKS_FAILED_PAUSE: Duration = Duration::from_secs(2);
/// Timeout for fetching a JWK set.
pub const JWKS_FETCH_TIME: Duration = Duration::from_secs(10);
/// Time for which a server's protected resource metadata (RFC 9728) are answered from memory.
pub const METADATA_FRESH: Duration = Duration::from_secs(60);

// --- messages, connections, answers ---------------------------------------------------------------

/// Maximum number of bytes of client messages held in memory at a time, over all clients.
pub const HELD_MESSAGE_BYTES: usize = 128 << 20;
/// Maximum number of bytes of client messages held per address; loopback addresses are exempt.
pub const HELD_ADDRESS_MESSAGE_BYTES: usize = 32 << 20;
/// Length up to which a client message does not count against [`HELD_MESSAGE_BYTES`], in bytes.
pub const UNCOUNTED_MESSAGE_BYTES: usize = 4 << 10;
/// Maximum number of bytes of server answers held in memory at a time.
pub const HELD_ANSWER_BYTES: usize = 128 << 20;
/// Length up to which a server answer does not count against [`HELD_ANSWER_BYTES`], in bytes.
pub const UNCOUNTED_ANSWER_BYTES: usize = 64 << 10;
/// Maximum nesting depth of a client's message (V-11).
pub const MAX_DEPTH: usize = 128;
/// Maximum nesting depth of a server's message. No other limit bounds it, and the parser recurses.
pub const MAX_ANSWER_DEPTH: usize = 512;

// --- servers that are child processes -------------------------------------------------------------

/// Default limit on child processes of one server: one for each legacy session, and one shared.
pub const CHILDREN: usize = 64;
/// Default memory limit of each process of a child, in bytes.
pub const CHILD_MEMORY_BYTES: u64 = 4 << 30;
/// Default limit on processes and threads of a child's user.
pub const CHILD_PROCESSES: u64 = 2_048;
/// Default limit on open files of each process of a child.
pub const CHILD_OPEN_FILES: u64 = 4_096;
/// Maximum number of files and folders that are allowed to a child one by one, because a neighbouring one is hidden
/// from it.
pub const MAX_CHILD_RULES: usize = 65_536;
/// Maximum number of processes for local clients with one configuration at a time.
pub const LOCAL_STATES: usize = 64;
/// Pause before a stream of a local client's server is opened again, unless the server names another one.
pub const LOCAL_STREAM_PAUSE: Duration = Duration::from_secs(1);
/// Longest pause before such a stream is opened again, after the server has refused it several times.
pub const LOCAL_STREAM_LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// Capacity of the queues of messages to a child and from it.
pub const CHILD_QUEUE: usize = 64;
/// Maximum length of one message of a child, in bytes. A child that writes a longer one is killed.
pub const MAX_LINE_BYTES: usize = 32 << 20;
/// Maximum length of one line on a child's standard error, in bytes. Only the beginning of a longer line is logged.
pub const MAX_STDERR_LINE_BYTES: usize = 16 << 10;
/// Maximum number of characters of a child's line, or of the address to which a server redirects, that are logged.
pub const MAX_LOGGED_LINE: usize = 2_000;
/// Time for a child to exit after its input is closed, and again after the termination signal.
pub const CHILD_GRACE: Duration = Duration::from_secs(2);
/// Maximum time for a child to answer `initialize`.
pub const INITIALIZE_TIME: Duration = Duration::from_secs(60);
/// Maximum time for a child to answer the first `server/discover`. A child that does not is treated as a legacy server.
pub const PROBE_TIME: Duration = Duration::from_secs(10);
/// Maximum wait for the first message of an answer that may be plain JSON. After it, the answer becomes an event
/// stream.
pub const FIRST_MESSAGE_TIME: Duration = Duration::from_secs(2);
/// Silence on an event stream after which a comment is sent as keep-alive.
pub const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Maximum number of bytes of events that a legacy session keeps for resumption.
pub const KEPT_EVENT_BYTES: usize = 1 << 20;
/// Maximum number of events that a legacy session keeps for resumption.
pub const KEPT_EVENTS: usize = 1_000;
/// Maximum number of ended streams whose events a legacy session keeps.
pub const KEPT_STREAMS: usize = 100;
/// Maximum number of bytes of events that wait for a slow client; above it the child has to wait too.
pub const UNREAD_BYTES: usize = 4 << 20;
/// Time that a child waits for a client that does not read, before the client's streams are cut.
pub const STALL_TIME: Duration = Duration::from_secs(30);
/// Idle time after which the child of a legacy session is ended.
pub const SESSION_IDLE: Duration = Duration::from_secs(30 * 60);
/// Minimum idle time before a session is ended early, because the limit on sessions is reached and a new one is
/// requested.
pub const SESSION_SPARED: Duration = Duration::from_secs(10);
/// Maximum number of sessions that one client may start within [`SESSION_START_WINDOW`] at one server.
pub const SESSION_STARTS: usize = 100;
/// Time window of [`SESSION_STARTS`].
pub const SESSION_START_WINDOW: Duration = Duration::from_secs(60);
/// Interval at which idle sessions are looked for.
pub const SESSION_SWEEP: Duration = Duration::from_secs(30);
/// Maximum number of open calls of one legacy session.
pub const SESSION_CALLS: usize = 256;
/// Maximum number of open calls of the shared child.
pub const SHARED_CALLS: usize = 4_096;
/// Time for which the header parameters of the shared child's tools are cached.
pub const CATALOG_TIME: Duration = Duration::from_secs(60);
/// Maximum number of tools in the cache of header parameters (see [`CATALOG_TIME`]).
pub const CATALOG_TOOLS: usize = 10_000;
/// Maximum depth to which a schema is searched for parameters with a header.
pub const SCHEMA_DEPTH: usize = 32;
/// Maximum number of pages of `tools/list` that are requested to fill the cache of header parameters.
pub const CATALOG_PAGES: usize = 100;
/// Maximum number of starts of the shared child within [`RESTART_WINDOW`]; after them it is not restarted for a while.
pub const RESTARTS: usize = 5;
/// Time window of [`RESTARTS`].
pub const RESTART_WINDOW: Duration = Duration::from_secs(60);

// --- the decision writer and the outbox: evidence on its way to disk and to the log ----------------

/// Share of the outbox's limits from which on the operator is warned.
pub const OUTBOX_WARNING: f64 = 0.5;
/// Interval at which the outbox asks the database for waiting records.
pub const OUTBOX_POLL: Duration = Duration::from_secs(1);
/// Bytes of a text (arguments, a message, a result) that are kept in clear in a record's annex. A longer text is cut.
pub const ANNEX_TEXT_BYTES: usize = 16 << 10;
/// As [`ANNEX_TEXT_BYTES`], for a permitted message of a session: what follows in the session cannot be replayed without it.
/// A message with arguments of [`ARGUMENT_BYTES`] fits, and so does a commitment with all patterns that it may have.
pub const ANNEX_PERMITTED_TEXT_BYTES: usize = 128 << 10;
/// As [`ANNEX_TEXT_BYTES`], for denied callers whose identity is unknown.
pub const ANNEX_UNIDENTIFIED_TEXT_BYTES: usize = 1 << 10;
/// Time by which a record that the log refuses as one from the future may be ahead of this gateway's clock, and still be sent
/// again at once. One further ahead is set aside, so that later records do not wait for its time.
pub const AHEAD_TOLERATED: Duration = Duration::from_secs(60);
/// Time that records wait for others, to share one request to the log.
pub const SUBMIT_LINGER: Duration = Duration::from_millis(50);
/// Maximum length of a JSON answer that the gateway must buffer as a whole, in bytes.
pub const MAX_ANSWER_BYTES: usize = 64 << 20;
/// Maximum length of one event of a stream that the gateway inspects, in bytes.
pub const MAX_EVENT_BYTES: usize = 64 << 20;
/// Maximum time for a client to send a request body.
pub const BODY_TIME: Duration = Duration::from_secs(60);
/// Maximum number of concurrent requests on one HTTP/2 connection.
pub const HTTP2_STREAMS: u32 = 250;
/// Maximum wait for requests in flight when the gateway stops.
pub const DRAIN_TIME: Duration = Duration::from_secs(10);
/// Maximum time for which the answer to a legacy call is still read after its client disconnected.
pub const ORPHAN_TIME: Duration = Duration::from_secs(300);
/// Pause before a retry to resume a stream that the server still believes to be taken.
pub const RESUME_PAUSE: Duration = Duration::from_millis(100);
/// Timeout for connecting to a server.
pub const CONNECT_TIME: Duration = Duration::from_secs(10);
/// Time for which an idle connection to a server is kept. It is shorter than the usual server's keep-alive (5 s), so
/// that no call is sent on a connection that is just being closed.
pub const UPSTREAM_IDLE: Duration = Duration::from_secs(4);
/// Maximum number of idle connections that are kept to one server.
pub const UPSTREAM_IDLE_CONNECTIONS: usize = 256;
/// Silence after which a connection to a server is probed.
pub const UPSTREAM_KEEP_ALIVE: Duration = Duration::from_secs(30);
/// Maximum number of messages queued for a slow client; above it the server has to wait too.
pub const MESSAGES_AHEAD: usize = 16;
/// Maximum number of sessions whose state is cached in memory; others are read from the store on demand.
pub const SESSIONS_IN_MEMORY: usize = 10_000;
/// Maximum wait of a call for the settlement of another call of its tool (V-12, R-48).
pub const WAIT_FOR_COST: Duration = Duration::from_secs(300);
/// Maximum time for a decision; after it the call is denied.
pub const DECIDE_TIME: Duration = Duration::from_secs(30);
/// Maximum number of queued decisions.
pub const QUEUED_DECISIONS: usize = 10_000;
/// Maximum number of bytes of the messages of queued decisions.
pub const QUEUED_BYTES: usize = 256 << 20;
/// Maximum number of calls in one session, or under one AgentROA envelope, that wait for the settlement of another call of
/// their tool.
pub const PARKED_SESSION_CALLS: usize = 16;
/// Maximum number of bytes of the messages of the calls that wait in one session or under one envelope (see
/// [`PARKED_SESSION_CALLS`]); the first one may be larger.
pub const PARKED_SESSION_BYTES: usize = 1 << 20;
/// Maximum number of waiting calls over all sessions and envelopes (see [`PARKED_SESSION_CALLS`]).
pub const PARKED_CALLS: usize = 1_024;
/// Maximum number of bytes of the messages of all waiting calls.
pub const PARKED_BYTES: usize = 64 << 20;
/// Maximum number of waiting calls that are decided again in one check.
pub const PARKED_CHECK_CALLS: usize = 16;
/// Maximum number of bytes of messages of the calls that are decided again in one check; the last message may exceed it.
pub const PARKED_CHECK_BYTES: usize = 1 << 20;
/// Maximum number of work items in one commit.
pub const COMMIT_ITEMS: usize = 512;
/// Maximum number of bytes of records in one commit; a single item may produce more.
pub const COMMIT_BYTES: usize = 16 << 20;
/// Maximum number of attempts at a commit, if each one was in doubt and turned out not to have happened.
pub const DOUBT_ATTEMPTS: usize = 3;
/// Maximum wait of an outcome without a waiting caller for a decision to share its commit with.
pub const OUTCOME_LINGER: Duration = Duration::from_millis(10);
/// Maximum number of remembered streams that others change, such as those of tools.
pub const RECENT_STREAMS: u64 = 1_024;
/// Maximum number of remembered names of such streams that do not exist.
pub const RECENT_ABSENCES: u64 = 1_024;
/// Time for which such a stream, or its absence, is remembered. No call is admitted on a state that is not the newest, but a
/// denial that is only counted may be decided on one of this age.
pub const RECENT_STREAM_TIME: Duration = Duration::from_secs(1);
/// Maximum number of remembered claims that were used.
pub const RECENT_CLAIMS: u64 = 16_384;
/// Maximum time in which a batch is decided again while other processes commit first; shorter than [`DECIDE_TIME`].
pub const CONFLICT_TIME: Duration = Duration::from_secs(20);
/// Upper bound of the random wait before such a batch is decided again. It does not grow: the process that commits first does
/// not wait, and would come first again and again.
pub const CONFLICT_LONGEST_WAIT: Duration = Duration::from_millis(10);
/// First wait before a commit in doubt is queried again; it doubles.
pub const DOUBT_FIRST_WAIT: Duration = Duration::from_millis(1);
/// Upper bound of the wait that begins with [`DOUBT_FIRST_WAIT`].
pub const DOUBT_LONGEST_WAIT: Duration = Duration::from_secs(1);
/// First wait before work items that must become durable and could not be committed are retried; it doubles.
pub const RETRY_FIRST_WAIT: Duration = Duration::from_millis(500);
/// Upper bound of the wait that begins with [`RETRY_FIRST_WAIT`].
pub const RETRY_LONGEST_WAIT: Duration = Duration::from_secs(5);
/// Interval at which waiting calls check whether another process made the settlement.
pub const PARKED_POLL: Duration = Duration::from_millis(250);
/// Due time for an entry that never becomes due: the end of the year 9999, in Unix seconds.
pub const FOR_EVER: u64 = 253_402_300_799;
/// Lifetime of an instance's lease. After it, any other instance may take over what the silent instance left open.
pub const LEASE: Duration = Duration::from_secs(60);
/// Interval at which an instance renews its lease.
pub const LEASE_EVERY: Duration = Duration::from_secs(10);
/// Difference between the gateway's clock and that of its database's server that is not reported.
pub const CLOCK_TOLERANCE: Duration = Duration::from_secs(5);

// --- several servers behind one endpoint ----------------------------------------------------------

/// Maximum length of a cursor or event id that packs the positions of several servers, in bytes.
pub const MAX_PACKED_BYTES: usize = 16 << 10;
/// Maximum depth to which capabilities are merged member by member.
pub const UNITED_DEPTH: usize = 32;
/// Maximum wait until all servers have acknowledged a subscription.
pub const ACKNOWLEDGEMENT_TIME: Duration = Duration::from_secs(60);
/// Maximum wait for a server to end its session.
pub const CLOSE_TIME: Duration = Duration::from_secs(10);
/// Maximum length of one server's part of a merged answer, in bytes.
pub const MAX_GATHERED_BYTES: usize = 16 << 20;
/// Maximum number of legacy sessions with several servers.
pub const FEDERATED_SESSIONS: usize = 10_000;
/// Maximum number of them that one client has: the subject of a token, or else a network address. Loopback addresses are
/// exempt.
pub const FEDERATED_CLIENT_SESSIONS: usize = 1_000;
/// Idle time after which a legacy session with several servers is closed at all of them.
pub const FEDERATED_IDLE: Duration = Duration::from_secs(60 * 60);
/// Maximum number of requests per legacy session with several servers for which the gateway remembers the server.
pub const FEDERATED_ASKED: usize = 256;
/// Maximum length of the raw id of a request that is remembered (see [`FEDERATED_ASKED`]), in bytes.
pub const MAX_ASKED_ID_BYTES: usize = 128;
/// Extra time after a question's expiry, before the reservation that its call holds is released.
pub const QUESTION_SLACK: Duration = Duration::from_secs(360);
/// Default time for an approver to answer a question.
pub const APPROVAL_TIME: Duration = Duration::from_secs(900);
/// Largest value that the approval time can be configured to.
pub const MAX_APPROVAL_TIME: Duration = Duration::from_secs(7 * 86_400);
/// Maximum number of open questions to approvers of one process.
pub const OPEN_QUESTIONS: usize = 1_000;
/// Maximum number of open questions of one principal; all unidentified callers count as one principal.
pub const PRINCIPAL_QUESTIONS: usize = 16;
/// Number of questions that an approver's list shows at least, if there are as many.
pub const QUESTIONS_LISTED: usize = 1_000;
/// Interval at which an open question is checked for an answer that another process received.
pub const QUESTION_POLL: Duration = Duration::from_secs(2);
/// Time for which a question is still listed after it was answered, used or left unanswered.
pub const QUESTION_SHOWN: Duration = Duration::from_secs(86_400);
/// Timeout of the approver's command for a response of the gateway.
pub const APPROVALS_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum length of the response to the approver's command, in bytes.
pub const MAX_APPROVALS_ANSWER: usize = 256 << 20;
/// Time for which a retried call of the modern era is held for an approver's answer, before the client is asked to
/// retry again.
pub const APPROVAL_HOLD: Duration = Duration::from_secs(10);
/// Maximum wait of an answer that cost more than was reserved, until its settlement is durable.
pub const SETTLE_TIME: Duration = Duration::from_secs(30);
/// Interval at which an instance that shares its database postpones the due time of its own stream (see
/// [`UNBOUND_DUE`]).
pub const ALIVE_EVERY: Duration = Duration::from_secs(10 * 60);
/// Part of the idle time of a stream, one in so many, by which its end may be late.
pub const DUE_STEPS: u64 = 1_000;
/// Time after which an inactive principal's account is checked for remaining content.
pub const ACCOUNT_DUE: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// As [`ACCOUNT_DUE`], for an account with only a count of denials: their minute, and one more.
pub const DENIALS_DUE: Duration = Duration::from_secs(2 * 60);
/// Length of a result, in bytes, from which on its canonical form is computed in a background task, without delaying
/// the answer.
pub const LARGE_RESULT: usize = 64 << 10;
/// Time after which a stream that should end but has work in progress is checked again.
pub const ENDING_AGAIN_AFTER: Duration = Duration::from_secs(60);
/// Interval at which denials without a record of their own are recorded together.
pub const DENIALS_EVERY: Duration = Duration::from_secs(60);

/// Maximum number of denials per minute of unidentified callers that get a record each. Further ones are only counted.
pub const UNIDENTIFIED_RECORDS: u32 = 10;

/// Maximum number of streams with a separate count of denials; denials in further streams count in the gateway's own
/// stream.
pub const COUNTED_STREAMS: usize = 1_000;

/// Interval at which due streams are looked for.
pub const DUE_EVERY: Duration = Duration::from_secs(10);
/// Page size for streams that are due, calls that a dead process left open, and records to delete.
pub const UPKEEP_PAGE: usize = 256;
/// Maximum number of pages that are forgotten in a row, so that deletion keeps up with new records.
pub const FORGET_TURNS: usize = 64;
/// Time after which another instance ends the stream of a silent instance, where several share a database.
pub const UNBOUND_DUE: Duration = Duration::from_secs(60 * 60);
/// Maximum number of legacy sessions for which the gateway remembers the token that opened them.
pub const MAX_KNOWN_OWNERS: u64 = 100_000;
/// Idle time after which the owner of a legacy session is forgotten (see [`MAX_KNOWN_OWNERS`]); longer than the
/// lifetime of any session of the gateway's own.
pub const KNOWN_OWNER_IDLE: Duration = Duration::from_secs(24 * 3600);
/// Maximum length of a client's text (tool name, session, id) in a span attribute.
pub const MAX_SPAN_TEXT: usize = 128;
/// Maximum length of an answer that is inspected for the outcome of its span, where the status does not show it, in
/// bytes.
pub const MAX_OBSERVED_BYTES: usize = 64 << 10;

// --- tools ----------------------------------------------------------------------------------------

/// Maximum number of pinned tools of one route. A longer list is refused, because a change of the other tools would not
/// be noticed.
pub const PINNED_TOOLS: usize = 4_096;
/// Page size at which commands read tools.
pub const TOOLS_PAGE: usize = 256;
/// Maximum number of cached compiled tool schemas.
pub const COMPILED_SCHEMAS: u64 = 512;
/// Maximum number of calls whose arguments are validated against schemas at a time.
pub const ARGUMENT_CHECKS: usize = 4;
/// Maximum number of tool lists known by their digest, so that an unchanged list is not processed again.
pub const KNOWN_LISTS: u64 = 1_024;
/// Time for which a digest is trusted (see [`KNOWN_LISTS`]): another gateway on the same database may have seen another
/// list since.
pub const KNOWN_LIST_TIME: Duration = Duration::from_secs(10);

/// Maximum length of the name that a client gives itself, in bytes.
pub const MAX_CLIENT_NAME: usize = 256;
/// Maximum length of a session's protocol revision that is remembered, in bytes. Revisions are dates.
pub const MAX_REVISION_BYTES: usize = 10;
/// Maximum number of MCP sessions without VAP that have a record stream of their own at a time; calls of further
/// sessions are recorded in the gateway's own stream.
pub const CLIENT_STREAMS: usize = 1_000;

/// Maximum length of an agent card (A2A), in bytes.
pub const MAX_AGENT_CARD_BYTES: usize = 256 << 10;

/// Longest registry of AgentROA, in bytes.
pub const MAX_REGISTRY_BYTES: usize = 16 << 20;
/// Default interval at which the registry is read again.
pub const REGISTRY_REFRESH: Duration = Duration::from_secs(10);
/// Shortest interval at which the registry is read again because another gateway has a later version.
pub const REGISTRY_BEHIND_WAIT: Duration = Duration::from_secs(1);
/// Difference above which the clock counts as set back.
pub const CLOCK_SET_BACK: SignedDuration = SignedDuration::from_secs(1);
/// Number of verified chains that are cached.
pub const VERIFIED_CHAINS: u64 = 4096;
/// Maximum number of units of budgets in which the cost of a tool under one envelope is kept. In further units it stays
/// unknown, so that calls of the tool run one after another.
pub const PRICED_UNITS: usize = 4;
/// Time for which a registered chain is remembered at least: that of the longest validity of an envelope. A chain that
/// is presented later may be registered again, as the same entry.
pub const CHAIN_REMEMBERED: Duration = Duration::from_secs(24 * 3600);
