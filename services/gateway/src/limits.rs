//! Limits of the gateway on size, count and time, in one place. Each owner's in a block of its own.

use std::time::Duration;

// --- questions to people, and the judge -----------------------------------------------------------

/// Characters of a `requestState` that a client brings back, at most.
pub const MAX_REQUEST_STATE_BYTES: usize = 64 << 10;
/// Questions of the gateway's own that may be open at a time.
pub const MAX_OPEN_QUESTIONS: usize = 10_000;
/// Legacy MCP sessions of which it is remembered that the server gave them out, and whether their clients can be asked.
pub const MAX_KNOWN_CLIENTS: u64 = 100_000;
/// How long that is remembered of a session that does nothing.
pub const KNOWN_CLIENT_IDLE: Duration = Duration::from_secs(24 * 3600);
/// How often a stream on which somebody is asked shows a sign of life.
pub const QUESTION_KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Tasks of admitted calls that are remembered at a time.
pub const MAX_KNOWN_TASKS: u64 = 100_000;
/// How long a task is remembered of which nothing is heard.
pub const KNOWN_TASK_IDLE: Duration = Duration::from_secs(24 * 3600);
/// How long an answer is waited for that a legacy server has yet to send on another stream.
pub const LATE_ANSWER_TIME: Duration = Duration::from_secs(600);
/// Calls whose answers are waited for at a time; of more, nobody will know what came.
pub const MAX_OWED_ANSWERS: usize = 10_000;
/// Tasks of one name on one route that are told apart by whose they are.
pub const MAX_NAMESAKES: usize = 16;
/// Answers of which it is remembered what was added to them, should they come again.
pub const MAX_REMEMBERED_ANSWERS: u64 = 4_096;
/// How long a person is given to answer (V-26).
pub const QUESTION_TIME: Duration = Duration::from_secs(300);
/// Bytes of a judge's answer.
pub const MAX_JUDGE_ANSWER_BYTES: usize = 1 << 20;

// --- configuration --------------------------------------------------------------------------------

/// Records that may wait for the log.
pub const OUTBOX_RECORDS: u64 = 1_000_000;
/// Bytes of records that may wait for the log.
pub const OUTBOX_BYTES: u64 = 1 << 30;
/// How old a record that waits for the log may be.
pub const OUTBOX_AGE: Duration = Duration::from_secs(24 * 3600);
/// How often the configuration's files are looked at.
pub const CONFIG_LOOK_EVERY: Duration = Duration::from_secs(2);
/// The longest file that the configuration names, other than those above.
pub const MAX_SMALL_FILE_BYTES: u64 = 1 << 20;
/// How long one round of submitting to the log may keep trying.
pub const LOG_PATIENCE: Duration = Duration::from_secs(10);
/// How long a server may take to say which revisions it speaks.
pub const CHECK_TIME: Duration = Duration::from_secs(15);
/// Bytes of its answer.
pub const MAX_CHECKED_ANSWER_BYTES: usize = 1 << 20;
/// Records that are read from the store at once to decide a session again.
pub const REPLAY_PAGE: usize = 1_000;
/// What an envelope that is made up says.
pub const EXPLAINED_RATIONALE: &str = "explained";
/// The longest file of a secret key.
pub const MAX_KEY_FILE_BYTES: u64 = 16 << 10;
/// How long a receipt is waited for where one is required.
pub const RECEIPT_WAIT: Duration = Duration::from_secs(10);
/// The longest request, unless said (V-11).
pub const BODY_BYTES: usize = 4 << 20;
/// The longest arguments of a tool call, unless said.
pub const ARGUMENT_BYTES: usize = 64 << 10;
/// The longest request that can be allowed.
pub const MAX_BODY_BYTES: usize = 64 << 20;
/// Requests a second and address (V-11).
pub const REQUESTS_PER_SECOND: u32 = 200;
/// Requests at once from one address (V-11).
pub const REQUEST_BURST: u32 = 400;
/// Open connections.
pub const CONNECTIONS: usize = 16_384;
/// Open connections of one address (a network of 64 bits, for IPv6), but for the loopback ones.
pub const ADDRESS_CONNECTIONS: usize = 1_024;
/// A session that nobody used for so long is closed.
pub const VAP_SESSION_IDLE: Duration = Duration::from_secs(24 * 3600);
/// How long a server is waited for, from one byte to the next.
pub const UPSTREAM_TIMEOUT: Duration = Duration::from_secs(300);
/// Variables that children get unless said.
pub const PASSED_ENV: [&str; 8] = ["PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR", "SHELL"];
/// How many calls a judge sees for no reason (V-28).
pub const JUDGE_SAMPLE_RATE: f64 = 0.01;
/// How long a judge may take.
pub const JUDGE_TIMEOUT: Duration = Duration::from_secs(5);
/// A judge less sure than this is not sure.
pub const JUDGE_CONFIDENCE: f64 = 0.5;
/// From this risk on a judge is asked.
pub const JUDGE_THRESHOLD: f64 = 0.7;
/// How long what a judge said may be used again (V-29).
pub const JUDGE_CACHE: Duration = Duration::from_secs(600);
/// What a question costs in `vap.judge`, where answers are counted.
pub const JUDGE_COST: &str = "1";
/// Where `vap.judge` ends for one session, in answers.
pub const JUDGE_CAP: &str = "100";
/// What is reserved for a question in `vap.judge`, where tokens are counted.
pub const JUDGE_TOKENS: &str = "1000";
/// Where `vap.judge` ends for one session, in tokens.
pub const JUDGE_TOKENS_CAP: &str = "100000";
/// The longest name of a gateway.
pub const MAX_ISSUER_BYTES: usize = 1024;
/// Routes of one gateway.
pub const MAX_ROUTES: usize = 256;
/// Rules of one route.
pub const MAX_RULES: usize = 256;
/// Servers behind one route.
pub const MAX_SERVERS: usize = 32;
/// The longest text between a prefix and a name.
pub const MAX_SEPARATOR_BYTES: usize = 4;
/// The longest prefix of a server's names.
pub const MAX_PREFIX_BYTES: usize = 32;
/// Meters named in one place.
pub const MAX_METERS: usize = 64;
/// The longest amount.
pub const MAX_AMOUNT_BYTES: usize = 64;
/// The longest key set, in a file or at a URL.
pub const MAX_JWKS_BYTES: usize = 256 << 10;
/// The deepest nesting in a key set.
pub const MAX_JWKS_DEPTH: usize = 8;
/// Keys of a set.
pub const MAX_JWKS_KEYS: usize = 100;

// --- tokens -----------------------------------------------------------------------------------------

/// The longest access token.
pub const MAX_TOKEN_BYTES: usize = 16 << 10;
/// The deepest nesting in a token.
pub const MAX_TOKEN_DEPTH: usize = 16;
/// The longest claim that is looked at.
pub const MAX_CLAIM_TEXT: usize = 1024;
/// How far an issuer's clock may be from ours.
pub const CLOCK_LEEWAY_SECONDS: i64 = 30;
/// How long an issuer's keys are used before they are fetched again.
pub const JWKS_FRESH: Duration = Duration::from_secs(300);
/// How long they are used when they cannot be fetched again.
pub const JWKS_STALE: Duration = Duration::from_secs(3600);
/// A key that is not known makes us fetch no more often than this.
pub const JWKS_UNKNOWN_PAUSE: Duration = Duration::from_secs(30);
/// A fetch that failed is not tried again for so long.
pub const JWKS_FAILED_PAUSE: Duration = Duration::from_secs(2);
/// How long a fetch may take.
pub const JWKS_FETCH_TIME: Duration = Duration::from_secs(10);
/// How long a server's resource metadata are passed on from memory.
pub const METADATA_FRESH: Duration = Duration::from_secs(60);

// --- messages, connections, answers ---------------------------------------------------------------

/// Bytes of clients' messages that are held at a time, of all clients.
pub const HELD_MESSAGE_BYTES: usize = 128 << 20;
/// The same of one address, but for the loopback ones.
pub const HELD_ADDRESS_MESSAGE_BYTES: usize = 32 << 20;
/// Bytes of a message up to which it is not counted there.
pub const UNCOUNTED_MESSAGE_BYTES: usize = 4 << 10;
/// Bytes of servers' answers that are held at a time.
pub const HELD_ANSWER_BYTES: usize = 128 << 20;
/// Bytes of an answer up to which it is not counted there.
pub const UNCOUNTED_ANSWER_BYTES: usize = 64 << 10;
/// Arrays and objects open at once in a client's message (V-11).
pub const MAX_DEPTH: usize = 128;
/// The same in a server's: nobody else bounds it, and the reader recurses.
pub const MAX_ANSWER_DEPTH: usize = 512;

// --- servers that are child processes -------------------------------------------------------------

/// Children of one server at once, unless the configuration says: one for each legacy session, and one more.
pub const CHILDREN: usize = 64;
/// Bytes of memory of each process of a child, unless the configuration says.
pub const CHILD_MEMORY_BYTES: u64 = 4 << 30;
/// Processes and threads of a child's user, unless the configuration says.
pub const CHILD_PROCESSES: u64 = 2_048;
/// Open files of each process of a child, unless the configuration says.
pub const CHILD_OPEN_FILES: u64 = 4_096;
/// Files and folders that are allowed to a child one by one, since something beside them is hidden from it.
pub const MAX_CHILD_RULES: usize = 65_536;
/// Messages that wait to be written to a child, or to be looked at.
pub const CHILD_QUEUE: usize = 64;
/// Bytes of one message of a child. A server that writes a longer one is ended.
pub const MAX_LINE_BYTES: usize = 32 << 20;
/// Bytes of one line that a child writes to its error output; the rest of it is dropped.
pub const MAX_STDERR_LINE_BYTES: usize = 16 << 10;
/// Characters of a child's line that the log shows.
pub const MAX_SHOWN_LINE: usize = 2_000;
/// How long a child may take to end once its input is closed, and again once it was asked.
pub const CHILD_GRACE: Duration = Duration::from_secs(2);
/// How long a child may take to answer `initialize`.
pub const INITIALIZE_TIME: Duration = Duration::from_secs(60);
/// How long it may take to answer the first `server/discover`; one that does not is taken for a legacy server.
pub const PROBE_TIME: Duration = Duration::from_secs(10);
/// How long the first message of an answer that may be JSON is waited for, before it becomes a stream of events.
pub const FIRST_MESSAGE_TIME: Duration = Duration::from_secs(2);
/// How long a stream of events is silent before a comment shows that it lives.
pub const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Bytes of events that a legacy session keeps for resumption.
pub const KEPT_EVENT_BYTES: usize = 1 << 20;
/// Events that it keeps.
pub const KEPT_EVENTS: usize = 1_000;
/// Streams that are over, and of which it keeps events.
pub const KEPT_STREAMS: usize = 100;
/// Bytes of events that may wait for a client that reads slowly; then the child waits too.
pub const UNREAD_BYTES: usize = 4 << 20;
/// How long a child waits for a client that does not read, before the client's streams are cut.
pub const STALL_TIME: Duration = Duration::from_secs(30);
/// How long a legacy session may do nothing before its child is ended.
pub const SESSION_IDLE: Duration = Duration::from_secs(30 * 60);
/// How long it may at least, when there are as many as there may be and another one is wanted.
pub const SESSION_SPARED: Duration = Duration::from_secs(10);
/// Sessions that one client may start within [`SESSION_START_WINDOW`] at one server.
pub const SESSION_STARTS: usize = 100;
/// See [`SESSION_STARTS`].
pub const SESSION_START_WINDOW: Duration = Duration::from_secs(60);
/// How often idle sessions are looked for.
pub const SESSION_SWEEP: Duration = Duration::from_secs(30);
/// Calls that one legacy session may have open at once.
pub const SESSION_CALLS: usize = 256;
/// Calls that the shared child may have open at once.
pub const SHARED_CALLS: usize = 4_096;
/// How long it is remembered which parameters of the shared child's tools have headers.
pub const CATALOG_TIME: Duration = Duration::from_secs(60);
/// Tools of which it is remembered.
pub const CATALOG_TOOLS: usize = 10_000;
/// How deep a schema is looked at for parameters that have headers.
pub const SCHEMA_DEPTH: usize = 32;
/// Pages of the list of tools that are asked for.
pub const CATALOG_PAGES: usize = 100;
/// Starts of the shared child within [`RESTART_WINDOW`] before it is left alone.
pub const RESTARTS: usize = 5;
/// See [`RESTARTS`].
pub const RESTART_WINDOW: Duration = Duration::from_secs(60);

// --- the desk: evidence on its way to disk and to the log ------------------------------------------

/// The part of the outbox's limits from which on the operator is warned.
pub const OUTBOX_WARNING: f64 = 0.5;
/// How often the database is asked what waits.
pub const OUTBOX_LOOK_EVERY: Duration = Duration::from_secs(1);
/// Bytes of a text (arguments, a message, a result) that are kept in clear beside a record; of a longer one, the beginning.
pub const ANNEX_TEXT_BYTES: usize = 16 << 10;
/// The same of a commitment or an amendment that was accepted: without it nothing of the session can be decided again.
pub const ANNEX_AGREED_TEXT_BYTES: usize = 64 << 10;
/// The same of callers who are denied, and of whom it is not known who they are.
pub const ANNEX_STRANGERS_TEXT_BYTES: usize = 1 << 10;
/// Statements in one request to the log.
pub const SUBMIT_BATCH: usize = 256;
/// Bytes of statements in one request to the log; a single statement may be larger.
pub const SUBMIT_BATCH_BYTES: usize = 4 << 20;
/// The first wait when the log takes nothing; it doubles.
pub const SUBMIT_FIRST_WAIT: Duration = Duration::from_millis(100);
/// The longest such wait, and the longest rest when nothing waits.
pub const SUBMIT_LONGEST_WAIT: Duration = Duration::from_secs(5);
/// How long records wait for others that go to the log with them.
pub const SUBMIT_LINGER: Duration = Duration::from_millis(50);
/// How often records that the log refused for good are tried again all the same.
pub const UNSTICK_EVERY: Duration = Duration::from_secs(600);
/// Bytes of an answer in JSON that somebody has to look at as a whole.
pub const MAX_ANSWER_BYTES: usize = 64 << 20;
/// Bytes of one event of a stream that somebody looks at.
pub const MAX_EVENT_BYTES: usize = 64 << 20;
/// Bytes of all headers of a request.
pub const MAX_HEAD_BYTES: usize = 64 << 10;
/// Headers of a request.
pub const MAX_HEADERS: usize = 128;
/// How long a client may take to send its headers, or to come back on an idle connection.
pub const HEAD_TIME: Duration = Duration::from_secs(30);
/// How long a client may take to send a message.
pub const BODY_TIME: Duration = Duration::from_secs(60);
/// Requests at once on one HTTP/2 connection.
pub const HTTP2_STREAMS: u32 = 250;
/// How long requests in flight are waited for when the gateway stops.
pub const DRAIN_TIME: Duration = Duration::from_secs(10);
/// How long the answer to a call of the legacy era is read to its end after its client went away.
pub const ORPHAN_TIME: Duration = Duration::from_secs(300);
/// How long to wait before asking once more to resume a stream that the server still believes taken.
pub const RESUME_PAUSE: Duration = Duration::from_millis(100);
/// How long a connection to a server may take.
pub const CONNECT_TIME: Duration = Duration::from_secs(10);
/// How long an idle connection to a server is kept. Shorter than common servers do (5 s), so that no call meets one that is
/// just being closed.
pub const UPSTREAM_IDLE: Duration = Duration::from_secs(4);
/// How many idle connections to one server are kept.
pub const UPSTREAM_IDLE_CONNECTIONS: usize = 256;
/// After which silence a connection to a server is probed.
pub const UPSTREAM_KEEP_ALIVE: Duration = Duration::from_secs(30);
/// Messages that may wait for a client that reads slowly, before its server waits too.
pub const MESSAGES_AHEAD: usize = 16;
/// Addresses of which requests are counted one by one; while there are as many, all newcomers share one count.
pub const COUNTED_ADDRESSES: usize = 100_000;
/// Sessions whose state is kept in memory; the others are read when they are needed.
pub const SESSIONS_IN_MEMORY: usize = 10_000;
/// How long a call waits for what another one of its tool costs (V-12).
pub const WAIT_FOR_COST: Duration = Duration::from_secs(300);
/// How long a decision may take before the call is denied.
pub const DECIDE_TIME: Duration = Duration::from_secs(30);
/// Decisions that may wait to be made.
pub const QUEUED_DECISIONS: usize = 10_000;
/// Bytes of their messages.
pub const QUEUED_BYTES: usize = 256 << 20;
/// Calls of one session that may wait for what another one of their tool costs.
pub const PARKED_SESSION_CALLS: usize = 16;
/// Bytes of their messages; the first one may have more.
pub const PARKED_SESSION_BYTES: usize = 1 << 20;
/// Such calls of all sessions.
pub const PARKED_CALLS: usize = 1_024;
/// Bytes of their messages.
pub const PARKED_BYTES: usize = 64 << 20;
/// How many of them are looked at in one go.
pub const PARKED_LOOK_CALLS: usize = 16;
/// Bytes of their messages, but for the last.
pub const PARKED_LOOK_BYTES: usize = 1 << 20;
/// Jobs in one commit.
pub const COMMIT_JOBS: usize = 512;
/// Bytes of records in one commit; a single job may make more.
pub const COMMIT_BYTES: usize = 16 << 20;
/// How often a commit is tried again that turned out not to have happened.
pub const DOUBT_ATTEMPTS: usize = 3;
/// How long an outcome that nobody waits for waits for a decision to share its commit with.
pub const OUTCOME_LINGER: Duration = Duration::from_millis(10);
/// How often a batch is decided again because another process came first.
pub const COMMIT_ATTEMPTS: usize = 32;
/// The first wait before a commit in doubt is asked after again, or a batch is decided again; it doubles.
pub const DOUBT_FIRST_WAIT: Duration = Duration::from_millis(1);
/// The longest such wait.
pub const DOUBT_LONGEST_WAIT: Duration = Duration::from_secs(1);
/// When what is owed is tried again that could not be committed; it doubles.
pub const OWED_AGAIN_AFTER: Duration = Duration::from_millis(500);
/// The longest such wait.
pub const OWED_LONGEST_WAIT: Duration = Duration::from_secs(5);
/// How often calls that wait for a settlement look whether another process made it.
pub const PARKED_LOOK_EVERY: Duration = Duration::from_millis(250);
/// When something is due that never is: the end of the year 9999, in Unix seconds.
pub const FOR_EVER: u64 = 253_402_300_799;
/// How long an instance that says nothing is taken to live. What it left open is anybody's afterwards.
pub const LEASE: Duration = Duration::from_secs(60);
/// How often it says that it lives.
pub const LEASE_EVERY: Duration = Duration::from_secs(10);

// --- several servers behind one endpoint ----------------------------------------------------------

/// Bytes of a cursor, or of the id of an event, that says where several servers were.
pub const MAX_PACKED_BYTES: usize = 16 << 10;
/// How deep capabilities are united, member by member.
pub const UNITED_DEPTH: usize = 32;
/// How long the answers of all servers are waited for, where one answer is made of them.
pub const GATHER_TIME: Duration = Duration::from_secs(60);
/// Bytes of one server's part of such an answer.
pub const MAX_GATHERED_BYTES: usize = 16 << 20;
/// Legacy sessions with several servers.
pub const FEDERATED_SESSIONS: usize = 10_000;
/// How long such a session may do nothing before it is closed with all servers.
pub const FEDERATED_IDLE: Duration = Duration::from_secs(60 * 60);
/// Requests of such a session of which it is known to which server they went.
pub const FEDERATED_ASKED: usize = 256;
/// Bytes of the id of such a request, as it is written.
pub const MAX_ASKED_ID_BYTES: usize = 128;
/// How long somebody can be asked before what holds the call's place is taken back.
pub const QUESTION_SLACK: Duration = Duration::from_secs(360);
/// How long a question can be answered by an approver, unless said otherwise.
pub const APPROVAL_TIME: Duration = Duration::from_secs(900);
/// The longest that it can be set to.
pub const MAX_APPROVAL_TIME: Duration = Duration::from_secs(7 * 86_400);
/// Questions to approvers that one process has open.
pub const OPEN_QUESTIONS: usize = 1_000;
/// The same of one principal; callers of whom nothing is known are one.
pub const PRINCIPAL_QUESTIONS: usize = 16;
/// Questions that an approver is shown at once, at least.
pub const QUESTIONS_LISTED: usize = 1_000;
/// How often a question is looked at that another process may have been told the answer to.
pub const QUESTION_LOOK_EVERY: Duration = Duration::from_secs(2);
/// How long a question is shown that was answered, used or not answered.
pub const QUESTION_SHOWN: Duration = Duration::from_secs(86_400);
/// How long an approver's command waits for the gateway.
pub const APPROVALS_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes of an answer to it.
pub const MAX_APPROVALS_ANSWER: usize = 256 << 20;
/// How long a call of the modern era that came back is held for an approver's answer before the client is told to come again.
pub const APPROVAL_HOLD: Duration = Duration::from_secs(10);
/// How long an answer that cost more than was reserved waits until that is durable.
pub const SETTLE_TIME: Duration = Duration::from_secs(30);
/// How often such an instance says that it lives.
pub const ALIVE_EVERY: Duration = Duration::from_secs(10 * 60);
/// When it is looked whether a principal that nothing was heard of still holds anything.
pub const ACCOUNT_DUE: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// The same where all that it has is a count of denials: their minute, and some more.
pub const DENIALS_DUE: Duration = Duration::from_secs(2 * 60);
/// Bytes of a result from which on its canonical form is made while nobody waits.
pub const LARGE_RESULT: usize = 64 << 10;
/// When a stream that is to end, and in which something is under way, is looked at again.
pub const ENDING_AGAIN_AFTER: Duration = Duration::from_secs(60);
/// How often denials without a record of their own are recorded together.
pub const DENIALS_EVERY: Duration = Duration::from_secs(60);

/// Denials a minute of callers of whom nobody knows who they are that have a record of their own. The others are counted.
pub const STRANGERS_RECORDS: u32 = 10;

/// Streams for which denials are counted apart; those of further ones count in the gateway's own.
pub const COUNTED_STREAMS: usize = 1_000;

/// How often what is due is looked for.
pub const DUE_EVERY: Duration = Duration::from_secs(10);
/// How many of what is due, or was left by a process that died, are taken at a time.
pub const UPKEEP_PAGE: usize = 256;
/// How many times in a row as many records as that are forgotten, so that more go than come.
pub const FORGET_TURNS: usize = 64;
/// When the stream of an instance that says nothing any more, of several that share a database, is ended by another.
pub const UNBOUND_DUE: Duration = Duration::from_secs(60 * 60);
/// Legacy sessions of which it is known whose token opened them.
pub const MAX_KNOWN_OWNERS: u64 = 100_000;
/// How long that is known of a session that does nothing: longer than any of ours lives.
pub const KNOWN_OWNER_IDLE: Duration = Duration::from_secs(24 * 3600);
/// The longest text of a client (a tool's name, a session, an id) that a span holds.
pub const MAX_SPAN_TEXT: usize = 128;
/// The longest `tracestate` that is taken over (what W3C Trace Context asks for at least).
pub const MAX_TRACE_STATE: usize = 512;
/// Bytes of an answer up to which a span is told how it ended, if its status does not say so.
pub const MAX_HEARD: usize = 64 << 10;
/// How long a stop waits until the collector has the last spans.
pub const LAST_SPANS_TIME: Duration = Duration::from_secs(2);

// --- tools ----------------------------------------------------------------------------------------

/// Tools of one route that are pinned. A list with more does not pass, for nobody would notice a change of the others.
pub const PINNED_TOOLS: usize = 4_096;
/// Tools that a command reads at a time.
pub const TOOLS_PAGE: usize = 256;
/// Compiled schemas of tools that are kept at hand.
pub const COMPILED_SCHEMAS: u64 = 512;
/// Calls whose arguments are held against schemas at a time.
pub const ARGUMENT_CHECKS: usize = 4;
/// Lists of tools that are known by their digest, so that one that says what it said before is not read again.
pub const KNOWN_LISTS: u64 = 1_024;
/// How long they are: another gateway on the same database may have seen another list since.
pub const KNOWN_LIST_TIME: Duration = Duration::from_secs(10);

/// Bytes of the name that a client gives itself.
pub const MAX_CLIENT_NAME: usize = 256;
/// MCP sessions without VAP whose calls have a stream of their own at a time; those of further ones are in the gateway's own.
pub const CLIENT_STREAMS: usize = 1_000;
