//! Decides the entries of a page together: signature checks run in parallel, and the log is queried once per kind of
//! question.

use std::collections::HashMap;

use merkle::{EntryDigest, LeafIndex};
use registration::{Answers, Guard, PolicyInForce};
use store::{Found, GuardKey};

use crate::claims::{ClaimDoubt, PendingClaims, UnknownClaims, Unread};
use crate::entry::{
    AdmittedEntry, LostPart, OpenedEntry, PreparedEntry, ReadableEntry, Redecided, StoredCollateral, below,
};
use crate::finding::{AuditFinding, LogRule};
use crate::source::{AuditSource, LookUpAnswer, SourceError};
use crate::workers::{Workers, map};

/// Outcome of deciding one statement again.
pub(crate) enum CaseOutcome {
    /// The statement was decided again.
    Decided(Redecided),
    /// The payload or the certificates are gone; with the findings of [`ReadableEntry::compare_outline`].
    Gone(LostPart, Vec<AuditFinding>),
    /// The payload was not kept, as the policy in force prescribes; with the findings of
    /// [`ReadableEntry::compare_outline`].
    Dropped(Vec<AuditFinding>),
    /// The decision depends on claims of an unread entry. The permit is present if those claims would make it agree
    /// with the row.
    Unknown(Unread, Option<Box<AdmittedEntry>>),
}

/// One statement for [`Redecider::decide`], with the commit time of its batch in Unix seconds, if known.
pub(crate) struct EntryCase<'r> {
    pub(crate) whole: &'r ReadableEntry<'r>,
    pub(crate) at: Option<u64>,
}

/// The source to query and the workers for signature checks.
pub(crate) struct Redecider<'s> {
    pub(crate) source: &'s dyn AuditSource,
    pub(crate) workers: &'s dyn Workers,
}

/// State of a statement between [`prepare`] and [`finish`].
enum CaseStep<'a> {
    Prepared(Box<PreparedEntry<'a>>),
    Gone(LostPart, Vec<AuditFinding>),
    Dropped(Vec<AuditFinding>),
    Refused(AuditFinding),
}

impl<'a> CaseStep<'a> {
    fn prepared(&self) -> Option<&PreparedEntry<'a>> {
        match self {
            CaseStep::Prepared(prepared) => Some(prepared),
            _ => None,
        }
    }
}

/// Answers of the log to the questions of all entries of a page.
#[derive(Default)]
struct LogAnswers {
    entries: HashMap<EntryDigest, LeafIndex>,
    holders: HashMap<Guard, LeafIndex>,
}

impl Redecider<'_> {
    /// Checks that the entry IDs of these rows, and the twins of their readable statements, lead back to them. Without
    /// indexes nothing is checked.
    pub(crate) async fn check_look_ups(
        &self,
        page: &[OpenedEntry<'_>],
    ) -> Result<Vec<AuditFinding>, SourceError> {
        if !self.source.keeps_indexes() {
            return Ok(Vec::new());
        }
        let mut look_ups: Vec<(EntryDigest, LogRule, &OpenedEntry<'_>)> = Vec::new();
        for opened in page {
            if let Some(evidence) = opened.evidence() {
                look_ups.push((evidence.digest, LogRule::LookUp, opened));
            }
            if let Some(twin) = opened.whole().and_then(|whole| whole.twin) {
                look_ups.push((twin, LogRule::Twin, opened));
            }
        }
        let digests: Vec<EntryDigest> = look_ups.iter().map(|(digest, ..)| *digest).collect();
        let found = self.source.find(&digests).await?;
        let checked = look_ups.iter().zip(found).filter_map(|((_, rule, opened), found)| {
            let evidence = opened.evidence()?;
            let detail = describe_mismatch(evidence.index, evidence.digest, found)?;
            Some(AuditFinding::of_entry(*rule, evidence.index, evidence.digest, detail))
        });
        Ok(checked.collect())
    }

    /// Decides entries again, all under the policy `in_force`. The claims that they make are compared with the source's
    /// index, or with the claims of earlier entries if the source keeps no index.
    pub(crate) async fn decide(
        &self,
        cases: &[EntryCase<'_>],
        in_force: &PolicyInForce,
        claims: &mut PendingClaims<'_>,
    ) -> Result<Vec<CaseOutcome>, SourceError> {
        let kept = self.collateral(cases).await?;
        let work: Vec<(&EntryCase<'_>, &Result<StoredCollateral, String>)> =
            cases.iter().zip(&kept).collect();
        let steps = map(self.workers, &work, |(case, kept)| prepare(case, kept, in_force));
        let known = self.ask(&steps).await?;
        let work: Vec<(&EntryCase<'_>, &CaseStep<'_>)> = cases.iter().zip(&steps).collect();
        if !self.source.keeps_indexes() {
            return Ok(work.iter().map(|case| decide_in_order(case, in_force, claims)).collect());
        }
        let mut outcomes = map(self.workers, &work, |(case, step)| {
            finish(case, step, in_force, &known.answers(step, case.whole.evidence.index))
        });
        self.check_guards(cases, &mut outcomes).await?;
        Ok(outcomes)
    }

    /// Checks that the index records admitted entries as holders of their claims, and adds a [`LogRule::GuardMissing`]
    /// finding otherwise.
    pub(crate) async fn check_guards(
        &self,
        cases: &[EntryCase<'_>],
        outcomes: &mut [CaseOutcome],
    ) -> Result<(), SourceError> {
        let mut admitted: Vec<(&ReadableEntry<'_>, &mut AdmittedEntry)> =
            cases.iter().zip(outcomes).filter_map(|(case, it)| Some((case.whole, it.admitted()?))).collect();
        let guards: Vec<Guard> = admitted.iter().flat_map(|(_, admitted)| admitted.guards.clone()).collect();
        let mut holders = self.holders(&guards).await?.into_iter();
        for (whole, admitted) in &mut admitted {
            for guard in &admitted.guards {
                let holder = holders.next().unwrap_or(Ok(None));
                if holder != Ok(Some(whole.evidence.index)) {
                    let detail =
                        format!("its {:?} is recorded as that of {}", guard.kind(), describe_holder(holder));
                    admitted.findings.push(whole.finding(LogRule::GuardMissing, detail));
                }
            }
        }
        Ok(())
    }

    async fn collateral(
        &self,
        cases: &[EntryCase<'_>],
    ) -> Result<Vec<Result<StoredCollateral, String>>, SourceError> {
        let mut kept = Vec::with_capacity(cases.len());
        for case in cases {
            kept.push(match case.whole.needs_collateral() {
                true => StoredCollateral::read(self.source.collateral(case.whole.evidence.index).await?),
                false => Ok(StoredCollateral::default()),
            });
        }
        Ok(kept)
    }

    async fn ask(&self, steps: &[CaseStep<'_>]) -> Result<LogAnswers, SourceError> {
        if !self.source.keeps_indexes() {
            return Ok(LogAnswers::default());
        }
        let asking = || steps.iter().filter_map(CaseStep::prepared).map(|prepared| &prepared.questions);
        let digests: Vec<EntryDigest> = asking().flat_map(|questions| questions.digests.clone()).collect();
        let guards: Vec<Guard> = asking().flat_map(|questions| questions.guards.clone()).collect();
        let found = if digests.is_empty() { Vec::new() } else { self.source.find(&digests).await? };
        let holders = self.holders(&guards).await?;
        let held = |(guard, holder): (Guard, LookUpAnswer<LeafIndex>)| Some((guard, holder.ok()??));
        Ok(LogAnswers {
            entries: digests.iter().zip(found).filter_map(entry_leaf).collect(),
            holders: guards.into_iter().zip(holders).filter_map(held).collect(),
        })
    }

    async fn holders(&self, guards: &[Guard]) -> Result<Vec<LookUpAnswer<LeafIndex>>, SourceError> {
        if guards.is_empty() {
            return Ok(Vec::new());
        }
        let keys: Vec<GuardKey> = guards.iter().map(|guard| GuardKey(guard.as_bytes().to_vec())).collect();
        self.source.guards(&keys).await
    }
}

impl CaseOutcome {
    fn admitted(&mut self) -> Option<&mut AdmittedEntry> {
        match self {
            CaseOutcome::Decided(Redecided::Admitted(admitted)) | CaseOutcome::Unknown(_, Some(admitted)) => {
                Some(admitted)
            }
            _ => None,
        }
    }

    /// Returns `true` if the entry is refused, or admitted with findings.
    fn differs(&self) -> bool {
        match self {
            CaseOutcome::Decided(Redecided::Admitted(admitted)) => !admitted.findings.is_empty(),
            CaseOutcome::Decided(Redecided::Refused(_)) => true,
            _ => false,
        }
    }
}

impl LogAnswers {
    /// Returns the answers to the questions of this step, limited to entries below `leaf`.
    fn answers(&self, step: &CaseStep<'_>, leaf: LeafIndex) -> Answers {
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

fn prepare<'a>(
    case: &EntryCase<'a>,
    kept: &'a Result<StoredCollateral, String>,
    in_force: &PolicyInForce,
) -> CaseStep<'a> {
    let whole = case.whole;
    let kept = match kept {
        Ok(kept) => kept,
        Err(why) => return CaseStep::Refused(whole.finding(LogRule::Collateral, why)),
    };
    match whole.lacks(kept) {
        Some(LostPart::Payload) => {
            let findings = whole.compare_outline(kept, in_force, case.at);
            return match in_force.keeps_payload(whole.statement.header()) {
                true => CaseStep::Gone(LostPart::Payload, findings),
                false => CaseStep::Dropped(findings),
            };
        }
        Some(gone) => return CaseStep::Gone(gone, Vec::new()),
        None => {}
    }
    match whole.prepare(kept, in_force) {
        Ok(prepared) => CaseStep::Prepared(Box::new(prepared)),
        Err(violation) => CaseStep::Refused(whole.refused(&violation)),
    }
}

fn finish(
    case: &EntryCase<'_>,
    step: &CaseStep<'_>,
    in_force: &PolicyInForce,
    answers: &Answers,
) -> CaseOutcome {
    match step {
        CaseStep::Prepared(prepared) => {
            CaseOutcome::Decided(prepared.decide(case.whole, in_force, answers, case.at))
        }
        CaseStep::Gone(gone, findings) => CaseOutcome::Gone(*gone, findings.clone()),
        CaseStep::Dropped(findings) => CaseOutcome::Dropped(findings.clone()),
        CaseStep::Refused(finding) => CaseOutcome::Decided(Redecided::Refused(finding.clone())),
    }
}

/// Decides one entry with the claims of the entries before it, and records its own claims for those after it.
fn decide_in_order(
    (case, step): &(&EntryCase<'_>, &CaseStep<'_>),
    in_force: &PolicyInForce,
    claims: &mut PendingClaims<'_>,
) -> CaseOutcome {
    let leaf = case.whole.evidence.index;
    let mut answers = Answers::none();
    let ask = |prepared: &PreparedEntry<'_>| claims.answer(&prepared.questions, leaf, &mut answers);
    let doubt = step.prepared().and_then(ask);
    let mut outcome = finish(case, step, in_force, &answers);
    if let Some(doubt) = doubt.filter(|_| outcome.differs()) {
        doubt.guards.iter().for_each(|guard| answers.put_guard(guard.clone(), LeafIndex::new(doubt.by.leaf)));
        outcome = combine(outcome, finish(case, step, in_force, &answers), doubt);
    }
    claim(case.whole, &mut outcome, claims);
    outcome
}

/// Combines the outcome without the claims in doubt with the outcome under the assumption that they were made. Only a
/// finding that both outcomes share is certain.
fn combine(without: CaseOutcome, with: CaseOutcome, doubt: ClaimDoubt) -> CaseOutcome {
    use Redecided::{Admitted, Refused, Undecided};
    let one = doubt.guards.len() == 1;
    match (without, with) {
        (_, CaseOutcome::Decided(Admitted(with))) if with.findings.is_empty() => {
            CaseOutcome::Unknown(doubt.by, Some(with))
        }
        // With several guards in doubt, an unread entry may have claimed some of them only. Those combinations are not
        // tried.
        (_, CaseOutcome::Decided(Admitted(_) | Refused(_))) if !one => CaseOutcome::Unknown(doubt.by, None),
        (CaseOutcome::Decided(Admitted(mut without)), CaseOutcome::Decided(Admitted(with))) => {
            without.findings.retain(|finding| with.findings.contains(finding));
            match without.findings.is_empty() {
                true => CaseOutcome::Unknown(doubt.by, None),
                false => CaseOutcome::Decided(Admitted(without)),
            }
        }
        (CaseOutcome::Decided(Refused(_)), with @ CaseOutcome::Decided(Admitted(_) | Undecided)) => with,
        (without, CaseOutcome::Decided(Undecided)) if !one => {
            drop(without);
            CaseOutcome::Unknown(doubt.by, None)
        }
        (without, _) => without,
    }
}

/// Records the claims of an admitted entry. The claims of any other entry are recorded as unknown.
pub(crate) fn claim(whole: &ReadableEntry<'_>, outcome: &mut CaseOutcome, claims: &mut PendingClaims<'_>) {
    match outcome.admitted() {
        Some(admitted) => take_claims(whole, admitted, claims),
        None => {
            let missed = match outcome {
                CaseOutcome::Decided(Redecided::Refused(_)) => UnknownClaims::Anything,
                _ => UnknownClaims::Erasable,
            };
            claims.miss(whole.evidence.index, Some(whole.evidence.digest), missed);
        }
    }
}

/// Records the claims of an admitted entry. A claim that an earlier entry has made is a [`LogRule::GuardMissing`]
/// finding.
fn take_claims(whole: &ReadableEntry<'_>, admitted: &mut AdmittedEntry, claims: &mut PendingClaims<'_>) {
    for guard in &admitted.guards {
        if let Some(holder) = claims.take(guard, whole.evidence.index) {
            let detail = format!("leaf {holder} has made its {:?} before", guard.kind());
            admitted.findings.push(whole.finding(LogRule::GuardMissing, detail));
        }
    }
}

/// Returns the leaf of a digest that was found as an entry ID, or `None` if it was found as a twin only.
fn entry_leaf((digest, found): (&EntryDigest, LookUpAnswer<Found>)) -> Option<(EntryDigest, LeafIndex)> {
    let found = found.ok().flatten().filter(|found| found.digest == *digest)?;
    Some((*digest, found.index))
}

/// Describes a look-up that does not lead to the entry; `None` if it does.
fn describe_mismatch(leaf: LeafIndex, digest: EntryDigest, found: LookUpAnswer<Found>) -> Option<String> {
    match found {
        Ok(Some(found)) if found.index == leaf && found.digest == digest => None,
        Ok(Some(found)) => Some(format!("it leads to leaf {} ({})", found.index, found.digest)),
        Ok(None) => Some("it leads nowhere".to_owned()),
        Err(why) => Some(why),
    }
}

fn describe_holder(holder: LookUpAnswer<LeafIndex>) -> String {
    match holder {
        Ok(Some(leaf)) => format!("leaf {leaf}"),
        Ok(None) => "nobody".to_owned(),
        Err(why) => why,
    }
}
