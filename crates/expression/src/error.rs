//! Errors in the compilation and evaluation of conditions.

use crate::limits::REASON_CHARACTERS;

/// The error for a text that is not an allowed condition, with the first offending position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {why}")]
pub struct CompileError {
    /// The line of the text, from 1.
    pub line: usize,
    /// The column of the line in characters, from 1.
    pub column: usize,
    /// The description of the error.
    pub why: String,
}

impl CompileError {
    pub(crate) fn at_start(why: impl Into<String>) -> Self {
        Self { line: 1, column: 1, why: why.into() }
    }
}

/// The reason why an [`Expression`](crate::Expression) has no result for a document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    /// The time limit was exceeded. A repeated evaluation may succeed.
    #[error("the condition took too long")]
    TimedOut,
    /// The evaluation failed, such as for a document that is too large. A repeated evaluation fails too.
    #[error("{0}")]
    Failed(String),
}

impl EvalError {
    /// Creates a failure. The reason may quote the document, so it is cut to [`REASON_CHARACTERS`], and control
    /// characters are replaced.
    pub(crate) fn failed(reason: &str) -> Self {
        let plain = reason.chars().map(|character| if character.is_control() { ' ' } else { character });
        Self::Failed(plain.take(REASON_CHARACTERS).collect())
    }
}
