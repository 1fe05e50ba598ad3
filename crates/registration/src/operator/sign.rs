//! Signature of operator statements.

use scitt::{SignedStatement, Signer};

use super::{Action, Approval, OPERATOR_ACTION_CONTENT_TYPE, OPERATOR_APPROVAL_CONTENT_TYPE};
use crate::clock_correction::{CLOCK_CORRECTION_CONTENT_TYPE, ClockCorrection};
use crate::erasure::{ERASURE_CONTENT_TYPE, Erasure};
use crate::operator_signature::{SignError, sign_as_operator};
use crate::policy::{BoundKey, POLICY_CONTENT_TYPE, Policy};

/// Signs a payload of an operator content type with an operator key of the policy in force. The pair holds the log's
/// `iss` and origin; `expires` is the statement's `exp` in Unix seconds, which approvals name.
///
/// # Errors
/// [`SignError`] if the key is not an operator key, or the payload breaks a rule of its content type.
pub fn sign(
    content_type: &str,
    payload: Vec<u8>,
    expires: Option<u64>,
    log: (&str, &str),
    operators: &[BoundKey],
    operator: &dyn Signer,
) -> Result<SignedStatement, SignError> {
    check(content_type, &payload)?;
    sign_as_operator(content_type, payload, expires, log, operators, operator)
}

fn check(content_type: &str, payload: &[u8]) -> Result<(), SignError> {
    match content_type {
        POLICY_CONTENT_TYPE => {
            Policy::from_payload(payload).map(drop).map_err(|why| SignError::violates(&why))
        }
        ERASURE_CONTENT_TYPE => {
            Erasure::from_payload(payload).map(drop).map_err(|why| SignError::violates(&why))
        }
        CLOCK_CORRECTION_CONTENT_TYPE => {
            ClockCorrection::from_payload(payload).map(drop).map_err(|why| SignError::violates(&why))
        }
        OPERATOR_ACTION_CONTENT_TYPE => {
            Action::from_payload(payload).map(drop).map_err(|why| SignError::violates(&why))
        }
        OPERATOR_APPROVAL_CONTENT_TYPE => {
            Approval::from_payload(payload).map(drop).map_err(|why| SignError::violates(&why))
        }
        other => Err(SignError::Violates(format!("{other} is not a content type of the operator"))),
    }
}
