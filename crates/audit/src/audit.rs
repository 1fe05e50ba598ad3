//! The audit loop: page after page from leaf 0 to the head, each leaf under the policy that was in force for it.

use std::collections::HashSet;

use merkle::{CompactRange, LeafIndex, RootHash, TreeSize};

use crate::claims::PendingClaims;
use crate::entry;
use crate::error::AuditError;
use crate::finding::{AuditFinding, LogRule};
use crate::history::{HeadHistory, check_end, check_unsigned_time, take_correction};
use crate::in_force::InForce;
use crate::ledger::{AuditCounts, AuditLedger, LossExplanation};
use crate::limits::{MAX_ROUNDS, PAGE};
use crate::operators::{HeldFor, OperatorAction, Operators};
use crate::page::{AuditPage, LeafStatus};
use crate::redecide::Redecider;
use crate::source::{AuditHead, AuditSource, LeafRow, SourceError};
use crate::state::{AuditState, AuditStateError};
use crate::tree::TileCheck;
use crate::workers::{Alone, Workers, map};

/// Progress of an audit, as [`Audit::progress`] reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditProgress {
    /// Number of entries audited so far.
    pub entries: u64,
    /// Size of the head, thus the number of entries to audit.
    pub of: u64,
}

/// Result of an audit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditReport {
    /// Tree size of the head up to which the log was audited.
    pub size: TreeSize,
    /// Root hash of the [`AuditHead`] at `size`, as the source gives it.
    pub root: RootHash,
    /// Counters by outcome.
    pub counts: AuditCounts,
    /// Explanations for missing bytes, each with the leaf of the entry that explains them.
    ///
    /// At most [`MAX_EXPLANATIONS`](crate::limits::MAX_EXPLANATIONS) are listed.
    pub explained: Vec<(LeafIndex, LossExplanation)>,
    /// Number of entries whose explanation is not listed in `explained`.
    pub explained_otherwise: u64,
    /// Number of entries with missing bytes that were not matched with an explanation, since
    /// [`MAX_WAITING`](crate::limits::MAX_WAITING) others were waiting already.
    pub unmatched: u64,
    /// Findings in the order in which they were made, at most [`MAX_FINDINGS`](crate::limits::MAX_FINDINGS).
    pub findings: Vec<AuditFinding>,
    /// Number of findings that are not listed.
    pub omitted: u64,
    /// Freezes, holds and releases by operators, in log order, at most [`MAX_ACTIONS`](crate::limits::MAX_ACTIONS).
    pub actions: Vec<OperatorAction>,
    /// Number of operator actions that are not listed.
    pub actions_omitted: u64,
    /// Holds in force at the end, according to the operators' statements.
    pub held: Vec<HeldFor>,
}

impl AuditReport {
    /// Returns `true` if there are no findings and all missing bytes were matched with an explanation.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty() && self.unmatched == 0
    }

    /// Returns the number of entries that were decided again: `same` plus `differ`.
    pub fn decided(&self) -> u64 {
        self.counts.same + self.counts.differ
    }
}

/// An audit in progress: the source, the head to reach, and the [`AuditState`] so far.
pub struct Audit<'s> {
    redecider: Redecider<'s>,
    head: AuditHead,
    state: AuditState,
    in_force: InForce,
    tree: TileCheck,
    heads: HeadHistory,
    /// Leaves of the last page that were decided again without a difference; see [`Audit::agrees`].
    agreed: HashSet<LeafIndex>,
}

impl<'s> Audit<'s> {
    /// Starts at leaf 0, or continues from a stored state. Entries committed after this call are not audited; see
    /// [`settle`](Self::settle).
    ///
    /// # Errors
    /// Returns an [`AuditError`] if the source does not answer, or if the state does not belong to this log.
    pub async fn begin(source: &'s dyn AuditSource, mut state: AuditState) -> Result<Self, AuditError> {
        let head = source.head().await?;
        check_state(source, &head, &mut state).await?;
        check_history(source, &state).await?;
        let in_force = InForce::restore(source, &state.policy).await?;
        let (tree, heads) = (TileCheck::from(state.range()?), HeadHistory::from(&state.history));
        let (redecider, agreed) = (Redecider { source, workers: &Alone }, HashSet::new());
        Ok(Self { redecider, head, state, in_force, tree, heads, agreed })
    }

    /// Sets the [`Workers`] that check signatures in parallel; the default is [`Alone`].
    #[must_use]
    pub fn with_workers(mut self, workers: &'s dyn Workers) -> Self {
        self.redecider.workers = workers;
        self
    }

    /// Returns the number of entries audited and to audit.
    pub fn progress(&self) -> AuditProgress {
        AuditProgress { entries: self.state.next, of: self.head.size.get() }
    }

    /// Returns the state from which a later audit can continue.
    pub fn state(&self) -> &AuditState {
        &self.state
    }

    /// Returns the tree of the leaves audited so far, as the source serves them. Whether a log has signed it is not checked.
    pub fn tree(&self) -> &CompactRange {
        &self.tree.range
    }

    /// Returns `false` if the leaves audited so far give another root than the newest head that was reached. A wrong answer
    /// of the source may be the cause, so that a later audit should not continue from this [state](Self::state).
    pub fn agrees_with_heads(&self) -> bool {
        let is_at_end = self.state.next == self.head.size.get();
        self.state.history.agrees && (!is_at_end || self.tree.range.root() == self.head.root)
    }

    /// Audits the next page. Returns `false` if there is no page left.
    ///
    /// # Errors
    /// Returns the source's [`SourceError`]. The state is then unchanged, and the step can be repeated.
    pub async fn step(&mut self) -> Result<bool, SourceError> {
        let (source, next) = (self.redecider.source, self.state.next);
        let count = page_at(next, self.head.size);
        if count == 0 {
            return Ok(false);
        }
        let rows = rows(source, next, count).await?;
        self.heads.cover(source, TreeSize::new(next + count as u64)).await?;
        self.tree.reach(source, LeafIndex::new(next + count as u64 - 1)).await?;
        let opened = map(self.redecider.workers, &rows, entry::open);
        let mut page = AuditPage::new(next, &opened, &self.heads);
        page.look_up(&self.redecider).await?;
        let mut claims = PendingClaims::of(&self.state.claims);
        let in_force = page.decide(&self.redecider, self.in_force.clone(), &mut claims).await?;
        let claims = claims.into_page();
        let leaves = page.into_leaves();
        // Nothing below can fail.
        self.agreed.clear();
        self.in_force = in_force;
        self.state.claims.add(claims);
        self.state.policy = self.in_force.to_state();
        for (row, leaf) in rows.iter().zip(leaves) {
            self.keep(row, leaf);
        }
        self.state.set_range(&self.tree.range);
        Ok(true)
    }

    /// Returns `true` if the last step decided this entry again and found no difference, so that its issuer and its
    /// content are verified.
    pub fn agrees(&self, leaf: LeafIndex) -> bool {
        self.agreed.contains(&leaf)
    }

    /// Audits entries that were committed since [`begin`](Self::begin), as long as missing bytes are unexplained.
    ///
    /// An erasure statement is committed before the bytes are erased, so that it may stand beyond the first head. At
    /// most [`MAX_ROUNDS`] newer heads are read.
    ///
    /// # Errors
    /// Returns the same errors as [`step`](Self::step).
    pub async fn settle(&mut self) -> Result<(), SourceError> {
        for _ in 0..MAX_ROUNDS {
            let head = self.redecider.source.head().await?;
            if self.state.ledger.waiting.is_empty() || head.size <= self.head.size {
                return Ok(());
            }
            self.head = head;
            while self.step().await? {}
        }
        Ok(())
    }

    /// Returns the result so far. The checks at the end of the log are included once no page is left.
    pub fn report(&self) -> AuditReport {
        let mut ledger = self.state.ledger.clone();
        if self.state.next == self.head.size.get() {
            check_end(&self.head, &self.tree.range, &self.state.history, &mut ledger);
            self.tree.check_independent_root().into_iter().for_each(|finding| ledger.add(finding));
            self.in_force.check_end(&self.head, &mut ledger);
            ledger.close();
        }
        let held = ledger.operators.held();
        let Operators { actions, omitted: actions_omitted, .. } = ledger.operators;
        let AuditLedger { counts, findings, omitted, explained, explained_otherwise, unmatched, .. } = ledger;
        let explained = explained.into_iter().map(|(leaf, it)| (LeafIndex::new(leaf), it)).collect();
        let (size, root) = (self.head.size, self.head.root);
        AuditReport {
            size,
            root,
            counts,
            explained,
            explained_otherwise,
            unmatched,
            findings,
            omitted,
            actions,
            actions_omitted,
            held,
        }
    }

    /// Appends a leaf to the tree and records its outcome in the ledger.
    fn keep(&mut self, row: &LeafRow, leaf: crate::page::LeafOutcome) {
        let ledger = &mut self.state.ledger;
        let wrong = self.tree.append(row);
        let differs = wrong.is_some() || !leaf.findings.is_empty();
        wrong.into_iter().chain(leaf.findings).for_each(|finding: AuditFinding| ledger.add(finding));
        ledger.counts.entries += 1;
        ledger.counts.differ += u64::from(differs);
        if let LeafRow::Kept(evidence) = row {
            let (index, entry) = (evidence.index, evidence.digest);
            if let Some(why) = &evidence.refused_receipt {
                // Not a difference of the decision: the entry counts as decided, and watch lists still read it.
                ledger.add(AuditFinding::of_entry(LogRule::Receipt, index, entry, why));
            }
            match leaf.status {
                LeafStatus::Decided => {
                    ledger.counts.same += u64::from(!differs);
                    if !differs {
                        self.agreed.insert(index);
                    }
                }
                LeafStatus::Unread => {}
                LeafStatus::Undecided => ledger.counts.undecided += 1,
                LeafStatus::WithoutPolicy => ledger.counts.without_policy += 1,
                LeafStatus::Gone(gone) => ledger.gone(entry, index, gone),
                LeafStatus::Dropped { policy, entry } => ledger.dropped(policy, &entry.to_string()),
                LeafStatus::Unknown(by) => ledger.unknown(&by),
            }
            ledger.after_freeze(index, entry);
            if let Some(acted) = &leaf.acts {
                ledger.operators.take(index.get(), leaf.at, acted);
            }
            ledger.erasure(index, entry, &leaf.erases);
            if let Some(correction) = &leaf.corrects {
                take_correction(evidence, correction, &mut self.state.history, ledger);
            }
            match evidence.at {
                Some(at) => check_unsigned_time(evidence, at, &mut self.state.history, ledger),
                None => {
                    let untold = !self.state.indexed && self.heads.at(evidence.index).is_none();
                    ledger.counts.untold_times += u64::from(untold);
                }
            }
        }
        self.heads.pass(&self.tree.range, &mut self.state.history, ledger);
    }
}

/// Returns the number of leaves of the page that starts at `next`. A page ends at the head, and at a multiple of
/// [`PAGE`], thus never spans two tiles.
fn page_at(next: u64, size: TreeSize) -> usize {
    let to_boundary = PAGE - (next % PAGE as u64) as usize;
    size.get().saturating_sub(next).min(to_boundary as u64) as usize
}

async fn rows(source: &dyn AuditSource, next: u64, count: usize) -> Result<Vec<LeafRow>, SourceError> {
    let rows = source.rows(LeafIndex::new(next), count).await?;
    if rows.len() != count || !(next..).zip(&rows).all(|(leaf, row)| row.index().get() == leaf) {
        return Err(SourceError::Damaged(format!("the rows from leaf {next} on are not those asked for")));
    }
    Ok(rows)
}

/// Checks that a state belongs to this log and kind of source. A new state takes on the log's identity.
async fn check_state(
    source: &dyn AuditSource,
    head: &AuditHead,
    state: &mut AuditState,
) -> Result<(), AuditError> {
    let (size, next) = (head.size.get(), state.next);
    if next > size {
        return Err(AuditStateError::Ahead { state: next, log: size }.into());
    }
    if next > 0 && state.indexed != source.keeps_indexes() {
        return Err(AuditStateError::AnotherSource.into());
    }
    state.indexed = source.keeps_indexes();
    if size == 0 {
        return Ok(());
    }
    let Some(LeafRow::Kept(first)) = rows(source, 0, 1).await?.pop() else { return Ok(()) };
    let log = first.digest.to_string();
    match &state.log {
        Some(known) if next > 0 && *known != log => {
            Err(AuditStateError::AnotherLog { state: known.clone(), log }.into())
        }
        _ => {
            state.log = Some(log);
            Ok(())
        }
    }
}

/// Checks that the log still has the root that was audited last. A source without indexes is not asked: a changed root
/// shows at the end of the audit.
async fn check_history(source: &dyn AuditSource, state: &AuditState) -> Result<(), AuditError> {
    let passed = state.history.last.filter(|passed| passed.size == state.next && state.history.agrees);
    let Some(passed) = passed.filter(|_| source.keeps_indexes()) else { return Ok(()) };
    let now = source.heads(passed.batch, 1).await?.first().map(|head| (head.head.batch, head.head.root));
    match now == Some((passed.batch, state.range()?.root())) {
        true => Ok(()),
        false => Err(AuditStateError::AnotherHistory { size: passed.size }.into()),
    }
}
