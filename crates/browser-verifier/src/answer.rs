//! The answer: a verdict, or why there is none.

use bundle::{BundleVerdict, EvidenceBundle};
use serde::Serialize;
use verifier::{
    CheckpointEvidence, CheckpointVerdict, StatementEvidence, StatementVerdict, verify_checkpoint,
    verify_with_checkpoint,
};

use crate::request::{EvidenceKind, RefusedRequest, VerificationRequest};

/// A verdict with the kind of the evidence.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", content = "verdict", rename_all = "kebab-case")]
enum Answer {
    Bundle(BundleVerdict),
    Statement(StatementVerdict),
    Checkpoint(CheckpointVerdict),
}

/// Returns the answer to a request as JSON: `kind` and `verdict`, or `error` with `code` and `what`. Its texts quote the
/// evidence: escape them before use in a page.
pub fn answer(request: &[u8]) -> Vec<u8> {
    let answer = VerificationRequest::parse(request).and_then(|request| Answer::to(&request));
    let json = match &answer {
        Ok(answer) => serde_json::to_vec(answer),
        Err(refused) => serde_json::to_vec(&error(refused)),
    };
    // Serialization cannot fail: answers consist of text, numbers, booleans, and structures of them.
    json.unwrap_or_default()
}

fn error(refused: &RefusedRequest) -> serde_json::Value {
    serde_json::json!({ "error": { "code": refused.code(), "what": refused.to_string() } })
}

impl Answer {
    fn to(request: &VerificationRequest) -> Result<Self, RefusedRequest> {
        match request.evidence_kind()? {
            EvidenceKind::Bundle => bundle_verdict(request).map(Self::Bundle),
            EvidenceKind::Statement => Ok(Self::Statement(statement_verdict(request))),
            EvidenceKind::Checkpoint => {
                let VerificationRequest { evidence, trust, witness_policy, .. } = request;
                Ok(Self::Checkpoint(verify_checkpoint(evidence, &[], witness_policy.as_ref(), trust)))
            }
        }
    }
}

fn bundle_verdict(request: &VerificationRequest) -> Result<BundleVerdict, RefusedRequest> {
    let bundle = EvidenceBundle::parse(&request.evidence)
        .map_err(|error| RefusedRequest::Bundle(error.to_string()))?;
    Ok(bundle.verify(&request.trust, request.witness_policy.as_ref(), request.now))
}

/// Verifies a statement by its receipts. If the request has a witness policy, a checkpoint is required, which a statement
/// alone does not bring.
fn statement_verdict(request: &VerificationRequest) -> StatementVerdict {
    let receipts: Vec<&[u8]> = request.receipts.iter().map(Vec::as_slice).collect();
    let evidence = StatementEvidence {
        statement: &request.evidence,
        receipts: &receipts,
        payload: request.payload.as_deref(),
    };
    let witnesses =
        CheckpointEvidence { policy: request.witness_policy.as_ref(), ..CheckpointEvidence::default() };
    verify_with_checkpoint(&evidence, &witnesses, &request.trust, request.now)
}
