//! The monitor's configuration: the logs to watch and their keys, the receivers of alarms, and the thresholds.

mod file;
mod index;
mod service;

use std::net::SocketAddr;
use std::ops::RangeBounds;
use std::path::PathBuf;
use std::time::Duration;

use merkle::TreeSize;
use serving::config_file::{ConfigReader, Mistakes, SpannedText};
use tlog::checkpoint::Origin;
use tlog::key::VerifierKey;
use tlog::policy::WitnessPolicy;
use toml::Spanned;
use url::Url;

pub use index::{AttestationKey, IndexWatch};
pub use service::{ServiceTarget, WatchedEntry, WatchedStatement};

use crate::limits;

/// A monitor's configuration, as read by [`Config::from_toml`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// State directory: one folder for each log.
    pub state_dir: PathBuf,
    /// Interval between the starts of two rounds of one log.
    pub every: Duration,
    /// The logs to watch by checkpoints and tiles.
    pub logs: Vec<WatchedLog>,
    /// SCITT services to watch by their receipts.
    pub services: Vec<ServiceTarget>,
    /// Listen address of the metrics endpoint, if any; it has no authentication, so keep it private.
    pub listen: Option<SocketAddr>,
    /// The OpenTelemetry collector that gets the spans, without the path `/v1/traces`. Only builds with the feature `otlp` send any.
    pub otlp: Option<Url>,
    /// Receivers of alarms.
    pub webhooks: Vec<Hook>,
    /// Path of the Ed25519 key that signs webhook messages. If `None`, a key is generated in the state directory at the
    /// first start.
    pub webhook_key: Option<PathBuf>,
}

/// A webhook receiver of alarms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook {
    /// URL to which messages are posted.
    pub url: String,
    /// Permits private network addresses and plain HTTP.
    pub allow_private: bool,
    /// File with a secret shared with the receiver: messages then carry an HMAC signature, too.
    pub secret_file: Option<PathBuf>,
}

/// A log to watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedLog {
    /// The log's name in the configuration; also the name of its folder in the state directory.
    pub name: String,
    /// The prefix of `checkpoint` and `tile/` (C2SP tlog-tiles), with a trailing slash.
    pub url: Url,
    /// The log's origin in checkpoints; by default the name in `vkey`.
    pub origin: Origin,
    /// The log's public key, from the configuration; a fetched key is never used.
    pub vkey: VerifierKey,
    /// Retired keys of the log, each with the first tree size that it must not sign.
    pub retired: Vec<(VerifierKey, TreeSize)>,
    /// PEM file with additional root certificates for TLS.
    pub ca_file: Option<PathBuf>,
    /// File with a bearer token of the role auditor, for a log that restricts access to statement bodies.
    pub token_file: Option<PathBuf>,
    /// Trust file (`trust.toml`) with the log's receipt keys; receipts that verify with them prove the commit times of
    /// entries.
    pub trust: Option<PathBuf>,
    /// Keys of the witnesses whose cosignatures date a checkpoint.
    pub witnesses: Vec<VerifierKey>,
    /// Required cosignatures (C2SP tlog-policy); its witnesses are also in `witnesses`.
    pub policy: Option<WitnessPolicy>,
    /// Maximum age of the newest cosignature before a checkpoint is stale.
    pub stale_after: Duration,
    /// Maximum time for which a vantage point may show a larger tree than the log shows the monitor.
    pub lag: Duration,
    /// Maximum time without a usable answer before an alarm is raised.
    pub unreachable_after: Duration,
    /// Maximum difference between two clocks.
    pub clock_tolerance: Duration,
    /// Extent of the checks.
    pub depth: Depth,
    /// Sends one request per round where the log supports it: reads the checkpoint that comes with the consistency
    /// proof instead of `checkpoint`.
    pub lean: bool,
    /// File with a checkpoint to start from: a note signed by the log.
    pub start: Option<PathBuf>,
    /// Other sources of the log's checkpoints, for comparison.
    pub vantages: Vec<Vantage>,
    /// Watch lists; they require [`Depth::Decisions`].
    pub watches: Vec<Watch>,
    /// Whether and how the search index is computed again; requires [`Depth::Decisions`].
    pub index: Option<IndexWatch>,
}

/// Extent of the checks of a log; each level includes the ones before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// Checkpoints, and consistency proofs between them.
    #[default]
    Checkpoints,
    /// Also all entries: the root is recomputed from them.
    Entries,
    /// Also all statements: signatures, policy decisions, chains. Only Tabellion logs support this.
    Decisions,
}

/// A vantage point: another source of the log's checkpoints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Vantage {
    /// A witness's read path (C2SP tlog-witness).
    Witness(Url),
    /// URL of a checkpoint.
    Url(Url),
    /// File with a checkpoint, for example one kept by another monitor.
    File(PathBuf),
}

/// A watch list: a watched party and its limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watch {
    /// The watched party.
    pub who: Who,
    /// Thumbprints (hex) of the issuer's keys; empty if any key is accepted.
    pub keys: Vec<String>,
    /// Maximum time between two entries; unlimited if `None`.
    pub silence: Option<Duration>,
    /// Maximum time between a gateway's decision and the record of its outcome.
    pub outcome_within: Duration,
    /// Maximum time without a new record in an open stream of audit records; unlimited if `None`.
    pub closed_within: Option<Duration>,
}

/// The party that a watch list is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Who {
    /// An issuer: the `iss` claim.
    Issuer(String),
    /// An agent, by its name in statements.
    Agent(String),
    /// A subject: the `sub` claim.
    Subject(String),
}

impl Config {
    /// A configuration with the default interval [`limits::EVERY`] and no webhooks.
    pub fn new(state_dir: PathBuf, logs: Vec<WatchedLog>) -> Self {
        Self {
            state_dir,
            every: limits::EVERY,
            logs,
            services: Vec::new(),
            listen: None,
            otlp: None,
            webhooks: Vec::new(),
            webhook_key: None,
        }
    }

    /// Parses a TOML file's text. Paths in it are relative to `folder`.
    ///
    /// # Errors
    /// All mistakes, with their lines.
    pub fn from_toml(text: &str, folder: &std::path::Path) -> Result<Self, Mistakes> {
        file::read(text, folder)
    }
}

impl WatchedLog {
    /// A log with the default thresholds of [`limits`] and [`Depth::Checkpoints`].
    pub fn new(name: &str, url: Url, vkey: VerifierKey) -> Self {
        Self {
            name: name.to_owned(),
            url: with_slash(url),
            origin: Origin::from(vkey.name().clone()),
            vkey,
            retired: Vec::new(),
            ca_file: None,
            token_file: None,
            trust: None,
            witnesses: Vec::new(),
            policy: None,
            stale_after: limits::STALE_AFTER,
            lag: limits::LAG,
            unreachable_after: limits::UNREACHABLE_AFTER,
            clock_tolerance: limits::CLOCK_TOLERANCE,
            depth: Depth::default(),
            lean: false,
            start: None,
            vantages: Vec::new(),
            watches: Vec::new(),
            index: None,
        }
    }

    /// The origin for evidence: `None` if it is the key's name.
    pub(crate) fn stated_origin(&self) -> Option<String> {
        (self.origin.as_str() != self.vkey.name().as_str()).then(|| self.origin.to_string())
    }

    /// The log's current key and its retired keys.
    pub(crate) fn all_keys(&self) -> Vec<VerifierKey> {
        std::iter::once(&self.vkey).chain(self.retired.iter().map(|(key, _)| key)).cloned().collect()
    }
}

impl Watch {
    /// A watch list with the default limits: only `outcome_within` is bounded.
    pub fn of(who: Who) -> Self {
        Self {
            who,
            keys: Vec::new(),
            silence: None,
            outcome_within: limits::OUTCOME_WITHIN,
            closed_within: None,
        }
    }
}

fn with_slash(mut url: Url) -> Url {
    if !url.path().ends_with('/') {
        url.set_path(&format!("{}/", url.path()));
    }
    url
}

/// A duration in whole seconds, in which the monitor counts.
fn seconds(
    reader: &mut ConfigReader<'_>,
    key: &str,
    text: Option<&SpannedText>,
    bounds: impl RangeBounds<Duration>,
) -> Option<Duration> {
    let length = reader.duration(key, text, bounds)?;
    match length.subsec_nanos() {
        0 => Some(length),
        _ => {
            reader.mistake(text.map(Spanned::span), key, "only whole seconds are possible here");
            None
        }
    }
}
