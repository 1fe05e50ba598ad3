//! The service over HTTP, with checks that run nothing and a real log.
#![allow(clippy::unwrap_used)]

mod answers;
mod chains;
mod description;
mod fake_runner;
mod site;
