//! Every admission of a log decided again, from the log alone.
//!
//! RFC 9943, section 5.1.1, wants decisions reproducible: policies stand on the log, each entry names the policy and the
//! rule that admitted it, and whatever a decision needed is kept beside it. An [`Audit`] walks a log from leaf 0 and
//! asks every question once more, restricted to what stood below each leaf. The same answer, or a [`Finding`] with a
//! name and a row.
//!
//! ```text
//! Source ── rows ──▶ open ── policy in force ──▶ authenticate, read ── questions below i ──▶ decide ──▶ compare
//!                                                                        tiles, history of heads ──▶ compare
//! ```
//!
//! Bytes that were erased, or payloads that a policy does not keep, cannot be decided again: they are counted, by the
//! entry that explains them. A rule that comes to no answer is counted too; it is no finding. The walk holds one page of
//! entries and the right edge of the tree, and its [`State`] can be kept to go on another time. Start reading at
//! `audit.rs`, then `page.rs` (which policy for which leaf) and `entry.rs` (one entry).
//!
//! Not here: threads (the caller's [`Workers`]), files, HTTP, quotas and tokens, which open doors and decide nothing;
//! refusals, which leave no trace on the log; and the log's storage where it holds no decision (`store::fsck`).

mod audit;
mod claims;
mod desk;
mod entry;
mod erasure;
mod finding;
mod history;
mod in_force;
mod ledger;
pub mod limits;
mod operators;
mod page;
mod source;
mod state;
mod stored;
mod tree;
mod workers;

pub use audit::{Audit, AuditError, Progress, Report};
pub use finding::{Finding, Rule};
pub use ledger::{Counts, Explains, Explanation};
pub use operators::{HeldFor, OperatorAction};
pub use source::{Answer, Evidence, Head, Row, SignedHead, Source, SourceError};
pub use state::{BadState, State};
pub use stored::Stored;
pub use workers::{Alone, Workers};
