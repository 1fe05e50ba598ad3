//! The transparency service: SCRAPI (draft-ietf-scitt-scrapi-11) over HTTP, over one log.
//!
//! This crate connects the parts: statements are parsed (`scitt`), authenticated and decided (`registration`), ordered
//! and signed (`sequencer`), stored (`store-*`), and answered with receipts. No rule about statements lives here. Start
//! reading with `routes/entries.rs` (the client's requests), `log/` (registration) and `service/run.rs` (start and stop).
//! `routes/answers.rs` is the only module that maps failures to status and title, and `limits.rs` the only one with
//! bounds.
//!
//! A request passes `server` (listeners, TLS), `edge` (middleware, rate limits, parsing), `routes` or `ui` (the pages for
//! people, rendered by the crate `explorer`), and `log`. Below `log` are `proofs`, `witnessing`, `keys` and `quota`; above it are `index` and `tail` (readers of the log), `operator` and
//! `background`. `service` puts all of them together.
//!
//! Not here: flags, files and environment (the binary makes a [`Config`]).

mod admin_router;
mod background;
mod config;
mod edge;
pub mod fsck;
mod index;
mod keys;
mod limits;
mod log;
mod metrics;
mod operator;
mod proofs;
mod quota;
mod router;
mod routes;
mod run_blocking;
mod sequencer_runtime;
mod service;
mod spans;
pub mod storage;
mod tail;
mod tasks;
mod time;
mod token;
mod ui;
mod view;
mod witnessing;

pub use admin_router::operator_openapi_json;
pub use config::roles::{CallerRole, ClosedTypes, Scope};
pub use config::{
    AccessConfig, ClientToken, Config, Database, InvalidSetting, Network, ReceiptAlgorithm, SigningKeyFiles,
    WitnessConfig,
};
pub use fsck::archived::{ArchiveFacts, ForeignArchive, is_ours};
pub use fsck::facts::LogFacts;
pub use keys::key_files::{KeyFileError, file_of_kid};
pub use keys::signer::{IntroduceError, OtherKey, is_receipt_key};
pub use limits::{BATCH_BYTES_CAP, Limits, Rate, STATEMENT_BYTES_CAP, TailLimits};
pub use log::admission::NotAdmitted;
pub use log::bulk_admission::BulkAdmission;
pub use log::free_space::free_bytes;
pub use log::policies::{PolicyEntry, PolicyUnreadable};
pub use log::state::Identity;
pub use operator::clock_correction::LogTime;
pub use operator::effects::{keep_frozen, restore_holds};
pub use operator::freezing::Frozen;
pub use operator::holds::NextHold;
pub use operator::rotation::{Announce, AnnouncementRow, Compromised, KeyTable};
pub use operator::statements::{LogPolicy, StatementPosition};
pub use router::openapi_json;
pub use sequencer::Halt;
pub use service::policy::PolicyError;
pub use service::run::{ListenAddresses, ReloadError, RunError, Service, run};
pub use service::startup::StartError;
#[cfg(feature = "otlp")]
pub use spans::SPANS;
