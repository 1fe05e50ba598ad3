//! The core of the SDKs for Python and TypeScript: statements, receipts, proofs and VAP messages, as one function from a
//! request in JSON to an answer in JSON ([`answer`]).
//!
//! Python calls it as an extension module (`sdk/python`), TypeScript as a WASI preview 1 module (the program of this
//! crate, which also is the verifier of the web pages). So every language gives the same answers with the same codes.
//! [`OPERATIONS`] lists the operations. Byte strings are unpadded base64url, keys are PEM, and time is an argument.
//!
//! Not here: HTTP, files and clocks, which each language does in its own way.

mod bytes;
mod content;
mod delegations;
mod error;
mod keys;
mod limits;
mod notes;
mod policies;
mod receipts;
mod request;
mod searches;
mod statements;
mod trees;
mod trial_log;
mod vap_messages;

pub use error::CoreError;
pub use limits::MAX_REQUEST_BYTES;
pub use request::{OPERATIONS, answer};
