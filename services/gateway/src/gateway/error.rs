//! Why a gateway does not start.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use evidence::StoreError;

use crate::isolation::{NotIsolated, OwnFilesError};
use crate::keys::KeyError;
use crate::oauth::KeysError;
use crate::upstream::federation::BadName;
use crate::upstream::http::HttpError;

/// Why a gateway does not start, or a configuration cannot be taken up.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// There are no keys.
    #[error(transparent)]
    Keys(#[from] KeyError),
    /// The evidence cannot be kept.
    #[error("the evidence: {0}")]
    Evidence(#[from] StoreError),
    /// A file cannot be read.
    #[error("{path}: {why}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// The log's URL or certificates cannot be used.
    #[error("the log: {0}")]
    Log(String),
    /// A server over HTTP cannot be used.
    #[error("route {route}: {error}")]
    Upstream {
        /// Where.
        route: String,
        /// Why.
        error: HttpError,
    },
    /// Several servers cannot stand behind one endpoint.
    #[error("route {route}: {error}")]
    Names {
        /// Where.
        route: String,
        /// Why.
        error: BadName,
    },
    /// A server could read the gateway's keys.
    #[error(transparent)]
    NotIsolated(#[from] NotIsolated),
    /// The gateway's own files cannot be kept from its children.
    #[error(transparent)]
    OwnFiles(#[from] OwnFilesError),
    /// No HTTP client for a judge can be made.
    #[error("the judge: {0}")]
    Judge(String),
    /// The keys of a token issuer cannot be used.
    #[error("route {route}: {error}")]
    OAuth {
        /// Where.
        route: String,
        /// Why.
        error: KeysError,
    },
    /// The address cannot be taken.
    #[error("cannot listen on {address}: {error}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        error: io::Error,
    },
    /// The metrics could not be set up.
    #[error(transparent)]
    Metrics(#[from] prometheus::Error),
}
