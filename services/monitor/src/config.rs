//! What is watched: logs, with the keys that were given beforehand.

mod duration;
mod file;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use merkle::TreeSize;
use tlog::checkpoint::Origin;
use tlog::key::VerifierKey;
use tlog::policy::Policy;
use url::Url;

use crate::limits;
use crate::scitt_service::ServiceTarget;

/// A monitor's configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Where state is kept: one folder for each log.
    pub state_dir: PathBuf,
    /// How long between the starts of two rounds of one log.
    pub every: Duration,
    /// What is watched.
    pub logs: Vec<Target>,
    /// SCITT services that are watched by their receipts.
    pub services: Vec<ServiceTarget>,
    /// Where metrics are served, if anywhere; keep it private.
    pub listen: Option<SocketAddr>,
    /// Who is told of alarms.
    pub webhooks: Vec<Hook>,
    /// The Ed25519 key that signs what they are told; one in the state directory, made at the first start, if not given.
    pub webhook_key: Option<PathBuf>,
}

/// A receiver of alarms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook {
    /// Where.
    pub url: String,
    /// Whether it may be in a private network, and without TLS.
    pub allow_private: bool,
    /// A secret that is shared with it: messages are signed with HMAC too.
    pub secret_file: Option<PathBuf>,
}

/// One log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// What it is called here; also the name of its folder.
    pub name: String,
    /// The prefix below which it serves `checkpoint` and `tile/`, with a slash at its end.
    pub url: Url,
    /// Its identity; the name of its key unless said otherwise.
    pub origin: Origin,
    /// Its key. Never one that was fetched.
    pub vkey: VerifierKey,
    /// Keys that it had before, each with the first size of a tree that it signs no more.
    pub retired: Vec<(VerifierKey, TreeSize)>,
    /// Certificates to believe besides the system's: a PEM file.
    pub ca_file: Option<PathBuf>,
    /// A bearer token with the role auditor, for a log that closes bodies to others: a file.
    pub token_file: Option<PathBuf>,
    /// Whose receipts prove when entries were committed: a trust file that lists the log's receipt keys.
    pub trust: Option<PathBuf>,
    /// Whose cosignatures tell how fresh a checkpoint is.
    pub witnesses: Vec<VerifierKey>,
    /// How many of them must have cosigned (C2SP tlog-policy); its witnesses are among those above.
    pub policy: Option<Policy>,
    /// A checkpoint whose newest cosignature is older is stale.
    pub stale_after: Duration,
    /// A tree that is shown elsewhere and not here for longer is an alarm.
    pub lag: Duration,
    /// Silence of the network that lasts longer is an alarm.
    pub unreachable_after: Duration,
    /// How far clocks may be apart.
    pub clock_tolerance: Duration,
    /// How much is checked.
    pub depth: Depth,
    /// Whether one request is to do, where the log can answer so: its `checkpoint` is not read then, only the one that comes
    /// with the proof.
    pub lean: bool,
    /// A checkpoint to begin with: a note in a file, signed by the log.
    pub start: Option<PathBuf>,
    /// Other places that show the log's checkpoints.
    pub vantages: Vec<Vantage>,
    /// Who is watched.
    pub watches: Vec<Watch>,
}

/// How much of a log is checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// Checkpoints, and proofs between them.
    #[default]
    Checkpoints,
    /// Also every entry: the root is computed from them.
    Entries,
    /// Also every statement: signatures, policy decisions, chains. For our logs only.
    Decisions,
}

/// Another place that shows the log's checkpoints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Vantage {
    /// A witness's read path (C2SP tlog-witness).
    Witness(Url),
    /// A checkpoint at a URL.
    Url(Url),
    /// A checkpoint in a file: what another monitor keeps.
    File(PathBuf),
}

/// Who is watched, and what for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watch {
    /// Whom.
    pub who: Who,
    /// The keys that are the issuer's, as thumbprints in hex; empty: any.
    pub keys: Vec<String>,
    /// Silence that lasts longer is an alarm.
    pub silence: Option<Duration>,
    /// How long a decision of a gateway may be without an outcome.
    pub outcome_within: Duration,
    /// How long nothing may be added to a stream of audit records that has not ended; any time if not given.
    pub closed_within: Option<Duration>,
}

/// Whom a watch list is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Who {
    /// `iss`.
    Issuer(String),
    /// An agent, as statements name it.
    Agent(String),
    /// `sub`.
    Subject(String),
}

/// Why a configuration cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadConfig {
    /// It does not read.
    #[error("{0}")]
    Unreadable(String),
    /// A value is not one.
    #[error("{name}: {why}")]
    Value {
        /// Which.
        name: String,
        /// Why not.
        why: String,
    },
}

impl Config {
    /// Watches these, as often as is usual, and tells nobody.
    pub fn new(state_dir: PathBuf, logs: Vec<Target>) -> Self {
        Self {
            state_dir,
            every: limits::EVERY,
            logs,
            services: Vec::new(),
            listen: None,
            webhooks: Vec::new(),
            webhook_key: None,
        }
    }

    /// Reads a TOML file's text. Paths in it are relative to `folder`.
    ///
    /// # Errors
    /// If it does not read, or watches nothing.
    pub fn from_toml(text: &str, folder: &std::path::Path) -> Result<Self, BadConfig> {
        file::read(text, folder)
    }
}

impl Target {
    /// A log, watched with what is usual.
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
        }
    }

    /// The log's key and those that it replaced.
    pub(crate) fn all_keys(&self) -> Vec<VerifierKey> {
        std::iter::once(&self.vkey).chain(self.retired.iter().map(|(key, _)| key)).cloned().collect()
    }
}

impl Watch {
    /// A list, watched with what is usual.
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
