//! The policy in force at a leaf, which is the newest policy entry below it.

use std::sync::Arc;

use merkle::{EntryDigest, LeafIndex};
use registration::{Policy, PolicyInForce};

use crate::entry::{self, OpenedEntry, ReadableEntry};
use crate::error::AuditError;
use crate::finding::{AuditFinding, LogRule};
use crate::ledger::AuditLedger;
use crate::source::{AuditHead, AuditSource, SourceError};
use crate::state::{self, AuditStateError};

/// The policy in force at the next leaf.
#[derive(Clone, Debug)]
pub(crate) enum InForce {
    /// No policy: the next leaf is leaf 0.
    None,
    /// The policy, and the digest of its entry.
    Policy(Arc<PolicyInForce>, EntryDigest),
    /// The policy entry at this leaf cannot be read.
    Lost(LeafIndex),
}

impl InForce {
    /// Reads the policy entry that a state names.
    ///
    /// # Errors
    /// Returns [`AuditStateError::Policy`] if the entry is not the one that the state names.
    pub(crate) async fn restore(
        source: &dyn AuditSource,
        state: &state::PolicyState,
    ) -> Result<Self, AuditError> {
        let (leaf, entry) = match state {
            state::PolicyState::None => return Ok(InForce::None),
            state::PolicyState::Lost { leaf } => return Ok(InForce::Lost(LeafIndex::new(*leaf))),
            state::PolicyState::At { leaf, entry } => (*leaf, entry),
        };
        let rows = source.rows(LeafIndex::new(leaf), 1).await?;
        let opened = rows.first().map(entry::open);
        let whole = opened.as_ref().and_then(OpenedEntry::whole);
        let restored = whole.filter(|whole| whole.evidence.digest.to_string() == *entry);
        let restored =
            restored.and_then(|whole| Some(InForce::of(whole, entry::policy_in(&whole.statement)?)));
        Ok(restored.ok_or(AuditStateError::Policy { leaf })?)
    }

    /// Puts a policy in force, starting with the leaf after it.
    pub(crate) fn of(whole: &ReadableEntry<'_>, policy: Policy) -> Self {
        let evidence = whole.evidence;
        InForce::Policy(Arc::new(PolicyInForce::new(policy, evidence.index)), evidence.digest)
    }

    pub(crate) fn to_state(&self) -> state::PolicyState {
        match self {
            InForce::None => state::PolicyState::None,
            InForce::Lost(leaf) => state::PolicyState::Lost { leaf: leaf.get() },
            InForce::Policy(policy, entry) => {
                state::PolicyState::At { leaf: policy.leaf().get(), entry: entry.to_string() }
            }
        }
    }

    /// Checks that the log's state row names the leaf of this policy.
    pub(crate) fn check_end(&self, head: &AuditHead, ledger: &mut AuditLedger) {
        let leaf = match self {
            InForce::None => return,
            InForce::Lost(leaf) => *leaf,
            InForce::Policy(policy, _) => policy.leaf(),
        };
        if let Some(named) = head.policy.filter(|named| *named != leaf) {
            let detail = format!("the log's row names leaf {named}, the newest policy is at leaf {leaf}");
            ledger.add(AuditFinding::of_log(LogRule::HeadPolicy, detail));
        }
    }
}

/// Returns `true` if a leaf holds a statement that can be read.
pub(crate) async fn is_readable(source: &dyn AuditSource, leaf: LeafIndex) -> Result<bool, SourceError> {
    let rows = source.rows(leaf, 1).await?;
    Ok(rows.first().is_some_and(|row| entry::open(row).whole().is_some()))
}
