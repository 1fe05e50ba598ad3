//! The verdict on the evidence of a request.

use bundle::{BundleVerdict, EvidenceBundle};
use serde::Serialize;
use verifier::{
    CheckpointEvidence, CheckpointVerdict, StatementEvidence, StatementVerdict, verify_checkpoint,
    verify_with_checkpoint,
};

use crate::request::{EvidenceKind, RefusedRequest, VerificationRequest};

/// A verdict with the kind of the evidence: in JSON `kind` and `verdict`.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", content = "verdict", rename_all = "kebab-case")]
pub enum EvidenceVerdict {
    /// The verdict on an evidence bundle.
    Bundle(BundleVerdict),
    /// The verdict on a statement.
    Statement(StatementVerdict),
    /// The verdict on a checkpoint.
    Checkpoint(CheckpointVerdict),
}

impl EvidenceVerdict {
    /// Verifies the evidence of a request.
    ///
    /// # Errors
    /// Returns a [`RefusedRequest`] for evidence of no known kind, for a bundle that cannot be read, and for parts of the
    /// request that do not belong to this kind of evidence.
    pub fn of(request: &VerificationRequest) -> Result<Self, RefusedRequest> {
        match request.evidence_kind()? {
            EvidenceKind::Bundle => {
                request.refuse_parts_of_statements("a bundle")?;
                bundle_verdict(request).map(Self::Bundle)
            }
            EvidenceKind::Statement => Ok(Self::Statement(statement_verdict(request))),
            EvidenceKind::Checkpoint => {
                request.refuse_parts_of_statements("a checkpoint")?;
                let VerificationRequest { evidence, trust, witness_policy, .. } = request;
                Ok(Self::Checkpoint(verify_checkpoint(evidence, &[], witness_policy.as_ref(), trust)))
            }
        }
    }
}

fn bundle_verdict(request: &VerificationRequest) -> Result<BundleVerdict, RefusedRequest> {
    let bundle = EvidenceBundle::parse(&request.evidence)
        .map_err(|error| RefusedRequest::Bundle(error.to_string()))?;
    let mut verdict = bundle.verify(&request.trust, request.witness_policy.as_ref(), request.now);
    content_rules::check_bundle(&bundle, &mut verdict);
    Ok(verdict)
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
    let mut verdict = verify_with_checkpoint(&evidence, &witnesses, &request.trust, request.now);
    content_rules::check_statement(&mut verdict, &evidence, &request.gateway_keys);
    verdict
}
