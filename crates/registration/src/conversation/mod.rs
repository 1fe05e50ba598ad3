//! Conversation records (draft-birkholz-verifiable-agent-conversations-00), `application/agent-conversation`: the
//! messages between an agent and its user, the tool calls, and their results.
//!
//! The recorder (`iss`) signs a record of one session (`sub`) in JSON or CBOR. The draft's registration policy is
//! empty, its CDDL has defects, and matching it by trying alternatives takes exponential time. This is our
//! interpretation of the draft:
//!
//! | # | reading |
//! |---|---|
//! | 1.5 | JSON begins with `{`, CBOR with a map; the signed bytes are the record and need not be canonical. `application/json` only if the policy admits it; `version` is 3.* by default; a trace-format that names a native format is refused |
//! | 1.6-5 | UTF-8, no duplicate members, no lone surrogates, no NaN; nesting ≤ 64; integers within 64 bits |
//! | 1.6-9 | entry ids are unique; attributed paths stay inside; lines count from 1; hashes have their length |
//! | C-1, D6 | a numeric time counts milliseconds; a value below 10^11 was probably meant as seconds and is refused |
//! | C-3 | alg and a key identifier (kid, x5t or x5chain) are required, as in every statement |
//! | C-4 | trace-metadata, by default label 100, is unprotected: it may only repeat the record, and is not stored; times are compared as points in time |
//! | C-5, D2 | receipts in the envelope are stripped, wrapped or not, and have no effect on the decision |
//! | C-6 | the first byte determines the encoding; the facts contain it |
//! | C-7 | content-hash: SHA-256, SHA-384 or SHA-512 of the payload's bytes in hex; with a hash envelope also its digest |
//! | C-8 | maps are open, and members beyond the CDDL are kept and never interpreted; `children` ≤ 32 levels |
//! | D4 | the CDDL's pattern for URLs matches any text: none is ever fetched or displayed as a link |
//! | D5 | the CDDL's pattern for times admits 30 February: accepted with a warning |
//! | D7 | an entry's `type` selects its map; alternatives are not tried |
//! | D8 | tag 4149 around a CBOR record only if the policy admits it |
//! | D10 | a byte string as session-id is indexed as `b64u:` and base64url |
//! | D11 | the maps of file-attribution and trace-metadata are closed |
//!
//! Levels of `children` do not count as nesting, because 32 of them would be more than 64 arrays and maps: see
//! `nesting.rs`. Inconsistencies (an unknown parent, a result without a call, an end before the start, a `sub` that is
//! not the session) are warnings among the facts, never refusals.
//!
//! Start at `record.rs`; the order of its steps is that of the registration policy. `omission.rs` tells what may be left
//! out of a record. Not here: native session formats and their translation, redaction (C-9), and the content of records
//! registered by their hash.

mod cbor;
mod entries;
mod facts;
mod form;
mod json;
mod nesting;
mod node;
pub mod omission;
mod options;
mod profile;
mod record;
mod rule;
mod shape;
mod soundness;
mod time;
mod trace;
mod walk;
mod warnings;

pub use form::Form;
pub use options::ConversationOptions;
pub use record::{Agent, ConversationRecord, Session, SessionId};
pub use rule::ConversationRule;
pub use time::Timestamp;
pub use trace::{TraceMetadata, check_trace_metadata};
pub use warnings::Warnings;

/// The content type of a conversation record.
pub const AGENT_CONVERSATION: &str = "application/agent-conversation";
