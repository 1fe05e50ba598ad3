//! Signature of operator statements.

use scitt::{BuildError, SignedStatement, Signer, StatementBuilder};

use super::{Action, Approval, OPERATOR_ACTION_CONTENT_TYPE, OPERATOR_APPROVAL_CONTENT_TYPE};
use crate::clock_correction::{CLOCK_CORRECTION_CONTENT_TYPE, ClockCorrection};
use crate::erasure::{ERASURE_CONTENT_TYPE, Erasure};
use crate::policy::{BoundKey, POLICY_CONTENT_TYPE, Policy};

/// The label of the `exp` claim (RFC 8392, section 4).
const EXP: i64 = 4;

/// An error from [`sign`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SignError {
    /// The key is not an operator key of the policy in force.
    #[error("this key is no operator key of the policy in force: {0}")]
    NotAnOperator(String),
    /// The payload breaks a rule, so no log would admit it.
    #[error("this statement breaks a rule: {0}")]
    Violates(String),
    /// The statement could not be built or signed.
    #[error(transparent)]
    Build(#[from] BuildError),
}

/// Signs a payload of an operator content type with an operator key of the policy in force. The pair holds the log's
/// `iss` and origin; `expires` is the statement's `exp` in Unix seconds, which approvals name.
///
/// # Errors
/// [`SignError`] if the key is not an operator key, or the payload breaks a rule of its content type.
pub fn sign(
    content_type: &str,
    payload: Vec<u8>,
    expires: Option<u64>,
    (iss, origin): (&str, &str),
    operators: &[BoundKey],
    operator: &dyn Signer,
) -> Result<SignedStatement, SignError> {
    check(content_type, &payload)?;
    let listed = operators.iter().find(|bound| bound.key == *operator.public_key());
    let listed = listed.ok_or_else(|| SignError::NotAnOperator(operator.public_key().did_key()))?;
    let mut statement = StatementBuilder::new(payload)
        .content_type(content_type)
        .kid(listed.kid.clone())
        .iss(iss)
        .sub(origin);
    if let Some(expires) = expires {
        statement = statement.claim(EXP, i64::try_from(expires).unwrap_or(i64::MAX).into());
    }
    Ok(statement.sign(operator)?)
}

fn check(content_type: &str, payload: &[u8]) -> Result<(), SignError> {
    let violates = |why: &dyn std::fmt::Display| SignError::Violates(why.to_string());
    match content_type {
        POLICY_CONTENT_TYPE => Policy::from_payload(payload).map(drop).map_err(|why| violates(&why)),
        ERASURE_CONTENT_TYPE => Erasure::from_payload(payload).map(drop).map_err(|why| violates(&why)),
        CLOCK_CORRECTION_CONTENT_TYPE => {
            ClockCorrection::from_payload(payload).map(drop).map_err(|why| violates(&why))
        }
        OPERATOR_ACTION_CONTENT_TYPE => Action::from_payload(payload).map(drop).map_err(|why| violates(&why)),
        OPERATOR_APPROVAL_CONTENT_TYPE => {
            Approval::from_payload(payload).map(drop).map_err(|why| violates(&why))
        }
        other => Err(SignError::Violates(format!("{other} is no content type of the operator"))),
    }
}
