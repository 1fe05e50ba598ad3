//! `tabellion config check`: finds mistakes that would prevent a start of `serve`, without starting it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use registration::Policy;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use scitt::{Algorithm, PublicKey, Signer};
use secrecy::ExposeSecret;
use serving::tls::TlsFiles;
use transparency::{Config, Database};

use super::config;
use crate::commands::{logging, policy};
use crate::console::{Failure, members, safe};
use crate::context::Context;
use crate::exposed_settings;
use crate::keyfile;
use crate::settings::{self, SettingError, Settings};

/// Checks the configuration and the files that it names.
pub fn check(context: &Context) -> Result<(), Failure> {
    let settings = context.settings(Vec::new())?;
    let config = runnable(&settings)?;
    let mistakes = mistakes(&config, &settings);
    if !mistakes.is_empty() {
        return Err(settings::refuse(mistakes));
    }
    let warnings = exposed_settings::log::warnings(&config, &settings);
    context.console.print(&members! { origin: &config.origin, ready: true, warnings }, |out| {
        for warning in &warnings {
            writeln!(out, "warning  {}: {}", safe(&warning.key), safe(&warning.what))?;
        }
        writeln!(out, "`tabellion serve` can start the log {} with this", safe(&config.origin))
    })
}

/// Returns what is wrong with the settings of logging, with the files that a configuration names, and with what it exposes.
pub fn mistakes(config: &Config, settings: &Settings) -> Vec<SettingError> {
    let mut mistakes = logging::mistakes(settings);
    mistakes.extend(keys(config));
    mistakes.extend(shared_keys(config));
    mistakes.extend(exposed_settings::log::mistakes(config, settings));
    mistakes.extend(config.tls.as_ref().and_then(tls));
    match policy_file(config) {
        Ok(policy) => mistakes.extend(index_key(config, &policy)),
        Err(mistake) => mistakes.push(mistake),
    }
    mistakes
}

/// Returns a configuration that is valid and safe to run. Dev mode omits the safety check.
pub fn runnable(settings: &Settings) -> Result<Config, Failure> {
    let config = config::resolve(settings)?;
    match pin_beside_database(&config) {
        Some(mistake) => Err(settings::refuse(vec![mistake])),
        None => Ok(config),
    }
}

/// Rejects a pin next to the log's database. The pin detects a database that was rolled back, and must not be restored
/// together with it.
pub fn pin_beside_database(config: &Config) -> Option<SettingError> {
    let path = match (&config.database, &config.pin) {
        (Database::Sqlite { path, .. }, None) => path,
        (Database::Postgres(log), Some(pin)) if log.expose_secret() == pin.expose_secret() => {
            return Some(SettingError {
                key: "pin".into(),
                what:
                    "must not be the log's database: restored together, they could not contradict each other"
                        .into(),
            });
        }
        _ => return None,
    };
    let folder = |path: &Path| {
        path.canonicalize().unwrap_or_else(|_| std::path::absolute(path).unwrap_or(path.into()))
    };
    let database = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    (folder(database) == folder(&config.state_dir)).then(|| SettingError {
        key: "state_dir".into(),
        what: "must not be the database's folder: restored together, they could not contradict each other"
            .into(),
    })
}

fn keys(config: &Config) -> Vec<SettingError> {
    let algorithm = |setting: &str| match setting {
        "receipt_key" => Some(config.receipt_algorithm.algorithm()),
        "checkpoint_key" => Some(Algorithm::EdDsa),
        _ => None,
    };
    let files = key_files(config).into_iter();
    files.filter_map(|(setting, path)| key(setting, path, algorithm(setting))).collect()
}

/// Returns the settings that name a key which an earlier setting names too: no key has two purposes (RFC 9943,
/// section 5.1.1).
pub fn shared_keys(config: &Config) -> Vec<SettingError> {
    let files = key_files(config);
    let others = |(at, (setting, path)): (usize, &(&str, &Path))| {
        // `keys` reports a file that is not a key.
        let key = keyfile::read(path).ok()?;
        let (other, _) = files[..at].iter().find(|(_, path)| holds(path, key.public_key()))?;
        let what = format!("{} holds the key of {other}: a key has one purpose", path.display());
        Some(SettingError { key: (*setting).into(), what })
    };
    files.iter().enumerate().filter_map(others).collect()
}

/// Returns a setting other than `own` whose file holds this key.
pub fn other_setting_of_key(config: &Config, key: &PublicKey, own: &str) -> Option<&'static str> {
    let mut others = key_files(config).into_iter().filter(|(setting, _)| *setting != own);
    others.find(|(_, path)| holds(path, key)).map(|(setting, _)| setting)
}

fn holds(path: &Path, key: &PublicKey) -> bool {
    keyfile::read(path).is_ok_and(|other| other.public_key() == key)
}

fn key_files(config: &Config) -> Vec<(&'static str, &Path)> {
    let keys = &config.keys;
    let signing = [("receipt_key", Some(&keys.receipt)), ("checkpoint_key", Some(&keys.checkpoint))];
    let more = [("operator_key", keys.operator.as_ref()), ("index_key", keys.index.as_ref())];
    let files = signing.into_iter().chain(more);
    files.filter_map(|(setting, path)| Some((setting, path?.as_path()))).collect()
}

fn key(setting: &str, path: &Path, algorithm: Option<Algorithm>) -> Option<SettingError> {
    let wrong = |what: String| Some(SettingError { key: setting.into(), what });
    let key = match keyfile::read(path) {
        Ok(key) => key,
        Err(failure) => return wrong(failure.in_short()),
    };
    match algorithm.map(|algorithm| (algorithm, key.with_algorithm(algorithm))) {
        Some((algorithm, Err(_))) => {
            wrong(format!("{} holds no key for {}", path.display(), algorithm.name()))
        }
        _ => None,
    }
}

fn tls(files: &TlsFiles) -> Option<SettingError> {
    let wrong = |key: &str, path: &PathBuf, why: String| {
        Some(SettingError { key: key.into(), what: format!("{}: {why}", path.display()) })
    };
    let chain =
        CertificateDer::pem_file_iter(&files.certificate).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let chain = match chain {
        Ok(chain) if chain.is_empty() => {
            return wrong("tls_cert", &files.certificate, "holds no certificate".into());
        }
        Ok(chain) => chain,
        Err(error) => return wrong("tls_cert", &files.certificate, error.to_string()),
    };
    let key = match PrivateKeyDer::from_pem_file(&files.key) {
        Ok(key) => key,
        Err(error) => return wrong("tls_key", &files.key, error.to_string()),
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let built = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key));
    built.err().and_then(|error| wrong("tls_key", &files.key, format!("with this certificate: {error}")))
}

fn policy_file(config: &Config) -> Result<Policy, SettingError> {
    let wrong = |what: String| SettingError { key: "policy".into(), what };
    let policy = policy::read(&config.policy).map_err(|failure| wrong(failure.in_short()))?;
    let contents = policy.contents();
    match contents.iss == config.iss && contents.origin == config.origin {
        true => Ok(policy),
        false => Err(wrong(format!("is for {} ({})", contents.iss, contents.origin))),
    }
}

/// Rejects a key of the search index that the policy does not list: the log would not admit the heads that it signs.
fn index_key(config: &Config, policy: &Policy) -> Option<SettingError> {
    let (path, rules) = config.keys.index.as_ref().zip(policy.contents().index.as_ref())?;
    // `keys` reports a file that is not a key.
    let key = keyfile::read(path).ok()?;
    let listed = rules.keys.iter().any(|bound| bound.key == *key.public_key());
    (!listed).then(|| SettingError {
        key: "index_key".into(),
        what: format!("the policy's [index] does not list the key in {}", path.display()),
    })
}
