//! The configuration of a service.

mod file;

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serving::config_file::Mistakes;
use serving::problem::ErrorDocumentation;
use url::Url;

use crate::limits::{KEEP, QUEUE, RECEIPT_WAIT, WAIT, WORKERS};

/// Configuration of a service.
#[derive(Clone, Debug)]
pub struct Config {
    /// The address for clients.
    pub listen: SocketAddr,
    /// The address for health and metrics, if any; it has no authentication, so keep it private.
    pub admin_listen: Option<SocketAddr>,
    /// The folder with the database; it is created if needed.
    pub state: PathBuf,
    /// The file with the verifier's Ed25519 key.
    pub key: PathBuf,
    /// The time for which a request waits for its result.
    pub wait: Duration,
    /// The time for which a request waits for the log's receipt, once the verification receipt is signed.
    pub receipt_wait: Duration,
    /// The number of requests that are checked at the same time.
    pub workers: usize,
    /// The number of accepted requests whose checks have not run yet. One of several clients may have as many of them as are
    /// free, and half of the workers.
    pub queue: usize,
    /// Maximum size of a request in bytes.
    pub body_bytes: usize,
    /// The time for which results are kept after their delivery to the log, and repeated requests are recognized.
    pub keep: Duration,
    /// The log.
    pub log: LogConfig,
    /// The URL of the OTLP/HTTP collector for spans. Without one, `OTEL_EXPORTER_OTLP_ENDPOINT` is used, if it is set.
    /// Only builds with the feature `otlp` send any.
    pub otlp: Option<Url>,
    /// Where the codes of problems are documented.
    pub error_documentation: ErrorDocumentation,
    /// The clients. Without any, requests need no token.
    pub clients: Vec<ClientConfig>,
}

/// The log at which receipts are registered.
#[derive(Clone, Debug)]
pub struct LogConfig {
    /// The URL.
    pub url: String,
    /// The trust file with which its receipts are verified; without one, they are passed on unverified.
    pub trust: Option<PathBuf>,
    /// A file with a bearer token.
    pub token_file: Option<PathBuf>,
    /// Additional root certificates, in PEM.
    pub ca_file: Option<PathBuf>,
}

/// A client of the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientConfig {
    /// The name, for logs and metrics.
    pub name: String,
    /// SHA-256 of the bearer token.
    pub token_sha256: [u8; 32],
    /// The quota.
    pub requests_per_minute: NonZeroU32,
    /// The only agent whose work the client may send, a DID or URN; a request need not name it. `None`: any agent, or none.
    pub subject: Option<String>,
}

impl Config {
    /// Returns a configuration with the default bounds, and without clients.
    pub fn new(listen: SocketAddr, state: PathBuf, key: PathBuf, log: LogConfig) -> Self {
        Self {
            listen,
            admin_listen: None,
            state,
            key,
            wait: WAIT,
            receipt_wait: RECEIPT_WAIT,
            workers: WORKERS,
            queue: QUEUE,
            body_bytes: checks::limits::REQUEST_BYTES,
            keep: KEEP,
            log,
            otlp: None,
            error_documentation: ErrorDocumentation::default(),
            clients: Vec::new(),
        }
    }

    /// Parses the text of a configuration file in `folder`, to which relative paths refer. Files with tokens are read
    /// now.
    ///
    /// # Errors
    /// All mistakes, with their lines.
    pub fn from_toml(text: &str, folder: &Path) -> Result<Self, Mistakes> {
        file::read(text, folder)
    }
}
