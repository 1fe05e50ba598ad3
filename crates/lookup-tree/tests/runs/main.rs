//! Runs and their proofs: the published values, random runs, and answers of a dishonest log.
#![allow(clippy::unwrap_used)]

mod answers;
mod blocks;
mod dishonest;
mod published;
mod stored_nodes;
mod support;
mod trees;
mod vectors;
mod world;
