//! `tabellion verify` for the answer of a search: whether it is complete, and for which entries it leaves that open.

use std::io::{self, Write};

use display::counted;
use owo_colors::OwoColorize;
use search_evidence::{
    AnswerGap, AnswerOutcome, AnswerReader, AnswerVerdict, FoundEntry, MalformedAnswer, QuestionFacts,
    SearchAnswer, SearchedLeaves, TermFacts,
};
use serde::Serialize;
use tlog::key::VerifierKey;
use verifier::{IndexMonitors, VerificationOutcome};

use super::bundle::print_part;
use super::{VerificationFiles, now, witness_policy};
use crate::console::{Exit, Failure, Report, files, safe};
use crate::show;
use crate::trust_file::TrustFile;
use crate::verification::{print_check, print_not_verified};

/// Verifies an answer with the keys that the reader trusts.
pub fn verify(given: &VerificationFiles, bytes: &[u8], trust: &TrustFile) -> Result<VerifiedAnswer, Failure> {
    given.refuse_other_evidence("the answer of a search")?;
    let answer = SearchAnswer::decode(bytes).map_err(|why| damaged(given, &why))?;
    let witnesses = given.witness_policy.as_deref().map(witness_policy).transpose()?;
    let attestations =
        given.attestations.iter().map(|file| files::read_text(file)).collect::<Result<Vec<_>, _>>()?;
    let verdict = answer.verify(&AnswerReader {
        trust: &trust.store,
        witnesses: witnesses.as_ref(),
        monitors: required_monitors(&given.monitors)?.as_ref(),
        attestations: &attestations,
        now: now(),
    });
    Ok(VerifiedAnswer { verdict })
}

fn damaged(given: &VerificationFiles, why: &MalformedAnswer) -> Failure {
    let what = format!("{} is damaged: it begins like the answer of a search", given.statement.display());
    Failure::new(Exit::VerificationFailed, "malformed-answer", what).fact("found", why.to_string())
}

/// Returns the monitors of `--attested-by`, each of which is required; `None` leaves it to the trust file.
fn required_monitors(keys: &[String]) -> Result<Option<IndexMonitors>, Failure> {
    let read = |key: &String| {
        key.parse::<VerifierKey>().map_err(|why| {
            Failure::new(Exit::Usage, "usage", format!("--attested-by {key} is not a vkey"))
                .fact("because", why.to_string())
        })
    };
    let keys = keys.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    Ok(Some(IndexMonitors::all(&keys)).filter(|monitors| monitors.required > 0))
}

/// The result for an answer, in JSON as the crate `search-evidence` gives it.
#[derive(Serialize)]
pub struct VerifiedAnswer {
    #[serde(flatten)]
    verdict: AnswerVerdict,
}

impl VerifiedAnswer {
    /// The outcome of all checks. An answer that leaves something open is not verified.
    pub fn outcome(&self) -> VerificationOutcome {
        match self.verdict.outcome {
            AnswerOutcome::Complete => VerificationOutcome::Verified,
            AnswerOutcome::CompleteBut | AnswerOutcome::NotProven => VerificationOutcome::NotVerified,
            AnswerOutcome::Wrong => VerificationOutcome::Failed,
        }
    }

    /// The exit code of a verification with this result.
    pub fn exit(&self) -> Exit {
        exit(self.verdict.outcome)
    }
}

/// Returns the exit code of an outcome.
pub fn exit(outcome: AnswerOutcome) -> Exit {
    match outcome {
        AnswerOutcome::Complete => Exit::Success,
        AnswerOutcome::CompleteBut => Exit::CompleteBut,
        AnswerOutcome::NotProven => Exit::NotVerified,
        AnswerOutcome::Wrong => Exit::VerificationFailed,
    }
}

impl Report for VerifiedAnswer {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        let AnswerVerdict { evidence, checks, found, .. } = &self.verdict;
        for (kind, parts) in [("policy", &evidence.policies), ("entry", &evidence.entries)] {
            let open = parts.iter().filter(|part| !part.is_verified());
            open.into_iter().try_for_each(|part| print_part(out, kind, part))?;
        }
        print_question(out, &self.verdict.question)?;
        let checks = evidence.checkpoint.checks.iter().chain(checks);
        checks.into_iter().try_for_each(|check| print_check(out, check))?;
        found.iter().try_for_each(|entry| print_found(out, entry))?;
        print_outcome(out, &self.verdict)
    }
}

fn print_question(out: &mut dyn Write, question: &QuestionFacts) -> io::Result<()> {
    let term = |term: &TermFacts| format!("{}={}", term.kind, term.value);
    let terms: Vec<String> = question.terms.iter().map(term).collect();
    let from = if question.from == 0 { String::new() } else { format!(" from leaf {}", question.from) };
    let to = question.to.map(|to| format!(" before leaf {to}")).unwrap_or_default();
    writeln!(out, "search {}{from}{to}", safe(&terms.join(" ")))
}

fn print_found(out: &mut dyn Write, entry: &FoundEntry) -> io::Result<()> {
    let texts = [&entry.content_type, &entry.iss, &entry.sub];
    let [content_type, iss, sub] = texts.map(|text| safe(text.as_deref().unwrap_or("-")));
    writeln!(out, "{:>8}  {}  {content_type}  {iss}  {sub}", entry.leaf, entry.entry)
}

/// Prints up to which leaf the answer is complete, and what it leaves open.
pub fn print_outcome(out: &mut dyn Write, verdict: &AnswerVerdict) -> io::Result<()> {
    let Some(searched) = verdict.searched.as_ref().filter(|_| is_proven(verdict)) else {
        return print_not_verified(out, verdict.reason);
    };
    verdict.gaps.iter().try_for_each(|gap| print_gap(out, gap))?;
    let up_to = up_to(searched);
    let found = counted(verdict.found.len(), "entry", "entries");
    match verdict.gaps.len() {
        0 => writeln!(out, "{} {up_to}: {found}", "complete".green()),
        gaps => {
            let gaps = counted(gaps, "gap", "gaps");
            writeln!(out, "{} {gaps} {up_to}: {found}", "complete but for".yellow())
        }
    }
}

fn is_proven(verdict: &AnswerVerdict) -> bool {
    matches!(verdict.outcome, AnswerOutcome::Complete | AnswerOutcome::CompleteBut)
}

fn up_to(searched: &SearchedLeaves) -> String {
    let SearchedLeaves { from, to, at, .. } = searched;
    let from = if *from == 0 { String::new() } else { format!("from leaf {from} ") };
    let at = at.map(|at| format!(" (registered at {})", show::time(at))).unwrap_or_default();
    format!("{from}up to leaf {to}{at}")
}

fn print_gap(out: &mut dyn Write, gap: &AnswerGap) -> io::Result<()> {
    match gap {
        AnswerGap::Erased { leaf, by, .. } => {
            writeln!(out, "--    leaf {leaf} was erased by the statement at leaf {by}")
        }
        AnswerGap::Unread { leaf, .. } => writeln!(out, "--    leaf {leaf} cannot be read in full"),
        AnswerGap::NotSearched { from, to } if from + 1 == *to => {
            writeln!(out, "--    leaf {from} is newer than the index: not searched")
        }
        AnswerGap::NotSearched { from, to } => {
            writeln!(out, "--    leaves {from} to {} are newer than the index: not searched", to - 1)
        }
    }
}
