//! A small witness: it cosigns the checkpoints of logs that it has seen grow (C2SP tlog-witness v1.0.0).
//!
//! Whoever requires cosignatures of witnesses he trusts cannot be shown another history than they saw. All that rests on
//! a witness never forgetting: what it has seen of a log is on disk before its cosignature leaves (`state.rs`), one
//! process works on a state directory, one request on a log (`ledger.rs`), and a state that cannot be read whole
//! ends the start. The decision itself is `tlog::witness::judge`.
//!
//! * `POST /add-checkpoint`: for logs; `GET /<hex sha256(origin)>/checkpoint`: for monitors;
//! * `/livez`, `/readyz`, `/metrics` on a listener of their own.
//!
//! Not here: TLS (a proxy's), bastions, `sign-subtree`, ML-DSA-44 keys, and flags and files of the command line.

mod files;
mod key;
mod ledger;
mod limits;
mod list;
mod listen;
mod metrics;
mod pace;
mod peer;
mod routes;
mod service;
mod state;

pub use durable::WriteError;
pub use key::KeyError;
pub use list::{Log, LogList, NotAList};
pub use service::{Config, InDoubt, ListError, StartError, Witness};
pub use state::StateError;
