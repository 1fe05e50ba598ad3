//! The transparency service over real HTTP: a whole service on real sockets, its answers and its web pages.
#![allow(clippy::unwrap_used)]

mod access;
mod batches;
mod c2sp;
mod chains;
mod common;
mod conversations;
mod described_answers;
mod detached;
mod evidence;
mod executions;
mod explorer;
mod fairness;
mod inbox;
mod index_heads;
mod lifecycle;
mod policies;
mod quotas;
mod reading;
mod scrapi;
mod search;
mod tail;
mod witnessing;
