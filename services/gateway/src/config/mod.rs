//! What a gateway is told: one TOML file, read once, with every mistake in it reported together and by line.
//!
//! [`Config`] holds only what can run: keys are read, addresses parsed, patterns compiled. What is not in it is decided by the
//! readings (4.3 of the specification's digest), not by us here. Relative paths are relative to the file's folder.
//!
//! A running gateway reads the file again on SIGHUP or when it, or a file that it names, changes ([`watch`]): routes, agents,
//! limits and the judge follow; `issuer`, `listen`, `state` and the like only at a new start ([`Config::needs_restart`]).
//!
//! Not here: what an admission makes of it (`admission`), and the flags of the command.

mod agents;
mod amounts;
mod approvals;
mod dev;
mod duration;
mod file;
mod mistake;
mod oauth;
mod read;
mod route;
mod routes;
mod rules;
mod servers;
#[cfg(test)]
mod tests;
pub mod watch;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use admission::decimal::Decimal;
use admission::signature::Keyring;
use url::Url;

pub use admission::rules::Posture;
pub use agents::AgentKeys;
pub(crate) use approvals::waits;
pub use approvals::{ApprovalsListener, Approver};
pub use dev::Dev;
pub use mistake::{Mistake, Mistakes};
pub use oauth::{KeySource, OAuth, OAuthMode};
pub use route::{CommandServer, HttpServer, Requirement, Route, Server, UpstreamConfig};

use crate::judge::Meter;
use crate::limits;

/// A gateway's configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// The gateway's name: the issuer of its statements, and the `aud` that agents' messages are for.
    pub issuer: String,
    /// Where clients come.
    pub listen: SocketAddr,
    /// Where health and metrics are, if anywhere; keep it private.
    pub admin_listen: Option<SocketAddr>,
    /// Where clients find it, without a path: the base of its resource URIs. The issuer, where that is an http URL.
    pub public_url: Url,
    /// Keys, and the evidence unless it is kept in PostgreSQL.
    pub state: PathBuf,
    /// Where evidence is kept.
    pub evidence: Evidence,
    /// How long records are kept that the log has; none: for ever.
    pub evidence_keep: Option<Duration>,
    /// The names by which clients may ask for it (`Host`); without port.
    pub hosts: Vec<String>,
    /// Web pages that may call it (`Origin`).
    pub origins: Vec<String>,
    /// Where its statements go.
    pub log: LogTarget,
    /// What may wait for the log.
    pub outbox: Outbox,
    /// How much is taken from clients.
    pub intake: Intake,
    /// When a session ends that nobody ended.
    pub session_idle: Duration,
    /// Where spans go: a collector that takes OTLP over HTTP. None is asked for its word on anything.
    pub otlp: Option<Url>,
    /// Who judges what rules cannot.
    pub judge: Option<Judge>,
    /// Whose signatures count: agents, and approvers.
    pub agents: Vec<AgentKeys>,
    /// Their keys, and those of approvers, whose signature on an amendment counts beside the agent's own (V-19).
    pub keyring: Keyring,
    /// Where approvers find what waits for them.
    pub approvals: Option<ApprovalsListener>,
    /// Who outside of the clients may approve.
    pub approvers: Vec<Approver>,
    /// Keys that are not in the state folder.
    pub keys: KeyFiles,
    /// The endpoints.
    pub routes: Vec<Route>,
    /// `--dev`: no promises, loopback only.
    pub dev: bool,
    /// The file that it was read from.
    pub file: Option<PathBuf>,
    /// The file's own text and those of the files it names, for noticing a change.
    pub sources: Vec<PathBuf>,
    /// Further paths that no server which the gateway starts can read or change.
    pub hide: Vec<PathBuf>,
    /// Servers are started even if nothing keeps them from the gateway's keys (`--unsafe-shared-user`).
    pub unsafe_shared_user: bool,
}

/// Where evidence is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// A SQLite file.
    Sqlite(PathBuf),
    /// A PostgreSQL database, which several gateways may share.
    Postgres(String),
}

/// The log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogTarget {
    /// Its public URL, without a slash at the end: `audit_ref` begins with it.
    pub url: String,
    /// No call is served before the log gave a receipt for its decision.
    pub receipt_required: bool,
    /// How long one is waited for then.
    pub receipt_wait: Duration,
    /// What receipts are verified with; without it they are kept and not believed.
    pub trust: Option<PathBuf>,
    /// A bearer token, in a file.
    pub token_file: Option<PathBuf>,
    /// Certificates to believe besides the system's (PEM).
    pub ca_file: Option<PathBuf>,
}

/// How much may wait for the log before calls are denied (`evidence_backpressure`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outbox {
    /// Records.
    pub records: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// The age of the oldest.
    pub age: Duration,
}

/// How much is taken from clients (V-11).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intake {
    /// The longest request.
    pub body_bytes: usize,
    /// Requests a second and address.
    pub requests_per_second: u32,
    /// The same, at once.
    pub burst: u32,
    /// Open connections.
    pub connections: usize,
}

/// The semantic tier (C5).
#[derive(Clone, Debug, PartialEq)]
pub struct Judge {
    /// The base URL of an OpenAI-compatible endpoint: `https://…/v1`.
    pub url: Url,
    /// The model's name.
    pub model: String,
    /// A bearer token, in a file.
    pub key_file: Option<PathBuf>,
    /// How long it may take. Then the answer is never "served".
    pub timeout: Duration,
    /// How many calls are examined for no reason at all (V-28), 0 to 1; above 0.
    pub sample_rate: f64,
    /// A judge less sure than this is not sure.
    pub confidence: f64,
    /// Whether commitments and amendments are shown to it too (S2).
    pub commitments: bool,
    /// How long what it said may be used again (V-29).
    pub cache: Duration,
    /// What the session's own meter `vap.judge` counts (V-31).
    pub meter: Meter,
    /// What one question costs there. Where tokens are counted: what is reserved for it, until the endpoint says how many.
    pub cost: Decimal,
    /// Where that meter ends, in the same unit.
    pub cap: Decimal,
}

/// Keys with a place of their own. What is not named lies in the state folder, and is made there at the first start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyFiles {
    /// Signs statements: Ed25519, PKCS#8 PEM.
    pub evidence: Option<PathBuf>,
    /// Signs verdicts: Ed25519, PKCS#8 PEM.
    pub verdict: Option<PathBuf>,
    /// Protects `requestState`: 32 bytes, base64url; the same for every replica.
    pub state: Option<PathBuf>,
}

impl Config {
    /// Reads a TOML file's text, and the files that it names. Paths in it are relative to `folder`.
    ///
    /// # Errors
    /// With every mistake, and the line of each.
    pub fn from_toml(text: &str, folder: &std::path::Path) -> Result<Self, Mistakes> {
        read::read(text, folder)
    }

    /// Reads a file.
    ///
    /// # Errors
    /// With every mistake, and the line of each.
    pub fn from_file(path: &std::path::Path) -> Result<Self, Mistakes> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| Mistakes::one(None, "config", format!("{}: {error}", path.display())))?;
        let folder = path.parent().unwrap_or(std::path::Path::new("."));
        let mut config = Self::from_toml(&text, folder)?;
        config.sources.insert(0, path.to_owned());
        config.file = Some(path.to_owned());
        Ok(config)
    }

    /// The route of that path.
    pub fn route(&self, path: &str) -> Option<&Route> {
        self.routes.iter().find(|route| route.path == path)
    }

    /// What changed that only a new start takes up.
    pub fn needs_restart(&self, new: &Self) -> Vec<&'static str> {
        let changed = [
            ("issuer", self.issuer != new.issuer),
            ("listen", self.listen != new.listen),
            ("admin_listen", self.admin_listen != new.admin_listen),
            ("approvals", reached(self) != reached(new)),
            ("state", self.state != new.state),
            ("evidence", self.evidence != new.evidence),
            ("evidence_keep", self.evidence_keep != new.evidence_keep),
            ("log", self.log != new.log),
            ("keys", self.keys != new.keys),
            ("otlp", self.otlp != new.otlp),
            ("outbox", self.outbox != new.outbox),
            ("session_idle", self.session_idle != new.session_idle),
            ("limits.connections", self.intake.connections != new.intake.connections),
        ];
        changed.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name).collect()
    }
}

/// Where approvers reach a gateway.
fn reached(config: &Config) -> Option<(SocketAddr, Option<&Url>)> {
    config.approvals.as_ref().map(|approvals| (approvals.listen, approvals.url.as_ref()))
}

impl Default for Outbox {
    fn default() -> Self {
        Self { records: limits::OUTBOX_RECORDS, bytes: limits::OUTBOX_BYTES, age: limits::OUTBOX_AGE }
    }
}

impl Default for Intake {
    fn default() -> Self {
        Self {
            body_bytes: limits::BODY_BYTES,
            requests_per_second: limits::REQUESTS_PER_SECOND,
            burst: limits::REQUEST_BURST,
            connections: limits::CONNECTIONS,
        }
    }
}
