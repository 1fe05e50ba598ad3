//! The policy in force at a leaf: the newest policy entry below it, and nothing else.

use std::sync::Arc;

use merkle::{EntryDigest, LeafIndex};
use registration::{Policy, PolicyInForce};

use crate::entry::{self, Opened, Whole};
use crate::finding::{Finding, Rule};
use crate::ledger::Ledger;
use crate::source::{Head, Source, SourceError};
use crate::state::{self, BadState};

/// The policy at the next leaf.
#[derive(Clone, Debug)]
pub(crate) enum InForce {
    /// None before leaf 0.
    None,
    /// This one.
    Policy(Arc<PolicyInForce>, EntryDigest),
    /// It stood at this leaf, and cannot be read.
    Lost(LeafIndex),
}

impl InForce {
    /// The one that a state names.
    pub(crate) async fn restore(
        source: &dyn Source,
        state: &state::Policy,
    ) -> Result<Self, crate::audit::AuditError> {
        let (leaf, entry) = match state {
            state::Policy::None => return Ok(InForce::None),
            state::Policy::Lost { leaf } => return Ok(InForce::Lost(LeafIndex::new(*leaf))),
            state::Policy::At { leaf, entry } => (*leaf, entry),
        };
        let rows = source.rows(LeafIndex::new(leaf), 1).await?;
        let opened = rows.first().map(entry::open);
        let whole = opened.as_ref().and_then(Opened::whole);
        let restored = whole.filter(|whole| whole.evidence.digest.to_string() == *entry);
        let restored = restored.and_then(|whole| Some(InForce::of(whole, entry::carried(&whole.statement)?)));
        Ok(restored.ok_or(BadState::Policy { leaf })?)
    }

    /// This policy, from the leaf after it on.
    pub(crate) fn of(whole: &Whole<'_>, policy: Policy) -> Self {
        let evidence = whole.evidence;
        InForce::Policy(Arc::new(PolicyInForce::new(policy, evidence.index)), evidence.digest)
    }

    pub(crate) fn to_state(&self) -> state::Policy {
        match self {
            InForce::None => state::Policy::None,
            InForce::Lost(leaf) => state::Policy::Lost { leaf: leaf.get() },
            InForce::Policy(policy, entry) => {
                state::Policy::At { leaf: policy.leaf().get(), entry: entry.to_string() }
            }
        }
    }

    /// The leaf that the log's own row should name.
    pub(crate) fn check_end(&self, head: &Head, ledger: &mut Ledger) {
        let leaf = match self {
            InForce::None => return,
            InForce::Lost(leaf) => *leaf,
            InForce::Policy(policy, _) => policy.leaf(),
        };
        if let Some(named) = head.policy.filter(|named| *named != leaf) {
            let detail = format!("the log's row names leaf {named}, the newest policy is at leaf {leaf}");
            ledger.add(Finding::of_log(Rule::HeadPolicy, detail));
        }
    }
}

/// Whether a leaf holds a statement that can be read.
pub(crate) async fn is_readable(source: &dyn Source, leaf: LeafIndex) -> Result<bool, SourceError> {
    let rows = source.rows(leaf, 1).await?;
    Ok(rows.first().is_some_and(|row| entry::open(row).whole().is_some()))
}
