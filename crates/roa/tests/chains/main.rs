//! Delegation chains and receipts: verification, enforcement, and the draft's own algorithm beside ours.

#![allow(clippy::unwrap_used)]

mod enforcement;
mod explanations;
mod narrowing;
mod outlines;
mod proofs;
mod pseudocode;
mod receipts;
mod registries;
mod schemas;
mod vectors;
mod verification;
mod world;
