//! Conversation records (draft-birkholz-verifiable-agent-conversations-00), `application/agent-conversation`: what an agent
//! and its human said, which tools were called, and what came of it.
//!
//! The recorder (`iss`) signs a record of one session (`sub`) in JSON or CBOR. The draft's registration policy is empty, its
//! CDDL has defects, and a choice-by-choice reading of it takes exponential time; these are our readings:
//!
//! | # | reading |
//! |---|---|
//! | 1.5 | JSON begins with `{`, CBOR with a map; the signed bytes are the record and need not be canonical. `application/json` by policy only; `version` is 3.* unless the policy says otherwise; a trace-format that names a native format is refused |
//! | 1.6-5 | UTF-8, no duplicate members, no lone surrogates, no NaN; nesting ≤ 64; integers within 64 bits |
//! | 1.6-9 | entry ids are unique; attributed paths stay inside; lines count from 1; hashes have their length |
//! | C-1, D6 | a numeric time counts milliseconds; one below 10^11 was meant as seconds and is refused |
//! | C-3 | alg and a key's name (kid, x5t or x5chain) are required, as of every statement |
//! | C-4 | trace-metadata, label 100 unless the policy says otherwise, is unprotected: it may only repeat, and is not stored; times agree as points in time |
//! | C-5, D2 | receipts in the envelope are stripped, wrapped or not, and the record is not judged by them |
//! | C-6 | which form it is, the first byte says; facts tell |
//! | C-7 | content-hash: SHA-256, SHA-384 or SHA-512 of the payload's bytes in hex; beside a hash envelope also its digest |
//! | C-8 | maps are open, and what they hold beyond the CDDL is kept and never acted on; `children` ≤ 32 levels |
//! | D4 | the CDDL's pattern for URLs matches any text: none is ever followed or shown as a link |
//! | D5 | the CDDL's pattern for times admits 30 February: kept, with a warning |
//! | D7 | an entry's `type` chooses its map; nothing is tried |
//! | D8 | tag 4149 around a CBOR record by policy only |
//! | D10 | a byte string as session-id is found as `b64u:` and base64url |
//! | D11 | the maps of file-attribution and trace-metadata are closed |
//!
//! Levels of `children` do not count as nesting, because 32 of them would be more than 64 arrays and maps: see `nesting.rs`.
//! What is odd but said (a parent that is not there, a result without a call, an end before the start, a `sub` that is not
//! the session) is a warning among the facts and never a refusal.
//!
//! Start at `record.rs`; the order of its steps is that of the digest's registration policy. Not here: native session
//! formats and their translation, redaction (C-9), and records registered by their hash, which nobody can look into.

mod cbor;
mod entries;
mod form;
mod json;
mod nesting;
mod node;
mod options;
mod record;
mod rule;
mod shape;
mod soundness;
mod telling;
mod time;
mod trace;
mod walk;
mod warnings;

pub use form::Form;
pub(crate) use node::bytes_as_text;
pub use options::ConversationOptions;
pub(crate) use options::{check, check_hash_envelope, read_json};
pub use record::{Agent, ConversationRecord, Session, SessionId};
pub use rule::ConversationRule;
pub use time::Timestamp;
pub use trace::{TraceMetadata, check_trace_metadata};
pub use warnings::Warnings;

/// The content type of a conversation record.
pub const AGENT_CONVERSATION: &str = "application/agent-conversation";
/// What a policy may take beside it (`accept_application_json`).
pub(crate) const JSON: &str = "application/json";
