//! The configuration file, in TOML.
//!
//! ```toml
//! listen = "127.0.0.1:7395"
//! state = "/var/lib/tabellion-verification"
//! key = "/etc/tabellion/verifier.key"
//!
//! [log]
//! url = "https://log.example"
//!
//! [[client]]
//! name = "ci"
//! token_file = "/etc/tabellion/ci.token"
//! requests_per_minute = 60
//! subject = "did:web:agent.example"
//! ```

use std::collections::HashSet;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use data_encoding::HEXLOWER;
use registration::vrf::is_did_or_urn;
use serde::Deserialize;
use serving::problem::ErrorDocumentation;
use serving::units::{parse_duration, parse_size};
use serving::{collector, problem};
use sha2::{Digest, Sha256};
use url::Url;

use super::{Client, Config, ConfigError, LogConfig};
use crate::limits::{CLIENTS, LARGEST_QUEUE, LONGEST_WAIT, MOST_WORKERS, REQUESTS_PER_MINUTE};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    listen: SocketAddr,
    admin_listen: Option<SocketAddr>,
    state: PathBuf,
    key: PathBuf,
    wait: Option<String>,
    receipt_wait: Option<String>,
    workers: Option<usize>,
    queue: Option<usize>,
    body_bytes: Option<String>,
    keep: Option<String>,
    otlp: Option<String>,
    error_documentation: Option<String>,
    log: LogSection,
    #[serde(default, rename = "client")]
    clients: Vec<ClientSection>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LogSection {
    url: String,
    trust: Option<PathBuf>,
    token_file: Option<PathBuf>,
    ca_file: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClientSection {
    name: String,
    token_sha256: Option<String>,
    token_file: Option<PathBuf>,
    requests_per_minute: Option<NonZeroU32>,
    subject: Option<String>,
}

pub(super) fn read(text: &str, folder: &Path) -> Result<Config, ConfigError> {
    let file: File = toml::from_str(text).map_err(|error| ConfigError::Form(error.to_string()))?;
    let log = LogConfig {
        url: file.log.url,
        trust: file.log.trust.map(|path| folder.join(path)),
        token_file: file.log.token_file.map(|path| folder.join(path)),
        ca_file: file.log.ca_file.map(|path| folder.join(path)),
    };
    let usual = Config::new(file.listen, folder.join(file.state), folder.join(file.key), log);
    if file.clients.is_empty() && !file.listen.ip().is_loopback() {
        let why = "without clients that have tokens, the service is for loopback addresses only";
        return Err(value("client", why));
    }
    Ok(Config {
        admin_listen: file.admin_listen,
        wait: duration("wait", file.wait, usual.wait, LONGEST_WAIT)?,
        receipt_wait: duration("receipt_wait", file.receipt_wait, usual.receipt_wait, LONGEST_WAIT)?,
        workers: count("workers", file.workers, usual.workers, MOST_WORKERS)?,
        queue: count("queue", file.queue, usual.queue, LARGEST_QUEUE)?,
        body_bytes: size("body_bytes", file.body_bytes, usual.body_bytes)?,
        keep: duration("keep", file.keep, usual.keep, Duration::MAX)?,
        otlp: file.otlp.as_deref().map(collector_of).transpose()?,
        error_documentation: error_documentation(file.error_documentation)?,
        clients: clients(file.clients, folder)?,
        ..usual
    })
}

fn value(setting: impl Into<String>, why: impl Into<String>) -> ConfigError {
    ConfigError::Value { setting: setting.into(), why: why.into() }
}

fn duration(
    setting: &str,
    text: Option<String>,
    usual: Duration,
    most: Duration,
) -> Result<Duration, ConfigError> {
    let Some(text) = text else { return Ok(usual) };
    let needed = || format!("{text:?} is not a duration such as 10s, 5m or 30d, of at most {most:?}");
    parse_duration(&text).filter(|time| *time <= most).ok_or_else(|| value(setting, needed()))
}

fn count(setting: &str, given: Option<usize>, usual: usize, most: usize) -> Result<usize, ConfigError> {
    match given.unwrap_or(usual) {
        count if (1..=most).contains(&count) => Ok(count),
        count => Err(value(setting, format!("{count} is not between 1 and {most}"))),
    }
}

fn size(setting: &str, text: Option<String>, most: usize) -> Result<usize, ConfigError> {
    let Some(text) = text else { return Ok(most) };
    let bytes = parse_size(&text).and_then(|bytes| usize::try_from(bytes).ok());
    bytes.filter(|bytes| (1..=most).contains(bytes)).ok_or_else(|| {
        value(setting, format!("{text:?} is not a size such as 1MiB, of at most {most} bytes"))
    })
}

fn collector_of(text: &str) -> Result<Url, ConfigError> {
    collector::parse(text).map_err(|error| value(collector::SETTING, error.to_string()))
}

fn error_documentation(text: Option<String>) -> Result<ErrorDocumentation, ConfigError> {
    let Some(text) = text else { return Ok(ErrorDocumentation::default()) };
    ErrorDocumentation::parse(&text).map_err(|error| value(problem::SETTING, error.to_string()))
}

fn clients(sections: Vec<ClientSection>, folder: &Path) -> Result<Vec<Client>, ConfigError> {
    if sections.len() > CLIENTS {
        return Err(value("client", format!("more than {CLIENTS}")));
    }
    let clients = sections.into_iter().map(|section| client(section, folder));
    let clients = clients.collect::<Result<Vec<_>, _>>()?;
    let (mut names, mut tokens) = (HashSet::new(), HashSet::new());
    for client in &clients {
        if !names.insert(&client.name) || !tokens.insert(client.token_sha256) {
            return Err(value(place(&client.name), "another client has the same name or token"));
        }
    }
    Ok(clients)
}

fn place(name: &str) -> String {
    format!("client {name:?}")
}

fn client(section: ClientSection, folder: &Path) -> Result<Client, ConfigError> {
    let place = place(&section.name);
    let token_sha256 = match (section.token_sha256, section.token_file) {
        (Some(hex), None) => HEXLOWER
            .decode(hex.as_bytes())
            .ok()
            .and_then(|hash| hash.try_into().ok())
            .ok_or_else(|| value(&place, "token_sha256 is not 64 lower-case hex digits"))?,
        (None, Some(file)) => token_of_file(&place, &folder.join(file))?,
        _ => return Err(value(place, "exactly one of token_sha256 and token_file is needed")),
    };
    if let Some(subject) = section.subject.as_deref().filter(|subject| !is_did_or_urn(subject)) {
        return Err(value(place, format!("subject {subject:?} is not a DID or URN")));
    }
    let usual = NonZeroU32::new(REQUESTS_PER_MINUTE).unwrap_or(NonZeroU32::MIN);
    let requests_per_minute = section.requests_per_minute.unwrap_or(usual);
    Ok(Client { name: section.name, token_sha256, requests_per_minute, subject: section.subject })
}

fn token_of_file(place: &str, file: &Path) -> Result<[u8; 32], ConfigError> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| value(place, format!("token_file {}: {error}", file.display())))?;
    match text.trim() {
        "" => Err(value(place, format!("token_file {} is empty", file.display()))),
        token => Ok(Sha256::digest(token.as_bytes()).into()),
    }
}
