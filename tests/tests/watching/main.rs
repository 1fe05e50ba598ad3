//! Audits, monitors and witnesses.
#![allow(clippy::unwrap_used)]

mod audit;
mod bundles;
mod monitor;
mod telemetry;
mod watching;
mod witness;
mod witnessed_logs;
