//! Measures a log: rate, latency and cost of registrations, compared with limits of the machine in the same run.
//!
//! Absolute rates on a shared machine mean little. Each round of [`measure()`] therefore measures, one after the other, raw
//! inserts of the same bytes, an HTTP server without work to do, perhaps another service that takes the same requests,
//! and the service itself with all checks on: signatures are verified, and each response is durable and contains its
//! receipt. The figures to build on are ratios within a round, and the CPU time per registration, which other load on
//! the machine hardly changes.
//!
//! [`BenchOptions`] says what is measured, [`BenchResult`] what was found (JSON, the input of [`compare`]), [`report`]
//! writes it as text and as an HTML page. [`grow`] makes a large log, so that growth can be measured, and [`pages`] measures
//! the explorer's pages on it.
//!
//! Not here: whether responses are right (black-box tests), the command line (`tabellion bench`), the latency that a
//! gateway adds (`gateway_bench`).

pub mod compare;
mod database;
pub mod echo;
mod existing;
mod figures;
mod goals;
pub mod grow;
mod http;
mod limits;
mod load;
mod log_round;
mod machine;
mod measure;
mod numbers;
mod options;
pub mod pages;
mod peer;
mod postgres;
mod process;
mod prometheus;
mod raw;
pub mod report;
mod result;
mod service;
mod statements;
mod stats;
mod yardsticks;

pub use measure::measure;
pub use options::{BenchDatabase, BenchOptions, OfferedRate, PeerService};
pub use result::{BenchResult, UnreadableResult};
pub use service::NewLog;
pub use statements::{content_types, is_content_type};
