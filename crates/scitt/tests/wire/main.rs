//! What goes in as bytes and comes out as bytes: CBOR, statements, receipts, problem details.

mod cbor;
mod mutation;
mod problem;
mod receipt;
mod statement;
mod support;
mod transparent;
mod vectors;
