//! The objects of the Verifiable Agent Protocol (VAP, draft 0.1), each read and written by one type.
//!
//! [`message`] has the messages of an agent, [`verdict`] the signed answer to one, and [`audit`] the records of a
//! gateway's decisions and their outcomes. A [`reason`] is a code, a
//! [`digest`] is in VAP's notation, and [`glob`] has the patterns over tool names.
//!
//! The crate is pure: nothing here reads a file, a clock or a source of randomness.
//!
//! Not here: whether a message is accepted (`admission`), and whether a statement with such an object is registered
//! (`registration`).

pub mod audit;
pub mod digest;
pub mod exact;
pub mod glob;
pub mod limits;
pub mod message;
pub mod name;
pub mod reason;
pub mod record_key;
pub mod verdict;
mod word;

pub use jose::BrokenRule;
