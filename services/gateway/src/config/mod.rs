//! The gateway's configuration: one TOML file, read once. All mistakes in it are reported together, with their lines.
//!
//! A [`Config`] is ready to use: its keys are read, its addresses parsed, its patterns compiled. Questions that the
//! file leaves open are decided by the specification's readings (4.3 of its digest), not here. Relative paths are
//! relative to the file's folder.
//!
//! A running gateway reads the file again on SIGHUP, or when it or a file that it names changes ([`watch`]). Routes,
//! agents, limits and the judge take effect at once; `issuer`, `listen`, `state` and similar settings only after a
//! restart ([`Config::needs_restart`]).
//!
//! Not here: the rules that decide on calls (`admission`), and the flags of the command.

mod a2a;
mod agentroa;
mod agents;
mod amounts;
mod approvals;
mod commitment;
mod dev;
mod file;
mod isolation;
mod oauth;
mod read;
mod reader;
mod route;
mod routes;
mod rules;
mod servers;
#[cfg(test)]
mod tests;
pub mod watch;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use admission::signature::Keyring;
use decimal::Decimal;
use serving::problem::ErrorDocumentation;
use serving::rate_limit::Rate;
use url::Url;

pub use a2a::AGENT_CARD_PATH;
pub use admission::rules::Posture;
pub use agentroa::{AgentRoaConfig, ReceiptForm, RegistrySource};
pub use agents::AgentKeys;
pub(crate) use approvals::waits;
pub use approvals::{ApprovalsListener, Approver};
pub use dev::Dev;
#[cfg(test)]
pub(crate) use oauth::TOKEN_ALGORITHMS;
pub use oauth::{KeySource, OAuth, OAuthMode};
pub use route::{CommandServer, HttpServer, Requirement, Route, RouteProtocol, Server, UpstreamConfig};
pub use serving::config_file::{Mistake, Mistakes};

use crate::judge::Meter;
use crate::limits;

/// The configuration of a gateway.
#[derive(Clone, Debug)]
pub struct Config {
    /// The gateway's name: the issuer of its statements, and the `aud` of messages that agents sign for it.
    pub issuer: String,
    /// The address of the clients' listener.
    pub listen: SocketAddr,
    /// The address of the listener for health and metrics, if any. It should be private.
    pub admin_listen: Option<SocketAddr>,
    /// The URL at which clients reach the gateway, without a path: the base of its resource URIs. By default the
    /// issuer, if that is an http URL.
    pub public_url: Url,
    /// The state folder: keys, and the evidence unless it is in PostgreSQL.
    pub state: PathBuf,
    /// The database of the evidence.
    pub evidence: Evidence,
    /// Retention time of records that are in the log already; `None` keeps them forever.
    pub evidence_keep: Option<Duration>,
    /// Accepted host names of the `Host` header, without port.
    pub hosts: Vec<String>,
    /// Accepted origins of web pages (`Origin` header).
    pub origins: Vec<String>,
    /// Addresses of proxies whose header `Client-Cert` is believed (RFC 9440).
    pub certificate_proxies: Vec<IpAddr>,
    /// The log that the gateway's statements are submitted to.
    pub log: LogTarget,
    /// Limits on records that wait for the log.
    pub outbox: Outbox,
    /// Limits on requests of clients.
    pub intake: Intake,
    /// Idle time after which a session is closed.
    pub session_idle: Duration,
    /// The URL of the OTLP/HTTP collector for spans. Without one, `OTEL_EXPORTER_OTLP_ENDPOINT` is used, if it is set.
    /// Decisions never depend on the collector.
    pub otlp: Option<Url>,
    /// Where the codes of problems are documented.
    pub error_documentation: ErrorDocumentation,
    /// The judge of the semantic tier, if any.
    pub judge: Option<Judge>,
    /// The keys of agents and approvers whose signatures are accepted.
    pub agents: Vec<AgentKeys>,
    /// The keyring of these keys. An approver's signature on an amendment counts in addition to the agent's own (V-19).
    pub keyring: Keyring,
    /// The listener for approvers, if any.
    pub approvals: Option<ApprovalsListener>,
    /// The approvers.
    pub approvers: Vec<Approver>,
    /// Paths of keys that are not in the state folder.
    pub keys: KeyFiles,
    /// The registry of AgentROA, if any.
    pub agentroa: Option<AgentRoaConfig>,
    /// The endpoints.
    pub routes: Vec<Route>,
    /// `--dev`: loopback only, without any guarantees.
    pub dev: bool,
    /// The file that the configuration was read from.
    pub file: Option<PathBuf>,
    /// Paths of the file and of the files that it names, which are watched for changes.
    pub sources: Vec<PathBuf>,
    /// Further paths that servers started by the gateway can neither read nor change.
    pub hide: Vec<PathBuf>,
    /// True if servers are started even if they are not isolated from the gateway's keys (`--unsafe-shared-user`).
    pub unsafe_shared_user: bool,
}

/// The database of the evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// A SQLite file.
    Sqlite(PathBuf),
    /// The URL of a PostgreSQL database, which several gateways may share.
    Postgres(String),
}

/// The log, and how the gateway reaches it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogTarget {
    /// The public URL of the log, without a trailing slash: the beginning of each `audit_ref`.
    pub url: String,
    /// True if a call is served only after the log issued a receipt for its decision.
    pub receipt_required: bool,
    /// Maximum wait for the receipt, if `receipt_required` is set.
    pub receipt_wait: Duration,
    /// The trust file with which receipts are verified. Without it, receipts are stored unverified.
    pub trust: Option<PathBuf>,
    /// Path of a file with a bearer token for the log.
    pub token_file: Option<PathBuf>,
    /// Path of further CA certificates (PEM), in addition to the system's.
    pub ca_file: Option<PathBuf>,
}

/// Limits on the outbox. When one is reached, calls are denied (`evidence_backpressure`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outbox {
    /// Maximum number of records.
    pub records: u64,
    /// Maximum number of bytes of all records.
    pub bytes: u64,
    /// Maximum age of the oldest record.
    pub age: Duration,
}

/// Limits on requests of clients (V-11).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intake {
    /// Maximum length of a request body, in bytes.
    pub body_bytes: usize,
    /// Rate limit per client address, in requests per second.
    pub requests_per_second: u32,
    /// Burst of the rate limiter, in requests per client address.
    pub burst: u32,
    /// Maximum number of open connections.
    pub connections: usize,
}

/// The judge of the semantic tier (C5).
#[derive(Clone, Debug, PartialEq)]
pub struct Judge {
    /// The base URL of an OpenAI-compatible endpoint: `https://…/v1`.
    pub url: Url,
    /// The model's name.
    pub model: String,
    /// Path of a file with a bearer token for the endpoint.
    pub key_file: Option<PathBuf>,
    /// Timeout for an answer. After it, the verdict is never "served".
    pub timeout: Duration,
    /// Share of calls that are examined at random (V-28): above 0, at most 1.
    pub sample_rate: f64,
    /// Minimum confidence; below it, the judge's answer counts as unsure.
    pub confidence: f64,
    /// True if commitments and amendments are examined, too (S2).
    pub commitments: bool,
    /// Time for which an answer may be reused (V-29).
    pub cache: Duration,
    /// The unit of the session's meter `vap.judge` (V-31): answers or tokens.
    pub meter: Meter,
    /// The cost of one question in `vap.judge`. Where tokens are counted, the reservation until the endpoint reports
    /// their number.
    pub cost: Decimal,
    /// The limit of `vap.judge` per session, in the unit of `meter`.
    pub cap: Decimal,
}

/// Paths of keys. A key without a path is in the state folder, and is created there at the first start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyFiles {
    /// The evidence key, which signs statements: Ed25519, PKCS#8 PEM.
    pub evidence: Option<PathBuf>,
    /// The verdict key, which signs Verdicts: Ed25519, PKCS#8 PEM.
    pub verdict: Option<PathBuf>,
    /// The state key, which protects `requestState`: 32 bytes in base64url, the same on every replica.
    pub state: Option<PathBuf>,
}

impl Config {
    /// Reads a configuration from TOML text, and the files that it names. Paths in it are relative to `folder`.
    ///
    /// # Errors
    /// All mistakes, with their lines.
    pub fn from_toml(text: &str, folder: &std::path::Path) -> Result<Self, Mistakes> {
        read::read(text, folder)
    }

    /// Reads a configuration file.
    ///
    /// # Errors
    /// All mistakes, with their lines.
    pub fn from_file(path: &std::path::Path) -> Result<Self, Mistakes> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| Mistakes::one(None, "config", format!("{}: {error}", path.display())))?;
        let folder = path.parent().unwrap_or(std::path::Path::new("."));
        let mut config = Self::from_toml(&text, folder)?;
        config.sources.insert(0, path.to_owned());
        config.file = Some(path.to_owned());
        Ok(config)
    }

    /// The route with this path.
    pub fn route(&self, path: &str) -> Option<&Route> {
        self.routes.iter().find(|route| route.path == path)
    }

    /// The names of changed settings that take effect only after a restart.
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
            ("agentroa", self.agentroa != new.agentroa),
            ("otlp", self.otlp != new.otlp),
            ("error_documentation", self.error_documentation != new.error_documentation),
            ("outbox", self.outbox != new.outbox),
            ("session_idle", self.session_idle != new.session_idle),
            ("limits.connections", self.intake.connections != new.intake.connections),
        ];
        changed.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name).collect()
    }
}

/// The addresses at which approvers reach the gateway.
fn reached(config: &Config) -> Option<(SocketAddr, Option<&Url>)> {
    config.approvals.as_ref().map(|approvals| (approvals.listen, approvals.url.as_ref()))
}

impl Intake {
    /// The rate of each client address.
    pub fn rate(&self) -> Rate {
        Rate::per_second(self.requests_per_second, self.burst)
    }
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
