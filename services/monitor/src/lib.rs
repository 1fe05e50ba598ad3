//! The monitor: watches transparency logs from outside, and believes none of them, ours included.
//!
//! ```text
//! Config ── one Watcher per log ── every interval: a Round ──▶ Sink (alarms, evidence files, metrics, webhooks)
//!               │ state directory: lock, last verified checkpoint as it came, right edge of the tree
//!               └ checkpoint → signature → growth → freshness → consistency → entries → other vantage points
//! ```
//!
//! A round fetches the log's checkpoint, checks its signature with a key that was given beforehand, and proves that it
//! extends the last one that was verified. What was not checked is said to be not checked. An accusation carries what a
//! third party needs to check it with this process dead.
//!
//! Start reading at `round.rs` (what comes out), then `config.rs` (what is watched) and `watcher.rs` (what a round does, in
//! its order); `growth.rs` and `extends.rs` are where forks and rollbacks are found, `limits.rs` has every bound.
//!
//! Not here: keys of logs from anywhere but the configuration, redirects, entries of a log that has deleted its first ones
//! (they are missing), and an end of accusations: those stand until somebody has looked at them.

pub mod admin;
pub mod alarm;
mod book;
pub mod config;
mod decisions;
mod entries;
pub mod evidence;
mod extends;
mod freshness;
mod growth;
pub mod keeper;
pub mod limits;
pub mod metrics;
pub mod outside;
pub mod round;
pub mod run;
pub mod scitt_service;
mod seen;
pub mod state;
#[cfg(test)]
mod testing;
mod vantage;
pub mod verdict;
mod watch;
mod watcher;
pub mod webhook;

pub use alarm::{About, Alarm, AlarmKind, Exit};
pub use config::{BadConfig, Config, Depth, Target, Vantage, Watch};
pub use evidence::{Evidence, Sighting};
pub use keeper::{Alarms, EvidenceFile, Keeper, last_rounds};
pub use metrics::Metrics;
pub use round::{Check, CheckName, Cost, Outcome, Round, Sink};
pub use run::{Monitor, MonitorError};
pub use scitt_service::{ServiceTarget, ServiceWatcher};
pub use watcher::Watcher;
