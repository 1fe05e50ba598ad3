//! Decides the entries of a page together: signature checks run in parallel, and the log is queried once per kind of
//! question.

use std::collections::HashMap;

use merkle::{EntryDigest, LeafIndex};
use registration::{Answers, Guard, PolicyInForce};
use store::{Found, GuardKey};

use crate::claims::{Ahead, Doubt, Missed, Unread};
use crate::entry::{Admitted, Gone, Kept, Opened, Prepared, Redecided, Whole, below};
use crate::finding::{Finding, Rule};
use crate::source::{Answer, Source, SourceError};
use crate::workers::{Workers, map};

/// Outcome of deciding one statement again.
pub(crate) enum Outcome {
    /// The statement was decided again.
    Decided(Redecided),
    /// The payload or the certificates are gone; with the findings of [`Whole::outlined`].
    Gone(Gone, Vec<Finding>),
    /// The payload was not kept, as the policy in force prescribes; with the findings of [`Whole::outlined`].
    Dropped(Vec<Finding>),
    /// The decision depends on claims of an unread entry. The permit is present if those claims would make it agree
    /// with the row.
    Unknown(Unread, Option<Box<Admitted>>),
}

/// One statement for [`Desk::decide`], with the commit time of its batch in Unix seconds, if known.
pub(crate) struct Case<'r> {
    pub(crate) whole: &'r Whole<'r>,
    pub(crate) at: Option<u64>,
}

/// The source to query and the workers for signature checks.
pub(crate) struct Desk<'s> {
    pub(crate) source: &'s dyn Source,
    pub(crate) workers: &'s dyn Workers,
}

/// State of a statement between [`prepare`] and [`finish`].
enum Step<'a> {
    Prepared(Box<Prepared<'a>>),
    Gone(Gone, Vec<Finding>),
    Dropped(Vec<Finding>),
    Refused(Finding),
}

impl<'a> Step<'a> {
    fn prepared(&self) -> Option<&Prepared<'a>> {
        match self {
            Step::Prepared(prepared) => Some(prepared),
            _ => None,
        }
    }
}

/// Answers of the log to the questions of all entries of a page.
#[derive(Default)]
struct Known {
    entries: HashMap<EntryDigest, LeafIndex>,
    holders: HashMap<Guard, LeafIndex>,
}

impl Desk<'_> {
    /// Checks that the entry IDs of these rows, and the twins of their readable statements, lead back to them. Without
    /// indexes nothing is checked.
    pub(crate) async fn check_look_ups(&self, page: &[Opened<'_>]) -> Result<Vec<Finding>, SourceError> {
        if !self.source.keeps_indexes() {
            return Ok(Vec::new());
        }
        let mut asked: Vec<(EntryDigest, Rule, &Opened<'_>)> = Vec::new();
        for opened in page {
            if let Some(evidence) = opened.evidence() {
                asked.push((evidence.digest, Rule::LookUp, opened));
            }
            if let Some(twin) = opened.whole().and_then(|whole| whole.twin) {
                asked.push((twin, Rule::Twin, opened));
            }
        }
        let digests: Vec<EntryDigest> = asked.iter().map(|(digest, ..)| *digest).collect();
        let found = self.source.find(&digests).await?;
        let checked = asked.iter().zip(found).filter_map(|((_, rule, opened), found)| {
            let evidence = opened.evidence()?;
            let detail = astray(evidence.index, evidence.digest, found)?;
            Some(Finding::of_entry(*rule, evidence.index, evidence.digest, detail))
        });
        Ok(checked.collect())
    }

    /// Decides entries again, all under the policy `in_force`. The claims that they make are compared with the source's
    /// index, or with the claims of earlier entries if the source keeps no index.
    pub(crate) async fn decide(
        &self,
        cases: &[Case<'_>],
        in_force: &PolicyInForce,
        claims: &mut Ahead<'_>,
    ) -> Result<Vec<Outcome>, SourceError> {
        let kept = self.collateral(cases).await?;
        let work: Vec<(&Case<'_>, &Result<Kept, String>)> = cases.iter().zip(&kept).collect();
        let steps = map(self.workers, &work, |(case, kept)| prepare(case, kept, in_force));
        let known = self.ask(&steps).await?;
        let work: Vec<(&Case<'_>, &Step<'_>)> = cases.iter().zip(&steps).collect();
        if !self.source.keeps_indexes() {
            return Ok(work.iter().map(|case| in_turn(case, in_force, claims)).collect());
        }
        let mut outcomes = map(self.workers, &work, |(case, step)| {
            finish(case, step, in_force, &known.answers(step, case.whole.evidence.index))
        });
        self.check_guards(cases, &mut outcomes).await?;
        Ok(outcomes)
    }

    /// Checks that the index records admitted entries as holders of their claims, and adds a [`Rule::GuardMissing`]
    /// finding otherwise.
    pub(crate) async fn check_guards(
        &self,
        cases: &[Case<'_>],
        outcomes: &mut [Outcome],
    ) -> Result<(), SourceError> {
        let mut admitted: Vec<(&Whole<'_>, &mut Admitted)> =
            cases.iter().zip(outcomes).filter_map(|(case, it)| Some((case.whole, it.admitted()?))).collect();
        let guards: Vec<Guard> = admitted.iter().flat_map(|(_, admitted)| admitted.guards.clone()).collect();
        let mut holders = self.holders(&guards).await?.into_iter();
        for (whole, admitted) in &mut admitted {
            for guard in &admitted.guards {
                let holder = holders.next().unwrap_or(Ok(None));
                if holder != Ok(Some(whole.evidence.index)) {
                    let detail = format!("its {:?} is recorded as that of {}", guard.kind(), told(holder));
                    admitted.findings.push(whole.finding(Rule::GuardMissing, detail));
                }
            }
        }
        Ok(())
    }

    async fn collateral(&self, cases: &[Case<'_>]) -> Result<Vec<Result<Kept, String>>, SourceError> {
        let mut kept = Vec::with_capacity(cases.len());
        for case in cases {
            kept.push(match case.whole.needs_collateral() {
                true => Kept::read(self.source.collateral(case.whole.evidence.index).await?),
                false => Ok(Kept::default()),
            });
        }
        Ok(kept)
    }

    async fn ask(&self, steps: &[Step<'_>]) -> Result<Known, SourceError> {
        if !self.source.keeps_indexes() {
            return Ok(Known::default());
        }
        let asking = || steps.iter().filter_map(Step::prepared).map(|prepared| &prepared.questions);
        let digests: Vec<EntryDigest> = asking().flat_map(|questions| questions.digests.clone()).collect();
        let guards: Vec<Guard> = asking().flat_map(|questions| questions.guards.clone()).collect();
        let found = if digests.is_empty() { Vec::new() } else { self.source.find(&digests).await? };
        let holders = self.holders(&guards).await?;
        let held = |(guard, holder): (Guard, Answer<LeafIndex>)| Some((guard, holder.ok()??));
        Ok(Known {
            entries: digests.iter().zip(found).filter_map(stands).collect(),
            holders: guards.into_iter().zip(holders).filter_map(held).collect(),
        })
    }

    async fn holders(&self, guards: &[Guard]) -> Result<Vec<Answer<LeafIndex>>, SourceError> {
        if guards.is_empty() {
            return Ok(Vec::new());
        }
        let keys: Vec<GuardKey> = guards.iter().map(|guard| GuardKey(guard.as_bytes().to_vec())).collect();
        self.source.guards(&keys).await
    }
}

impl Outcome {
    fn admitted(&mut self) -> Option<&mut Admitted> {
        match self {
            Outcome::Decided(Redecided::Admitted(admitted)) | Outcome::Unknown(_, Some(admitted)) => {
                Some(admitted)
            }
            _ => None,
        }
    }

    /// Returns `true` if the entry is refused, or admitted with findings.
    fn differs(&self) -> bool {
        match self {
            Outcome::Decided(Redecided::Admitted(admitted)) => !admitted.findings.is_empty(),
            Outcome::Decided(Redecided::Refused(_)) => true,
            _ => false,
        }
    }
}

impl Known {
    /// Returns the answers to the questions of this step, limited to entries below `leaf`.
    fn answers(&self, step: &Step<'_>, leaf: LeafIndex) -> Answers {
        let mut answers = Answers::none();
        let Some(prepared) = step.prepared() else { return answers };
        for digest in &prepared.questions.digests {
            if let Some(found) = self.entries.get(digest).filter(|found| below(**found, leaf)) {
                answers.put_entry(*digest, *found);
            }
        }
        for guard in &prepared.questions.guards {
            if let Some(holder) = self.holders.get(guard).filter(|holder| below(**holder, leaf)) {
                answers.put_guard(guard.clone(), *holder);
            }
        }
        answers
    }
}

fn prepare<'a>(case: &Case<'a>, kept: &'a Result<Kept, String>, in_force: &PolicyInForce) -> Step<'a> {
    let whole = case.whole;
    let kept = match kept {
        Ok(kept) => kept,
        Err(why) => return Step::Refused(whole.finding(Rule::Collateral, why)),
    };
    match whole.lacks(kept) {
        Some(Gone::Payload) => {
            let findings = whole.outlined(kept, in_force, case.at);
            return match in_force.keeps_payload(whole.statement.header()) {
                true => Step::Gone(Gone::Payload, findings),
                false => Step::Dropped(findings),
            };
        }
        Some(gone) => return Step::Gone(gone, Vec::new()),
        None => {}
    }
    match whole.prepare(kept, in_force) {
        Ok(prepared) => Step::Prepared(Box::new(prepared)),
        Err(violation) => Step::Refused(whole.refused(&violation)),
    }
}

fn finish(case: &Case<'_>, step: &Step<'_>, in_force: &PolicyInForce, answers: &Answers) -> Outcome {
    match step {
        Step::Prepared(prepared) => Outcome::Decided(prepared.decide(case.whole, in_force, answers, case.at)),
        Step::Gone(gone, findings) => Outcome::Gone(*gone, findings.clone()),
        Step::Dropped(findings) => Outcome::Dropped(findings.clone()),
        Step::Refused(finding) => Outcome::Decided(Redecided::Refused(finding.clone())),
    }
}

/// Decides one entry with the claims of the entries before it, and records its own claims for those after it.
fn in_turn(
    (case, step): &(&Case<'_>, &Step<'_>),
    in_force: &PolicyInForce,
    claims: &mut Ahead<'_>,
) -> Outcome {
    let leaf = case.whole.evidence.index;
    let mut answers = Answers::none();
    let ask = |prepared: &Prepared<'_>| claims.answer(&prepared.questions, leaf, &mut answers);
    let doubt = step.prepared().and_then(ask);
    let mut outcome = finish(case, step, in_force, &answers);
    if let Some(doubt) = doubt.filter(|_| outcome.differs()) {
        doubt.guards.iter().for_each(|guard| answers.put_guard(guard.clone(), LeafIndex::new(doubt.by.leaf)));
        outcome = either(outcome, finish(case, step, in_force, &answers), doubt);
    }
    claim(case.whole, &mut outcome, claims);
    outcome
}

/// Combines the outcome without the claims in doubt with the outcome under the assumption that they were made. Only a
/// finding that both outcomes share is certain.
fn either(without: Outcome, with: Outcome, doubt: Doubt) -> Outcome {
    use Redecided::{Admitted, Refused, Undecided};
    let one = doubt.guards.len() == 1;
    match (without, with) {
        (_, Outcome::Decided(Admitted(with))) if with.findings.is_empty() => {
            Outcome::Unknown(doubt.by, Some(with))
        }
        // With several guards in doubt, an unread entry may have claimed some of them only. Those combinations are not
        // tried.
        (_, Outcome::Decided(Admitted(_) | Refused(_))) if !one => Outcome::Unknown(doubt.by, None),
        (Outcome::Decided(Admitted(mut without)), Outcome::Decided(Admitted(with))) => {
            without.findings.retain(|finding| with.findings.contains(finding));
            match without.findings.is_empty() {
                true => Outcome::Unknown(doubt.by, None),
                false => Outcome::Decided(Admitted(without)),
            }
        }
        (Outcome::Decided(Refused(_)), with @ Outcome::Decided(Admitted(_) | Undecided)) => with,
        (without, Outcome::Decided(Undecided)) if !one => {
            drop(without);
            Outcome::Unknown(doubt.by, None)
        }
        (without, _) => without,
    }
}

/// Records the claims of an admitted entry. The claims of any other entry are recorded as unknown.
pub(crate) fn claim(whole: &Whole<'_>, outcome: &mut Outcome, claims: &mut Ahead<'_>) {
    match outcome.admitted() {
        Some(admitted) => take_claims(whole, admitted, claims),
        None => {
            let missed = match outcome {
                Outcome::Decided(Redecided::Refused(_)) => Missed::Anything,
                _ => Missed::Erasable,
            };
            claims.miss(whole.evidence.index, Some(whole.evidence.digest), missed);
        }
    }
}

/// Records the claims of an admitted entry. A claim that an earlier entry has made is a [`Rule::GuardMissing`] finding.
fn take_claims(whole: &Whole<'_>, admitted: &mut Admitted, claims: &mut Ahead<'_>) {
    for guard in &admitted.guards {
        if let Some(holder) = claims.take(guard, whole.evidence.index) {
            let detail = format!("leaf {holder} has made its {:?} before", guard.kind());
            admitted.findings.push(whole.finding(Rule::GuardMissing, detail));
        }
    }
}

/// Returns the leaf of a digest that was found as an entry ID, or `None` if it was found as a twin only.
fn stands((digest, found): (&EntryDigest, Answer<Found>)) -> Option<(EntryDigest, LeafIndex)> {
    let found = found.ok().flatten().filter(|found| found.digest == *digest)?;
    Some((*digest, found.index))
}

/// Describes a look-up that does not lead to the entry; `None` if it does.
fn astray(leaf: LeafIndex, digest: EntryDigest, found: Answer<Found>) -> Option<String> {
    match found {
        Ok(Some(found)) if found.index == leaf && found.digest == digest => None,
        Ok(Some(found)) => Some(format!("it leads to leaf {} ({})", found.index, found.digest)),
        Ok(None) => Some("it leads nowhere".to_owned()),
        Err(why) => Some(why),
    }
}

fn told(holder: Answer<LeafIndex>) -> String {
    match holder {
        Ok(Some(leaf)) => format!("leaf {leaf}"),
        Ok(None) => "nobody".to_owned(),
        Err(why) => why,
    }
}
