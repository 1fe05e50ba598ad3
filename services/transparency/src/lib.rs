//! The transparency service: SCRAPI over HTTP.
pub mod admin;
pub mod body;
pub mod config;
pub mod doors;
pub mod house;
#[cfg(test)]
mod house_tests;
pub mod limits;
pub mod listen;
pub mod media;
pub mod metrics;
pub mod problem;
pub mod published_keys;
pub mod receipts;
pub mod signer;
pub mod tiles;
pub mod tls;

pub use config::{Config, Database, Doors, KeyFiles, Mistake, Network, ReceiptAlgorithm, TlsFiles, Token};
pub use limits::{Limits, Rate};
