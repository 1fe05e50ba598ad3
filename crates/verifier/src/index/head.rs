//! Verification of a head of the index, from the log's signature to the payload.

use lookup_tree::{HEAD_CONTENT_TYPE, IndexHead};
use merkle::{Hash, LeafIndex};
use scitt::{CoseKey, SignatureError, SignedStatement};

use crate::consistency::KnownTree;
use crate::receipt::{self, ReceiptReport};
use crate::trust::{Candidates, NoCandidate};
use crate::verdict::{Check, CheckName, CheckpointFacts, Code, VerificationOutcome};
use crate::witnesses::{self, CheckpointEvidence};
use crate::{TrustStore, time};

/// The index of a log, as the log's registration policy describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedIndex {
    /// Issuer (`iss`) of heads: that of the log.
    pub iss: String,
    /// Subject (`sub`) of heads: the origin of the log and `/index`.
    pub subject: String,
    /// Hash of the policy's rules for the index.
    pub series: Hash,
    /// Keys that sign heads.
    pub keys: Vec<CoseKey>,
}

/// A head of the index as a statement of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexHeadEvidence {
    /// The statement whose payload is the head.
    pub statement: Vec<u8>,
    /// A receipt of the statement.
    pub receipt: Vec<u8>,
}

/// A head that a log has registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProvenHead {
    /// The head.
    pub head: IndexHead,
    /// The leaf of its statement.
    pub leaf: LeafIndex,
    /// Latest time of registration according to the log (`iat` of the receipt), in Unix seconds.
    pub in_log_by: Option<i64>,
    /// The tree that the receipt signs.
    pub tree: KnownTree,
}

/// Result of [`IndexHeadEvidence::verify`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexHeadVerdict {
    /// Overall result.
    pub outcome: VerificationOutcome,
    /// Reason why `outcome` is not [`VerificationOutcome::Verified`].
    pub reason: Option<Code>,
    /// The head; present only if it is verified.
    pub head: Option<ProvenHead>,
    /// Contents of the checkpoint that was given, and its cosignatures.
    pub checkpoint: Option<CheckpointFacts>,
    /// All checks, including those not done.
    pub checks: Vec<Check>,
}

impl IndexHeadEvidence {
    /// Verifies that the log has registered the head, at `now` (Unix seconds): receipt, cosignatures if the checkpoint
    /// evidence has a policy, signature by a key of the index, and payload.
    pub fn verify(
        &self,
        index: &TrustedIndex,
        checkpoint: &CheckpointEvidence<'_>,
        trust: &TrustStore,
        now: u64,
    ) -> IndexHeadVerdict {
        let statement = match SignedStatement::parse(self.statement.clone()) {
            Ok(statement) => statement,
            Err(why) => return IndexHeadVerdict::not_a_statement(&why.to_string()),
        };
        let reports = receipt::check_all((&statement).into(), &[&self.receipt], trust, now);
        let witness_report = witnesses::check(checkpoint, (&statement).into(), &reports, trust);
        let position = reports.first().and_then(|report| report.facts.position);
        let payload = index.read_head(&statement, reports.first());
        let mut checks = vec![
            Check::ok(CheckName::Statement, format!("entry {}", statement.digest())),
            index.check_signature(&statement),
        ];
        let tree = reports.first().and_then(proven_tree);
        let in_log_by = reports.first().and_then(|report| report.facts.iat);
        checks.extend(reports.into_iter().flat_map(|report| report.checks));
        checks.extend(witness_report.checks);
        checks.push(match &payload {
            Ok(head) => Check::ok(CheckName::IndexHead, describe(head, in_log_by)),
            Err(check) => check.clone(),
        });
        let (outcome, reason) = VerificationOutcome::of(&checks);
        let proven = |head| {
            let (leaf, tree) = (position?.leaf_index, tree?);
            Some(ProvenHead { head, leaf, in_log_by, tree })
        };
        let head = payload.ok().filter(|_| outcome == VerificationOutcome::Verified).and_then(proven);
        IndexHeadVerdict { outcome, reason, head, checkpoint: witness_report.facts, checks }
    }
}

impl IndexHeadVerdict {
    fn not_a_statement(why: &str) -> Self {
        let checks = vec![
            Check::failed(CheckName::Statement, Code::MalformedStatement, why),
            Check::not_done(CheckName::IndexHead, Code::NotReached, "there is no statement to check"),
        ];
        let (outcome, reason) = VerificationOutcome::of(&checks);
        Self { outcome, reason, head: None, checkpoint: None, checks }
    }
}

impl TrustedIndex {
    /// Checks that a key of the index signed the statement.
    fn check_signature(&self, statement: &SignedStatement) -> Check {
        let name = CheckName::IssuerSignature;
        let kid = statement.header().kid().map(|kid| kid.as_ref());
        let verify = |key: &_| -> Result<(), SignatureError> { statement.verify_with(key, None) };
        match Candidates::of(&self.keys, kid).find(verify) {
            Ok(_) => Check::ok(name, format!("a key of the index of {}", self.iss)),
            Err(NoCandidate::Refused(why)) => {
                Check::failed(name, Code::IssuerSignatureInvalid, why.to_string())
            }
            Err(NoCandidate::Unknown) => {
                let detail = "the policy does not list the key that the head names";
                Check::not_done(name, Code::UnknownIssuerKey, detail)
            }
        }
    }

    /// Reads the head of this index at the position that its receipt gives.
    fn read_head(
        &self,
        statement: &SignedStatement,
        receipt: Option<&ReceiptReport>,
    ) -> Result<IndexHead, Check> {
        self.check_header(statement).map_err(mismatch)?;
        let payload = statement.payload().ok_or_else(|| mismatch("the head is detached".to_owned()))?;
        let head = IndexHead::decode(payload)
            .map_err(|why| Check::failed(CheckName::IndexHead, Code::MalformedIndexHead, why.to_string()))?;
        if head.series != self.series {
            return Err(mismatch(format!("a head of series {}, not {}", head.series, self.series)));
        }
        let Some(facts) = receipt.map(|report| &report.facts).filter(|facts| facts.verified) else {
            let why = "no verified receipt gives its position";
            return Err(Check::not_done(CheckName::IndexHead, Code::NotReached, why));
        };
        match facts.position {
            None => Err(mismatch("the receipt gives no position in the log".to_owned())),
            Some(position) if head.size.get() > position.leaf_index.get() => Err(mismatch(format!(
                "the head at leaf {} indexes leaves up to {}: more than there were",
                position.leaf_index, head.size
            ))),
            Some(_) => Ok(head),
        }
    }

    fn check_header(&self, statement: &SignedStatement) -> Result<(), String> {
        let header = statement.header();
        let content_type = header.content_type().map(ToString::to_string);
        for (name, given, expected) in [
            ("content type", content_type.as_deref(), HEAD_CONTENT_TYPE),
            ("issuer", header.iss(), self.iss.as_str()),
            ("subject", header.sub(), self.subject.as_str()),
        ] {
            if given != Some(expected) {
                let given = given.unwrap_or_default();
                return Err(format!("a head has {name} {expected:?}, and the statement has {given:?}"));
            }
        }
        Ok(())
    }
}

fn mismatch(why: String) -> Check {
    Check::failed(CheckName::IndexHead, Code::IndexHeadMismatch, why)
}

/// The tree of a verified receipt.
fn proven_tree(report: &ReceiptReport) -> Option<KnownTree> {
    let facts = &report.facts;
    let root = facts.root.as_deref().filter(|_| facts.verified)?;
    Some(KnownTree { size: facts.position?.tree_size, root: root.parse().ok()? })
}

fn describe(head: &IndexHead, in_log_by: Option<i64>) -> String {
    let at = in_log_by.map(|at| format!(", in the log by {}", time::rfc3339(at))).unwrap_or_default();
    format!("leaves up to {}, runs: {}{at}", head.size, head.runs.len())
}
