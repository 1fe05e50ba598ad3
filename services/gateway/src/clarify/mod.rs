//! Questions to the person behind the client (VAP section 12, readings V-26 and V-38).
//!
//! In the legacy eras the gateway sends an `elicitation/create` of its own on the open stream ([`asked`]); in the
//! modern era it answers with an `InputRequiredResult`, and its state until the client's retry travels with the client,
//! sealed ([`state`]).
//!
//! Not here: whether to ask, and the words of the question (`admission`); the effect of the answer (`calls`).

pub mod asked;
pub mod state;
