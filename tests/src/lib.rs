//! Black-box tests: the program is run as an operator runs it, and called over its network interfaces.
//!
//! A [`Log`] is the data that outlives a process: keys, policy, database, pin. A [`Service`] is one process that serves
//! it, and can be killed, paused and restarted. A [`Recorder`] records all promises of the service and, at the end,
//! checks that each was kept (invariants I1 to I8 of the fault matrix).
//!
//! These tests share no code with the service above the level of bytes: `scitt` and `merkle` read receipts and rebuild
//! trees, and HTTP is spoken over a plain socket, so that malformed requests can be sent, too.
//!
//! Not here: the architecture and supply-chain rules (their tests need no program), and measurements (`tabellion bench`).

pub mod audit_trail;
mod binary;
pub mod cli;
pub mod collector;
mod daemon;
mod database;
mod events;
mod faulty_service;
mod findings;
pub mod gateway;
mod guarded;
pub mod http;
mod http_cache;
mod load;
mod log;
mod lying_log;
pub mod mcp;
mod monitor;
pub mod multipart;
mod network;
mod nginx;
pub mod onslaught;
mod others;
mod owned_child;
mod postgres;
mod power;
mod python;
mod recorder;
mod registry;
mod reverse_proxy;
pub mod sdk;
mod service;
mod soak;
mod storage_faults;
mod tally;
mod tamper;
mod terminal;
pub mod transcript;
pub mod vap;
mod verdict;
mod verification;
mod waiting;
mod watch;
mod witness;
mod wrong_clock;

pub use binary::path as program;
pub use collector::SpanCollector;
pub use daemon::Daemon;
pub use database::Database;
pub use events::{Coming, Event};
pub use faulty_service::{FaultyService, ForwardedRequest};
pub use gateway::{Gateway, GatewayProcess, Scene};
pub use guarded::Guarded;
pub use http::{Answer, Connection, free_address};
pub use http_cache::{HttpCache, is_cached};
pub use load::{Load, resolve_what_was_left_open};
pub use log::{AUDITOR_TOKEN, Log, OPERATOR_TOKEN, Ran};
pub use lying_log::LyingLog;
pub use mcp::{McpAnswer, McpClient, Verdict};
pub use monitor::MonitorProcess;
pub use network::{Break, Cable, Host, Network};
pub use others::{
    Other, chromium, deployment_tool, everything_over_stdio, fixture_over_stdio, node, node_folder,
    oldest_node, python_server, rug_pull_over_stdio, run_node,
};
pub use owned_child::OwnedChild;
pub use postgres::{Cluster, fresh_database, shared_server, sql, try_sql};
pub use power::{Loss, Lost, Power};
pub use python::{python, run_python, run_python_on, run_python_with_a2a_1};
pub use recorder::{Outcome, Recorder};
pub use registry::RegistryProcess;
pub use reverse_proxy::ReverseProxy;
pub use service::Service;
pub use soak::{Soak, Soaked};
pub use storage_faults::{Call, EVERY_CALL, Errno, Fault, SmallDisk, StorageFaults};
pub use tally::{count, seed};
pub use tamper::{Cell, Holds};
pub use terminal::on_a_terminal;
pub use vap::Agent;
pub use verification::VerificationProcess;
pub use waiting::until;
pub use watch::{Looked, Watch};
pub use witness::{WITNESS, WitnessHome, WitnessProcess};
pub use wrong_clock::WrongClock;

/// Declares a test that runs on both databases, as `name::sqlite` and `name::postgres`.
#[macro_export]
macro_rules! on_both_databases {
    ($($(#[$attribute:meta])* fn $name:ident($log:ident: Log) $body:block)+) => {
        $($(#[$attribute])* mod $name {
            #[allow(unused_imports)]
            use super::*;

            fn scenario($log: $crate::Log) $body

            #[test]
            fn sqlite() {
                scenario($crate::Log::sqlite());
            }

            #[test]
            fn postgres() {
                scenario($crate::Log::postgres());
            }
        })+
    };
}
