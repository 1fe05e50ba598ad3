//! The walk: page after page from leaf 0 to the head, under the policy that was in force at each leaf.

use std::collections::HashSet;

use merkle::{LeafIndex, RootHash, TreeSize};

use crate::claims::Ahead;
use crate::desk::Desk;
use crate::entry;
use crate::finding::Finding;
use crate::history::{Heads, check_end, check_told, take_correction};
use crate::in_force::InForce;
use crate::ledger::{Counts, Explanation, Ledger};
use crate::limits::{MAX_ROUNDS, PAGE};
use crate::operators::{HeldFor, OperatorAction, Operators};
use crate::page::{Page, Status};
use crate::source::{Head, Row, Source, SourceError};
use crate::state::{BadState, State};
use crate::tree::Tree;
use crate::workers::{Alone, Workers, map};

/// How far an audit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Entries audited.
    pub entries: u64,
    /// Entries to audit.
    pub of: u64,
}

/// What an audit found out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The size that was audited.
    pub size: TreeSize,
    /// The root that the head has at that size.
    pub root: RootHash,
    /// How many of what.
    pub counts: Counts,
    /// What explains that bytes are gone, by its leaf.
    pub explained: Vec<(LeafIndex, Explanation)>,
    /// Entries explained by others than those.
    pub explained_otherwise: u64,
    /// Entries whose bytes are gone and that were not matched with an explanation: there were too many at once.
    pub unmatched: u64,
    /// What is wrong, in the order found.
    pub findings: Vec<Finding>,
    /// Findings that are not listed.
    pub omitted: u64,
    /// What operators did: freezes, holds, releases, in order.
    pub actions: Vec<OperatorAction>,
    /// Actions that are not listed.
    pub actions_omitted: u64,
    /// The holds in force by the operators' statements.
    pub held: Vec<HeldFor>,
}

impl Report {
    /// Whether nothing is wrong, and nothing is gone that was not matched with what explains it.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty() && self.unmatched == 0
    }

    /// How many entries were decided again.
    pub fn decided(&self) -> u64 {
        self.counts.same + self.counts.differ
    }
}

/// Why an audit cannot begin or go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuditError {
    /// The source.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The state.
    #[error(transparent)]
    State(#[from] BadState),
}

/// An audit on its way.
pub struct Audit<'s> {
    desk: Desk<'s>,
    head: Head,
    state: State,
    in_force: InForce,
    tree: Tree,
    heads: Heads,
    /// Leaves of the last page that are as told.
    agreed: HashSet<LeafIndex>,
}

impl<'s> Audit<'s> {
    /// Begins with leaf 0, or goes on where a state stands. What is committed later is not audited.
    ///
    /// # Errors
    /// When the source does not answer, or the state is not one of this log.
    pub async fn begin(source: &'s dyn Source, mut state: State) -> Result<Self, AuditError> {
        let head = source.head().await?;
        check_state(source, &head, &mut state).await?;
        check_history(source, &state).await?;
        let in_force = InForce::restore(source, &state.policy).await?;
        let (tree, heads) = (Tree::from(state.range()?), Heads::from(&state.history));
        let (desk, agreed) = (Desk { source, workers: &Alone }, HashSet::new());
        Ok(Self { desk, head, state, in_force, tree, heads, agreed })
    }

    /// Has signatures checked by these.
    #[must_use]
    pub fn with_workers(mut self, workers: &'s dyn Workers) -> Self {
        self.desk.workers = workers;
        self
    }

    /// How far it is.
    pub fn progress(&self) -> Progress {
        Progress { entries: self.state.next, of: self.head.size.get() }
    }

    /// Where it stands: to go on from there another time.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Audits the next page. `false`: there is none.
    ///
    /// # Errors
    /// When the source does not answer. Nothing of the page is counted then, and the step may be taken again.
    pub async fn step(&mut self) -> Result<bool, SourceError> {
        let (source, next) = (self.desk.source, self.state.next);
        let count = page_at(next, self.head.size);
        if count == 0 {
            return Ok(false);
        }
        let rows = rows(source, next, count).await?;
        self.heads.cover(source, TreeSize::new(next + count as u64)).await?;
        self.tree.reach(source, LeafIndex::new(next + count as u64 - 1)).await?;
        let opened = map(self.desk.workers, &rows, entry::open);
        let mut page = Page::new(next, &opened, &self.heads);
        page.look_up(&self.desk).await?;
        let mut claims = Ahead::of(&self.state.claims);
        let in_force = page.decide(&self.desk, self.in_force.clone(), &mut claims).await?;
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

    /// Whether the last step decided this entry again, and nothing about it was otherwise than told: who wrote it and what it
    /// says are known.
    pub fn agrees(&self, leaf: LeafIndex) -> bool {
        self.agreed.contains(&leaf)
    }

    /// Goes on to what was committed meanwhile while bytes are gone that nothing has explained: who erases commits the
    /// statement that says so first.
    ///
    /// # Errors
    /// As [`step`](Self::step).
    pub async fn settle(&mut self) -> Result<(), SourceError> {
        for _ in 0..MAX_ROUNDS {
            let head = self.desk.source.head().await?;
            if self.state.ledger.waiting.is_empty() || head.size <= self.head.size {
                return Ok(());
            }
            self.head = head;
            while self.step().await? {}
        }
        Ok(())
    }

    /// What was found out, once there is no page left.
    pub fn report(&self) -> Report {
        let mut ledger = self.state.ledger.clone();
        if self.state.next == self.head.size.get() {
            check_end(&self.head, &self.tree.range, &self.state.history, &mut ledger);
            self.in_force.check_end(&self.head, &mut ledger);
            ledger.close();
        }
        let held = ledger.operators.held();
        let Operators { actions, omitted: actions_omitted, .. } = ledger.operators;
        let Ledger { counts, findings, omitted, explained, explained_otherwise, unmatched, .. } = ledger;
        let explained = explained.into_iter().map(|(leaf, it)| (LeafIndex::new(leaf), it)).collect();
        let (size, root) = (self.head.size, self.head.root);
        Report {
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

    /// Enters a leaf in the tree and in the books.
    fn keep(&mut self, row: &Row, leaf: crate::page::Leaf) {
        let ledger = &mut self.state.ledger;
        let wrong = self.tree.append(row);
        let differs = wrong.is_some() || !leaf.findings.is_empty();
        wrong.into_iter().chain(leaf.findings).for_each(|finding: Finding| ledger.add(finding));
        ledger.counts.entries += 1;
        ledger.counts.differ += u64::from(differs);
        if let Row::Kept(evidence) = row {
            let (index, entry) = (evidence.index, evidence.digest);
            match leaf.status {
                Status::Decided => {
                    ledger.counts.same += u64::from(!differs);
                    if !differs {
                        self.agreed.insert(index);
                    }
                }
                Status::Unread => {}
                Status::Undecided => ledger.counts.undecided += 1,
                Status::WithoutPolicy => ledger.counts.without_policy += 1,
                Status::Gone(gone) => ledger.gone(entry, index, gone),
                Status::Dropped { policy, entry } => ledger.dropped(policy, &entry.to_string()),
                Status::Unknown(by) => ledger.unknown(&by),
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
                Some(at) => check_told(evidence, at, &mut self.state.history, ledger),
                None => {
                    let untold = !self.state.indexed && self.heads.at(evidence.index).is_none();
                    ledger.counts.untold_times += u64::from(untold);
                }
            }
        }
        self.heads.pass(&self.tree.range, &mut self.state.history, ledger);
    }
}

/// How many leaves the page at this leaf has: none beyond the head, none of two tiles.
fn page_at(next: u64, size: TreeSize) -> usize {
    let to_boundary = PAGE - (next % PAGE as u64) as usize;
    size.get().saturating_sub(next).min(to_boundary as u64) as usize
}

async fn rows(source: &dyn Source, next: u64, count: usize) -> Result<Vec<Row>, SourceError> {
    let rows = source.rows(LeafIndex::new(next), count).await?;
    if rows.len() != count || !(next..).zip(&rows).all(|(leaf, row)| row.index().get() == leaf) {
        return Err(SourceError::Damaged(format!("the rows from leaf {next} on are not those asked for")));
    }
    Ok(rows)
}

/// Whether a state is one of this log; a new one becomes one.
async fn check_state(source: &dyn Source, head: &Head, state: &mut State) -> Result<(), AuditError> {
    let (size, next) = (head.size.get(), state.next);
    if next > size {
        return Err(BadState::Ahead { state: next, log: size }.into());
    }
    if next > 0 && state.indexed != source.keeps_indexes() {
        return Err(BadState::AnotherSource.into());
    }
    state.indexed = source.keeps_indexes();
    if size == 0 {
        return Ok(());
    }
    let Some(Row::Kept(first)) = rows(source, 0, 1).await?.pop() else { return Ok(()) };
    let log = first.digest.to_string();
    match &state.log {
        Some(known) if next > 0 && *known != log => {
            Err(BadState::AnotherLog { state: known.clone(), log }.into())
        }
        _ => {
            state.log = Some(log);
            Ok(())
        }
    }
}

/// Whether the log still has the root that was audited last. From outside, the root at the end shows it.
async fn check_history(source: &dyn Source, state: &State) -> Result<(), AuditError> {
    let passed = state.history.last.filter(|passed| passed.size == state.next && state.history.agrees);
    let Some(passed) = passed.filter(|_| source.keeps_indexes()) else { return Ok(()) };
    let now = source.heads(passed.batch, 1).await?.first().map(|head| (head.head.batch, head.head.root));
    match now == Some((passed.batch, state.range()?.root())) {
        true => Ok(()),
        false => Err(BadState::AnotherHistory { size: passed.size }.into()),
    }
}
