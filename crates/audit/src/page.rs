//! One page of the log: finds the policy in force for each of its leaves, and decides them.

use merkle::{EntryDigest, LeafIndex};
use registration::PolicyInForce;
use registration::clock_correction::ClockCorrection;
use registration::operator::is_operator_rule;

use crate::claims::{Ahead, Missed, Unread};
use crate::desk::{Case, Desk, Outcome, claim};
use crate::entry::{self, Acted, Admitted, Gone, Opened, Redecided, Whole};
use crate::finding::{Finding, Rule, quote};
use crate::history::Heads;
use crate::in_force::{InForce, is_readable};
use crate::source::{Evidence, SourceError};

/// Facts of an erased entry: an empty JSON object.
const NO_FACTS: &str = "{}";

/// Outcome of one leaf.
#[derive(Debug)]
pub(crate) struct Leaf {
    pub(crate) status: Status,
    pub(crate) findings: Vec<Finding>,
    /// Entries that this entry, an erasure statement, lists as erased.
    pub(crate) erases: Vec<EntryDigest>,
    /// The correction of the log's clock that this entry states.
    pub(crate) corrects: Option<ClockCorrection>,
    /// The operator action that this entry states.
    pub(crate) acts: Option<Acted>,
    /// Commit time in Unix seconds, if known.
    pub(crate) at: Option<u64>,
}

/// Extent to which a leaf could be decided again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// The entry was decided again.
    Decided,
    /// The row is [`Opened::Lost`] or [`Opened::Broken`]; a finding describes it.
    Unread,
    /// A rule reached no result within its bounds.
    Undecided,
    /// The policy that was in force cannot be read.
    WithoutPolicy,
    /// Bytes of the entry are gone, although the policy in force keeps them.
    Gone(Gone),
    /// The payload was not kept, as the policy at this leaf prescribes.
    Dropped { policy: LeafIndex, entry: EntryDigest },
    /// The decision depends on unknown claims of this entry.
    Unknown(Unread),
}

/// Up to [`PAGE`](crate::limits::PAGE) leaves, with their outcomes so far.
pub(crate) struct Page<'r> {
    first: u64,
    opened: &'r [Opened<'r>],
    at: Vec<Option<u64>>,
    leaves: Vec<Leaf>,
}

impl<'r> Page<'r> {
    pub(crate) fn new(first: u64, opened: &'r [Opened<'r>], heads: &Heads) -> Self {
        let at = (first..).zip(opened).map(|(leaf, opened)| {
            let told = opened.evidence().and_then(|evidence| evidence.at);
            told.or_else(|| heads.at(LeafIndex::new(leaf)))
        });
        Self { first, at: at.collect(), leaves: opened.iter().map(unread).collect(), opened }
    }

    pub(crate) fn into_leaves(self) -> Vec<Leaf> {
        let timed = |(leaf, at): (Leaf, Option<u64>)| Leaf { at, ..leaf };
        self.leaves.into_iter().zip(self.at).map(timed).collect()
    }

    /// Adds a finding for each entry whose ID does not lead to it.
    pub(crate) async fn look_up(&mut self, desk: &Desk<'_>) -> Result<(), SourceError> {
        for finding in desk.check_look_ups(self.opened).await? {
            let place = finding.leaf.unwrap_or(self.first) - self.first;
            self.leaves[place as usize].findings.push(finding);
        }
        Ok(())
    }

    /// Decides every leaf under the policy in force for it. Returns the policy in force after the page.
    pub(crate) async fn decide(
        &mut self,
        desk: &Desk<'_>,
        from: InForce,
        claims: &mut Ahead<'_>,
    ) -> Result<InForce, SourceError> {
        let (mut in_force, mut place) = (from, 0);
        if !desk.source.keeps_indexes() {
            self.enter(claims);
        }
        while place < self.opened.len() {
            let end = self.end_of_segment(place);
            in_force = match in_force {
                InForce::None => {
                    let end = place + 1;
                    let next = self.first_leaf(desk, claims).await?;
                    place = end;
                    next
                }
                InForce::Lost(leaf) => {
                    let next = self.without_policy(place..end, claims).unwrap_or(InForce::Lost(leaf));
                    place = end;
                    next
                }
                InForce::Policy(policy, entry) => {
                    let (end, lost) = self.until_lost(desk, place..end, &policy).await?;
                    let next = self.under(desk, place..end, (&policy, entry), claims).await?;
                    place = end;
                    match (lost, next) {
                        (Some(lost), _) => self.lose(lost, place),
                        (None, Some(next)) => next,
                        (None, None) => InForce::Policy(policy, entry),
                    }
                }
            };
        }
        Ok(in_force)
    }

    /// Records the leaf of every entry, and the entries whose claims are unknown.
    fn enter(&self, claims: &mut Ahead<'_>) {
        for (leaf, opened) in (self.first..).map(LeafIndex::new).zip(self.opened) {
            let digest = opened.evidence().map(|evidence| evidence.digest);
            digest.into_iter().for_each(|digest| claims.enter(digest, leaf));
            match opened {
                Opened::Whole(_) => {}
                Opened::Gone(_) => claims.miss(leaf, digest, Missed::Erasable),
                Opened::Lost | Opened::Broken(..) => claims.miss(leaf, digest, Missed::Anything),
            }
        }
    }

    /// Returns the end of the segment under one policy: one past the next statement that may be a policy.
    fn end_of_segment(&self, from: usize) -> usize {
        let policy = self.opened[from..].iter().position(Opened::may_be_policy);
        policy.map_or(self.opened.len(), |place| from + place + 1)
    }

    /// Decides leaf 0 by the policy that it carries.
    async fn first_leaf(&mut self, desk: &Desk<'_>, claims: &mut Ahead<'_>) -> Result<InForce, SourceError> {
        let opened = self.opened;
        let whole = opened[0].whole().and_then(|whole| Some((whole, entry::carried(&whole.statement)?)));
        let Some((whole, policy)) = whole else { return Ok(self.lose(LeafIndex::new(0), 0)) };
        let cases = [Case { whole, at: self.at[0] }];
        let mut outcomes = [Outcome::Decided(entry::first(whole, self.at[0]))];
        match desk.source.keeps_indexes() {
            true => desk.check_guards(&cases, &mut outcomes).await?,
            false => claim(whole, &mut outcomes[0], claims),
        }
        let in_force = PolicyInForce::new(policy.clone(), LeafIndex::new(0));
        let [outcome] = outcomes;
        self.settle(0, outcome, &in_force, whole.evidence.digest);
        Ok(InForce::of(whole, policy))
    }

    /// Marks entries whose policy cannot be read. A policy among them still takes effect.
    fn without_policy(&mut self, places: std::ops::Range<usize>, claims: &mut Ahead<'_>) -> Option<InForce> {
        let opened = self.opened;
        for place in places.clone() {
            if let Some(whole) = opened[place].whole() {
                self.leaves[place].status = Status::WithoutPolicy;
                claims.miss(whole.evidence.index, Some(whole.evidence.digest), Missed::Anything);
            }
        }
        successor(&opened[places.end - 1])
    }

    /// Decides entries under a policy that can be read. Returns the next policy if the last entry carries one.
    async fn under(
        &mut self,
        desk: &Desk<'_>,
        places: std::ops::Range<usize>,
        (policy, entry): (&PolicyInForce, EntryDigest),
        claims: &mut Ahead<'_>,
    ) -> Result<Option<InForce>, SourceError> {
        let opened = self.opened;
        let whole: Vec<(usize, &Whole<'_>)> =
            places.clone().filter_map(|place| Some((place, opened[place].whole()?))).collect();
        let cases: Vec<Case<'_>> =
            whole.iter().map(|(place, whole)| Case { whole, at: self.at[*place] }).collect();
        let outcomes = desk.decide(&cases, policy, claims).await?;
        for ((place, _), outcome) in whole.into_iter().zip(outcomes) {
            self.settle(place, outcome, policy, entry);
        }
        for place in places.clone() {
            if let Opened::Gone(evidence) = &opened[place] {
                self.leaves[place].findings.extend(row_of_gone(evidence, policy));
            }
        }
        Ok(opened.get(places.end.wrapping_sub(1)).filter(|_| !places.is_empty()).and_then(successor))
    }

    /// Records the outcome of one entry.
    fn settle(&mut self, place: usize, outcome: Outcome, policy: &PolicyInForce, entry: EntryDigest) {
        let leaf = &mut self.leaves[place];
        leaf.status = match outcome {
            Outcome::Decided(Redecided::Admitted(admitted)) => {
                let Admitted { findings, erases, corrects, acts, .. } = *admitted;
                leaf.findings.extend(findings);
                (leaf.erases, leaf.corrects, leaf.acts) = (erases, corrects, acts);
                Status::Decided
            }
            Outcome::Decided(Redecided::Refused(finding)) => {
                leaf.findings.push(finding);
                Status::Decided
            }
            Outcome::Decided(Redecided::Undecided) => Status::Undecided,
            Outcome::Unknown(by, admitted) => {
                if let Some(admitted) = admitted {
                    leaf.findings.extend(admitted.findings);
                    leaf.erases = admitted.erases;
                }
                Status::Unknown(by)
            }
            Outcome::Gone(gone, findings) => {
                leaf.findings.extend(findings);
                Status::Gone(gone)
            }
            Outcome::Dropped(findings) => {
                leaf.findings.extend(findings);
                Status::Dropped { policy: policy.leaf(), entry }
            }
        };
        let gone = matches!(leaf.status, Status::Gone(_) | Status::Dropped { .. });
        if let Some(evidence) = self.opened[place].evidence().filter(|_| gone) {
            let named = |rule: Rule| leaf.findings.iter().any(|finding| finding.rule == rule);
            let more = row_of_gone(evidence, policy).into_iter().filter(|finding| !named(finding.rule));
            let more: Vec<Finding> = more.collect();
            leaf.findings.extend(more);
        }
    }

    /// Returns the end of the segment, which is earlier if a row names a newer policy entry that cannot be read.
    async fn until_lost(
        &self,
        desk: &Desk<'_>,
        places: std::ops::Range<usize>,
        policy: &PolicyInForce,
    ) -> Result<(usize, Option<LeafIndex>), SourceError> {
        for place in places.clone() {
            let Some(evidence) = self.opened[place].evidence() else { continue };
            let newer = evidence.policy > policy.leaf() && evidence.policy < evidence.index;
            if newer && !is_readable(desk.source, evidence.policy).await? {
                return Ok((place, Some(evidence.policy)));
            }
        }
        Ok((places.end, None))
    }

    fn lose(&mut self, leaf: LeafIndex, place: usize) -> InForce {
        let detail = "the policy that stood here cannot be read: what it admitted cannot be decided again";
        let place = place.min(self.leaves.len() - 1);
        self.leaves[place].findings.push(Finding::of_leaf(Rule::PolicyLost, leaf, detail));
        InForce::Lost(leaf)
    }
}

fn unread(opened: &Opened<'_>) -> Leaf {
    let status = match opened {
        Opened::Gone(_) => Status::Gone(Gone::Statement),
        _ => Status::Unread,
    };
    let findings = match opened {
        Opened::Broken(_, finding) => vec![finding.clone()],
        _ => Vec::new(),
    };
    Leaf { status, findings, erases: Vec::new(), corrects: None, acts: None, at: None }
}

/// Returns the policy that a statement puts in force. It takes effect even if the statement should not have been
/// admitted, as the log decided the later entries by it.
fn successor(opened: &Opened<'_>) -> Option<InForce> {
    let whole = opened.whole().filter(|whole| whole.is_policy)?;
    Some(InForce::of(whole, entry::carried(&whole.statement)?))
}

/// Checks the row of an entry whose bytes are gone against the policy in force and against what must remain.
fn row_of_gone(evidence: &Evidence, policy: &PolicyInForce) -> Vec<Finding> {
    let mut findings = Vec::new();
    if evidence.policy != policy.leaf() {
        let detail =
            format!("the row names the policy at leaf {}, in force was {}", evidence.policy, policy.leaf());
        findings.push(entry::of(evidence, Rule::PolicyNotInForce, detail));
    } else if !is_rule_of(policy, &evidence.rule) {
        let detail = format!("the policy has no rule {}", quote(&evidence.rule));
        findings.push(entry::of(evidence, Rule::RuleDiffers, detail));
    }
    if evidence.statement.is_none() && evidence.facts != NO_FACTS {
        let detail = format!("the statement is gone, and the row says {}", quote(&evidence.facts));
        findings.push(entry::of(evidence, Rule::FactsDiffer, detail));
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
