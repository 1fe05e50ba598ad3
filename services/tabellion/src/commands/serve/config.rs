//! Conversion of settings to the service's [`Config`]; all mistakes are reported together.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use serde::de::DeserializeOwned;
use serving::problem::ErrorDocumentation;
use serving::tls::TlsFiles;
use serving::{collector, problem};
use tlog::policy::WitnessPolicy;
use transparency::{
    AccessConfig, CallerRole, ClientToken, ClosedTypes, Config, Database, Limits, Network, Rate,
    ReceiptAlgorithm, SigningKeyFiles, WitnessConfig,
};
use url::Url;

use crate::console::Failure;
use crate::settings::{self, SettingError, Settings};

/// Returns the service's configuration, or a failure (`setting-unusable`) that lists all mistakes.
pub fn resolve(settings: &Settings) -> Result<Config, Failure> {
    let mut reading = Reading { settings, mistakes: Vec::new() };
    let config = reading.config();
    // The service itself does not have the collector, but a mistake in it is one of its configuration.
    reading.collector();
    let mut mistakes = reading.mistakes;
    if mistakes.is_empty()
        && let Some(config) = config
    {
        let found = config.mistakes().into_iter();
        mistakes
            .extend(found.map(|mistake| SettingError { key: mistake.setting.into(), what: mistake.what }));
        if mistakes.is_empty() {
            return Ok(config);
        }
    }
    let unconfigured = !settings.has_file() && mistakes.iter().any(|mistake| mistake.key == "origin");
    let failure = settings::refuse(mistakes);
    Err(if unconfigured { failure.hint("tabellion init") } else { failure })
}

/// Returns the database (`db`) only, for commands that need no other setting.
pub fn database_of(settings: &Settings) -> Result<Database, Failure> {
    let mut reading = Reading { settings, mistakes: Vec::new() };
    reading.database().ok_or(()).map_err(|()| settings::refuse(reading.mistakes))
}

/// Returns the collector that gets the service's spans (`otlp`), if there is one.
pub fn collector(settings: &Settings) -> Result<Option<Url>, Failure> {
    let mut reading = Reading { settings, mistakes: Vec::new() };
    let collector = reading.collector();
    if reading.mistakes.is_empty() { Ok(collector) } else { Err(settings::refuse(reading.mistakes)) }
}

/// Parses the setting `db`.
pub fn database(url: &str, any_filesystem: bool) -> Result<Database, String> {
    if url.starts_with("postgres://") || url.starts_with("postgresql://") {
        return Ok(Database::Postgres(SecretString::from(url.to_owned())));
    }
    match url.strip_prefix("sqlite:").map(|path| path.trim_start_matches("//")) {
        Some(path) if !path.is_empty() => Ok(Database::Sqlite { path: PathBuf::from(path), any_filesystem }),
        _ => Err("give sqlite:PATH or postgres://USER@HOST/NAME".into()),
    }
}

/// A reader of [`Settings`] that collects the mistakes.
struct Reading<'a> {
    settings: &'a Settings,
    mistakes: Vec<SettingError>,
}

impl Reading<'_> {
    fn config(&mut self) -> Option<Config> {
        let origin: Option<String> = self.required("origin");
        let public_url: Option<String> = self.required("public_url");
        let database = self.database();
        let iss = self.optional("iss").or_else(|| Some(format!("https://{}", origin.as_deref()?)));
        let pin = self.pin();
        let (state_dir, policy) = (self.path("state_dir"), self.path("policy"));
        let listen: Option<SocketAddr> = self.parsed("listen");
        let (admin_listen, admin_socket) = (self.admin_listen(), admin_socket(self.settings));
        let admin_socket = self.noted_mistake(admin_socket).flatten();
        let (tls, keys, access, limits) = (self.tls(), self.keys(), self.access(), self.limits());
        let receipt_algorithm: Option<ReceiptAlgorithm> = self.parsed("receipt_alg");
        let (plaintext, migrate, witnesses) =
            (self.flag("plaintext"), self.flag("db_migrate"), self.witnesses());
        let error_documentation = self.error_documentation();
        Some(Config {
            origin: origin?,
            iss: iss?,
            public_url: public_url?.trim_end_matches('/').to_owned(),
            database: database?,
            migrate,
            state_dir: state_dir?,
            pin,
            listen: listen?,
            admin_listen,
            admin_socket,
            tls,
            plaintext,
            keys: keys?,
            receipt_algorithm: receipt_algorithm?,
            policy: policy?,
            access,
            witnesses,
            limits,
            error_documentation,
        })
    }

    fn database(&mut self) -> Option<Database> {
        let url: String = self.required("db")?;
        let any_filesystem = self.flag("any_filesystem");
        let database = database(&url, any_filesystem).map(|database| match database {
            Database::Sqlite { path, any_filesystem } => {
                Database::Sqlite { path: self.settings.relative("db", path), any_filesystem }
            }
            other => other,
        });
        self.noted("db", database)
    }

    fn pin(&mut self) -> Option<SecretString> {
        let url: String = self.optional("pin")?;
        let is_postgres = matches!(database(&url, false), Ok(Database::Postgres(_)));
        let url = is_postgres.then(|| SecretString::from(url));
        self.noted("pin", url.ok_or_else(|| "give postgres://USER@HOST/NAME".into()))
    }

    /// Returns the address of the admin listener; an empty setting `admin_listen` disables it.
    fn admin_listen(&mut self) -> Option<SocketAddr> {
        let address: String = self.optional("admin_listen")?;
        if address.is_empty() { None } else { self.parsed("admin_listen") }
    }

    fn collector(&mut self) -> Option<Url> {
        let text: String = self.optional(collector::SETTING)?;
        self.noted(collector::SETTING, collector::parse(&text).map_err(|error| error.to_string()))
    }

    fn error_documentation(&mut self) -> ErrorDocumentation {
        let Some(text): Option<String> = self.optional(problem::SETTING) else {
            return ErrorDocumentation::default();
        };
        let documentation = ErrorDocumentation::parse(&text).map_err(|error| error.to_string());
        self.noted(problem::SETTING, documentation).unwrap_or_default()
    }

    fn tls(&mut self) -> Option<TlsFiles> {
        match (self.path("tls_cert"), self.path("tls_key")) {
            (Some(certificate), Some(key)) => Some(TlsFiles { certificate, key }),
            (None, None) => None,
            (Some(_), None) => self.mistake("tls_key", "tls_cert is given without it"),
            (None, Some(_)) => self.mistake("tls_cert", "tls_key is given without it"),
        }
    }

    fn keys(&mut self) -> Option<SigningKeyFiles> {
        let (receipt, checkpoint) = (self.path("receipt_key"), self.path("checkpoint_key"));
        // A service whose policy is published already does not need the operator key.
        let operator = self.path("operator_key").filter(|path| path.exists());
        // A log whose policy has no index does not need a key of it.
        let index = self.path("index_key").filter(|path| path.exists());
        Some(SigningKeyFiles { receipt: receipt?, checkpoint: checkpoint?, index, operator })
    }

    fn access(&mut self) -> AccessConfig {
        let tokens = self.path("tokens_file").map(|path| tokens(&path)).transpose();
        let proxies: Vec<String> = self.optional("trusted_proxies").unwrap_or_default();
        let proxies = proxies.iter().map(|range| Network::from_str(range)).collect::<Result<Vec<_>, _>>();
        AccessConfig {
            tokens: self.noted("tokens_file", tokens).flatten().unwrap_or_default(),
            token_required: self.flag("token_required"),
            trusted_proxies: self.noted("trusted_proxies", proxies).unwrap_or_default(),
            anonymous_role: self.parsed("anonymous_role").unwrap_or(CallerRole::Public),
            closed_types: ClosedTypes(self.optional("closed_content_types").unwrap_or_default()),
            cors_origins: self.optional("cors_origins").unwrap_or_default(),
        }
    }

    fn witnesses(&mut self) -> WitnessConfig {
        let mut witnesses = WitnessConfig::default();
        let policy = self.path("witness_policy").map(|path| witness_policy(&path)).transpose();
        witnesses.policy = self.noted("witness_policy", policy).flatten();
        self.set_time("witness_interval_seconds", &mut witnesses.every, Duration::from_secs);
        witnesses
    }

    fn limits(&mut self) -> Limits {
        let mut limits = Limits::default();
        self.set("max_statement_bytes", &mut limits.statement_bytes);
        self.set("max_batch_bytes", &mut limits.batch_bytes);
        self.set("inflight_bytes", &mut limits.bodies_in_flight_bytes);
        self.set("connections", &mut limits.connections);
        self.set("queue_entries", &mut limits.queue_entries);
        self.set("inbox_entries", &mut limits.inbox.rows);
        self.set("inbox_bytes", &mut limits.inbox.bytes);
        self.set("inbox_issuer_entries", &mut limits.inbox.issuer_rows);
        self.set("inbox_issuer_bytes", &mut limits.inbox.issuer_bytes);
        self.set("fsck_rate", &mut limits.fsck_rate);
        self.set("min_free_bytes", &mut limits.min_free_bytes);
        self.set_time("linger_ms", &mut limits.linger, Duration::from_millis);
        self.set_time("answer_within_ms", &mut limits.receipt_wait, Duration::from_millis);
        self.set_time("retention_sweep_seconds", &mut limits.retention_every, Duration::from_secs);
        self.set_time("fsck_every_seconds", &mut limits.fsck_every, Duration::from_secs);
        limits.writes = self.rate("write_rate", "write_burst").unwrap_or(limits.writes);
        limits.reads = self.rate("read_rate", "read_burst").unwrap_or(limits.reads);
        limits.issuer = self.optional("issuer_rate").map(NonZeroU32::get).map(issuer_rate);
        limits.named_issuers = self.issuer_rates();
        limits
    }

    fn issuer_rates(&mut self) -> BTreeMap<String, Rate> {
        let rates: BTreeMap<String, u32> = self.optional("issuer_rates").unwrap_or_default();
        for iss in rates.iter().filter(|(_, rate)| **rate == 0).map(|(iss, _)| iss) {
            let what = format!(
                "{iss:?}: is at least 1; to admit no statements of an issuer, remove it from the policy"
            );
            self.mistakes.push(SettingError { key: "issuer_rates".into(), what });
        }
        rates.into_iter().map(|(iss, rate)| (iss, issuer_rate(rate))).collect()
    }

    fn rate(&mut self, rate: &'static str, burst: &'static str) -> Option<Rate> {
        let (rate, burst): (Option<NonZeroU32>, Option<NonZeroU32>) =
            (self.optional(rate), self.optional(burst));
        Some(Rate::per_second(rate?.get(), burst?.get()))
    }

    fn required<T: DeserializeOwned>(&mut self, key: &'static str) -> Option<T> {
        let value = self.settings.get(key);
        if matches!(value, Ok(None)) {
            return self.mistake(key, "has no default: give it in the file, as a flag or as a variable");
        }
        self.noted_mistake(value).flatten()
    }

    fn optional<T: DeserializeOwned>(&mut self, key: &'static str) -> Option<T> {
        let value = self.settings.get(key);
        self.noted_mistake(value).flatten()
    }

    fn set<T: DeserializeOwned>(&mut self, key: &'static str, target: &mut T) {
        if let Some(value) = self.optional(key) {
            *target = value;
        }
    }

    fn set_time(&mut self, key: &'static str, target: &mut Duration, unit: fn(u64) -> Duration) {
        if let Some(number) = self.optional(key) {
            *target = unit(number);
        }
    }

    fn flag(&mut self, key: &'static str) -> bool {
        self.optional(key).unwrap_or(false)
    }

    fn path(&mut self, key: &'static str) -> Option<PathBuf> {
        let path = self.settings.path(key);
        self.noted_mistake(path).flatten()
    }

    fn parsed<T: FromStr<Err: ToString>>(&mut self, key: &'static str) -> Option<T> {
        let text: String = self.optional(key)?;
        let parsed = text.parse().map_err(|error: T::Err| format!("{text:?}: {}", error.to_string()));
        self.noted(key, parsed)
    }

    fn mistake<T>(&mut self, key: &str, what: &str) -> Option<T> {
        self.mistakes.push(SettingError { key: key.into(), what: what.into() });
        None
    }

    fn noted<T>(&mut self, key: &str, value: Result<T, String>) -> Option<T> {
        value.map_err(|what| self.mistakes.push(SettingError { key: key.into(), what })).ok()
    }

    fn noted_mistake<T>(&mut self, value: Result<T, SettingError>) -> Option<T> {
        value.map_err(|mistake| self.mistakes.push(mistake)).ok()
    }
}

/// So many registrations a second, and those of four seconds at once.
fn issuer_rate(requests: u32) -> Rate {
    Rate::per_second(requests, requests.saturating_mul(4))
}

fn witness_policy(path: &std::path::Path) -> Result<WitnessPolicy, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    text.parse().map_err(|error| format!("{}: {error}", path.display()))
}

/// Returns the path of the admin listener's socket, by default in the state directory; `None` if the setting is empty.
pub fn admin_socket(settings: &Settings) -> Result<Option<PathBuf>, SettingError> {
    match settings.get::<String>("admin_socket")? {
        Some(path) if path.is_empty() => Ok(None),
        Some(path) => Ok(Some(settings.relative("admin_socket", path.into()))),
        None => Ok(settings.path("state_dir")?.map(|folder| folder.join("admin.sock"))),
    }
}

/// Parses one [`token`] per line; empty lines and lines that start with `#` are skipped. No two lines have the same token.
fn tokens(path: &std::path::Path) -> Result<Vec<ClientToken>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let lines =
        text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    let mut tokens: Vec<ClientToken> = Vec::new();
    for (number, line) in lines {
        let place = |why: String| format!("{}:{}: {why}", path.display(), number + 1);
        let token = token(line).map_err(place)?;
        let secret = token.secret.expose_secret();
        if let Some(other) = tokens.iter().find(|other| other.secret.expose_secret() == secret) {
            return Err(place(format!("{} has the token of {}", token.name, other.name)));
        }
        tokens.push(token);
    }
    Ok(tokens)
}

/// Parses `NAME TOKEN`, followed by restrictions: `role=ROLE`, `expires=TIME`, and any number of `issuer=ISS` and
/// `content-type=TYPE`.
fn token(line: &str) -> Result<ClientToken, String> {
    let mut words = line.split_whitespace();
    let (Some(name), Some(secret)) = (words.next(), words.next()) else {
        return Err("write a name, a space and the token".into());
    };
    let mut token = ClientToken::new(name, secret);
    for word in words {
        match word.split_once('=') {
            Some(("role", role)) => token.role = Some(role.parse()?),
            Some(("issuer", issuer)) => token.scope.issuers.push(issuer.into()),
            Some(("content-type", content_type)) => token.scope.content_types.push(content_type.into()),
            Some(("expires", time)) => token.expires = Some(unix_seconds(time)?),
            _ => return Err("after the token come role=, issuer=, content-type= and expires= only".into()),
        }
    }
    Ok(token)
}

fn unix_seconds(time: &str) -> Result<u64, String> {
    let parsed = time.parse::<jiff::Timestamp>().map_err(|error| format!("expires={time}: {error}"))?;
    u64::try_from(parsed.as_second()).map_err(|_| format!("expires={time}: is before 1970"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_settings_has_the_defaults_of_the_service() {
        let settings = Settings::of(Vec::new());
        let mut reading = Reading { settings: &settings, mistakes: Vec::new() };
        assert_eq!(reading.limits(), Limits::default());
        assert_eq!(reading.witnesses().every, WitnessConfig::default().every);
        assert!(reading.mistakes.is_empty(), "{:?}", reading.mistakes);
    }
}
