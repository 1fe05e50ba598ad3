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
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use data_encoding::HEXLOWER;
use registration::vrf::is_did_or_urn;
use serde::Deserialize;
use serving::config_file::{self, Amount, ConfigReader, Mistakes, SpannedText};
use sha2::{Digest, Sha256};
use toml::Spanned;

use super::{ClientConfig, Config, LogConfig};
use crate::limits::{CLIENTS, LARGEST_QUEUE, LONGEST_WAIT, MOST_WORKERS, REQUESTS_PER_MINUTE};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    listen: SpannedText,
    admin_listen: Option<SpannedText>,
    state: PathBuf,
    key: PathBuf,
    wait: Option<SpannedText>,
    receipt_wait: Option<SpannedText>,
    workers: Option<Spanned<usize>>,
    queue: Option<Spanned<usize>>,
    body_bytes: Option<Amount>,
    keep: Option<SpannedText>,
    otlp: Option<SpannedText>,
    error_documentation: Option<SpannedText>,
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
    name: SpannedText,
    token_sha256: Option<SpannedText>,
    token_file: Option<Spanned<PathBuf>>,
    requests_per_minute: Option<NonZeroU32>,
    subject: Option<SpannedText>,
}

pub(super) fn read(text: &str, folder: &Path) -> Result<Config, Mistakes> {
    let file: File = config_file::parse(text)?;
    let mut reader = ConfigReader::new(text, folder);
    let config = config(&mut reader, file);
    reader.finish(config)
}

fn config(reader: &mut ConfigReader<'_>, file: File) -> Option<Config> {
    let listen = reader.address("listen", &file.listen);
    if file.clients.is_empty() && listen.is_some_and(|listen| !listen.ip().is_loopback()) {
        let why = "without clients that have tokens, the service is for loopback addresses only";
        reader.mistake(Some(file.listen.span()), "client", why);
    }
    let admin_listen = file.admin_listen.and_then(|text| reader.address("admin_listen", &text));
    let wait = reader.duration("wait", file.wait.as_ref(), ..=LONGEST_WAIT);
    let receipt_wait = reader.duration("receipt_wait", file.receipt_wait.as_ref(), ..=LONGEST_WAIT);
    let keep: Option<Duration> = reader.duration("keep", file.keep.as_ref(), ..);
    let workers = reader.number("workers", file.workers.as_ref(), 1..=MOST_WORKERS);
    let queue = reader.number("queue", file.queue.as_ref(), 1..=LARGEST_QUEUE);
    let largest = checks::limits::REQUEST_BYTES as u64;
    let body_bytes = reader.size("body_bytes", file.body_bytes.as_ref(), 1..=largest);
    let otlp = reader.collector(file.otlp.as_ref());
    let error_documentation = reader.error_documentation(file.error_documentation.as_ref());
    let clients = clients(reader, file.clients);
    let log = LogConfig {
        url: file.log.url,
        trust: reader.relative(file.log.trust),
        token_file: reader.relative(file.log.token_file),
        ca_file: reader.relative(file.log.ca_file),
    };
    let usual = Config::new(listen?, reader.path(file.state), reader.path(file.key), log);
    Some(Config {
        admin_listen,
        wait: wait.unwrap_or(usual.wait),
        receipt_wait: receipt_wait.unwrap_or(usual.receipt_wait),
        workers: workers.unwrap_or(usual.workers),
        queue: queue.unwrap_or(usual.queue),
        body_bytes: body_bytes.map_or(usual.body_bytes, |bytes| bytes as usize),
        keep: keep.unwrap_or(usual.keep),
        otlp,
        error_documentation,
        clients,
        ..usual
    })
}

fn clients(reader: &mut ConfigReader<'_>, sections: Vec<ClientSection>) -> Vec<ClientConfig> {
    if sections.len() > CLIENTS {
        reader.mistake(None, "client", format!("more than {CLIENTS}"));
    }
    let (mut names, mut tokens) = (HashSet::new(), HashSet::new());
    let mut clients = Vec::new();
    for section in sections {
        let (name, span) = (section.name.get_ref().clone(), section.name.span());
        let client = reader.within(&format!("client {name:?}"), |reader| client(reader, section));
        let Some(client) = client else { continue };
        if !names.insert(name) || !tokens.insert(client.token_sha256) {
            reader.mistake(Some(span), "client", "another client has the same name or token");
        }
        clients.push(client);
    }
    clients
}

fn client(reader: &mut ConfigReader<'_>, section: ClientSection) -> Option<ClientConfig> {
    let token_sha256 = token_sha256(reader, &section);
    if let Some(subject) = section.subject.as_ref().filter(|subject| !is_did_or_urn(subject.get_ref())) {
        let why = format!("{:?} is not a DID or URN", subject.get_ref());
        reader.mistake(Some(subject.span()), "subject", why);
    }
    let usual = NonZeroU32::new(REQUESTS_PER_MINUTE).unwrap_or(NonZeroU32::MIN);
    Some(ClientConfig {
        name: section.name.into_inner(),
        token_sha256: token_sha256?,
        requests_per_minute: section.requests_per_minute.unwrap_or(usual),
        subject: section.subject.map(Spanned::into_inner),
    })
}

fn token_sha256(reader: &mut ConfigReader<'_>, section: &ClientSection) -> Option<[u8; 32]> {
    match (&section.token_sha256, &section.token_file) {
        (Some(hex), None) => {
            let hash = HEXLOWER.decode(hex.get_ref().as_bytes()).ok();
            let hash = hash.and_then(|hash| hash.try_into().ok());
            hash.or_else(|| reader.wrong(hex, "token_sha256", "not 64 lower-case hex digits"))
        }
        (None, Some(file)) => token_of_file(reader, file),
        _ => {
            let why = "exactly one of token_sha256 and token_file is needed";
            reader.wrong(&section.name, "token_file", why)
        }
    }
}

fn token_of_file(reader: &mut ConfigReader<'_>, file: &Spanned<PathBuf>) -> Option<[u8; 32]> {
    let path = reader.path(file.get_ref());
    match std::fs::read_to_string(&path) {
        Ok(text) if text.trim().is_empty() => {
            reader.wrong(file, "token_file", format!("{} is empty", path.display()))
        }
        Ok(text) => Some(Sha256::digest(text.trim().as_bytes()).into()),
        Err(error) => reader.wrong(file, "token_file", format!("{}: {error}", path.display())),
    }
}
