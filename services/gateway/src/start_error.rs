//! The errors of starting a gateway.

use std::io;
use std::path::PathBuf;

use evidence::StoreError;
use serving::listener::BindError;

use crate::bounded_fetch::FetchError;
use crate::isolation::{NotIsolated, OwnFilesError};
use crate::keys::GatewayKeyError;
use crate::oauth::KeysError;
use crate::upstream::federation::BadName;
use crate::upstream::http::HttpError;

/// Reason why a gateway does not start, or a configuration cannot be applied.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The keys cannot be used.
    #[error(transparent)]
    Keys(#[from] GatewayKeyError),
    /// The evidence store cannot be opened.
    #[error("the evidence: {0}")]
    Evidence(#[from] StoreError),
    /// A file cannot be read.
    #[error("{path}: {why}")]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The defect, in words.
        why: String,
    },
    /// The log's URL or certificates cannot be used.
    #[error("the log: {0}")]
    Log(String),
    /// An HTTP upstream cannot be set up.
    #[error("route {route}: {error}")]
    Upstream {
        /// The path of the route.
        route: String,
        /// The cause.
        error: HttpError,
    },
    /// Several servers have names that cannot share one endpoint.
    #[error("route {route}: {error}")]
    Names {
        /// The path of the route.
        route: String,
        /// The cause.
        error: BadName,
    },
    /// A server could read the gateway's keys.
    #[error(transparent)]
    NotIsolated(#[from] NotIsolated),
    /// The gateway's own files cannot be protected from its children.
    #[error(transparent)]
    OwnFiles(#[from] OwnFilesError),
    /// The HTTP client of the judge cannot be built.
    #[error("the judge: {0}")]
    Judge(String),
    /// AgentROA cannot be enforced.
    #[error("AgentROA cannot be enforced: {0}")]
    AgentRoa(String),
    /// The card of an agent cannot be served.
    #[error("route {route}: {error}")]
    AgentCard {
        /// The path of the route.
        route: String,
        /// The cause.
        error: FetchError,
    },
    /// The keys of a token issuer cannot be used.
    #[error("route {route}: {error}")]
    OAuth {
        /// The path of the route.
        route: String,
        /// The cause.
        error: KeysError,
    },
    /// An address cannot be bound.
    #[error(transparent)]
    Listen(#[from] BindError),
    /// Every state folder for local clients is in use.
    #[error("no state folder is free")]
    NoStateFolder,
    /// The metrics cannot be set up.
    #[error(transparent)]
    Metrics(#[from] prometheus::Error),
}

impl StartError {
    /// Returns `true` if another process uses the evidence store.
    #[must_use]
    pub fn is_in_use(&self) -> bool {
        matches!(self, Self::Evidence(StoreError::InUse(_)))
    }

    /// Returns the kind of the file system's error, if the state folder cannot be read or written because of one.
    #[must_use]
    pub fn io_kind(&self) -> Option<io::ErrorKind> {
        match self {
            Self::Evidence(StoreError::Full(_)) => Some(io::ErrorKind::StorageFull),
            Self::Evidence(StoreError::ReadOnly(_)) => Some(io::ErrorKind::ReadOnlyFilesystem),
            Self::Keys(error) => error.io_kind(),
            _ => None,
        }
    }
}
