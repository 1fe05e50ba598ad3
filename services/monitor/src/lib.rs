//! The monitor: watches transparency logs from outside and trusts none of them, not even one run by the same operator.
//!
//! ```text
//! Config ── one LogWatcher per log ── every interval: a Round ──▶ Sink (alarms, evidence files, metrics, webhooks)
//!               │ state directory: lock, last verified checkpoint as received, right edge of the tree
//!               └ checkpoint → signature → growth → freshness → consistency → entries → other vantage points
//! ```
//!
//! A round fetches the log's checkpoint, checks its signature with a key from the configuration, and proves that it
//! extends the last verified checkpoint. Each check that was not made is reported as not made. An accusation carries
//! the evidence that a third party needs to check it without this process.
//!
//! Start reading at `round.rs` (the result of a round), then `config.rs` (the logs to watch) and `log_watcher.rs` (the
//! checks of a round, in order). Each check has a module:
//!
//! | check | module |
//! |---|---|
//! | growth and consistency | `growth`, with proofs from `consistency` |
//! | freshness | `freshness` |
//! | entries | `entries` |
//! | vantage points | `vantage` |
//! | decisions | `decisions`, which reads the log through `remote_audit_source` |
//! | search index | `index` |
//! | watch lists | `watch_lists` |
//!
//! `scitt_service` watches services without tiles by their receipts; `limits` holds every bound.
//!
//! Not supported: log keys from anywhere but the configuration, HTTP redirects, and logs that deleted their first
//! entries (these are reported as missing). Accusations do not expire: they stand until an operator resets them.

pub mod admin;
pub mod alarm;
pub mod alarm_list;
pub mod check_name;
pub mod clock;
pub mod config;
mod consistency;
mod decisions;
mod entries;
pub mod error;
pub mod evidence;
mod freshness;
mod growth;
mod index;
pub mod limits;
mod log_watcher;
pub mod metrics;
pub mod recorder;
pub mod remote_audit_source;
pub mod round;
mod round_results;
pub mod run;
pub mod scitt_service;
mod signed_checkpoint;
mod spans;
pub mod state;
#[cfg(test)]
mod testing;
mod vantage;
pub mod verdict;
mod watch_lists;
pub mod webhook;

pub use alarm::{Alarm, AlarmKind, AlarmSubject, MonitorExit};
pub use alarm_list::AlarmList;
pub use check_name::CheckName;
pub use config::{Config, Depth, ServiceTarget, Vantage, Watch, WatchedLog};
pub use error::MonitorError;
pub use evidence::{Evidence, Sighting};
pub use log_watcher::LogWatcher;
pub use metrics::Metrics;
pub use recorder::{EvidenceFile, RoundRecorder, last_rounds};
pub use round::{Check, Cost, Outcome, Round, Sink};
pub use run::Monitor;
pub use scitt_service::ServiceWatcher;
#[cfg(feature = "otlp")]
pub use spans::SPANS;
