//! Audit of a log: decides every admission again, from the log alone.
//!
//! RFC 9943, section 5.1.1, requires that registration decisions be reproducible. Policies are therefore entries of the
//! log, each entry names the policy and the rule that admitted it, and all inputs of a decision are stored with it. An
//! [`Audit`] reads a log from leaf 0 and decides each entry again, using only what stood below its leaf. A difference
//! is an [`AuditFinding`] with the name of a [`LogRule`] and the row.
//!
//! ```text
//! Source ── rows ──▶ open ── policy in force ──▶ authenticate, read ── questions below i ──▶ decide ──▶ compare
//!                                                                        tiles, history of heads ──▶ compare
//! ```
//!
//! Entries whose bytes were erased, or whose payload the policy does not keep, cannot be decided again. They are
//! counted by the entry that explains them. A rule that reaches no result is also counted, and is not a finding. The audit
//! keeps one page of entries and the right edge of the tree in memory; its [`AuditState`] can be stored to continue
//! later. Start reading at `audit.rs`, then `page.rs` (the policy for each leaf) and `entry.rs` (one entry).
//!
//! Not here: threads (the caller's [`Workers`]), files and HTTP; quotas and tokens, which control access and decide no
//! admission; refusals, which leave no trace on the log; and the consistency of the log's storage beyond decisions
//! (`store::fsck`).

mod audit;
mod claims;
mod entry;
mod erasure;
mod error;
mod finding;
mod history;
mod in_force;
mod ledger;
pub mod limits;
mod operators;
mod page;
mod redecide;
mod source;
mod state;
mod stored;
mod tree;
mod workers;

pub use audit::{Audit, AuditProgress, AuditReport};
pub use error::AuditError;
pub use finding::{AuditFinding, LogRule};
pub use ledger::{AuditCounts, Explains, LossExplanation};
pub use operators::{HeldFor, OperatorAction};
pub use source::{AuditHead, AuditSource, EntryEvidence, HistoryHead, LeafRow, LookUpAnswer, SourceError};
pub use state::{AuditState, AuditStateError};
pub use stored::StoreSource;
pub use workers::{Alone, Workers};
