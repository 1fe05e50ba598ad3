//! Decides, from what was declared and what was spent, whether a tool call may go on (VAP, draft 0.1).
//!
//! What an agent sends is read by [`message`] and proven by [`signature`]; what a session agreed to and has spent is a
//! [`session`], a value; [`decide`] judges one message against one session under an operator's [`rules`] and answers with
//! an unsigned [`verdict`]; [`record`] writes what was decided as the bytes that go to the log.
//!
//! Pure: nothing here reads a file, a clock or a source of randomness. The same inputs give the same ruling, which is
//! what lets a recorded session be decided again.
//!
//! Not here: HTTP and JSON-RPC, who keeps a session and when it is durable (the gateway's desk), and how a judge or a
//! human is asked.

pub mod approval;
pub mod cache;
pub mod clarify;
pub mod decide;
pub mod decimal;
pub mod digest;
pub mod effective;
pub mod exact;
pub mod explain;
pub mod glob;
pub mod invocation;
pub mod limits;
pub mod message;
pub mod principal;
pub mod reason;
pub mod record;
pub mod risk;
pub mod rules;
pub mod session;
pub mod signature;
pub mod tool;
pub mod verdict;
