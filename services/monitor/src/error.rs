//! Errors that stop a monitor.

use std::io;
use std::path::{Path, PathBuf};

use crate::state::MonitorStateError;

/// Errors that stop a monitor.
#[derive(Debug, thiserror::Error)]
pub enum MonitorError {
    /// The state cannot be read, written or locked.
    #[error(transparent)]
    State(#[from] MonitorStateError),
    /// A log cannot be watched as configured.
    #[error("log {log}: {why}")]
    Target {
        /// The log's name in the configuration.
        log: String,
        /// Reason for the rejection.
        why: String,
    },
    /// A log's task panicked.
    #[error("a log is not watched any more: {0}")]
    Broken(String),
    /// A file cannot be read.
    #[error("{}: {why}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Description of the error.
        why: String,
    },
}

impl MonitorError {
    pub(crate) fn file(path: Option<&Path>, why: &io::Error) -> Self {
        Self::File { path: path.unwrap_or(Path::new("")).to_owned(), why: why.to_string() }
    }
}
