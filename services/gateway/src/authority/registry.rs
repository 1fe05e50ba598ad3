//! The Agent Identity Registry that is in force: read from a file or fetched, verified, and replaced by later versions
//! only.
//!
//! A version counts as current for its `ttl_seconds` after it was last read. What cannot be read or is no later version
//! changes nothing: the version in force stays, and grows old.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use jiff::Timestamp;
use roa::registry::{Registry, RegistryDocument};
use roa::signed::Signed;
use scitt::PublicKey;
use tokio_util::sync::CancellationToken;

use crate::bounded_fetch::{FetchError, get_bounded, http_client};
use crate::config::RegistrySource;
use crate::limits::MAX_REGISTRY_BYTES;

/// A version of the registry, with the time at which it was last read.
#[derive(Debug)]
pub struct CurrentRegistry {
    /// The registry.
    pub registry: Registry,
    /// The time of the last successful reading.
    read_at: Timestamp,
}

/// The clock.
pub type TimeSource = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The registry in force.
pub struct RegistryState {
    source: RegistrySource,
    operators: Vec<PublicKey>,
    now: TimeSource,
    http: reqwest::Client,
    current: ArcSwapOption<CurrentRegistry>,
}

/// The error for a registry that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RegistryReadError {
    /// The file cannot be read.
    #[error("the registry cannot be read: {0}")]
    Read(#[from] std::io::Error),
    /// The registry cannot be fetched.
    #[error("the registry cannot be fetched: {0}")]
    Fetch(#[from] FetchError),
    /// The registry is longer than [`MAX_REGISTRY_BYTES`].
    #[error("the registry is longer than {MAX_REGISTRY_BYTES} bytes")]
    TooLong,
    /// The content is not a registry.
    #[error("not a registry: {0}")]
    Malformed(#[from] jose::json::JsonError),
    /// The registry is not accepted.
    #[error(transparent)]
    Refused(#[from] roa::registry::RegistryError),
}

impl CurrentRegistry {
    /// Returns `true` if the version was read within its `ttl_seconds`.
    #[must_use]
    pub fn is_current(&self, now: Timestamp) -> bool {
        self.age(now) < self.ttl()
    }

    /// Returns `true` if the version may still be used in degraded mode: for at most another `ttl_seconds`.
    #[must_use]
    pub fn is_usable(&self, now: Timestamp) -> bool {
        self.age(now) < self.ttl().saturating_mul(2)
    }

    fn age(&self, now: Timestamp) -> i64 {
        now.as_second().saturating_sub(self.read_at.as_second())
    }

    fn ttl(&self) -> i64 {
        i64::from(self.registry.document().ttl_seconds)
    }
}

impl RegistryState {
    /// Creates a state without a registry, which accepts the signatures of these operators.
    ///
    /// # Errors
    /// [`RegistryReadError::Fetch`] if the HTTP client cannot be made.
    pub fn new(
        source: RegistrySource,
        operators: Vec<PublicKey>,
        now: TimeSource,
    ) -> Result<Self, RegistryReadError> {
        let http = http_client(None)?;
        Ok(Self { source, operators, now, http, current: ArcSwapOption::empty() })
    }

    /// Returns the registry in force; `None` if none was ever read.
    #[must_use]
    pub fn current(&self) -> Option<Arc<CurrentRegistry>> {
        self.current.load_full()
    }

    /// Reads the source, and puts the registry in force if it is the current version or a later one.
    ///
    /// # Errors
    /// [`RegistryReadError`]; the version in force stays.
    pub async fn refresh(&self) -> Result<(), RegistryReadError> {
        let signed = Signed::<RegistryDocument>::parse(&self.read().await?)?;
        let registry = match self.current() {
            Some(current) => current.registry.replaced_by(&signed, &self.operators)?,
            None => Registry::open(&signed, &self.operators)?,
        };
        let read_at = (self.now)();
        self.current.store(Some(Arc::new(CurrentRegistry { registry, read_at })));
        Ok(())
    }

    /// Refreshes the registry at this interval, until `stop`.
    pub async fn keep_fresh(self: Arc<Self>, every: Duration, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(every) => {}
            }
            if let Err(error) = self.refresh().await {
                tracing::warn!(%error, "the version of the registry in force stays");
            }
        }
    }

    async fn read(&self) -> Result<Vec<u8>, RegistryReadError> {
        let bytes = match &self.source {
            RegistrySource::File(path) => tokio::fs::read(path).await?,
            RegistrySource::Url(url) => get_bounded(&self.http, url, MAX_REGISTRY_BYTES).await?,
        };
        match bytes.len() <= MAX_REGISTRY_BYTES {
            true => Ok(bytes),
            false => Err(RegistryReadError::TooLong),
        }
    }
}
