//! Settings with which a service starts, and which put a secret within others' reach.
//!
//! A file that others may change is an error, as whoever changes it decides who may come in. All else is a warning: it may be
//! as the operator wants it.

pub mod gateway;
pub mod log;

use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use url::{Host, Url};

use crate::settings::Mistake;

/// Modes of a TLS connection to PostgreSQL in which the server proves nothing.
const UNPROVEN: [&str; 4] = ["disable", "allow", "prefer", "require"];

/// A setting, and the file that it names.
type NamedFile = (&'static str, PathBuf);

/// The files that others may change.
fn changeable(files: &[NamedFile]) -> Vec<Mistake> {
    let changeable = files.iter().filter(|(_, path)| others_may_write(path));
    changeable
        .map(|(key, path)| mistake(key, format!("others may change {}: chmod 600 it", path.display())))
        .collect()
}

/// The files that others may read.
fn readable(files: &[NamedFile]) -> Vec<Mistake> {
    let readable = files.iter().filter(|(_, path)| others_may_read(path));
    readable
        .map(|(key, path)| mistake(key, format!("others may read {}: chmod 600 it", path.display())))
        .collect()
}

/// A database that need not prove who it is.
fn unproven_database(key: &str) -> Mistake {
    let what = "the database is on another host, and the connection is not encrypted to a server that proves who it is: add \
                ?sslmode=verify-full";
    mistake(key, what.into())
}

fn mistake(key: &str, what: String) -> Mistake {
    Mistake { key: key.into(), what }
}

/// Whether every user of the machine may read the file. A group may be meant to.
fn others_may_read(path: &Path) -> bool {
    mode(path) & 0o004 != 0
}

/// Whether every user of the machine may change the file.
fn others_may_write(path: &Path) -> bool {
    mode(path) & 0o002 != 0
}

/// A file that is not there is nobody's.
fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).map_or(0, |metadata| metadata.permissions().mode())
}

/// Whether a URL names this machine.
pub fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// Whether what is sent to a URL, or read from it, can be read and changed on the way.
fn is_plain(url: &Url) -> bool {
    url.scheme() == "http" && !is_loopback(url)
}

/// Whether the connection leaves this machine, and the server need not prove who it is.
fn is_unproven(url: &str) -> bool {
    let Ok(url) = Url::parse(url) else { return false };
    let query = |wanted: &str| {
        url.query_pairs().find(|(name, _)| name == wanted).map(|(_, value)| value.into_owned())
    };
    let host = query("host").or_else(|| url.host_str().map(str::to_owned)).unwrap_or_default();
    let mode = query("sslmode").or_else(|| query("ssl-mode")).unwrap_or_else(|| "prefer".into());
    !is_here(&host) && UNPROVEN.contains(&mode.as_str())
}

/// Whether a host is this machine, or a folder with a socket.
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
