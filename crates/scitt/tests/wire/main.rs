//! What goes in as bytes and comes out as bytes: CBOR, statements, receipts, problem details.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod cbor;
mod header;
mod ledger;
mod log;
mod mutation;
mod problem;
mod receipt;
mod statement;
mod support;
mod transparent;
mod vectors;
