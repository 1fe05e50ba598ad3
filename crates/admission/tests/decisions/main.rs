//! What is decided about a message, given what was agreed and spent before: every reading that needs a session.
//!
//! The [`world`] keeps sessions as the gateway does, and reads every record of every test as the log would.

#![allow(clippy::unwrap_used)]

mod amendments;
mod approvals;
mod binding;
mod budgets;
mod bypasses;
mod commitments;
mod digests;
mod hostile;
mod judges;
mod machine;
mod persons;
mod policies;
mod postures;
mod records;
mod tasks;
mod world;
