//! The error of a request.

use browser_verifier::RefusedRequest;
use scitt::{Malformed, ReceiptError};
use serde::Serialize;

/// Error of a request that has no result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{what} [{code}]")]
pub struct CoreError {
    /// Stable code, that of the command line where there is one. For VAP messages it is the reason that a Verdict would
    /// have.
    pub code: String,
    /// Description for people; it may quote the request.
    pub what: String,
    /// Byte offset in the malformed input, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<usize>,
}

impl CoreError {
    /// Creates an error without an offset.
    pub fn new(code: &str, what: impl ToString) -> Self {
        Self { code: code.to_owned(), what: what.to_string(), offset: None }
    }

    /// Creates the error for malformed bytes.
    pub fn malformed(code: &str, malformed: &Malformed) -> Self {
        Self { offset: Some(malformed.offset), ..Self::new(code, &malformed.kind) }
    }
}

impl From<RefusedRequest> for CoreError {
    fn from(refused: RefusedRequest) -> Self {
        Self::new(refused.code(), &refused)
    }
}

impl From<ReceiptError> for CoreError {
    fn from(error: ReceiptError) -> Self {
        match error {
            ReceiptError::Malformed(malformed) => Self::malformed("malformed-receipt", &malformed),
            ReceiptError::UnsupportedStructure(_) => Self::new("unsupported-structure", error),
        }
    }
}
