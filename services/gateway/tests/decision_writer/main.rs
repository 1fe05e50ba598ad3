//! The writer before a real log: what was decided is durable before anybody is answered, and reaches the log once.
#![allow(clippy::unwrap_used)]

mod agent;
mod calls;
mod denials;
mod ends;
mod failures;
mod in_force;
mod keeping;
mod keys;
mod neighbours;
mod on_disk;
mod principals;
mod receipts;
mod recovery;
mod setup;
mod sharing;
mod sharing_gateway;
mod site;
#[path = "../stored_states/mod.rs"]
mod stored_states;
mod stores;
