//! Statements of the log's operator: their content types, their signature, and the actions on the log itself.
//!
//! Any policy admits five content types if they are signed with one of its operator keys, with the log's `iss` and the
//! log's origin as `sub`: policies, erasures, clock corrections, and the two of this module. Their payload is attached,
//! and they are never erased.
//!
//! * `application/vnd.tabellion.operator-action+json`, an [`Action`]: `freeze` is the last entry of a log;
//!   `hold` prevents the erasure of an entry for a case; `release` ends the hold. Holds and releases of one entry and
//!   case are numbered from 0 in turn, so each number is admitted once, and a copy of the log shows which holds are in
//!   force.
//! * `application/vnd.tabellion.operator-approval+json`, an [`Approval`]: another operator agrees to a statement
//!   that will be registered later, named by content type, SHA-256 of the payload and expiry. A policy may require such approvals
//!   (`[operator_actions]`).
//!
//! Not here: the check that no entry follows a freeze (stores, sequencer, auditors), and retention of held bytes (the
//! service).

mod action;
mod approval;
mod document;
mod rule;
mod sign;

use merkle::LeafIndex;

pub use crate::content_types::{
    OPERATOR_ACTION_CONTENT_TYPE, OPERATOR_APPROVAL_CONTENT_TYPE, STATEMENTS, is_operator_statement,
};
pub use crate::operator_signature::SignError;
pub use crate::policy::Required;
pub use action::{Action, Held};
pub use approval::{Approval, Pending};
pub use rule::OperatorRule;
pub use sign::sign;

use crate::clock_correction::CLOCK_CORRECTION_RULE;
use crate::guard::{Guard, GuardKind};
use crate::index_head::INDEX_HEAD_RULE;

/// The rule that admits a freeze, under any policy.
pub const FREEZE_RULE: &str = "operator-freeze";
/// The rule that admits a hold, under any policy.
pub const HOLD_RULE: &str = "operator-hold";
/// The rule that admits the release of a hold, under any policy.
pub const RELEASE_RULE: &str = "operator-release";
/// The rule that admits an approval, under any policy.
pub const APPROVAL_RULE: &str = "operator-approval";

/// The names of the rules that admit operator statements. An operator's own rule may have one of these names, too.
const RULES: [&str; 8] = [
    "policy",
    "erasure",
    CLOCK_CORRECTION_RULE,
    FREEZE_RULE,
    HOLD_RULE,
    RELEASE_RULE,
    APPROVAL_RULE,
    INDEX_HEAD_RULE,
];

/// Returns whether a rule of this name admits operator statements.
pub fn is_operator_rule(rule: &str) -> bool {
    RULES.contains(&rule)
}

/// The change that the entry of an [`Action`] applies in the transaction that commits it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The log accepts no further entries.
    Freeze,
    /// The bytes of an entry are held for a case.
    Hold {
        /// The leaf of the held entry.
        entry: LeafIndex,
        /// The name of the case.
        case: String,
    },
    /// The hold of an entry for a case ends.
    Release {
        /// The leaf of the released entry.
        entry: LeafIndex,
        /// The name of the case.
        case: String,
    },
}

/// The guard of the entry that freezes a log.
pub fn freeze_guard() -> Guard {
    Guard::new(GuardKind::Freeze, &[])
}

/// The guard of a hold or release: entry, case and number.
pub fn hold_guard(entry: &merkle::EntryDigest, case: &str, number: u64) -> Guard {
    Guard::new(GuardKind::HoldNumber, &[entry.as_bytes(), case.as_bytes(), &number.to_be_bytes()])
}
