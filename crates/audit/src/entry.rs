//! Decides one entry again: reads its statement, authenticates it, decides it and compares the result with its row.
//!
//! All functions here are pure. They read nothing from the source: [`ReadableEntry::prepare`] returns the questions
//! that the log must answer, `redecide` asks them, and [`PreparedEntry::decide`] takes the answers.

use merkle::{EntryDigest, LeafIndex};
use registration::clock_correction::ClockCorrection;
use registration::operator::{Action, is_operator_statement};
use registration::policy::essence;
use registration::policy_statement::genesis;
use registration::{
    Answers, Authenticated, COLLATERAL_PAYLOAD, COLLATERAL_X5CHAIN, Decision, Guard, POLICY_CONTENT_TYPE,
    Permit, Policy, PolicyInForce, Questions, Record, SideData, Violation,
};
use scitt::{SignedStatement, X5Chain};
use serde::{Deserialize, Serialize};
use store::Collateral;

use crate::erasure;
use crate::finding::{AuditFinding, LogRule, quote};
use crate::source::{EntryEvidence, LeafRow};

/// A row after an attempt to read its statement.
pub(crate) enum OpenedEntry<'r> {
    /// The row is missing.
    Lost,
    /// The row has no statement.
    Gone(&'r EntryEvidence),
    /// The bytes are not the statement that was admitted.
    Broken(&'r EntryEvidence, AuditFinding),
    /// The bytes are the statement that the row names.
    Whole(Box<ReadableEntry<'r>>),
}

/// A statement whose digest is the one in its row.
pub(crate) struct ReadableEntry<'r> {
    pub(crate) evidence: &'r EntryEvidence,
    pub(crate) statement: SignedStatement,
    /// Digest of the statement with the other encoding of its signature.
    pub(crate) twin: Option<EntryDigest>,
    /// `true` if the content type is [`POLICY_CONTENT_TYPE`].
    pub(crate) is_policy: bool,
}

/// Parses a row's statement and compares its digest with the row.
pub(crate) fn open(row: &LeafRow) -> OpenedEntry<'_> {
    let LeafRow::Kept(evidence) = row else { return OpenedEntry::Lost };
    let Some(bytes) = &evidence.statement else { return OpenedEntry::Gone(evidence) };
    let found = EntryDigest::of(bytes);
    if found != evidence.digest {
        let detail = format!("the statement hashes to {found}");
        return OpenedEntry::Broken(evidence, finding_of(evidence, LogRule::StatementDigest, detail));
    }
    match SignedStatement::parse(bytes.clone()) {
        Ok(statement) if statement.bytes() == bytes => {
            let twin = statement.twin();
            let is_policy = media_type(&statement).is_some_and(|name| essence(name) == POLICY_CONTENT_TYPE);
            OpenedEntry::Whole(Box::new(ReadableEntry { evidence, statement, twin, is_policy }))
        }
        Ok(_) => OpenedEntry::Broken(
            evidence,
            finding_of(evidence, LogRule::Malformed, "its unprotected header is not empty"),
        ),
        Err(why) => OpenedEntry::Broken(evidence, finding_of(evidence, LogRule::Malformed, why.to_string())),
    }
}

impl<'r> OpenedEntry<'r> {
    pub(crate) fn evidence(&self) -> Option<&'r EntryEvidence> {
        match self {
            OpenedEntry::Lost => None,
            OpenedEntry::Gone(evidence) | OpenedEntry::Broken(evidence, _) => Some(evidence),
            OpenedEntry::Whole(whole) => Some(whole.evidence),
        }
    }

    pub(crate) fn whole(&self) -> Option<&ReadableEntry<'r>> {
        match self {
            OpenedEntry::Whole(whole) => Some(whole),
            _ => None,
        }
    }

    /// Returns `true` if the policy in force may change after this leaf.
    pub(crate) fn may_be_policy(&self) -> bool {
        self.whole().is_some_and(|whole| whole.is_policy)
    }
}

/// Part of an entry that is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum LostPart {
    /// The statement.
    Statement,
    /// The separately stored payload.
    Payload,
    /// The separately stored certificates.
    Certificates,
}

impl LostPart {
    /// Returns the rule that is violated if no entry explains the missing bytes, and its text.
    pub(crate) fn unexplained(self) -> (LogRule, &'static str) {
        match self {
            LostPart::Statement => {
                (LogRule::ErasedUnexplained, "the statement is gone, and no entry says that it was erased")
            }
            LostPart::Payload => (
                LogRule::PayloadUnexplained,
                "the payload is gone, its policy keeps it, and no entry says that it was erased",
            ),
            LostPart::Certificates => (
                LogRule::Collateral,
                "the certificates that were sent with it are missing, and no entry states its erasure",
            ),
        }
    }
}

/// The certificate chain and payload that were stored with a statement, parsed.
#[derive(Debug, Default)]
pub(crate) struct StoredCollateral {
    chain: Option<X5Chain>,
    payload: Option<bytes::Bytes>,
}

impl StoredCollateral {
    pub(crate) fn read(collateral: Vec<Collateral>) -> Result<Self, String> {
        let mut kept = Self::default();
        for Collateral { kind, bytes } in collateral {
            match kind {
                COLLATERAL_X5CHAIN => {
                    let chain =
                        X5Chain::decode(&bytes).map_err(|why| format!("the certificate chain: {why}"))?;
                    kept.chain = Some(chain);
                }
                COLLATERAL_PAYLOAD => kept.payload = Some(bytes),
                _ => {}
            }
        }
        Ok(kept)
    }
}

impl ReadableEntry<'_> {
    /// Returns `true` if a decision needs a certificate chain or payload that is stored outside the statement.
    pub(crate) fn needs_collateral(&self) -> bool {
        self.statement.is_detached() || self.needs_chain()
    }

    /// Returns which of the needed chain and payload is missing, if any.
    pub(crate) fn lacks(&self, kept: &StoredCollateral) -> Option<LostPart> {
        if self.needs_chain() && kept.chain.is_none() {
            return Some(LostPart::Certificates);
        }
        (self.statement.is_detached() && kept.payload.is_none()).then_some(LostPart::Payload)
    }

    /// Returns `true` if the chain is stored outside the header. Operator statements need none, as their key is named
    /// in the policy.
    fn needs_chain(&self) -> bool {
        let header = self.statement.header();
        let own = media_type(&self.statement).is_some_and(is_operator_statement);
        !own && header.x5t().is_some() && header.x5chain().is_none()
    }

    /// Authenticates the statement and reads its record. The result holds the questions that the log must answer.
    pub(crate) fn prepare<'a>(
        &'a self,
        kept: &'a StoredCollateral,
        in_force: &PolicyInForce,
    ) -> Result<PreparedEntry<'a>, Violation> {
        let side_data = SideData { payload: kept.payload.as_deref(), x5chain: kept.chain.as_ref() };
        let authenticated =
            in_force.authenticate(&self.statement, side_data).map_err(|untrusted| untrusted.violation())?;
        let record = Record::read(&authenticated)?;
        let questions = in_force.questions(&authenticated, &record);
        Ok(PreparedEntry { authenticated, record, questions })
    }

    pub(crate) fn finding(&self, rule: LogRule, detail: impl Into<String>) -> AuditFinding {
        finding_of(self.evidence, rule, detail)
    }

    /// Returns the [`LogRule::Refused`] finding: this entry should not have been admitted.
    pub(crate) fn refused(&self, violation: &Violation) -> AuditFinding {
        self.finding(LogRule::Refused, violation.to_string())
    }

    /// Compares row and commit time with the protected header, for a statement whose payload is gone.
    pub(crate) fn compare_outline(
        &self,
        kept: &StoredCollateral,
        in_force: &PolicyInForce,
        at: Option<u64>,
    ) -> Vec<AuditFinding> {
        let outline = match in_force.outline(&self.statement, kept.chain.as_ref()) {
            Ok(outline) => outline,
            Err(violation) => return vec![self.refused(&violation)],
        };
        let row = self.evidence;
        let mut findings = Vec::new();
        if !outline.may_be_admitted_by(&row.rule) {
            let detail = format!("the row says {}, which is not a rule of its type", quote(&row.rule));
            findings.push(self.finding(LogRule::RuleDiffers, detail));
        }
        if let Some(at) = at.filter(|at| !outline.may_be_admitted_at(*at)) {
            let detail = format!("the log's time was {at}, at which it was not to be admitted");
            findings.push(self.finding(LogRule::Time, detail));
        }
        if !outline.may_be_admitted_at_leaf(row.index) {
            let detail = "the log had as many entries as its policy allows";
            findings.push(self.finding(LogRule::Refused, detail));
        }
        findings
    }

    /// Compares row and commit time with the permit of the new decision.
    fn compare(&self, permit: &Permit, at: Option<u64>) -> Vec<AuditFinding> {
        let row = self.evidence;
        let mut findings = Vec::new();
        if row.policy != permit.policy() {
            let detail =
                format!("the row names the policy at leaf {}, in force was {}", row.policy, permit.policy());
            findings.push(self.finding(LogRule::PolicyNotInForce, detail));
        }
        if row.rule != permit.rule().as_str() {
            let detail =
                format!("the row says {}, {} admits it", quote(&row.rule), quote(permit.rule().as_str()));
            findings.push(self.finding(LogRule::RuleDiffers, detail));
        }
        if row.facts != permit.facts() {
            findings.push(self.finding(LogRule::FactsDiffer, facts_differ(&row.facts, permit.facts())));
        }
        if let Some(refusal) = at.and_then(|at| permit.refusal_at(at)) {
            findings.push(self.finding(LogRule::Time, refusal.violation.to_string()));
        }
        if let Some(refusal) = permit.refusal_at_leaf(row.index) {
            findings.push(self.refused(&refusal.violation));
        }
        findings
    }
}

/// An authenticated entry with the questions that the log must answer before the decision.
pub(crate) struct PreparedEntry<'a> {
    authenticated: Authenticated<'a>,
    record: Record,
    pub(crate) questions: Questions,
}

/// Outcome of a second decision.
pub(crate) enum Redecided {
    /// The entry is admitted again.
    Admitted(Box<AdmittedEntry>),
    /// The entry is refused, or its stored data cannot be read.
    Refused(AuditFinding),
    /// A rule reached no result within its bounds, in two attempts.
    Undecided,
}

/// An entry that is admitted again.
pub(crate) struct AdmittedEntry {
    /// Differences between the row and the new permit.
    pub(crate) findings: Vec<AuditFinding>,
    /// Guards that the entry claims.
    pub(crate) guards: Vec<Guard>,
    /// Entries that this entry, an erasure statement, lists as erased.
    pub(crate) erases: Vec<EntryDigest>,
    /// The correction of the log's clock that this entry states.
    pub(crate) corrects: Option<ClockCorrection>,
    /// The operator action that this entry states.
    pub(crate) acts: Option<SignedAction>,
}

/// An operator action and its signer.
#[derive(Debug)]
pub(crate) struct SignedAction {
    pub(crate) action: Action,
    /// Operator's public key as a `did:key`.
    pub(crate) operator: String,
}

impl PreparedEntry<'_> {
    /// Decides the entry again. An undecided attempt is repeated once.
    pub(crate) fn decide(
        &self,
        whole: &ReadableEntry<'_>,
        in_force: &PolicyInForce,
        answers: &Answers,
        at: Option<u64>,
    ) -> Redecided {
        let decide = || in_force.decide(&self.authenticated, &self.record, answers);
        let decision = match decide() {
            Decision::Undecided(_) => decide(),
            decision => decision,
        };
        match decision {
            Decision::Undecided(_) => Redecided::Undecided,
            Decision::Refuse(refusal) => Redecided::Refused(whole.refused(&refusal.violation)),
            Decision::Admit(permit) => Redecided::Admitted(Box::new(AdmittedEntry {
                findings: whole.compare(&permit, at),
                guards: permit.guards().to_vec(),
                erases: erasure::listed(&self.record),
                corrects: permit.clock_correction().cloned(),
                acts: self.signed_action(),
            })),
        }
    }
}

impl PreparedEntry<'_> {
    fn signed_action(&self) -> Option<SignedAction> {
        let Record::OperatorAction(action) = &self.record else { return None };
        Some(SignedAction { action: Action::clone(action), operator: self.authenticated.key().did_key() })
    }
}

/// Decides leaf 0 by the policy that it carries itself.
pub(crate) fn first(whole: &ReadableEntry<'_>, at: Option<u64>) -> Redecided {
    match genesis(&whole.statement) {
        Err(violation) => Redecided::Refused(whole.refused(&violation)),
        Ok((_, permit)) => Redecided::Admitted(Box::new(AdmittedEntry {
            findings: whole.compare(&permit, at),
            guards: permit.guards().to_vec(),
            erases: Vec::new(),
            corrects: None,
            acts: None,
        })),
    }
}

/// Returns the policy in a statement's payload. The rest of the statement is not checked.
pub(crate) fn policy_in(statement: &SignedStatement) -> Option<Policy> {
    Policy::from_payload(statement.payload()?).ok()
}

fn media_type(statement: &SignedStatement) -> Option<&str> {
    statement.header().content_type()?.as_text()
}

pub(crate) fn finding_of(evidence: &EntryEvidence, rule: LogRule, detail: impl Into<String>) -> AuditFinding {
    AuditFinding::of_entry(rule, evidence.index, evidence.digest, detail)
}

/// Describes the first member in which two sets of facts differ.
fn facts_differ(row: &str, read: &str) -> String {
    let object = |text: &str| serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(text);
    let (Ok(row), Ok(read)) = (object(row), object(read)) else {
        return format!("the row's are not an object: {}", quote(row));
    };
    let names = row.keys().chain(read.keys());
    let other = names.into_iter().find(|name| row.get(*name) != read.get(*name));
    match other {
        Some(name) => fact_differs(name, row.get(name), read.get(name)),
        None => "they are written otherwise".to_owned(),
    }
}

fn fact_differs(name: &str, row: Option<&serde_json::Value>, read: Option<&serde_json::Value>) -> String {
    let show = |value: Option<&serde_json::Value>| match value {
        Some(value) => quote(&value.to_string()),
        None => "nothing".to_owned(),
    };
    format!("of {}: the row says {}, the decision {}", quote(name), show(row), show(read))
}

/// Returns `true` if `found` is an answer for this leaf: a decision depends only on entries below it.
pub(crate) fn below(found: LeafIndex, leaf: LeafIndex) -> bool {
    found < leaf
}
