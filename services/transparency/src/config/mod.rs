//! The configuration of a running service.
//!
//! Reading flags, environment and files is the binary's work. [`Config::mistakes`] lists all mistakes at once, each
//! with its setting as the operator writes it.

pub mod roles;

use std::collections::HashSet;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use registration::policy::essence;
use secrecy::{ExposeSecret, SecretString};
use serving::problem::ErrorDocumentation;
use serving::tls::TlsFiles;
use tlog::policy::WitnessPolicy;

use crate::config::roles::{CallerRole, ClosedTypes, Scope};
use crate::limits::{
    BATCH_BYTES_CAP, LINGER_CAP, Limits, MAX_ISSUER_RATES, SOCKET_PATH_BYTES, STATEMENT_BYTES_CAP,
    WITNESS_EVERY, WITNESS_PACE,
};
use crate::token::is_token;

/// The service's whole configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// The log's name in C2SP checkpoints and the `sub` of receipts: host (and path) without scheme. Never changes.
    pub origin: String,
    /// The `iss` of receipts and of policy statements: a URL that names the log. Never changes.
    pub iss: String,
    /// The URL at which clients reach the service: `Location` is `<public_url>/entries/<id>`. No trailing slash.
    pub public_url: String,
    /// The database that stores the log.
    pub database: Database,
    /// Migrates the tables of a PostgreSQL database at the start, which takes their owner's rights.
    pub migrate: bool,
    /// Folder of the pin, unless `pin` names a database. Never on the disk of the log's own database, which the pin
    /// guards.
    pub state_dir: PathBuf,
    /// A PostgreSQL URL of a database for the pin, for a log that several hosts may lead. `None`: a file in
    /// `state_dir`.
    pub pin: Option<SecretString>,
    /// Address of the public listener. Port 0 takes a free one.
    pub listen: SocketAddr,
    /// Address of the admin listener: health and metrics, and commands for callers on this host with an operator's
    /// token. `None`: no such listener.
    pub admin_listen: Option<SocketAddr>,
    /// Path of the Unix socket for the operator's commands, created with mode 0600. `None`: no such socket.
    pub admin_socket: Option<PathBuf>,
    /// Certificate and key of the public listener. `None`: plain HTTP.
    pub tls: Option<TlsFiles>,
    /// Allows plain HTTP on an address that is not loopback, for a proxy in front that terminates TLS.
    pub plaintext: bool,
    /// Signing keys (PKCS#8 PEM, mode 0600).
    pub keys: SigningKeyFiles,
    /// Signature algorithm of receipts. Must fit the receipt key.
    pub receipt_algorithm: ReceiptAlgorithm,
    /// The registration policy (TOML).
    pub policy: PathBuf,
    /// Authentication, roles and client addresses. They never decide about statements.
    pub access: AccessConfig,
    /// The witnesses that cosign the log's checkpoints.
    pub witnesses: WitnessConfig,
    /// Bounds on sizes, rates and durations.
    pub limits: Limits,
    /// Where the codes of problems are documented.
    pub error_documentation: ErrorDocumentation,
}

/// The witnesses that cosign the log's checkpoints, and the quorum that a served checkpoint needs.
#[derive(Clone, Debug)]
pub struct WitnessConfig {
    /// Witnesses, groups and quorum (C2SP tlog-policy). `None`: no cosignatures.
    pub policy: Option<WitnessPolicy>,
    /// Interval at which an unchanged newest checkpoint is sent to the witnesses again; their new cosignatures show
    /// monitors its freshness.
    pub every: Duration,
    /// Shortest interval between new checkpoints sent to the witnesses. Not a setting.
    pub pace: Duration,
}

impl Default for WitnessConfig {
    fn default() -> Self {
        Self { policy: None, every: WITNESS_EVERY, pace: WITNESS_PACE }
    }
}

impl WitnessConfig {
    /// The reason why these witnesses can never meet the quorum: too few of them have a URL.
    fn mistake(&self) -> Option<String> {
        let policy = self.policy.as_ref()?;
        let asked = policy.witnesses().iter().filter(|witness| witness.url.is_some());
        let asked: HashSet<&str> = asked.map(|witness| witness.name.as_str()).collect();
        (!policy.is_met_by(&asked)).then(|| {
            format!(
                "the witnesses that have a URL cannot meet the quorum {}",
                policy.quorum_name().unwrap_or("none")
            )
        })
    }
}

/// The database that stores the log.
#[derive(Clone)]
pub enum Database {
    /// A SQLite file, created when absent.
    Sqlite {
        /// Path of the file.
        path: PathBuf,
        /// Accepts a file system on which SQLite's locks may not work (network, overlay).
        any_filesystem: bool,
    },
    /// A PostgreSQL URL; it may contain a password, so `Debug` hides it.
    Postgres(SecretString),
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite { path, .. } => write!(f, "sqlite {}", path.display()),
            Self::Postgres(_) => f.write_str("postgres (URL hidden)"),
        }
    }
}

/// Signature algorithms of receipts. ES256 is the one that every existing verifier supports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReceiptAlgorithm {
    /// ECDSA with P-256 and SHA-256 (-7).
    #[default]
    Es256,
    /// ECDSA with P-384 and SHA-384 (-35).
    Es384,
    /// Ed25519 under its older name (-8).
    EdDsa,
}

impl ReceiptAlgorithm {
    /// The algorithm's COSE identifier.
    pub fn algorithm(self) -> scitt::Algorithm {
        match self {
            Self::Es256 => scitt::Algorithm::Es256,
            Self::Es384 => scitt::Algorithm::Es384,
            Self::EdDsa => scitt::Algorithm::EdDsa,
        }
    }
}

impl FromStr for ReceiptAlgorithm {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "ES256" => Ok(Self::Es256),
            "ES384" => Ok(Self::Es384),
            "EdDSA" => Ok(Self::EdDsa),
            _ => Err(format!("{text:?} is not one of ES256, ES384, EdDSA")),
        }
    }
}

/// The signing keys, one file per purpose: RFC 9943 forbids one key for two purposes.
#[derive(Clone, Debug)]
pub struct SigningKeyFiles {
    /// Signs receipts (COSE).
    pub receipt: PathBuf,
    /// Signs checkpoints (C2SP note, Ed25519).
    pub checkpoint: PathBuf,
    /// Signs heads of the search index. `None`: this process makes none.
    pub index: Option<PathBuf>,
    /// Signs policy statements. Needed only to publish one: `None` serves a log whose policy does not change.
    pub operator: Option<PathBuf>,
}

/// Access settings of the public listener. They are not part of the policy: an audit ignores them.
#[derive(Clone, Debug)]
pub struct AccessConfig {
    /// Bearer tokens: each names a client, its rate bucket and its role.
    pub tokens: Vec<ClientToken>,
    /// Refuses `POST` without a known token (401).
    pub token_required: bool,
    /// Proxies whose `X-Forwarded-For` is trusted.
    pub trusted_proxies: Vec<Network>,
    /// The role of callers without a token.
    pub anonymous_role: CallerRole,
    /// Content types whose bodies only auditors may read.
    pub closed_types: ClosedTypes,
    /// Origins of web pages that may read non-public resources; `*` is every origin. Public resources are open to all.
    pub cors_origins: Vec<String>,
}

impl Default for AccessConfig {
    fn default() -> Self {
        Self {
            tokens: Vec::new(),
            token_required: false,
            trusted_proxies: Vec::new(),
            anonymous_role: CallerRole::Reader,
            closed_types: ClosedTypes::default(),
            cors_origins: Vec::new(),
        }
    }
}

/// A bearer token and the client it identifies.
#[derive(Clone, Debug)]
pub struct ClientToken {
    /// The client's name in logs and rate buckets.
    pub name: String,
    /// The token as the client sends it, at least 16 characters.
    pub secret: SecretString,
    /// The client's role; `None`: the role of callers without a token.
    pub role: Option<CallerRole>,
    /// The issuers and content types that the token is restricted to.
    pub scope: Scope,
    /// Expiry, in Unix seconds; `None`: never.
    pub expires: Option<u64>,
}

impl ClientToken {
    /// A token without restrictions and expiry, with the role of callers without a token.
    pub fn new(name: &str, secret: &str) -> Self {
        let secret = SecretString::from(secret.to_owned());
        Self { name: name.to_owned(), secret, role: None, scope: Scope::default(), expires: None }
    }
}

/// An address range, as in `10.0.0.0/8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    prefix: u8,
}

impl Network {
    /// Returns `true` if the address is in the range.
    pub fn holds(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(net), IpAddr::V4(one)) => {
                same_prefix(net.to_bits().into(), one.to_bits().into(), self.prefix + 96)
            }
            (IpAddr::V6(net), IpAddr::V6(one)) => same_prefix(net.to_bits(), one.to_bits(), self.prefix),
            _ => false,
        }
    }
}

fn same_prefix(left: u128, right: u128, prefix: u8) -> bool {
    let differing = (left ^ right).leading_zeros();
    differing >= u32::from(prefix)
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not an address range such as 10.0.0.0/8");
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix.parse::<u8>().map_err(|_| wrong())?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let prefix = prefix.unwrap_or(bits);
        if prefix > bits { Err(wrong()) } else { Ok(Self { address, prefix }) }
    }
}

/// A setting with a value that the service cannot run with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{setting}: {what}")]
pub struct InvalidSetting {
    /// The setting, as the operator writes it.
    pub setting: &'static str,
    /// The defect, and a value that would be right.
    pub what: String,
}

impl Config {
    /// Returns all mistakes at once. Files are read only when the service starts.
    pub fn mistakes(&self) -> Vec<InvalidSetting> {
        let mut found = Vec::new();
        let mut check = |holds: bool, setting, what: String| {
            if !holds {
                found.push(InvalidSetting { setting, what });
            }
        };
        check(
            origin_is_sound(&self.origin),
            "origin",
            "give the host of the log without scheme or spaces, as in log.example.org".into(),
        );
        check(
            is_url(&self.iss),
            "iss",
            "give a URL that names the log, as in https://log.example.org".into(),
        );
        check(
            is_url(&self.public_url) && !self.public_url.ends_with('/'),
            "public_url",
            "give the URL clients use, without a trailing slash".into(),
        );
        check(
            self.plaintext_is_allowed(),
            "listen",
            format!(
                "{} is not loopback: give tls_cert and tls_key, or plaintext = true if a proxy ends TLS",
                self.listen
            ),
        );
        let too_long =
            self.admin_socket.as_ref().is_some_and(|path| path.as_os_str().len() > SOCKET_PATH_BYTES);
        check(
            !too_long,
            "admin_socket",
            format!(
                "the path has more than {SOCKET_PATH_BYTES} bytes, which no socket can have: give a shorter one"
            ),
        );
        check(
            self.admin_listen.is_none_or(|admin| admin.port() == 0 || admin != self.listen),
            "admin_listen",
            "must not be the public listener".into(),
        );
        check(
            (1..=STATEMENT_BYTES_CAP).contains(&self.limits.statement_bytes),
            "max_statement_bytes",
            format!("is at least 1 and at most {STATEMENT_BYTES_CAP}"),
        );
        check(
            (1..=BATCH_BYTES_CAP).contains(&self.limits.batch_bytes),
            "max_batch_bytes",
            format!("is at least 1 and at most {BATCH_BYTES_CAP}"),
        );
        check(
            self.limits.bodies_in_flight_bytes >= self.limits.statement_bytes,
            "inflight_bytes",
            "must hold at least one statement".into(),
        );
        let named = &self.limits.named_issuers;
        check(
            named.len() <= MAX_ISSUER_RATES,
            "issuer_rates",
            format!(
                "names {} issuers, and at most {MAX_ISSUER_RATES} can have a rate of their own",
                named.len()
            ),
        );
        check(
            named.keys().all(|iss| !iss.is_empty()),
            "issuer_rates",
            "an issuer is named as statements name it (iss), and one name is empty".into(),
        );
        let witnesses = self.witnesses.mistake();
        check(witnesses.is_none(), "witness_policy", witnesses.unwrap_or_default());
        check(!self.witnesses.every.is_zero(), "witness_interval_seconds", "is at least 1".into());
        check(!self.limits.retention_every.is_zero(), "retention_sweep_seconds", "is at least 1".into());
        check(self.limits.connections > 0, "connections", "is at least 1".into());
        check(
            self.limits.linger <= LINGER_CAP,
            "linger_ms",
            format!("is at most {}", LINGER_CAP.as_millis()),
        );
        check(
            self.access.closed_types.0.iter().all(|name| is_content_type(name)),
            "closed_content_types",
            "give content types, such as application/json".into(),
        );
        check(
            !self.access.token_required || !self.access.tokens.is_empty(),
            "tokens_file",
            "a token is required, but no token is listed: no caller could register".into(),
        );
        check(
            self.access.tokens.iter().all(|token| token.secret.expose_secret().len() >= 16),
            "tokens_file",
            "a token has at least 16 characters".into(),
        );
        check(
            self.access.anonymous_role < CallerRole::Operator,
            "anonymous_role",
            "is public, reader or auditor: an operator needs a token".into(),
        );
        check(
            self.access.cors_origins.iter().all(|origin| origin == "*" || is_origin(origin)),
            "cors_origins",
            "give origins as browsers send them, such as https://explorer.example.org, or *".into(),
        );
        found
    }

    fn plaintext_is_allowed(&self) -> bool {
        self.tls.is_some() || self.plaintext || self.listen.ip().to_canonical().is_loopback()
    }
}

/// Checks an origin by the rules of C2SP checkpoints: not empty, no scheme, no whitespace, no plus sign.
fn origin_is_sound(origin: &str) -> bool {
    !origin.is_empty()
        && origin.len() <= 255
        && !origin.contains("://")
        && !origin.ends_with('/')
        && !origin.chars().any(|c| c.is_whitespace() || c.is_control() || c == '+')
}

/// Checks an origin as browsers write it: scheme, host, port unless it is the scheme's default, and nothing more.
fn is_origin(text: &str) -> bool {
    is_url(text) && text.split('/').count() == 3 && text == text.to_ascii_lowercase()
}

fn is_content_type(text: &str) -> bool {
    let essence = essence(text);
    let parts = essence.split_once('/');
    parts.is_some_and(|(kind, name)| is_name(kind) && is_name(name))
}

/// Returns whether a text is a token without `*`, which would look like a wildcard.
fn is_name(text: &str) -> bool {
    is_token(text.as_bytes()) && !text.contains('*')
}

fn is_url(text: &str) -> bool {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    rest.is_some_and(|rest| !rest.is_empty() && text.len() <= 8192 && text.parse::<http::Uri>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_holds_its_own_addresses_and_no_others() {
        let net: Network = "10.1.0.0/16".parse().unwrap();
        assert!(net.holds("10.1.255.3".parse().unwrap()));
        assert!(net.holds("::ffff:10.1.2.3".parse().unwrap()));
        assert!(!net.holds("10.2.0.1".parse().unwrap()));
        assert!(!net.holds("::1".parse().unwrap()));
        let all: Network = "::/0".parse().unwrap();
        assert!(all.holds("2001:db8::1".parse().unwrap()));
        for wrong in ["10.0.0.0/33", "ten/8", "10.0.0.0/", "/8", "::/129"] {
            assert!(wrong.parse::<Network>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_origin_is_a_name_without_scheme() {
        assert!(origin_is_sound("log.example.org/2026"));
        for wrong in ["", "https://log.example.org", "log example", "log+1", "log.example/"] {
            assert!(!origin_is_sound(wrong), "{wrong}");
        }
    }
}
