//! Answers of searches, honest and dishonest, and accusations against an index.
#![allow(clippy::unwrap_used)]

mod accusations;
mod attestations;
mod changed;
mod log;
mod outcomes;
