//! One page of the log: finds the policy in force for each of its leaves, and decides them.

use merkle::{EntryDigest, LeafIndex};
use registration::PolicyInForce;
use registration::clock_correction::ClockCorrection;
use registration::operator::is_operator_rule;

use crate::claims::{PendingClaims, UnknownClaims, Unread};
use crate::entry::{self, AdmittedEntry, LostPart, OpenedEntry, ReadableEntry, Redecided, SignedAction};
use crate::finding::{AuditFinding, LogRule, quote};
use crate::history::HeadHistory;
use crate::in_force::{InForce, is_readable};
use crate::redecide::{CaseOutcome, EntryCase, Redecider, claim};
use crate::source::{EntryEvidence, SourceError};

/// Facts of an erased entry: an empty JSON object.
const NO_FACTS: &str = "{}";

/// Outcome of one leaf.
#[derive(Debug)]
pub(crate) struct LeafOutcome {
    pub(crate) status: LeafStatus,
    pub(crate) findings: Vec<AuditFinding>,
    /// Entries that this entry, an erasure statement, lists as erased.
    pub(crate) erases: Vec<EntryDigest>,
    /// The correction of the log's clock that this entry states.
    pub(crate) corrects: Option<ClockCorrection>,
    /// The operator action that this entry states.
    pub(crate) acts: Option<SignedAction>,
    /// Commit time in Unix seconds, if known.
    pub(crate) at: Option<u64>,
}

/// Extent to which a leaf could be decided again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LeafStatus {
    /// The entry was decided again.
    Decided,
    /// The row is [`OpenedEntry::Lost`] or [`OpenedEntry::Broken`]; a finding describes it.
    Unread,
    /// A rule reached no result within its bounds.
    Undecided,
    /// The policy that was in force cannot be read.
    WithoutPolicy,
    /// Bytes of the entry are gone, although the policy in force keeps them.
    Gone(LostPart),
    /// The payload was not kept, as the policy at this leaf prescribes.
    Dropped { policy: LeafIndex, entry: EntryDigest },
    /// The decision depends on unknown claims of this entry.
    Unknown(Unread),
}

/// Up to [`PAGE`](crate::limits::PAGE) leaves, with their outcomes so far.
pub(crate) struct AuditPage<'r> {
    first: u64,
    opened: &'r [OpenedEntry<'r>],
    at: Vec<Option<u64>>,
    leaves: Vec<LeafOutcome>,
}

impl<'r> AuditPage<'r> {
    pub(crate) fn new(first: u64, opened: &'r [OpenedEntry<'r>], heads: &HeadHistory) -> Self {
        let at = (first..).zip(opened).map(|(leaf, opened)| {
            let at_row = opened.evidence().and_then(|evidence| evidence.at);
            at_row.or_else(|| heads.at(LeafIndex::new(leaf)))
        });
        Self { first, at: at.collect(), leaves: opened.iter().map(unread).collect(), opened }
    }

    pub(crate) fn into_leaves(self) -> Vec<LeafOutcome> {
        let timed = |(leaf, at): (LeafOutcome, Option<u64>)| LeafOutcome { at, ..leaf };
        self.leaves.into_iter().zip(self.at).map(timed).collect()
    }

    /// Adds a finding for each entry whose ID does not lead to it.
    pub(crate) async fn look_up(&mut self, redecider: &Redecider<'_>) -> Result<(), SourceError> {
        for finding in redecider.check_look_ups(self.opened).await? {
            let position = finding.leaf.unwrap_or(self.first) - self.first;
            self.leaves[position as usize].findings.push(finding);
        }
        Ok(())
    }

    /// Decides every leaf under the policy in force for it. Returns the policy in force after the page.
    pub(crate) async fn decide(
        &mut self,
        redecider: &Redecider<'_>,
        from: InForce,
        claims: &mut PendingClaims<'_>,
    ) -> Result<InForce, SourceError> {
        let (mut in_force, mut position) = (from, 0);
        if !redecider.source.keeps_indexes() {
            self.enter(claims);
        }
        while position < self.opened.len() {
            let end = self.end_of_segment(position);
            in_force = match in_force {
                InForce::None => {
                    let end = position + 1;
                    let next = self.first_leaf(redecider, claims).await?;
                    position = end;
                    next
                }
                InForce::Lost(leaf) => {
                    let next = self.without_policy(position..end, claims).unwrap_or(InForce::Lost(leaf));
                    position = end;
                    next
                }
                InForce::Policy(policy, entry) => {
                    let (end, lost) = self.until_lost(redecider, position..end, &policy).await?;
                    let next = self.under(redecider, position..end, (&policy, entry), claims).await?;
                    position = end;
                    match (lost, next) {
                        (Some(lost), _) => self.lose(lost, position),
                        (None, Some(next)) => next,
                        (None, None) => InForce::Policy(policy, entry),
                    }
                }
            };
        }
        Ok(in_force)
    }

    /// Records the leaf of every entry, and the entries whose claims are unknown.
    fn enter(&self, claims: &mut PendingClaims<'_>) {
        for (leaf, opened) in (self.first..).map(LeafIndex::new).zip(self.opened) {
            let digest = opened.evidence().map(|evidence| evidence.digest);
            digest.into_iter().for_each(|digest| claims.enter(digest, leaf));
            match opened {
                OpenedEntry::Whole(_) => {}
                OpenedEntry::Gone(_) => claims.miss(leaf, digest, UnknownClaims::Erasable),
                OpenedEntry::Lost | OpenedEntry::Broken(..) => {
                    claims.miss(leaf, digest, UnknownClaims::Anything)
                }
            }
        }
    }

    /// Returns the end of the segment under one policy: one past the next statement that may be a policy.
    fn end_of_segment(&self, from: usize) -> usize {
        let policy = self.opened[from..].iter().position(OpenedEntry::may_be_policy);
        policy.map_or(self.opened.len(), |position| from + position + 1)
    }

    /// Decides leaf 0 by the policy that it carries.
    async fn first_leaf(
        &mut self,
        redecider: &Redecider<'_>,
        claims: &mut PendingClaims<'_>,
    ) -> Result<InForce, SourceError> {
        let opened = self.opened;
        let whole = opened[0].whole().and_then(|whole| Some((whole, entry::policy_in(&whole.statement)?)));
        let Some((whole, policy)) = whole else { return Ok(self.lose(LeafIndex::new(0), 0)) };
        let cases = [EntryCase { whole, at: self.at[0] }];
        let mut outcomes = [CaseOutcome::Decided(entry::first(whole, self.at[0]))];
        match redecider.source.keeps_indexes() {
            true => redecider.check_guards(&cases, &mut outcomes).await?,
            false => claim(whole, &mut outcomes[0], claims),
        }
        let in_force = PolicyInForce::new(policy.clone(), LeafIndex::new(0));
        let [outcome] = outcomes;
        self.settle(0, outcome, &in_force, whole.evidence.digest);
        Ok(InForce::of(whole, policy))
    }

    /// Marks entries whose policy cannot be read. A policy among them still takes effect.
    fn without_policy(
        &mut self,
        places: std::ops::Range<usize>,
        claims: &mut PendingClaims<'_>,
    ) -> Option<InForce> {
        let opened = self.opened;
        for position in places.clone() {
            if let Some(whole) = opened[position].whole() {
                self.leaves[position].status = LeafStatus::WithoutPolicy;
                claims.miss(whole.evidence.index, Some(whole.evidence.digest), UnknownClaims::Anything);
            }
        }
        successor(&opened[places.end - 1])
    }

    /// Decides entries under a policy that can be read. Returns the next policy if the last entry carries one.
    async fn under(
        &mut self,
        redecider: &Redecider<'_>,
        places: std::ops::Range<usize>,
        (policy, entry): (&PolicyInForce, EntryDigest),
        claims: &mut PendingClaims<'_>,
    ) -> Result<Option<InForce>, SourceError> {
        let opened = self.opened;
        let whole: Vec<(usize, &ReadableEntry<'_>)> =
            places.clone().filter_map(|position| Some((position, opened[position].whole()?))).collect();
        let cases: Vec<EntryCase<'_>> =
            whole.iter().map(|(position, whole)| EntryCase { whole, at: self.at[*position] }).collect();
        let outcomes = redecider.decide(&cases, policy, claims).await?;
        for ((position, _), outcome) in whole.into_iter().zip(outcomes) {
            self.settle(position, outcome, policy, entry);
        }
        for position in places.clone() {
            if let OpenedEntry::Gone(evidence) = &opened[position] {
                self.leaves[position].findings.extend(row_of_gone(evidence, policy));
            }
        }
        Ok(opened.get(places.end.wrapping_sub(1)).filter(|_| !places.is_empty()).and_then(successor))
    }

    /// Records the outcome of one entry.
    fn settle(&mut self, position: usize, outcome: CaseOutcome, policy: &PolicyInForce, entry: EntryDigest) {
        let leaf = &mut self.leaves[position];
        leaf.status = match outcome {
            CaseOutcome::Decided(Redecided::Admitted(admitted)) => {
                let AdmittedEntry { findings, erases, corrects, acts, .. } = *admitted;
                leaf.findings.extend(findings);
                (leaf.erases, leaf.corrects, leaf.acts) = (erases, corrects, acts);
                LeafStatus::Decided
            }
            CaseOutcome::Decided(Redecided::Refused(finding)) => {
                leaf.findings.push(finding);
                LeafStatus::Decided
            }
            CaseOutcome::Decided(Redecided::Undecided) => LeafStatus::Undecided,
            CaseOutcome::Unknown(by, admitted) => {
                if let Some(admitted) = admitted {
                    leaf.findings.extend(admitted.findings);
                    leaf.erases = admitted.erases;
                }
                LeafStatus::Unknown(by)
            }
            CaseOutcome::Gone(gone, findings) => {
                leaf.findings.extend(findings);
                LeafStatus::Gone(gone)
            }
            CaseOutcome::Dropped(findings) => {
                leaf.findings.extend(findings);
                LeafStatus::Dropped { policy: policy.leaf(), entry }
            }
        };
        let gone = matches!(leaf.status, LeafStatus::Gone(_) | LeafStatus::Dropped { .. });
        if let Some(evidence) = self.opened[position].evidence().filter(|_| gone) {
            let named = |rule: LogRule| leaf.findings.iter().any(|finding| finding.rule == rule);
            let more = row_of_gone(evidence, policy).into_iter().filter(|finding| !named(finding.rule));
            let more: Vec<AuditFinding> = more.collect();
            leaf.findings.extend(more);
        }
    }

    /// Returns the end of the segment, which is earlier if a row names a newer policy entry that cannot be read.
    async fn until_lost(
        &self,
        redecider: &Redecider<'_>,
        places: std::ops::Range<usize>,
        policy: &PolicyInForce,
    ) -> Result<(usize, Option<LeafIndex>), SourceError> {
        for position in places.clone() {
            let Some(evidence) = self.opened[position].evidence() else { continue };
            let newer = evidence.policy > policy.leaf() && evidence.policy < evidence.index;
            if newer && !is_readable(redecider.source, evidence.policy).await? {
                return Ok((position, Some(evidence.policy)));
            }
        }
        Ok((places.end, None))
    }

    fn lose(&mut self, leaf: LeafIndex, position: usize) -> InForce {
        let detail = "the policy at this entry cannot be read: its admissions cannot be decided again";
        let position = position.min(self.leaves.len() - 1);
        self.leaves[position].findings.push(AuditFinding::of_leaf(LogRule::PolicyLost, leaf, detail));
        InForce::Lost(leaf)
    }
}

fn unread(opened: &OpenedEntry<'_>) -> LeafOutcome {
    let status = match opened {
        OpenedEntry::Gone(_) => LeafStatus::Gone(LostPart::Statement),
        _ => LeafStatus::Unread,
    };
    let findings = match opened {
        OpenedEntry::Broken(_, finding) => vec![finding.clone()],
        _ => Vec::new(),
    };
    LeafOutcome { status, findings, erases: Vec::new(), corrects: None, acts: None, at: None }
}

/// Returns the policy that a statement puts in force. It takes effect even if the statement should not have been
/// admitted, as the log decided the later entries by it.
fn successor(opened: &OpenedEntry<'_>) -> Option<InForce> {
    let whole = opened.whole().filter(|whole| whole.is_policy)?;
    Some(InForce::of(whole, entry::policy_in(&whole.statement)?))
}

/// Checks the row of an entry whose bytes are gone against the policy in force and against what must remain.
fn row_of_gone(evidence: &EntryEvidence, policy: &PolicyInForce) -> Vec<AuditFinding> {
    let mut findings = Vec::new();
    if evidence.policy != policy.leaf() {
        let detail =
            format!("the row names the policy at leaf {}, in force was {}", evidence.policy, policy.leaf());
        findings.push(entry::finding_of(evidence, LogRule::PolicyNotInForce, detail));
    } else if !is_rule_of(policy, &evidence.rule) {
        let detail = format!("the policy has no rule {}", quote(&evidence.rule));
        findings.push(entry::finding_of(evidence, LogRule::RuleDiffers, detail));
    }
    if evidence.statement.is_none() && evidence.facts != NO_FACTS {
        let detail = format!("the statement is gone, and the row says {}", quote(&evidence.facts));
        findings.push(entry::finding_of(evidence, LogRule::FactsDiffer, detail));
    }
    findings
}

fn is_rule_of(policy: &PolicyInForce, rule: &str) -> bool {
    let mut types = policy.policy().contents().types.iter();
    is_operator_rule(rule)
        || types.any(|known| {
            known.name == rule || known.conditions.iter().any(|condition| condition.name == rule)
        })
}
