//! Check of the signatures within an execution receipt (AgentROA), with the gateway's keys.

use registration::aer::is_execution_receipt;
use scitt::SignedStatement;
use verifier::{Check, CheckName, CheckState, Code, StatementEvidence, StatementVerdict};

use crate::commands::gateway_keys::GatewayKeys;
use crate::console::Failure;

/// Adds the check to the verdict on an execution receipt. A signature that no key made fails the verdict. A check that was
/// impossible is listed and does not change the verdict, because the log's policy may have made it.
pub fn check(
    verdict: &mut StatementVerdict,
    evidence: &StatementEvidence<'_>,
    gateway_keys: &[String],
) -> Result<(), Failure> {
    let Ok(statement) = SignedStatement::parse(evidence.statement.to_vec()) else { return Ok(()) };
    if !is_execution_receipt(&statement) {
        return Ok(());
    }
    let is_missing = evidence.payload.is_none()
        && (statement.is_detached() || statement.header().hash_envelope().is_some());
    let (state, code, detail) = match GatewayKeys::find(gateway_keys, &statement)? {
        _ if is_missing => {
            let detail = "the receipt is not in the statement: name it with --payload";
            (CheckState::NotDone, Some(Code::ContentMissing), detail.to_owned())
        }
        None => {
            let detail = "the issuer is no did:key: name the gateway's keys with --gateway-key";
            (CheckState::NotDone, Some(Code::NoGatewayKey), detail.to_owned())
        }
        Some(keys) => match keys.verify_inner(&statement, evidence.payload) {
            Ok(()) => (CheckState::Ok, None, "the gateway's keys signed the execution receipt".to_owned()),
            Err(violation) => (CheckState::Failed, Some(Code::InnerSignatureInvalid), violation.to_string()),
        },
    };
    verdict.add(Check { name: CheckName::InnerSignatures, receipt: None, state, code, detail });
    Ok(())
}
