//! Runs and their proofs: the published values, random runs, and answers of a dishonest log.
#![allow(clippy::unwrap_used)]

mod blocks;
mod published;
mod stored_nodes;
mod support;
mod trees;
