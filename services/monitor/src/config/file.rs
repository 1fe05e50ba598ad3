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
use std::path::{Path, PathBuf};

use merkle::TreeSize;
use serde::Deserialize;
use serving::config_file::{self, ConfigReader, Mistakes, SpannedText};
use tlog::checkpoint::Origin;
use tlog::key::{KeyKind, VerifierKey};
use tlog::policy::WitnessPolicy;
use toml::Spanned;

use super::index::IndexTable;
use super::service::ServiceTable;
use super::{Config, Depth, Hook, Vantage, Watch, WatchedLog, Who, seconds};
use crate::limits::{EVERY, EVERY_AT_LEAST, MAX_LISTED, MAX_LOGS, MAX_WEBHOOKS, OUTCOME_WITHIN};

/// Names of other files and folders in the state directory: a log must not have such a name.
const RESERVED: &[&str] = &["alarms.json", "alarms.lock", "evidence", "lock", "webhook.key", "webhooks"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    state_dir: PathBuf,
    every: Option<SpannedText>,
    #[serde(default, rename = "log")]
    logs: Vec<LogTable>,
    #[serde(default, rename = "service")]
    services: Vec<ServiceTable>,
    listen: Option<SpannedText>,
    otlp: Option<SpannedText>,
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
    name: SpannedText,
    url: SpannedText,
    vkey: SpannedText,
    #[serde(default)]
    retired_keys: Vec<RetiredKey>,
    origin: Option<SpannedText>,
    ca_file: Option<PathBuf>,
    token_file: Option<PathBuf>,
    trust: Option<Spanned<PathBuf>>,
    #[serde(default)]
    witnesses: Vec<SpannedText>,
    witness_policy: Option<Spanned<PathBuf>>,
    stale_after: Option<SpannedText>,
    lag: Option<SpannedText>,
    unreachable_after: Option<SpannedText>,
    clock_tolerance: Option<SpannedText>,
    depth: Option<SpannedText>,
    #[serde(default)]
    lean: bool,
    start: Option<PathBuf>,
    #[serde(default, rename = "vantage")]
    vantages: Vec<Spanned<VantageTable>>,
    #[serde(default, rename = "watch")]
    watches: Vec<Spanned<List>>,
    index: Option<Spanned<IndexTable>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RetiredKey {
    vkey: SpannedText,
    retired_size: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct VantageTable {
    witness: Option<SpannedText>,
    url: Option<SpannedText>,
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
    silence: Option<SpannedText>,
    outcome_within: Option<SpannedText>,
    closed_within: Option<SpannedText>,
}

/// Parses the file's text; paths are relative to `folder`.
pub fn read(text: &str, folder: &Path) -> Result<Config, Mistakes> {
    let file: File = config_file::parse(text)?;
    let mut reader = ConfigReader::new(text, folder);
    check_numbers(&mut reader, &file);
    check_names(&mut reader, &file);
    let config = config(&mut reader, file);
    reader.finish(Some(config))
}

fn check_numbers(reader: &mut ConfigReader<'_>, file: &File) {
    let watched = file.logs.len() + file.services.len();
    if !(1..=MAX_LOGS).contains(&watched) {
        reader.mistake(None, "log", format!("1 to {MAX_LOGS} logs are watched, not {watched}"));
    }
    if file.webhooks.len() > MAX_WEBHOOKS {
        reader.mistake(None, "webhook", format!("no more than {MAX_WEBHOOKS}"));
    }
}

/// Checks that each log and service has a name of its own, which can be that of its folder.
fn check_names(reader: &mut ConfigReader<'_>, file: &File) {
    let logs = file.logs.iter().map(|log| ("log.name", &log.name));
    let services = file.services.iter().map(|service| ("service.name", &service.name));
    let mut known = HashSet::new();
    for (key, name) in logs.chain(services) {
        if !is_folder_name(name.get_ref()) {
            let why = "1 to 64 letters, digits, dots, hyphens and underscores, no dot first";
            reader.mistake(Some(name.span()), key, why);
        }
        if !known.insert(name.get_ref()) {
            let why = format!("two logs are called {}", name.get_ref());
            reader.mistake(Some(name.span()), key, why);
        }
    }
}

fn config(reader: &mut ConfigReader<'_>, file: File) -> Config {
    let logs = file.logs.into_iter().filter_map(|log| {
        let table = format!("log {}", log.name.get_ref());
        reader.within(&table, |reader| log.read(reader))
    });
    let logs = logs.collect();
    let services = file.services.into_iter().filter_map(|service| {
        let table = format!("service {}", service.name.get_ref());
        reader.within(&table, |reader| service.read(reader))
    });
    let services = services.collect();
    let hook = |receiver: Receiver| Hook {
        url: receiver.url,
        allow_private: receiver.allow_private,
        secret_file: reader.relative(receiver.secret_file),
    };
    Config {
        webhooks: file.webhooks.into_iter().map(hook).collect(),
        state_dir: reader.path(file.state_dir),
        every: seconds(reader, "every", file.every.as_ref(), EVERY_AT_LEAST..).unwrap_or(EVERY),
        logs,
        services,
        listen: file.listen.and_then(|text| reader.address("listen", &text)),
        otlp: reader.collector(file.otlp.as_ref()),
        webhook_key: reader.relative(file.webhook_key),
    }
}

impl LogTable {
    fn read(self, reader: &mut ConfigReader<'_>) -> Option<WatchedLog> {
        let (url, vkey) = (reader.http("url", &self.url), self.log_key(reader));
        let mut target = WatchedLog::new(self.name.get_ref(), url?, vkey?);
        self.check(reader);
        self.set_keys(reader, &mut target);
        self.set_times(reader, &mut target);
        target.lean = self.lean;
        target.depth = self.depth(reader);
        target.ca_file = reader.relative(self.ca_file);
        target.token_file = reader.relative(self.token_file);
        target.trust = reader.relative(self.trust.map(Spanned::into_inner));
        target.start = reader.relative(self.start);
        target.vantages = self.vantages.into_iter().filter_map(|place| vantage(reader, place)).collect();
        target.watches = self.watches.into_iter().filter_map(|list| watch(reader, list)).collect();
        target.index = self.index.and_then(|table| super::index::read(reader, table));
        Some(target)
    }

    fn log_key(&self, reader: &mut ConfigReader<'_>) -> Option<VerifierKey> {
        let vkey = key(reader, "vkey", &self.vkey)?;
        match vkey.kind() {
            KeyKind::Ed25519 => Some(vkey),
            _ => reader.wrong(&self.vkey, "vkey", "a log's key is of type 0x01; this one is a witness's"),
        }
    }

    fn depth(&self, reader: &mut ConfigReader<'_>) -> Depth {
        let depths = [
            ("checkpoints", Depth::Checkpoints),
            ("entries", Depth::Entries),
            ("decisions", Depth::Decisions),
        ];
        reader.chosen("depth", self.depth.as_ref(), &depths)
    }

    /// Checks the lengths of lists, and that settings which need statements come with the depth that reads them.
    fn check(&self, reader: &mut ConfigReader<'_>) {
        let lists = [self.witnesses.len(), self.vantages.len(), self.watches.len()];
        if lists.iter().any(|count| *count > MAX_LISTED) {
            reader.mistake(Some(self.name.span()), "lists", format!("no list is longer than {MAX_LISTED}"));
        }
        if self.depth.as_ref().is_some_and(|depth| depth.get_ref() == "decisions") {
            return;
        }
        let needs = [
            ("index", self.index.as_ref().map(Spanned::span), "the index is computed from statements"),
            ("watch", self.watches.first().map(Spanned::span), "watch lists are about statements"),
            ("trust", self.trust.as_ref().map(Spanned::span), "times of entries are checked with statements"),
        ];
        for (key, span, why) in needs {
            if span.is_some() {
                reader.mistake(span, key, format!("{why}: set depth = \"decisions\""));
            }
        }
    }

    fn set_keys(&self, reader: &mut ConfigReader<'_>, target: &mut WatchedLog) {
        for retired in &self.retired_keys {
            let size = TreeSize::new(retired.retired_size);
            target.retired.extend(key(reader, "retired_keys", &retired.vkey).map(|key| (key, size)));
        }
        if let Some(text) = &self.origin {
            match text.get_ref().parse::<Origin>() {
                Ok(origin) => target.origin = origin,
                Err(error) => reader.mistake(Some(text.span()), "origin", format!("{error}")),
            }
        }
        target.witnesses = self.witnesses.iter().filter_map(|text| witness(reader, text)).collect();
        target.policy = self.witness_policy.as_ref().and_then(|path| policy(reader, path));
        let required = target.policy.iter().flat_map(|policy| policy.witnesses());
        let required: Vec<VerifierKey> = required.map(|witness| witness.key.clone()).collect();
        target.witnesses.extend(required);
    }

    fn set_times(&self, reader: &mut ConfigReader<'_>, target: &mut WatchedLog) {
        for (key, text, time) in [
            ("stale_after", &self.stale_after, &mut target.stale_after),
            ("lag", &self.lag, &mut target.lag),
            ("unreachable_after", &self.unreachable_after, &mut target.unreachable_after),
            ("clock_tolerance", &self.clock_tolerance, &mut target.clock_tolerance),
        ] {
            *time = seconds(reader, key, text.as_ref(), ..).unwrap_or(*time);
        }
    }
}

fn vantage(reader: &mut ConfigReader<'_>, table: Spanned<VantageTable>) -> Option<Vantage> {
    let span = table.span();
    let VantageTable { witness, url, file } = table.into_inner();
    match (witness, url, file) {
        (Some(witness), None, None) => reader.http("vantage", &witness).map(Vantage::Witness),
        (None, Some(url), None) => reader.http("vantage", &url).map(Vantage::Url),
        (None, None, Some(file)) => Some(Vantage::File(reader.path(file))),
        _ => {
            reader.mistake(Some(span), "vantage", "one of witness, url and file");
            None
        }
    }
}

fn watch(reader: &mut ConfigReader<'_>, list: Spanned<List>) -> Option<Watch> {
    let span = list.span();
    let list = list.into_inner();
    let who = match (list.issuer, list.agent, list.subject) {
        (Some(issuer), None, None) => Who::Issuer(issuer),
        (None, Some(agent), None) => Who::Agent(agent),
        (None, None, Some(subject)) => Who::Subject(subject),
        _ => {
            reader.mistake(Some(span), "watch", "one of issuer, agent and subject");
            return None;
        }
    };
    if !list.keys.is_empty() && !matches!(who, Who::Issuer(_)) {
        reader.mistake(Some(span), "watch", "keys are those of an issuer");
    }
    Some(Watch {
        who,
        keys: list.keys,
        silence: seconds(reader, "watch.silence", list.silence.as_ref(), ..),
        outcome_within: seconds(reader, "watch.outcome_within", list.outcome_within.as_ref(), ..)
            .unwrap_or(OUTCOME_WITHIN),
        closed_within: seconds(reader, "watch.closed_within", list.closed_within.as_ref(), ..),
    })
}

fn policy(reader: &mut ConfigReader<'_>, path: &Spanned<PathBuf>) -> Option<WitnessPolicy> {
    let file = reader.path(path.get_ref());
    let text = std::fs::read_to_string(&file).map_err(|why| why.to_string());
    match text.and_then(|text| text.parse::<WitnessPolicy>().map_err(|why| why.to_string())) {
        Ok(policy) => Some(policy),
        Err(why) => reader.wrong(path, "witness_policy", format!("{}: {why}", file.display())),
    }
}

fn is_folder_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let free = !RESERVED.contains(&name);
    free && (1..=64).contains(&name.len()) && !name.starts_with('.') && name.chars().all(fits)
}

fn key(reader: &mut ConfigReader<'_>, name: &str, text: &SpannedText) -> Option<VerifierKey> {
    match text.get_ref().parse::<VerifierKey>() {
        Ok(key) => Some(key),
        Err(why) => reader.wrong(text, name, format!("{}: {why}", text.get_ref())),
    }
}

fn witness(reader: &mut ConfigReader<'_>, text: &SpannedText) -> Option<VerifierKey> {
    let key = key(reader, "witnesses", text)?;
    match key.kind() {
        KeyKind::Cosignature => Some(key),
        _ => {
            let why = format!("{}: a witness has a key of type 0x04, for cosignatures", text.get_ref());
            reader.wrong(text, "witnesses", why)
        }
    }
}
