//! Requests, the four tiers with a fake runner, and receipts.
#![allow(clippy::unwrap_used)]

mod deadline;
mod fake;
mod properties;
mod receipts;
mod requests;
mod solvers;
mod tests;
mod tier_one;
