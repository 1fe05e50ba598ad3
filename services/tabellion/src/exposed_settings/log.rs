//! Checks of the log's settings.

use secrecy::ExposeSecret;
use transparency::{Config, Database};
use url::Url;

use super::{
    NamedFile, changeable, is_loopback, is_unproven, mistake, others_may_read, readable, unproven_database,
};
use crate::console::Failure;
use crate::settings::{self, SettingError, Settings};

/// Refuses files that other users may change.
pub fn refuse(config: &Config, settings: &Settings) -> Result<(), Failure> {
    let mistakes = mistakes(config, settings);
    if mistakes.is_empty() { Ok(()) } else { Err(settings::refuse(mistakes)) }
}

/// Returns the policy and secret files that other users may change.
pub fn mistakes(config: &Config, settings: &Settings) -> Vec<SettingError> {
    let policy = ("policy", config.policy.clone());
    changeable(&[secret_files(config, settings), vec![policy]].concat())
}

/// Returns warnings about settings.
pub fn warnings(config: &Config, settings: &Settings) -> Vec<SettingError> {
    let mut warnings = readable(&secret_files(config, settings));
    warnings.extend(readable_configuration(settings));
    warnings.extend(settings.passwords_on_the_command_line().into_iter().map(visible_password));
    warnings.extend(unproven_databases(config));
    warnings.extend(wrong_port(config));
    warnings
}

/// The warning about a password in the arguments of a process.
pub fn visible_password(key: &str) -> SettingError {
    let what = format!(
        "a password on the command line can be seen by every user of this machine: name a file with TABELLION_{}_FILE",
        key.to_ascii_uppercase()
    );
    mistake(key, what)
}

/// Returns the files with secrets, except the log's keys: a key file with wrong permissions is refused when it is read.
fn secret_files(config: &Config, settings: &Settings) -> Vec<NamedFile> {
    let tokens = settings.path("tokens_file").ok().flatten().map(|path| ("tokens_file", path));
    let tls = config.tls.as_ref().map(|tls| ("tls_key", tls.key.clone()));
    tokens.into_iter().chain(tls).collect()
}

fn readable_configuration(settings: &Settings) -> Option<SettingError> {
    let (key, file) = settings.file_with_password().filter(|(_, file)| others_may_read(file))?;
    let what = format!(
        "others may read {}, and it holds a password: chmod 600 it, or name a file with TABELLION_{}_FILE",
        file.display(),
        key.to_ascii_uppercase()
    );
    Some(mistake(key, what))
}

fn unproven_databases(config: &Config) -> Vec<SettingError> {
    let log = match &config.database {
        Database::Postgres(url) => Some(("db", url)),
        Database::Sqlite { .. } => None,
    };
    let pin = config.pin.as_ref().map(|url| ("pin", url));
    let unproven = log.into_iter().chain(pin).filter(|(_, url)| is_unproven(url.expose_secret()));
    unproven.map(|(key, _)| unproven_database(key)).collect()
}

/// Warns if the port of a loopback `public_url`, which is reached without a proxy, differs from that of the listener.
fn wrong_port(config: &Config) -> Option<SettingError> {
    let url = Url::parse(&config.public_url).ok().filter(is_loopback)?;
    let port = url.port_or_known_default().filter(|port| *port != 0)?;
    let listen = config.listen;
    if listen.port() == 0 || listen.port() == port {
        return None;
    }
    let what = format!("names port {port}, but the service listens on {listen}: this needs a proxy of yours");
    Some(mistake("public_url", what))
}
