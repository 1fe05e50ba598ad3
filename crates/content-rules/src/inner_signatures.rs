//! Check of the signatures within an execution receipt (AgentROA), with the gateway's keys.

use registration::aer::{AerRecord, is_execution_receipt};
use scitt::{PublicKey, SignedStatement};
use verifier::{Check, CheckName, CheckState, Code};

/// Checks an execution receipt. A signature that no key made is a failure. A check that was impossible is listed and changes
/// no verdict, because the log's policy may have made it.
pub fn check(
    statement: &SignedStatement,
    payload: Option<&[u8]>,
    gateway_keys: &[PublicKey],
) -> Option<Check> {
    if !is_execution_receipt(statement) {
        return None;
    }
    let issuer = issuer_key(statement);
    let keys = if gateway_keys.is_empty() { issuer.as_slice() } else { gateway_keys };
    let (state, code, detail) = match keys {
        _ if is_missing(statement, payload) => {
            let detail = "the receipt is not in the statement and was not given";
            (CheckState::NotDone, Some(Code::ContentMissing), detail.to_owned())
        }
        [] => {
            let detail = "the issuer is not a did:key, and no key of the gateway was given";
            (CheckState::NotDone, Some(Code::NoGatewayKey), detail.to_owned())
        }
        keys => match AerRecord::verify_inner(statement, payload, keys) {
            Ok(_) => (CheckState::Ok, None, "the gateway's keys signed the execution receipt".to_owned()),
            Err(violation) => (CheckState::Failed, Some(Code::InnerSignatureInvalid), violation.to_string()),
        },
    };
    Some(Check { name: CheckName::InnerSignatures, receipt: None, state, code, detail })
}

fn is_missing(statement: &SignedStatement, payload: Option<&[u8]>) -> bool {
    payload.is_none() && (statement.is_detached() || statement.header().hash_envelope().is_some())
}

/// Returns the key in the issuer's `did:key`; `None` if its name is none.
pub fn issuer_key(statement: &SignedStatement) -> Option<PublicKey> {
    PublicKey::from_did_key(statement.header().iss()?).ok()
}
