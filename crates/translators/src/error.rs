//! Errors of a translation. Broken lines are not among them: they are diagnostics of the
//! [`TranslationAccount`](crate::TranslationAccount).

use crate::account::Diagnostic;
use crate::format::Format;

/// Error of [`translate`](crate::translate()) and [`redact`](crate::redact).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TranslateError {
    /// The source has no bytes.
    #[error("the source is empty")]
    Empty,
    /// The source is larger than the limit.
    #[error("the source has {bytes} bytes, more than {limit}")]
    TooLarge {
        /// Size of the source.
        bytes: usize,
        /// The limit, [`SOURCE_BYTES`](crate::limits::SOURCE_BYTES).
        limit: usize,
    },
    /// The source is in none of the formats.
    #[error("the format is not one of {}", Format::names())]
    UnknownFormat,
    /// The text is in UTF-16.
    #[error("the text is in UTF-16, and session files are UTF-8")]
    Utf16,
    /// The format has one file for each session, and the source has several.
    #[error("a session in {format} is one file, and the source has {files}")]
    SeveralFiles {
        /// The format.
        format: Format,
        /// Number of files.
        files: usize,
    },
    /// The source holds no session in this format.
    #[error("no session in {format} found{}", because(.broken))]
    NoSession {
        /// The format.
        format: Format,
        /// The first native entry that could not be read, if there is one.
        broken: Option<Diagnostic>,
    },
    /// A hash-chained file does not verify.
    #[error("line {line} breaks the hash chain: {why}")]
    BrokenChain {
        /// The line, counted from 1.
        line: usize,
        /// The reason.
        why: String,
    },
    /// A file that should be a record is not a JSON object with a session.
    #[error("not a conversation record in JSON: {0}")]
    NotARecord(String),
}

fn because(broken: &Option<Diagnostic>) -> String {
    let Some(Diagnostic { line, reason, .. }) = broken else { return String::new() };
    let line = line.map(|line| format!("line {line}: ")).unwrap_or_default();
    format!("; {line}{reason}")
}
