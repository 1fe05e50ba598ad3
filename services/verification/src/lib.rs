//! The verification service (VRF, Appendix A): runs the checks that clients ask for, signs a receipt about each, places
//! it in the chain of the agent, and registers it at a log.
//!
//! Work that fails its checks is a verdict in the answer; HTTP errors are for requests that cannot be run. Untrusted
//! code never runs in this process: a [`RunChecks`](checks::RunChecks) has it run elsewhere, and this process holds the
//! key.
//!
//! | module | content |
//! |---|---|
//! | [`config`] | the configuration file |
//! | `clients` | bearer tokens and quotas |
//! | `jobs` | accepted requests, their runs, and waiting for results |
//! | `queue` | the places of accepted requests and the workers, with a share for each client |
//! | `running` | the jobs that run now |
//! | `chain_signer`, `chain_recovery` | signing, with one writer for each chain, and the end of a chain as the log has it |
//! | `log_outbox` | signed statements that wait for the log |
//! | `routes` | the HTTP interface with its OpenAPI description |
//! | `spans` | spans of requests and jobs |
//! | `service` | start and stop |
//!
//! Not here: checks and their engines (`checks`), tables (`verification-store`), delivery (`outbox`).

mod chain_recovery;
mod chain_signer;
mod clients;
pub mod config;
mod jobs;
pub mod limits;
mod log_outbox;
mod metrics;
mod queue;
mod routes;
mod running;
mod service;
mod spans;
mod store_observer;
mod time;

pub use config::{ClientConfig, Config, LogConfig};
pub use routes::openapi_json;
pub use service::{StartError, VerificationService};
#[cfg(feature = "otlp")]
pub use spans::SPANS;
