//! The descriptions of the APIs, as others' software reads them: each is the one that is checked in, two validators find
//! nothing wrong, and clients are generated from it, compile, and call the running daemon.

mod clients;
mod gateway;
mod log;
mod monitor;
mod registry;
mod validators;
mod verification;
mod witness;
