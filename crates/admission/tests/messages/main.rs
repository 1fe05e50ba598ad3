//! What agents send and what they get back: every reading that can be decided by looking at one message.

#![allow(clippy::unwrap_used)]

mod chain;
mod exactness;
mod invocations;
mod patterns;
mod reading;
mod sample;
mod signatures;
mod slots;
mod verdicts;
