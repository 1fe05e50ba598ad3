//! Signature with an operator key of the policy in force.

use scitt::{BuildError, SignedStatement, Signer, StatementBuilder};

use crate::bound_key::BoundKey;

/// The label of the `exp` claim (RFC 8392, section 4).
const EXP: i64 = 4;

/// An error from [`sign`](crate::operator::sign).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SignError {
    /// The key is not an operator key of the policy in force.
    #[error("this key is not an operator key of the policy in force: {0}")]
    NotAnOperator(String),
    /// The key is not a key of the index in the policy in force.
    #[error("this key is not a key of the index of the policy in force: {0}")]
    NotAnIndexKey(String),
    /// The payload breaks a rule, so no log would admit it.
    #[error("this statement breaks a rule: {0}")]
    Violates(String),
    /// The statement could not be built or signed.
    #[error(transparent)]
    Build(#[from] BuildError),
}

impl SignError {
    /// The error of a payload that breaks a rule.
    pub(crate) fn violates(why: &dyn std::fmt::Display) -> SignError {
        SignError::Violates(why.to_string())
    }
}

/// Signs a payload, whose rules the caller has checked. The pair holds the log's `iss` and origin.
pub(crate) fn sign_as_operator(
    content_type: &str,
    payload: Vec<u8>,
    expires: Option<u64>,
    (iss, origin): (&str, &str),
    operators: &[BoundKey],
    operator: &dyn Signer,
) -> Result<SignedStatement, SignError> {
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
