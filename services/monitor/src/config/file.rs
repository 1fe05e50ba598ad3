//! The configuration file, in TOML.
//!
//! ```toml
//! state_dir = "/var/lib/tabellion/monitor"
//! every = "60s"
//!
//! listen = "127.0.0.1:7393"              # metrics
//!
//! [[webhook]]
//! url = "https://hooks.example/tabellion"
//!
//! [[log]]
//! name = "ours"
//! url = "https://log.example/"
//! vkey = "log.example+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k"
//! retired_keys = [{ vkey = "log.example+…", retired_size = 1204 }]  # signs smaller trees only
//! witnesses = ["witness.example+…"]      # cosignatures by these date a checkpoint
//! witness_policy = "witnesses.policy"    # required cosignatures (C2SP tlog-policy)
//! depth = "decisions"                    # checkpoints (default), entries, decisions
//! trust = "log.toml"                     # with decisions: receipt keys, for proofs of commit times
//! stale_after = "15m"
//!
//! [[log.vantage]]
//! witness = "https://witness.example/monitoring/"
//!
//! [[log.watch]]
//! issuer = "https://agent.example"
//! keys = ["7f5c…"]
//! silence = "1h"
//! outcome_within = "1h"                  # maximum time from a gateway's decision to its outcome
//! closed_within = "1d"                   # maximum time without a record in an open stream
//!
//! [log.index]                            # with decisions: the search index is computed again, see `index.rs`
//! ```

use std::collections::HashSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use merkle::TreeSize;
use serde::Deserialize;
use serving::collector;
use serving::units::parse_duration;
use tlog::key::{KeyKind, VerifierKey};
use tlog::policy::WitnessPolicy;
use url::Url;

use super::index::IndexTable;
use super::service::{ServiceTable, ServiceTarget};
use super::{BadConfig, Config, Depth, Hook, Vantage, Watch, WatchedLog, Who};
use crate::limits::{
    EVERY, EVERY_AT_LEAST, LAG, MAX_LISTED, MAX_LOGS, MAX_WEBHOOKS, OUTCOME_WITHIN, UNREACHABLE_AFTER,
};

/// Names of other files and folders in the state directory: a log must not have such a name.
const RESERVED: &[&str] = &["alarms.json", "alarms.lock", "evidence", "lock", "webhook.key", "webhooks"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    state_dir: PathBuf,
    every: Option<String>,
    #[serde(default, rename = "log")]
    logs: Vec<LogTable>,
    #[serde(default, rename = "service")]
    services: Vec<ServiceTable>,
    listen: Option<SocketAddr>,
    otlp: Option<String>,
    #[serde(default, rename = "webhook")]
    webhooks: Vec<Receiver>,
    webhook_key: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Receiver {
    url: String,
    #[serde(default)]
    allow_private: bool,
    secret_file: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LogTable {
    name: String,
    url: String,
    vkey: String,
    #[serde(default)]
    retired_keys: Vec<RetiredKey>,
    origin: Option<String>,
    ca_file: Option<PathBuf>,
    token_file: Option<PathBuf>,
    trust: Option<PathBuf>,
    #[serde(default)]
    witnesses: Vec<String>,
    witness_policy: Option<PathBuf>,
    stale_after: Option<String>,
    lag: Option<String>,
    unreachable_after: Option<String>,
    clock_tolerance: Option<String>,
    depth: Option<String>,
    #[serde(default)]
    lean: bool,
    start: Option<PathBuf>,
    #[serde(default, rename = "vantage")]
    vantages: Vec<VantageTable>,
    #[serde(default, rename = "watch")]
    watches: Vec<List>,
    index: Option<IndexTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RetiredKey {
    vkey: String,
    retired_size: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct VantageTable {
    witness: Option<String>,
    url: Option<String>,
    file: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    issuer: Option<String>,
    agent: Option<String>,
    subject: Option<String>,
    #[serde(default)]
    keys: Vec<String>,
    silence: Option<String>,
    outcome_within: Option<String>,
    closed_within: Option<String>,
}

/// Parses the file's text; paths are relative to `folder`.
pub fn read(text: &str, folder: &Path) -> Result<Config, BadConfig> {
    let file: File = toml::from_str(text).map_err(|why| BadConfig::Unreadable(why.to_string()))?;
    let every = length(file.every.as_deref(), "every", EVERY)?;
    if every < EVERY_AT_LEAST {
        return Err(bad("every", "no log is asked more often than once a second"));
    }
    let watched = file.logs.len() + file.services.len();
    if !(1..=MAX_LOGS).contains(&watched) {
        return Err(bad("log", format!("1 to {MAX_LOGS} logs are watched, not {watched}")));
    }
    let logs: Vec<WatchedLog> =
        file.logs.into_iter().map(|log| log.read(folder)).collect::<Result<_, _>>()?;
    let services = file.services.into_iter().map(|text| service(text, folder));
    let services: Vec<ServiceTarget> = services.collect::<Result<_, _>>()?;
    let mut names = HashSet::new();
    let all = logs.iter().map(|log| &log.name).chain(services.iter().map(|service| &service.name));
    if let Some(twice) = all.into_iter().find(|name| !names.insert(*name)) {
        return Err(bad("log.name", format!("two logs are called {twice}")));
    }
    if file.webhooks.len() > MAX_WEBHOOKS {
        return Err(bad("webhook", format!("no more than {MAX_WEBHOOKS}")));
    }
    let hook = |receiver: Receiver| Hook {
        url: receiver.url,
        allow_private: receiver.allow_private,
        secret_file: receiver.secret_file.map(|path| folder.join(path)),
    };
    Ok(Config {
        state_dir: folder.join(file.state_dir),
        every,
        logs,
        services,
        listen: file.listen,
        otlp: file.otlp.as_deref().map(collector_of).transpose()?,
        webhooks: file.webhooks.into_iter().map(hook).collect(),
        webhook_key: file.webhook_key.map(|path| folder.join(path)),
    })
}

fn collector_of(text: &str) -> Result<Url, BadConfig> {
    collector::parse(text).map_err(|error| bad(collector::SETTING, error.to_string()))
}

/// A SCITT service: see `service.rs`.
fn service(text: ServiceTable, folder: &Path) -> Result<ServiceTarget, BadConfig> {
    let named = |what: &str| format!("service {}: {what}", text.name);
    if !is_folder_name(&text.name) {
        return Err(bad(
            "service.name",
            "1 to 64 letters, digits, dots, hyphens and underscores, no dot first",
        ));
    }
    let url = super::with_slash(http(&text.url, &named("url"))?);
    let silence = length(text.unreachable_after.as_deref(), &named("unreachable_after"), UNREACHABLE_AFTER)?;
    let lag = length(text.lag.as_deref(), &named("lag"), LAG)?;
    let name = named("entries");
    let target = text.read(folder, url).map_err(|why| bad(name, why))?;
    Ok(ServiceTarget { unreachable_after: silence, lag, ..target })
}

impl LogTable {
    fn read(self, folder: &Path) -> Result<WatchedLog, BadConfig> {
        let named = |what: &str| format!("log {}: {what}", self.name);
        if !is_folder_name(&self.name) {
            return Err(bad(
                "log.name",
                "1 to 64 letters, digits, dots, hyphens and underscores, no dot first",
            ));
        }
        if [self.witnesses.len(), self.vantages.len(), self.watches.len()]
            .iter()
            .any(|count| *count > MAX_LISTED)
        {
            return Err(bad(named("lists"), format!("no list is longer than {MAX_LISTED}")));
        }
        let vkey = key(&self.vkey, &named("vkey"))?;
        if vkey.kind() != KeyKind::Ed25519 {
            return Err(bad(named("vkey"), "a log's key is of type 0x01; this one is a witness's"));
        }
        let mut target = WatchedLog::new(&self.name, http(&self.url, &named("url"))?, vkey);
        for retired in &self.retired_keys {
            let place = named("retired_keys");
            let size = TreeSize::new(retired.retired_size);
            target.retired.push((key(&retired.vkey, &place)?, size));
        }
        if let Some(origin) = &self.origin {
            target.origin = origin.parse().map_err(|why| bad(named("origin"), format!("{why}")))?;
        }
        target.witnesses =
            self.witnesses.iter().map(|text| witness(text, &named("witnesses"))).collect::<Result<_, _>>()?;
        if let Some(path) = &self.witness_policy {
            let policy = policy(&folder.join(path), &named("witness_policy"))?;
            target.witnesses.extend(policy.witnesses().iter().map(|witness| witness.key.clone()));
            target.policy = Some(policy);
        }
        target.stale_after = length(self.stale_after.as_deref(), &named("stale_after"), target.stale_after)?;
        target.lag = length(self.lag.as_deref(), &named("lag"), target.lag)?;
        target.lean = self.lean;
        target.unreachable_after =
            length(self.unreachable_after.as_deref(), &named("unreachable_after"), target.unreachable_after)?;
        target.clock_tolerance =
            length(self.clock_tolerance.as_deref(), &named("clock_tolerance"), target.clock_tolerance)?;
        target.depth = match self.depth.as_deref() {
            None | Some("checkpoints") => Depth::Checkpoints,
            Some("entries") => Depth::Entries,
            Some("decisions") => Depth::Decisions,
            Some(_) => return Err(bad(named("depth"), "checkpoints, entries or decisions")),
        };
        target.ca_file = self.ca_file.as_deref().map(|path| folder.join(path));
        target.token_file = self.token_file.as_deref().map(|path| folder.join(path));
        target.trust = self.trust.as_deref().map(|path| folder.join(path));
        target.start = self.start.as_deref().map(|path| folder.join(path));
        let vantage = named("vantage");
        target.vantages =
            self.vantages.into_iter().map(|place| place.read(folder, &vantage)).collect::<Result<_, _>>()?;
        let watch = format!("log {}: watch", self.name);
        target.watches = self.watches.into_iter().map(|list| list.read(&watch)).collect::<Result<_, _>>()?;
        let index = named("index");
        if self.index.is_some() && target.depth != Depth::Decisions {
            return Err(bad(index, "the index is computed from statements: set depth = \"decisions\""));
        }
        target.index =
            self.index.map(|table| table.read(folder).map_err(|why| bad(index, why))).transpose()?;
        match target.watches.is_empty() || target.depth == Depth::Decisions {
            true if target.trust.is_none() || target.depth == Depth::Decisions => Ok(target),
            true => Err(bad(named("trust"), "times of entries are checked with depth = \"decisions\" only")),
            false => Err(bad(watch, "watch lists need depth = \"decisions\": statements are read then only")),
        }
    }
}

impl VantageTable {
    fn read(self, folder: &Path, name: &str) -> Result<Vantage, BadConfig> {
        match (self.witness, self.url, self.file) {
            (Some(witness), None, None) => Ok(Vantage::Witness(http(&witness, name)?)),
            (None, Some(url), None) => Ok(Vantage::Url(http(&url, name)?)),
            (None, None, Some(file)) => Ok(Vantage::File(folder.join(file))),
            _ => Err(bad(name, "one of witness, url and file")),
        }
    }
}

impl List {
    fn read(self, name: &str) -> Result<Watch, BadConfig> {
        let who = match (self.issuer, self.agent, self.subject) {
            (Some(issuer), None, None) => Who::Issuer(issuer),
            (None, Some(agent), None) => Who::Agent(agent),
            (None, None, Some(subject)) => Who::Subject(subject),
            _ => return Err(bad(name, "one of issuer, agent and subject")),
        };
        if !self.keys.is_empty() && !matches!(who, Who::Issuer(_)) {
            return Err(bad(name, "keys are those of an issuer"));
        }
        let time = |text: Option<&str>| text.map(|text| parsed(text, name)).transpose();
        let (silence, closed_within) = (time(self.silence.as_deref())?, time(self.closed_within.as_deref())?);
        let outcome_within = length(self.outcome_within.as_deref(), name, OUTCOME_WITHIN)?;
        Ok(Watch { who, keys: self.keys, silence, outcome_within, closed_within })
    }
}

fn is_folder_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let free = !RESERVED.contains(&name);
    free && (1..=64).contains(&name.len()) && !name.starts_with('.') && name.chars().all(fits)
}

fn key(text: &str, name: &str) -> Result<VerifierKey, BadConfig> {
    text.parse().map_err(|why| bad(name, format!("{text}: {why}")))
}

fn witness(text: &str, name: &str) -> Result<VerifierKey, BadConfig> {
    let key = key(text, name)?;
    match key.kind() {
        KeyKind::Cosignature => Ok(key),
        _ => Err(bad(name, format!("{text}: a witness has a key of type 0x04, for cosignatures"))),
    }
}

fn policy(path: &Path, name: &str) -> Result<WitnessPolicy, BadConfig> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|why| bad(name, format!("{shown}: {why}")))?;
    text.parse().map_err(|why| bad(name, format!("{shown}: {why}")))
}

fn http(text: &str, name: &str) -> Result<Url, BadConfig> {
    let url = Url::parse(text).map_err(|why| bad(name, format!("{text}: {why}")))?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        _ => Err(bad(name, format!("{text}: not an HTTP URL"))),
    }
}

fn length(text: Option<&str>, name: &str, usual: Duration) -> Result<Duration, BadConfig> {
    text.map_or(Ok(usual), |text| parsed(text, name))
}

fn parsed(text: &str, name: &str) -> Result<Duration, BadConfig> {
    // Thresholds count whole seconds.
    parse_duration(text)
        .filter(|length| length.subsec_nanos() == 0)
        .ok_or_else(|| bad(name, format!("{text:?} is no length of time, as 90s, 15m, 2h or 1d are")))
}

fn bad(name: impl Into<String>, why: impl Into<String>) -> BadConfig {
    BadConfig::Value { name: name.into(), why: why.into() }
}
