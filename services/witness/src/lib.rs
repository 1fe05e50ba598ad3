//! A small witness that cosigns the checkpoints of logs after verifying their growth (C2SP tlog-witness v1.0.0).
//!
//! A relying party that requires cosignatures of trusted witnesses cannot be shown a different history than they saw.
//! This depends on a witness never forgetting: the checkpoint is on disk before its cosignature is sent (`state.rs`), a
//! state directory is used by one process, requests for a log are serialized (`ledger.rs`), and an unreadable state
//! aborts the start. The decision itself is `tlog::witness::judge`.
//!
//! * `POST /add-checkpoint` for logs, and `GET /<hex sha256(origin)>/checkpoint` for monitors;
//! * `/livez`, `/readyz` and `/metrics` on a separate listener;
//! * `/openapi.json` on both: the description of both.
//!
//! Not here: TLS (a reverse proxy's task), bastions, `sign-subtree`, ML-DSA-44 keys, and the command line.

mod files;
mod key;
mod ledger;
mod limits;
mod list;
mod metrics;
mod pace;
mod routes;
mod service;
mod spans;
mod state;

pub use durable::WriteError;
pub use key::WitnessKeyError;
pub use list::{Log, LogList, NotAList};
pub use service::{Config, InDoubt, ListError, StartError, Witness};
#[cfg(feature = "otlp")]
pub use spans::SPANS;
pub use state::StateError;
