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
//! Every decision is a pure function of the statement, its unsigned parts ([`SideData`]), and a [`Policy`]: no I/O, no
//! clock, no randomness, so that anyone can replay a log's decisions. Conditions on the time or on the rest of the log
//! become part of the [`Permit`]: a [`TimeWindow`] and [`Guard`] keys. Start reading at `authenticate.rs`, then
//! `decide.rs`.
//!
//! Modules import only what stands before them in this order: ground (`violation`, `guard`, `answers`, `demands`,
//! `content_types`, `section`, `authenticated`, `profile`, …), profiles (`vrf`, `vap`, `aer`, `agentroa`, `conversation`, `jwk_set`,
//! `opaque`) and their table (`profiles`) with `erasure` and `clock_correction`, `policy`, `authenticate`, `index_head`, `operator`, `record`, `content_check`, `decide`, `policy_statement`.
//!
//! Not here: parsing and cryptography (`scitt`), quotas and tokens (the service), the order of entries (`sequencer`).

pub mod aer;
pub mod agentroa;
mod answers;
mod approvals;
mod authenticate;
mod authenticated;
mod bound_key;
pub mod clock_correction;
mod conditions;
mod content_check;
mod content_types;
pub mod conversation;
mod decide;
mod decision;
mod demands;
pub mod erasure;
mod facts;
mod guard;
pub mod index_head;
pub mod jwk_set;
pub mod limits;
mod opaque;
pub mod operator;
mod operator_signature;
mod outline;
mod pattern;
mod payload;
pub mod policy;
pub mod policy_statement;
mod profile;
mod profiles;
mod record;
mod rule;
mod section;
mod stated_time;
mod statement_facts;
mod time_window;
mod untrusted;
pub mod vap;
mod violation;
pub mod vrf;

pub use answers::{Answers, Questions};
pub use authenticate::{SideData, authenticate};
pub use authenticated::{Authenticated, COLLATERAL_PAYLOAD, COLLATERAL_X5CHAIN, Method};
pub use clock_correction::CLOCK_CORRECTION_CONTENT_TYPE;
pub use content_check::{ContentCheck, check_content};
pub use decide::PolicyInForce;
pub use decision::{Decision, NotPermitted, Permit, Refusal, Undecided};
pub use erasure::ERASURE_CONTENT_TYPE;
pub use guard::{Guard, GuardKind};
pub use opaque::OpaqueRecord;
pub use operator::{OPERATOR_ACTION_CONTENT_TYPE, OPERATOR_APPROVAL_CONTENT_TYPE};
pub use outline::{AdmittedStatement, Outline};
pub use policy::{POLICY_CONTENT_TYPE, Policy, PolicyDigest};
pub use profile::{PayloadHash, TypeProfile, TypedRecord};
pub use record::Record;
pub use search_terms::{Lookup, LookupKind, SearchValues};
pub use stated_time::StatedTime;
pub use statement_facts::entry_facts;
pub use time_window::TimeWindow;
pub use untrusted::Untrusted;
pub use violation::{Place, RuleName, Violation};
