//! Statements of the log's operator: their content types, who signs them, and those that act on the log itself.
//!
//! Five content types are admitted by the operator keys of the policy in force, with the log's `iss` and the log's origin as
//! `sub`, under any policy: policies, erasures, clock corrections, and the two of this module. They hold their own payload
//! and are never erased.
//!
//! * `application/vnd.tabellion.operator-action+json`, an [`Action`]: `freeze` ends the log and is its last entry; `hold` keeps
//!   the bytes of an entry for a case; `release` ends that. Holds and releases of one entry and case are numbered from 0 in
//!   turn, so each is admitted once, and who has the log knows which holds are in force.
//! * `application/vnd.tabellion.operator-approval+json`, an [`Approval`]: another operator agrees to a statement that is still
//!   to come, which it names by content type, SHA-256 of the payload and expiry. A policy may demand such approvals
//!   (`[operator_actions]`).
//!
//! Not here: that nothing follows a freeze (the stores, the sequencer, whoever audits), keeping bytes (the service).

mod action;
mod approval;
mod document;
mod required;
mod rule;
mod sign;

use merkle::LeafIndex;

pub use action::{Action, Held};
pub use approval::{Approval, Pending};
pub use required::Required;
pub(crate) use required::{approval_questions, check_approvals, distinct};
pub use rule::OperatorRule;
pub use sign::{SignError, sign};

use crate::clock_correction::{CLOCK_CORRECTION_CONTENT_TYPE, CLOCK_CORRECTION_RULE};
use crate::erasure::ERASURE_CONTENT_TYPE;
use crate::guard::{Guard, GuardKind};
use crate::policy::{POLICY_CONTENT_TYPE, essence};

/// The content type of an [`Action`].
pub const OPERATOR_ACTION_CONTENT_TYPE: &str = "application/vnd.tabellion.operator-action+json";
/// The content type of an [`Approval`].
pub const OPERATOR_APPROVAL_CONTENT_TYPE: &str = "application/vnd.tabellion.operator-approval+json";
/// The rule that admits a freeze, under any policy.
pub const FREEZE_RULE: &str = "operator-freeze";
/// The rule that admits a hold, under any policy.
pub const HOLD_RULE: &str = "operator-hold";
/// The rule that admits the release of a hold, under any policy.
pub const RELEASE_RULE: &str = "operator-release";
/// The rule that admits an approval, under any policy.
pub const APPROVAL_RULE: &str = "operator-approval";

/// The content types of the operator's statements.
pub const STATEMENTS: [&str; 5] = [
    POLICY_CONTENT_TYPE,
    ERASURE_CONTENT_TYPE,
    CLOCK_CORRECTION_CONTENT_TYPE,
    OPERATOR_ACTION_CONTENT_TYPE,
    OPERATOR_APPROVAL_CONTENT_TYPE,
];
/// The rules by which they are admitted. An operator may have called a rule of his own the same.
const RULES: [&str; 7] =
    ["policy", "erasure", CLOCK_CORRECTION_RULE, FREEZE_RULE, HOLD_RULE, RELEASE_RULE, APPROVAL_RULE];

/// Whether a media type is that of statements of the operator. Such entries are never erased.
pub fn is_operator_statement(media_type: &str) -> bool {
    STATEMENTS.contains(&essence(media_type).as_str())
}

/// Whether statements of the operator are admitted by a rule of this name.
pub fn is_operator_rule(rule: &str) -> bool {
    RULES.contains(&rule)
}

/// What the entry of an action does in the transaction that commits it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The log ends with this entry.
    Freeze,
    /// The bytes of an entry stay for a case.
    Hold {
        /// The entry.
        entry: LeafIndex,
        /// The case.
        case: String,
    },
    /// The case needs them no more.
    Release {
        /// The entry.
        entry: LeafIndex,
        /// The case.
        case: String,
    },
}

/// The claim of the entry that ends a log.
pub fn freeze_guard() -> Guard {
    Guard::new(GuardKind::Freeze, &[])
}

/// The claim of a hold or a release: the entry it is about, the case, and the number.
pub fn hold_guard(entry: &merkle::EntryDigest, case: &str, number: u64) -> Guard {
    Guard::new(GuardKind::HoldNumber, &[entry.as_bytes(), case.as_bytes(), &number.to_be_bytes()])
}
