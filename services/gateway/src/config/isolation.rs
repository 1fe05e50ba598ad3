//! The isolation that the configured servers need: the files that they may not read, and the users that they run as.

use std::path::{Path, PathBuf};

use super::{Config, Evidence, HttpServer, KeySource, Server};
use crate::isolation::{self, Host, NotIsolated, OwnFiles, OwnFilesError};

impl Config {
    /// The gateway's own files, which this configuration names.
    ///
    /// # Errors
    /// An [`OwnFilesError`] if a path cannot be resolved, or is the root of the file system.
    pub fn own_files(&self) -> Result<OwnFiles, OwnFilesError> {
        OwnFiles::resolve(secret_paths(self), public_paths(self))
    }

    /// Checks that every server that the gateway starts can be isolated on this system.
    ///
    /// # Errors
    /// A [`NotIsolated`] for the first server that cannot.
    pub fn require_isolation(&self, host: Host) -> Result<(), NotIsolated> {
        for route in &self.routes {
            for server in route.upstream.servers() {
                if let Server::Command(server) = server {
                    isolation::require(server.user.as_ref(), &route.path, host, self.unsafe_shared_user)?;
                }
            }
        }
        Ok(())
    }
}

fn secret_paths(config: &Config) -> Vec<PathBuf> {
    let mut paths = vec![config.state.clone()];
    if let Evidence::Sqlite(path) = &config.evidence {
        paths.extend(["", "-wal", "-shm", "-journal"].map(|end| with_end(path, end)));
    }
    let keys = [&config.keys.evidence, &config.keys.verdict, &config.keys.state];
    let tokens = http_servers(config).map(|server| &server.token_file);
    paths.extend(keys.into_iter().chain([&config.log.token_file]).chain(tokens).flatten().cloned());
    paths.extend(config.judge.iter().filter_map(|judge| judge.key_file.clone()));
    paths.extend(config.file.iter().chain(&config.hide).cloned());
    paths
}

fn public_paths(config: &Config) -> Vec<PathBuf> {
    let certificates = http_servers(config).map(|server| &server.ca_file);
    let log = [&config.log.trust, &config.log.ca_file];
    let mut paths: Vec<PathBuf> = log.into_iter().chain(certificates).flatten().cloned().collect();
    for oauth in config.routes.iter().filter_map(|route| route.oauth.as_ref()) {
        if let KeySource::Url { ca_file: Some(path), .. } = &oauth.keys {
            paths.push(path.clone());
        }
    }
    paths.extend(config.sources.iter().cloned());
    paths.extend(std::env::current_exe());
    paths
}

fn http_servers(config: &Config) -> impl Iterator<Item = &HttpServer> {
    config.routes.iter().flat_map(|route| route.upstream.servers()).filter_map(|server| match server {
        Server::Http(server) => Some(server),
        Server::Command(_) => None,
    })
}

fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}
