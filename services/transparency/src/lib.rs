//! The transparency service: SCRAPI (draft-ietf-scitt-scrapi-11) over HTTP, over one log.
//!
//! This crate connects the parts: statements are parsed (`scitt`), authenticated and decided (`registration`), ordered
//! and signed (`sequencer`), stored (`store-*`), and answered with receipts. No rule about statements lives here. Start
//! reading with `routes/entries.rs` (the client's requests), `log.rs` (registration) and `service.rs` (start and stop).
//! `answers.rs` is the only module that maps failures to status and title, and `limits.rs` the only one with bounds.
//!
//! Not here: flags, files and environment (the binary makes a [`Config`]).

mod access;
mod admin;
mod admin_socket;
mod admission;
mod answers;
mod app;
mod archived;
mod aside;
mod background;
mod body;
mod clock_correction;
mod config;
mod connections;
mod doors;
mod dry_run;
mod equivocation;
mod erasure;
mod free_space;
mod freezing;
pub mod fsck;
mod holds;
mod house;
#[cfg(test)]
mod house_tests;
mod inbox;
mod index;
mod intake;
mod issuer_door;
mod issuer_quota;
mod key_files;
mod limits;
mod listen;
mod log;
mod meaning;
mod media;
mod metrics;
mod multipart;
mod opening;
mod operators;
mod policy;
mod policy_history;
mod problem;
mod published_keys;
mod receipts;
mod rotation;
mod routes;
mod service;
mod signer;
pub mod storage;
mod tail;
mod tiles;
mod tls;
mod watch;
mod witnessing;

pub use access::{CallerRole, Scope};
pub use admission::{Current, PolicyUnreadable};
pub use app::openapi_json;
pub use archived::{ArchiveMeaning, NotOurs, is_ours};
pub use clock_correction::LogTime;
pub use config::{
    ClosedTypes, Config, Database, Doors, KeyFiles, Mistake, Network, ReceiptAlgorithm, TlsFiles, Token,
    Witnesses,
};
pub use freezing::Frozen;
pub use holds::NextHold;
pub use key_files::{KeyFileError, file_of_kid};
pub use limits::{BATCH_BYTES_CAP, Limits, Rate, STATEMENT_BYTES_CAP, TailLimits};
pub use log::Identity;
pub use meaning::LogMeaning;
pub use opening::StartError;
pub use operators::{LogPolicy, Placed, keep_frozen, restore_holds};
pub use policy::PolicyError;
pub use rotation::{Announce, AnnouncementRow, Compromised, KeyTable};
pub use sequencer::Halt;
pub use service::{Addresses, ReloadError, RunError, Service, run, stop_signal};
pub use signer::{IntroduceError, OtherKey, is_receipt_key};
pub use tls::TlsError;
