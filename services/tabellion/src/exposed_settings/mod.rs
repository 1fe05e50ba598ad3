//! Checks for settings that permit a start but expose secrets.
//!
//! A file that other users may change is an error, because it decides who gets access. Everything else is a warning,
//! because it may be intended.

pub mod gateway;
pub mod log;

use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use url::{Host, Url};

use crate::settings::SettingError;

/// The values of `sslmode` with which a PostgreSQL server is not authenticated.
const UNPROVEN: [&str; 4] = ["disable", "allow", "prefer", "require"];

/// A setting with the path in it.
type NamedFile = (&'static str, PathBuf);

/// Returns a mistake for each file that other users may change.
fn changeable(files: &[NamedFile]) -> Vec<SettingError> {
    let changeable = files.iter().filter(|(_, path)| others_may_write(path));
    changeable
        .map(|(key, path)| mistake(key, format!("others may change {}: chmod 600 it", path.display())))
        .collect()
}

/// Returns a mistake for each file that other users may read.
fn readable(files: &[NamedFile]) -> Vec<SettingError> {
    let readable = files.iter().filter(|(_, path)| others_may_read(path));
    readable
        .map(|(key, path)| mistake(key, format!("others may read {}: chmod 600 it", path.display())))
        .collect()
}

/// The warning about a remote database that is not authenticated; see [`UNPROVEN`].
fn unproven_database(key: &str) -> SettingError {
    let what = "the database is on another host, and the connection is not encrypted to a server that proves who it is: add \
                ?sslmode=verify-full";
    mistake(key, what.into())
}

fn mistake(key: &str, what: String) -> SettingError {
    SettingError { key: key.into(), what }
}

/// Returns whether every user of the machine may read the file. Access for the group may be intended.
fn others_may_read(path: &Path) -> bool {
    mode(path) & 0o004 != 0
}

/// Returns whether every user of the machine may change the file.
fn others_may_write(path: &Path) -> bool {
    mode(path) & 0o002 != 0
}

/// Returns the file's permissions; 0 if it cannot be accessed.
fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).map_or(0, |metadata| metadata.permissions().mode())
}

/// Returns whether a URL names this machine.
pub fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// Returns whether traffic to a URL can be read and changed on the network.
fn is_plain(url: &Url) -> bool {
    url.scheme() == "http" && !is_loopback(url)
}

/// Returns whether a database connection leaves this machine and does not authenticate the server.
fn is_unproven(url: &str) -> bool {
    let Ok(url) = Url::parse(url) else { return false };
    let query = |wanted: &str| {
        url.query_pairs().find(|(name, _)| name == wanted).map(|(_, value)| value.into_owned())
    };
    let host = query("host").or_else(|| url.host_str().map(str::to_owned)).unwrap_or_default();
    let mode = query("sslmode").or_else(|| query("ssl-mode")).unwrap_or_else(|| "prefer".into());
    !is_here(&host) && UNPROVEN.contains(&mode.as_str())
}

/// Returns whether a host is this machine, or a folder with a socket.
fn is_here(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.is_empty()
        || host.starts_with('/')
        || host.starts_with("%2F")
        || host == "localhost"
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_on_another_host_has_to_prove_who_it_is() {
        for unproven in [
            "postgres://u@db.example/log",
            "postgres://u:p@10.0.0.7/log?sslmode=require",
            "postgres://u@localhost/log?host=db.example",
        ] {
            assert!(is_unproven(unproven), "{unproven}");
        }
        for sound in [
            "postgres://u@db.example/log?sslmode=verify-full",
            "postgres://u@localhost/log",
            "postgres://u@[::1]/log",
            "postgres:///log?host=/run/postgresql",
            "postgres://u@%2Frun%2Fpostgresql/log",
        ] {
            assert!(!is_unproven(sound), "{sound}");
        }
    }
}
