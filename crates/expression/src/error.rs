//! What can be wrong with a condition, and with asking it.

use crate::limits::REASON_CHARACTERS;

/// A text that is no condition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {why}")]
pub struct CompileError {
    /// The line of the text, from 1.
    pub line: usize,
    /// The column of the line in characters, from 1.
    pub column: usize,
    /// What is wrong there.
    pub why: String,
}

impl CompileError {
    pub(crate) fn at_start(why: impl Into<String>) -> Self {
        Self { line: 1, column: 1, why: why.into() }
    }
}

/// Why a condition has no answer for a document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    /// The limit on time was met. Asked again, the condition may have an answer.
    #[error("the condition took too long")]
    TimedOut,
    /// The condition and the document do not fit. Asked again, they will not fit again.
    #[error("{0}")]
    Failed(String),
}

impl EvalError {
    /// The reason may quote the document, so it is cut and holds no line breaks.
    pub(crate) fn failed(reason: &str) -> Self {
        let plain = reason.chars().map(|character| if character.is_control() { ' ' } else { character });
        Self::Failed(plain.take(REASON_CHARACTERS).collect())
    }
}
