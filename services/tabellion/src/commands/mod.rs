//! One module a command: its arguments, what it calls, what it prints.

pub mod audit;
pub mod backup;
pub mod checkpoint;
pub mod completion;
pub mod config;
pub mod entry;
pub mod execution;
pub mod gateway;
pub mod help;
pub mod inbox;
pub mod init;
pub mod issuer;
pub mod key;
pub mod log;
pub mod monitor;
pub mod policy;
pub mod proof;
pub mod receipt;
pub mod register;
pub mod serve;
pub mod statement;
pub mod trust;
pub mod verdict;
pub mod verify;
pub mod vrf;
pub mod witness;
