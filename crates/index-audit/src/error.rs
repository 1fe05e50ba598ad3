//! Errors of a recomputation.

use std::io;
use std::path::{Path, PathBuf};

use lookup_tree::OutOfOrder;

/// Reasons why the kept postings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RecomputationError {
    /// A file cannot be read or written.
    #[error("{}: {why}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// The underlying error.
        why: io::Error,
    },
    /// The pieces have postings that are out of order.
    #[error("the kept postings are damaged: {0}")]
    Order(OutOfOrder),
    /// A file has other contents than this release writes. Without the folder, the recomputation begins at leaf 0.
    #[error("{} is damaged: {why}", path.display())]
    Damaged {
        /// Path of the file.
        path: PathBuf,
        /// Description of the damage.
        why: String,
    },
}

impl RecomputationError {
    /// An error of reading or writing a file.
    pub(crate) fn file(path: &Path, why: impl Into<io::Error>) -> Self {
        Self::File { path: path.to_owned(), why: why.into() }
    }

    /// Contents that are not those of such a file.
    pub(crate) fn damaged(path: &Path, why: impl ToString) -> Self {
        Self::Damaged { path: path.to_owned(), why: why.to_string() }
    }
}
