//! What the tests of this crate share.
#![allow(dead_code, clippy::unwrap_used)] // each test file is a program of its own and uses its share

pub mod proxy;
pub mod server;
