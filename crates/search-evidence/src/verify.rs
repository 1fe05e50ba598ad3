//! Verification of an answer, from the cosigned checkpoint to the entries.
//!
//! Entries of issuers that the reader does not know count if the log registered them, since the log verified their
//! signatures, and the question is what the log has. The signature of an issuer in the trust store must verify.

use bundle::{BundleVerdict, EvidenceBundle};
use scitt::SignedStatement;
use tlog::policy::WitnessPolicy;
use verifier::index::TrustedIndex;
use verifier::{
    Check, CheckName, CheckState, Code, IndexMonitors, IssuerSignature, StatementVerdict, TrustStore,
    VerificationOutcome,
};

use crate::answer::SearchAnswer;
use crate::entries::{AnswerTree, Comparison, compare};
use crate::index_policy::{NoIndexPolicy, PolicyIndex};
use crate::pages::{PagesVerdict, ProvenPages};
use crate::statement_terms::can_be_found;
use crate::verdict::{AnswerOutcome, AnswerVerdict, QuestionFacts, SearchedLeaves, failed, not_done};

/// A reader of an answer: the keys that it trusts, and the time.
#[derive(Debug, Clone, Copy)]
pub struct AnswerReader<'r> {
    /// Trusted logs and issuers.
    pub trust: &'r TrustStore,
    /// The witnesses that must have cosigned the checkpoint; `None` requires none.
    pub witnesses: Option<&'r WitnessPolicy>,
    /// Monitors in place of those of the trust store.
    pub monitors: Option<&'r IndexMonitors>,
    /// Attestations in addition to those in the file.
    pub attestations: &'r [String],
    /// Current time in Unix seconds.
    pub now: u64,
}

impl SearchAnswer {
    /// Verifies that the answer is complete, and everything in it.
    pub fn verify(&self, reader: &AnswerReader<'_>) -> AnswerVerdict {
        let trust = TrustStore { issuer_signature: IssuerSignature::LeftToLog, ..reader.trust.clone() };
        let evidence = self.evidence.verify(&trust, reader.witnesses, reader.now);
        let PagesVerdict { pages, mut checks } = self.prove(&trust, &evidence, reader.now);
        let tree = AnswerTree::of(&evidence);
        let comparison = match (&pages, tree) {
            (Some(pages), Some(tree)) => {
                checks.push(self.check_monitors(pages, &evidence, reader));
                compare(self, &evidence, pages, tree)
            }
            _ => Comparison::default(),
        };
        let Comparison { found, gaps, checks: of_entries } = comparison;
        checks.extend(of_entries);
        let (outcome, reason) = conclude(&evidence, &checks, gaps.is_empty());
        let searched = pages.map(|pages| searched_leaves(self, &pages));
        let question = QuestionFacts::of(&self.question);
        AnswerVerdict { outcome, reason, question, searched, found, gaps, evidence, checks }
    }

    /// Verifies the pages under the index that the policy of the head describes.
    fn prove(&self, trust: &TrustStore, evidence: &BundleVerdict, now: u64) -> PagesVerdict {
        if !self.question.terms.iter().all(can_be_found) {
            let why = "a term of the question has a form that no entry of an index has".to_owned();
            let check = failed(CheckName::Completeness, Code::IndexProofInvalid, why);
            return PagesVerdict { pages: None, checks: vec![check] };
        }
        let (index, leaf) = match self.index(evidence) {
            Ok(index) => index,
            Err(check) => return PagesVerdict { pages: None, checks: vec![check] },
        };
        let proof = ProvenPages::verify(&self.question, &self.pages, &index, trust, now);
        match &proof.pages {
            Some(pages) if pages.head.leaf.get() != leaf => {
                let why = format!("the head is at leaf {leaf}, its receipt is for leaf {}", pages.head.leaf);
                let check = failed(CheckName::IndexHead, Code::IndexHeadMismatch, why);
                PagesVerdict { pages: None, checks: proof.checks.into_iter().chain([check]).collect() }
            }
            _ => proof,
        }
    }

    /// Returns the index that the policy of the head describes, and the leaf of the head.
    fn index(&self, evidence: &BundleVerdict) -> Result<(TrustedIndex, u64), Check> {
        let missing = |why: String| failed(CheckName::IndexHead, Code::EntryMissing, why);
        let head = self.pages.first().and_then(|page| {
            self.evidence.entries.iter().find(|entry| entry.statement == page.head.statement)
        });
        let head =
            head.ok_or_else(|| missing("the head of the index is not among the entries".to_owned()))?;
        let policy = head.admitted_by.as_ref().and_then(|by| policy_payload(&self.evidence, by.policy));
        let policy = policy.ok_or_else(|| missing("the policy of the head is not in the file".to_owned()))?;
        let origin = evidence.checkpoint.checkpoint.as_ref().map_or("", |facts| &facts.origin);
        let index = PolicyIndex::read(&policy, origin)
            .map_err(|why| failed(CheckName::IndexHead, Code::IndexHeadMismatch, why.to_string()))?;
        if !index.has_known_table() {
            let why = NoIndexPolicy::OtherTable(index.table).to_string();
            return Err(not_done(CheckName::IndexHead, Code::UnsupportedStructure, why));
        }
        Ok((index.trusted, head.proof.index))
    }

    /// Checks the attestations. A trust file may have several logs with the origin, whose checkpoint keys all count: then
    /// the monitors of each must have attested the head.
    fn check_monitors(
        &self,
        pages: &ProvenPages,
        evidence: &BundleVerdict,
        reader: &AnswerReader<'_>,
    ) -> Check {
        let origin = evidence.checkpoint.checkpoint.as_ref().map_or("", |facts| &facts.origin);
        let notes: Vec<String> = self.attestations.iter().chain(reader.attestations).cloned().collect();
        let check = |monitors: &IndexMonitors| monitors.check(&notes, origin, &pages.head.head);
        if let Some(monitors) = reader.monitors {
            return check(monitors);
        }
        let logs = reader.trust.logs.iter().filter(|log| log.origin.as_deref() == Some(origin));
        let required = logs.map(|log| &log.index_monitors).filter(|monitors| !monitors.keys.is_empty());
        let worst = required.map(check).max_by_key(|check| match check.state {
            CheckState::Ok => 0,
            CheckState::NotDone => 1,
            CheckState::Failed => 2,
        });
        worst.unwrap_or_else(|| check(&IndexMonitors::default()))
    }
}

/// Returns the payload of the policy at a leaf.
fn policy_payload(evidence: &EvidenceBundle, leaf: u64) -> Option<Vec<u8>> {
    let policy = evidence.policies.iter().find(|policy| policy.proof.index == leaf)?;
    SignedStatement::parse(policy.statement.clone()).ok()?.payload().map(<[u8]>::to_vec)
}

fn searched_leaves(answer: &SearchAnswer, pages: &ProvenPages) -> SearchedLeaves {
    let head = answer.pages.first().and_then(|page| SignedStatement::parse(page.head.statement.clone()).ok());
    SearchedLeaves {
        from: pages.leaves.start.get(),
        to: pages.leaves.end.get(),
        at: head.and_then(|head| head.header().iat()),
        head: pages.head.leaf.get(),
    }
}

/// Concludes from all parts of the file and the checks of the whole.
fn conclude(evidence: &BundleVerdict, checks: &[Check], no_gaps: bool) -> (AnswerOutcome, Option<Code>) {
    let statements = evidence.policies.iter().chain(&evidence.entries);
    let statements = statements.filter(|verdict| !lacks_payload(verdict));
    let statements = statements.map(|verdict| (verdict.outcome, verdict.reason));
    let checkpoint = (evidence.checkpoint.outcome, evidence.checkpoint.reason);
    let whole = [checkpoint, VerificationOutcome::of(&evidence.checks), VerificationOutcome::of(checks)];
    let parts: Vec<_> = statements.chain(whole).collect();
    let first = |outcome| parts.iter().find(|(part, _)| *part == outcome).map(|(_, reason)| *reason);
    if let Some(reason) = first(VerificationOutcome::Failed) {
        return (AnswerOutcome::Wrong, reason);
    }
    match first(VerificationOutcome::NotVerified) {
        Some(reason) => (AnswerOutcome::NotProven, reason),
        None if no_gaps => (AnswerOutcome::Complete, None),
        None => (AnswerOutcome::CompleteBut, None),
    }
}

/// Returns `true` if nothing is open but a payload that the log does not serve: the index counts the entry as unread.
fn lacks_payload(verdict: &StatementVerdict) -> bool {
    verdict.outcome == VerificationOutcome::NotVerified
        && matches!(verdict.reason, Some(Code::PayloadMissing | Code::PayloadNotGiven))
}
