//! Admission control for tool calls: decides from the declared scope and the spent budget whether a call may go on
//! (VAP, draft 0.1).
//!
//! [`authenticated`] checks the signature of an agent's [message](vap::message) once. A [`session`] is a value with the agreed scope, the
//! budget and the amounts spent. [`decide`] judges one message against one session under the operator's [`rules`] and
//! returns an unsigned [`Verdict`](vap::verdict::Verdict). [`record`] encodes the decision as the bytes that are sent to
//! the log.
//!
//! The crate is pure: nothing here reads a file, a clock or a source of randomness. The same inputs give the same
//! ruling, so a recorded session can be decided again.
//!
//! Not here: HTTP and JSON-RPC, the storage and durability of sessions, and the requests to the judge model or to a
//! human. These are in the gateway.

pub mod approval;
pub mod arguments;
pub mod authenticated;
pub mod cache;
pub mod clarify;
pub mod decide;
pub mod effective;
pub mod explain;
pub mod invocation;
pub mod limits;
pub mod principal;
pub mod record;
pub mod risk;
pub mod rules;
pub mod session;
pub mod signature;
pub mod tool;
