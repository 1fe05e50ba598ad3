//! Registration of statements: from a parsed statement to a [`Permit`], or to the rule that refuses it.
//!
//! Implements RFC 9943, section 5.1.1. Each step consumes the result of the previous step, so no step can be skipped:
//!
//! ```text
//! SignedStatement ── authenticate ──▶ Authenticated ── Record::read ──▶ Record ── decide ──▶ Permit | Refusal
//!                                                                                         ▲
//!                                                          Answers of the log to Questions ┘
//! ```
//!
//! Every decision is a pure function of the statement, its unsigned parts ([`Beside`]), and a [`Policy`]: no I/O, no
//! clock, no randomness, so that anyone can replay a log's decisions. Conditions on the time or on the rest of the log
//! become part of the [`Permit`]: a [`TimeWindow`] and [`Guard`] keys. Start reading at `authenticate.rs`, then
//! `decide.rs`.
//!
//! Not here: parsing and cryptography (`scitt`), quotas and tokens (the service), the order of entries (`sequencer`).

pub mod aer;
mod answers;
mod authenticate;
pub mod clock_correction;
mod conditions;
pub mod conversation;
mod decide;
mod decision;
pub mod erasure;
mod facts;
mod guard;
pub mod jwk_set;
pub mod limits;
mod lookups;
pub mod operator;
mod outline;
mod payload;
pub mod policy;
mod record;
mod rule;
mod untrusted;
pub mod vap;
mod violation;
pub mod vrf;

pub use answers::{Answers, Questions};
pub use authenticate::{Authenticated, Beside, COLLATERAL_PAYLOAD, COLLATERAL_X5CHAIN, Method, authenticate};
pub use clock_correction::CLOCK_CORRECTION_CONTENT_TYPE;
pub use decide::PolicyInForce;
pub use decision::{Decision, NotPermitted, Permit, Refusal, TimeWindow, Undecided};
pub use erasure::ERASURE_CONTENT_TYPE;
pub use guard::{Guard, GuardKind};
pub use lookups::{Lookup, LookupKind, Lookups};
pub use operator::{OPERATOR_ACTION_CONTENT_TYPE, OPERATOR_APPROVAL_CONTENT_TYPE};
pub use outline::Outline;
pub use policy::{POLICY_CONTENT_TYPE, Policy, PolicyDigest};
pub use record::Record;
pub use untrusted::Untrusted;
pub use violation::{Place, RuleName, Violation};
