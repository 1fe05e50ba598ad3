//! Logs audited: honest ones are clean, and every row that somebody changed is named.

#![allow(clippy::unwrap_used)]

mod clean;
mod edits;
mod log;
mod log_end;
mod mixed;
mod operators;
mod outside;
mod props;
