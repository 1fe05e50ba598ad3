//! The command line, as people and scripts use it.
#![allow(clippy::unwrap_used)]

mod accompanying_files;
mod backups;
mod bench;
mod certificates;
mod config;
mod doctor;
mod executions;
mod exit_codes;
mod first_journey;
mod fsck;
mod gateway;
mod handing_in;
mod help;
mod hooks;
mod journeys;
mod log_browse;
mod manners;
mod mcp;
mod policy_admit;
mod records;
mod registry;
mod roa;
mod terminals;
mod vrf;
mod vrf_check;
