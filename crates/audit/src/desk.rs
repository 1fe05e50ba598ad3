//! Deciding many entries at once: in parallel what takes a processor, in one question what the log has to answer.

use std::collections::HashMap;

use merkle::{EntryDigest, LeafIndex};
use registration::{Answers, Guard, PolicyInForce};
use store::{Found, GuardKey};

use crate::entry::{Admitted, Kept, Opened, Prepared, Redecided, Whole, below};
use crate::finding::{Finding, Rule};
use crate::source::{Answer, Source, SourceError};
use crate::workers::{Workers, map};

/// What came of one leaf.
pub(crate) enum Outcome {
    /// It was decided again.
    Decided(Redecided),
    /// Its payload is gone; the flag says that its policy keeps none of its type.
    WithoutPayload(bool),
}

/// One statement to decide again.
pub(crate) struct Case<'r> {
    pub(crate) whole: &'r Whole<'r>,
    pub(crate) at: Option<u64>,
}

/// Asks the source, and has work done.
pub(crate) struct Desk<'s> {
    pub(crate) source: &'s dyn Source,
    pub(crate) workers: &'s dyn Workers,
}

impl Desk<'_> {
    /// Whether the IDs of these rows, and the twins of those that can be read, lead to them.
    pub(crate) async fn check_look_ups(&self, page: &[Opened<'_>]) -> Result<Vec<Finding>, SourceError> {
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
        let found = self.find(&digests).await?;
        let checked = asked.iter().zip(found).filter_map(|((_, rule, opened), found)| {
            let evidence = opened.evidence()?;
            let detail = astray(evidence.index, evidence.digest, found)?;
            Some(Finding::of_entry(*rule, evidence.index, evidence.digest, detail))
        });
        Ok(checked.collect())
    }

    /// Decides entries again, all under the policy that was in force for each of them.
    pub(crate) async fn decide(
        &self,
        cases: &[Case<'_>],
        in_force: &PolicyInForce,
    ) -> Result<Vec<Outcome>, SourceError> {
        let kept = self.collateral(cases).await?;
        let work: Vec<(&Case<'_>, &Result<Kept, String>)> = cases.iter().zip(&kept).collect();
        let prepared = map(self.workers, &work, |(case, kept)| prepare(case.whole, kept, in_force));
        let answers = self.answers(cases, &prepared).await?;
        let work: Vec<_> = work.iter().zip(&prepared).zip(&answers).collect();
        Ok(map(self.workers, &work, |(((case, _), step), answers)| finish(case, step, in_force, answers)))
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

    /// What the log below each leaf answers.
    async fn answers(&self, cases: &[Case<'_>], steps: &[Step<'_>]) -> Result<Vec<Answers>, SourceError> {
        let asking = || steps.iter().filter_map(Step::prepared).map(|prepared| &prepared.questions);
        let digests: Vec<EntryDigest> = asking().flat_map(|questions| questions.digests.clone()).collect();
        let guards: Vec<Guard> = asking().flat_map(|questions| questions.guards.clone()).collect();
        let entries: HashMap<EntryDigest, LeafIndex> = match digests.is_empty() {
            true => HashMap::new(),
            false => digests.iter().zip(self.find(&digests).await?).filter_map(stands).collect(),
        };
        let holders: HashMap<Guard, LeafIndex> = match guards.is_empty() {
            true => HashMap::new(),
            false => {
                let found = self.guards(&guards).await?.unwrap_or_default();
                guards.into_iter().zip(found).filter_map(|(key, holder)| Some((key, holder.ok()??))).collect()
            }
        };
        let answer = |(case, step): (&Case<'_>, &Step<'_>)| {
            let leaf = case.whole.evidence.index;
            let mut answers = Answers::none();
            let Some(prepared) = step.prepared() else { return answers };
            for digest in &prepared.questions.digests {
                if let Some(found) = entries.get(digest).filter(|found| below(**found, leaf)) {
                    answers.put_entry(*digest, *found);
                }
            }
            for guard in &prepared.questions.guards {
                if let Some(holder) = holders.get(guard).filter(|holder| below(**holder, leaf)) {
                    answers.put_guard(guard.clone(), *holder);
                }
            }
            answers
        };
        Ok(cases.iter().zip(steps).map(answer).collect())
    }

    /// Whether each entry holds the claims that it makes; what is wrong is added to the entry's findings.
    pub(crate) async fn check_guards(
        &self,
        decided: &mut [(&Whole<'_>, &mut Admitted)],
    ) -> Result<(), SourceError> {
        let guards: Vec<Guard> = decided.iter().flat_map(|(_, admitted)| admitted.guards.clone()).collect();
        if guards.is_empty() {
            return Ok(());
        }
        let Some(holders) = self.guards(&guards).await? else { return Ok(()) };
        let mut holders = holders.into_iter();
        for (whole, admitted) in decided {
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

    async fn find(&self, digests: &[EntryDigest]) -> Result<Vec<Answer<Found>>, SourceError> {
        self.source.find(digests).await
    }

    async fn guards(&self, guards: &[Guard]) -> Result<Option<Vec<Answer<LeafIndex>>>, SourceError> {
        let keys: Vec<GuardKey> = guards.iter().map(|guard| GuardKey(guard.as_bytes().to_vec())).collect();
        self.source.guards(&keys).await
    }
}

/// An entry on its way.
enum Step<'a> {
    Prepared(Box<Prepared<'a>>),
    WithoutPayload(bool),
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

fn prepare<'a>(whole: &'a Whole<'a>, kept: &'a Result<Kept, String>, in_force: &PolicyInForce) -> Step<'a> {
    let kept = match kept {
        Ok(kept) => kept,
        Err(why) => return Step::Refused(whole.finding(Rule::Collateral, why)),
    };
    if whole.lacks_payload(kept) {
        return Step::WithoutPayload(!in_force.keeps_payload(whole.statement.header()));
    }
    match whole.prepare(kept, in_force) {
        Ok(prepared) => Step::Prepared(Box::new(prepared)),
        Err(violation) => Step::Refused(whole.refused(&violation)),
    }
}

fn finish(case: &Case<'_>, step: &Step<'_>, in_force: &PolicyInForce, answers: &Answers) -> Outcome {
    match step {
        Step::Prepared(prepared) => Outcome::Decided(prepared.decide(case.whole, in_force, answers, case.at)),
        Step::WithoutPayload(by_policy) => Outcome::WithoutPayload(*by_policy),
        Step::Refused(finding) => Outcome::Decided(Redecided::Refused(finding.clone())),
    }
}

/// The leaf of a digest that was found, unless it is a twin that was.
fn stands((digest, found): (&EntryDigest, Answer<Found>)) -> Option<(EntryDigest, LeafIndex)> {
    let found = found.ok().flatten().filter(|found| found.digest == *digest)?;
    Some((*digest, found.index))
}

/// Where a look-up leads instead of to the entry.
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
