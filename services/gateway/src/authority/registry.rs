//! The Agent Identity Registry that is in force: read from a file or fetched, verified, extended by revocation deltas,
//! and replaced by later versions only.
//!
//! A version counts as current for its `ttl_seconds` after the registry was last read, and the deltas after it, if they
//! are configured. A document that cannot be read or does not follow the version in force changes nothing: that version
//! stays, and grows old.
//!
//! The highest position of a registry and the digest of its content are durable before its version is in force
//! ([`RegistryPositions`]), so that neither a restart nor another gateway on the same database goes back to an earlier
//! version, or takes another document with the same position.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use async_trait::async_trait;
use jiff::Timestamp;
use roa::registry::{DeltaList, Registry, RegistryDocument, RegistryVersion};
use roa::signed::Signed;
use roa::text::Text;
use scitt::PublicKey;
use tokio::fs::File;
use tokio::io::AsyncReadExt;
use tokio::sync::Notify;
use url::Url;

use crate::bounded_fetch::{FetchError, get_current, http_client};
use crate::config::RegistrySource;
use crate::limits::{MAX_REGISTRY_BYTES, REGISTRY_BEHIND_WAIT};

/// A version of the registry, with the time at which it was last read.
#[derive(Debug)]
pub struct CurrentRegistry {
    /// The registry.
    pub registry: Registry,
    /// The time of the last successful reading of all sources.
    read_at: Timestamp,
}

/// The clock.
pub type TimeSource = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The highest positions of registries that were in force, by the name of the registry.
#[async_trait]
pub trait RegistryPositions: Send + Sync {
    /// Raises the position of a registry to that of this version, unless it is as high already. Once `Ok`, every gateway on
    /// the same database refuses lower versions, and others with this position, also after a restart.
    ///
    /// # Errors
    /// [`PositionError`] if a later version, or another one with this position, was in force, or the position cannot be
    /// stored.
    async fn raise(&self, registry: &Registry) -> Result<(), PositionError>;
}

/// The error for a version of the registry whose position is not durable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PositionError {
    /// A later version was in force before, at this gateway or at another one on the same database.
    #[error(
        "version {}.{} is older than {}.{}, which was in force before: publish the later version again",
        found.epoch, found.sequence, highest.epoch, highest.sequence
    )]
    Rollback {
        /// The version that was in force.
        highest: RegistryVersion,
        /// The version that was read.
        found: RegistryVersion,
    },
    /// A version with this position and another content was in force before.
    #[error(
        "another version {}.{} was in force before, with other content: publish a later version",
        .0.epoch, .0.sequence
    )]
    OtherContent(RegistryVersion),
    /// The database does not store the position.
    #[error("the position of the registry is not stored: {0}")]
    NotStored(String),
}

/// The registry in force.
pub struct RegistryState {
    source: RegistrySource,
    deltas: Option<RegistrySource>,
    operators: Vec<PublicKey>,
    now: TimeSource,
    http: reqwest::Client,
    current: ArcSwapOption<CurrentRegistry>,
    /// Notified when another gateway has a later version in force.
    behind: Notify,
}

/// The error for a registry that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RegistryReadError {
    /// The file cannot be read.
    #[error("the registry cannot be read: {0}")]
    Read(#[from] io::Error),
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
    /// The revocation deltas cannot be used.
    #[error("the revocation deltas: {0}")]
    Deltas(#[source] Box<RegistryReadError>),
    /// The version may not be put in force.
    #[error(transparent)]
    Position(#[from] PositionError),
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

    /// Returns the name of the registry.
    #[must_use]
    pub fn registry_id(&self) -> &Text {
        &self.registry.document().registry_id
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
        deltas: Option<RegistrySource>,
        operators: Vec<PublicKey>,
        now: TimeSource,
    ) -> Result<Self, RegistryReadError> {
        let urls: Vec<&Url> =
            [Some(&source), deltas.as_ref()].into_iter().flatten().filter_map(RegistrySource::url).collect();
        let http = http_client(&urls, None)?;
        Ok(Self {
            source,
            deltas,
            operators,
            now,
            http,
            current: ArcSwapOption::empty(),
            behind: Notify::new(),
        })
    }

    /// Returns the time by which the age of the registry is counted.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        (self.now)()
    }

    /// Returns the registry in force; `None` if none was ever read.
    #[must_use]
    pub fn current(&self) -> Option<Arc<CurrentRegistry>> {
        self.current.load_full()
    }

    /// Returns the registry in force, unless a version above it was in force at another gateway. Then the registry is soon
    /// read again.
    #[must_use]
    pub fn current_at(&self, highest: Option<RegistryVersion>) -> Option<Arc<CurrentRegistry>> {
        let current = self.current()?;
        if highest.is_some_and(|highest| highest > current.registry.version()) {
            self.behind.notify_one();
            return None;
        }
        Some(current)
    }

    /// Reads the registry and its deltas, and puts them in force if they are the current version or a later one, after
    /// their position is durable. If only one of them can be used, it is in force, and the age of the version stays.
    ///
    /// # Errors
    /// [`RegistryReadError`] for the first source that cannot be used. The first version needs both.
    pub async fn refresh(&self, positions: &dyn RegistryPositions) -> Result<(), RegistryReadError> {
        let before = self.current();
        // A document may change while it is read: its age counts from the beginning.
        let now = (self.now)();
        let whole = self.read_whole(before.as_deref()).await;
        let registry = match (&whole, &before) {
            (Ok(registry), _) => registry,
            (Err(_), Some(before)) => &before.registry,
            (Err(_), None) => return whole.map(drop),
        };
        let extended = self.read_deltas(registry).await;
        let read_at = match (whole.is_ok() && extended.is_ok(), &before) {
            (true, _) => now,
            (false, Some(before)) => before.read_at,
            (false, None) => return extended.map(drop),
        };
        let registry = extended.as_ref().unwrap_or(registry).clone();
        positions.raise(&registry).await?;
        self.current.store(Some(Arc::new(CurrentRegistry { registry, read_at })));
        whole.and(extended).map(drop)
    }

    /// Reads the registry as a whole.
    async fn read_whole(&self, before: Option<&CurrentRegistry>) -> Result<Registry, RegistryReadError> {
        let signed = Signed::<RegistryDocument>::parse(&self.read(&self.source).await?)?;
        Ok(match before {
            Some(before) => before.registry.replaced_by(&signed, &self.operators)?,
            None => Registry::open(&signed, &self.operators)?,
        })
    }

    /// Returns a registry with the deltas after it.
    async fn read_deltas(&self, registry: &Registry) -> Result<Registry, RegistryReadError> {
        let Some(source) = &self.deltas else { return Ok(registry.clone()) };
        let extended = async || {
            let deltas = DeltaList::parse(&self.read(source).await?)?;
            Ok(registry.extended_by(&deltas, &self.operators)?)
        };
        extended().await.map_err(|error| RegistryReadError::Deltas(Box::new(error)))
    }

    /// Refreshes the registry at this interval, and sooner if another gateway has a later version.
    pub async fn keep_fresh(self: Arc<Self>, positions: Arc<dyn RegistryPositions>, every: Duration) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(every) => {}
                () = self.is_behind() => {}
            }
            self.refresh_or_log(&*positions).await;
        }
    }

    /// Refreshes the registry, and logs an error.
    pub async fn refresh_or_log(&self, positions: &dyn RegistryPositions) {
        let Err(error) = self.refresh(positions).await else { return };
        match self.current() {
            None => tracing::error!(%error, "calls that need a registry are denied until there is one"),
            Some(_) => tracing::warn!(%error, "the version of the registry in force stays"),
        }
    }

    /// Waits until another gateway has a later version, and for at least [`REGISTRY_BEHIND_WAIT`].
    async fn is_behind(&self) {
        tokio::time::sleep(REGISTRY_BEHIND_WAIT).await;
        self.behind.notified().await;
    }

    async fn read(&self, source: &RegistrySource) -> Result<Vec<u8>, RegistryReadError> {
        let bytes = match source {
            RegistrySource::File(path) => read_beginning(path).await?,
            RegistrySource::Url(url) => get_current(&self.http, url, MAX_REGISTRY_BYTES).await?,
        };
        match bytes.len() <= MAX_REGISTRY_BYTES {
            true => Ok(bytes),
            false => Err(RegistryReadError::TooLong),
        }
    }
}

/// Reads a file, at most one byte more than a registry may have.
async fn read_beginning(path: &Path) -> io::Result<Vec<u8>> {
    // The opening of a pipe would wait for a writer, and with it every later refresh and the end of the process.
    if !tokio::fs::metadata(path).await?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path).await?.take(MAX_REGISTRY_BYTES as u64 + 1).read_to_end(&mut bytes).await?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::atomic::{AtomicI64, Ordering};

    use roa::registry::{RegistryError, RegistryVersion, RevocationDelta, RevokedSubject};
    use roa::text::EnvelopeId;
    use scitt::Signer;
    use serde_json::{Value, json};
    use testkit::agentroa::{key_of, registry, signed};

    use super::*;

    /// A state with a file of the registry and a file of deltas, a clock, and the highest position.
    struct Site {
        folder: tempfile::TempDir,
        seconds: Arc<AtomicI64>,
        state: RegistryState,
        positions: HighestPosition,
    }

    #[derive(Default)]
    struct HighestPosition(std::sync::Mutex<Option<RegistryVersion>>);

    #[async_trait]
    impl RegistryPositions for HighestPosition {
        async fn raise(&self, registry: &Registry) -> Result<(), PositionError> {
            let found = registry.version();
            let mut position = self.0.lock().unwrap();
            match *position {
                Some(highest) if highest > found => Err(PositionError::Rollback { highest, found }),
                _ => {
                    *position = Some(found);
                    Ok(())
                }
            }
        }
    }

    impl Site {
        async fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let seconds = Arc::new(AtomicI64::new(1_800_000_000));
            let clock = seconds.clone();
            let now = Arc::new(move || Timestamp::from_second(clock.load(Ordering::Relaxed)).unwrap());
            let file = |name: &str| RegistrySource::File(folder.path().join(name));
            let operators = vec![key_of("operator").public_key().clone()];
            let (source, deltas) = (file("registry.json"), Some(file("deltas.json")));
            let state = RegistryState::new(source, deltas, operators, now).unwrap();
            let site = Self { folder, seconds, state, positions: HighestPosition::default() };
            site.write("registry.json", &registry(1, |_| ()));
            site.deltas(&[]);
            site.refresh().await.unwrap();
            site
        }

        async fn refresh(&self) -> Result<(), RegistryReadError> {
            self.state.refresh(&self.positions).await
        }

        fn write(&self, name: &str, bytes: &[u8]) {
            std::fs::write(self.folder.path().join(name), bytes).unwrap();
        }

        /// Writes a list of deltas, from the first number of each pair to the second.
        fn deltas(&self, versions: &[(u64, u64)]) {
            let mut list = DeltaList::default();
            for (previous, sequence) in versions {
                list.push(delta(*previous, *sequence)).unwrap();
            }
            self.write("deltas.json", &list.canonical());
        }

        fn sequence(&self) -> u64 {
            self.state.current().unwrap().registry.version().sequence
        }

        fn revocation(&self, sequence: u64) -> Option<RegistryVersion> {
            let envelope = EnvelopeId::try_from(format!("env:{sequence:016x}")).unwrap();
            self.state.current().unwrap().registry.revocation(&RevokedSubject::Envelope(envelope))
        }

        /// Lets almost all of the registry's time pass.
        fn wait(&self) {
            self.seconds.fetch_add(3599, Ordering::Relaxed);
        }

        fn is_current(&self) -> bool {
            let now = Timestamp::from_second(self.seconds.load(Ordering::Relaxed)).unwrap();
            self.state.current().unwrap().is_current(now)
        }

        async fn refused(&self) -> RegistryError {
            match self.refresh().await {
                Err(RegistryReadError::Deltas(error)) => match *error {
                    RegistryReadError::Refused(error) => error,
                    other => panic!("{other}"),
                },
                Err(RegistryReadError::Refused(error)) => error,
                other => panic!("{other:?}"),
            }
        }
    }

    /// A revocation of an envelope that is named by the number of the version.
    fn revocation(sequence: u64) -> Value {
        json!({
            "sequence": sequence, "revoked_at": "2026-04-08T14:04:00Z",
            "subject": { "envelope": format!("env:{sequence:016x}") },
        })
    }

    fn delta(previous: u64, sequence: u64) -> Signed<RevocationDelta> {
        let members = json!({
            "schema_version": "1.0", "registry_id": "registry.acme.example", "epoch": 1,
            "previous_sequence": previous, "sequence": sequence, "issued_at": "2026-04-08T14:04:00Z",
            "revocations": [revocation(sequence)],
        });
        signed(members, &["operator"])
    }

    #[tokio::test]
    async fn deltas_are_in_force_after_the_version_that_is_read_again() {
        let site = Site::new().await;
        site.deltas(&[(1, 2), (2, 3)]);
        site.refresh().await.unwrap();
        assert_eq!(site.revocation(2), Some(RegistryVersion { epoch: 1, sequence: 2 }));
        site.deltas(&[]);
        site.wait();
        site.refresh().await.unwrap();
        assert_eq!((site.sequence(), site.revocation(3).is_some()), (3, true), "neither file undoes them");
        site.wait();
        assert!(site.is_current(), "the version of the file counts as read");
        site.write(
            "registry.json",
            &registry(4, |members| members["revocations"] = json!([revocation(2), revocation(3)])),
        );
        site.refresh().await.unwrap();
        assert_eq!((site.sequence(), site.revocation(3).is_some()), (4, true));
    }

    #[tokio::test]
    async fn a_gap_or_a_rollback_of_deltas_changes_nothing_and_the_version_grows_old() {
        let site = Site::new().await;
        site.deltas(&[(1, 2)]);
        site.refresh().await.unwrap();
        site.wait();
        site.deltas(&[(1, 2), (3, 4)]);
        assert!(matches!(site.refused().await, RegistryError::Gap { .. }));
        site.deltas(&[(0, 1)]);
        assert!(matches!(site.refused().await, RegistryError::Rollback { .. }));
        assert_eq!((site.sequence(), site.revocation(4)), (2, None));
        site.wait();
        assert!(!site.is_current());
        site.deltas(&[(1, 2), (3, 4)]);
        site.write("registry.json", &registry(3, |members| members["revocations"] = json!([revocation(2)])));
        site.refresh().await.unwrap();
        assert_eq!((site.sequence(), site.is_current()), (4, true), "the whole registry closes the gap");
    }

    #[tokio::test]
    async fn deltas_reach_a_gateway_while_the_registry_cannot_be_read_and_do_not_renew_it() {
        let site = Site::new().await;
        std::fs::remove_file(site.folder.path().join("registry.json")).unwrap();
        site.deltas(&[(1, 2)]);
        site.wait();
        assert!(matches!(site.refresh().await, Err(RegistryReadError::Read(_))));
        assert!(site.revocation(2).is_some() && site.is_current());
        site.wait();
        assert!(!site.is_current());
    }

    #[tokio::test]
    async fn a_file_that_is_too_long_is_not_read_to_its_end() {
        let site = Site::new().await;
        let file = std::fs::File::create(site.folder.path().join("registry.json")).unwrap();
        file.set_len(1 << 40).unwrap();
        assert!(matches!(site.refresh().await, Err(RegistryReadError::TooLong)));
        assert_eq!(site.sequence(), 1, "the version in force stays");
    }

    #[tokio::test]
    async fn a_pipe_in_the_place_of_the_registry_holds_up_no_refresh() {
        let site = Site::new().await;
        let path = site.folder.path().join("registry.json");
        std::fs::remove_file(&path).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        assert!(matches!(site.refresh().await, Err(RegistryReadError::Read(_))));
        assert_eq!(site.sequence(), 1, "the version in force stays");
    }

    #[tokio::test]
    async fn a_later_version_is_in_force_without_its_deltas_and_the_first_one_needs_them() {
        let site = Site::new().await;
        site.write("registry.json", &registry(2, |members| members["revocations"] = json!([revocation(2)])));
        std::fs::remove_file(site.folder.path().join("deltas.json")).unwrap();
        assert!(matches!(site.refresh().await, Err(RegistryReadError::Deltas(_))));
        assert!(site.revocation(2).is_some());
        site.state.current.store(None);
        assert!(matches!(site.refresh().await, Err(RegistryReadError::Deltas(_))));
        assert!(site.state.current().is_none());
    }

    #[tokio::test]
    async fn a_version_that_another_gateway_left_behind_is_not_put_in_force_and_is_not_renewed() {
        let site = Site::new().await;
        let version = |sequence| RegistryVersion { epoch: 1, sequence };
        *site.positions.0.lock().unwrap() = Some(version(3));
        site.wait();
        let refused =
            RegistryReadError::Position(PositionError::Rollback { highest: version(3), found: version(1) });
        assert_eq!(site.refresh().await.unwrap_err().to_string(), refused.to_string());
        site.wait();
        assert!(!site.is_current());
        assert!(site.state.current_at(Some(version(3))).is_none());
        assert!(site.state.current_at(Some(version(1))).is_some());
        site.deltas(&[(1, 2), (2, 3)]);
        site.refresh().await.unwrap();
        assert!(site.state.current_at(Some(version(3))).is_some());
    }
}
