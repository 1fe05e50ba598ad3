//! Checks of the gateway's settings.

use std::path::Path;

use gateway::Config;
use gateway::config::{Evidence, KeySource, Posture, Route, Server, UpstreamConfig};
use url::Url;

use super::{
    NamedFile, changeable, is_plain, is_unproven, mistake, others_may_read, readable, unproven_database,
};
use crate::settings::{SettingError, has_password};

/// Returns the configuration and secret files that other users may change.
pub fn mistakes(config: &Config) -> Vec<SettingError> {
    let decisive = config.sources.iter().map(|path| ("config", path.clone())).collect();
    changeable(&[secret_files(config), decisive].concat())
}

/// Returns warnings about settings. `file` is the configuration file.
pub fn warnings(config: &Config, file: Option<&Path>) -> Vec<SettingError> {
    let mut warnings = readable(&secret_files(config));
    warnings.extend(listeners(config));
    warnings.extend(config.routes.iter().filter_map(|route| open_route(config, route)));
    warnings.extend(config.routes.iter().filter_map(plain_keys));
    warnings.extend(plain_credentials(config));
    if let Evidence::Postgres(url) = &config.evidence {
        warnings.extend(is_unproven(url).then(|| unproven_database("evidence")));
        let file = file.filter(|file| has_password(url) && others_may_read(file));
        warnings.extend(file.map(|file| {
            let what = format!("others may read {}, and it holds a password: chmod 600 it", file.display());
            mistake("evidence", what)
        }));
    }
    warnings
}

/// Returns the files with secrets, except the gateway's keys: a key file with wrong permissions is refused when it is
/// read.
fn secret_files(config: &Config) -> Vec<NamedFile> {
    let log = config.log.token_file.clone().map(|path| ("log.token_file", path));
    let judge = config.judge.as_ref().and_then(|judge| judge.key_file.clone());
    let judge = judge.map(|path| ("judge.key_file", path));
    let upstream = config.routes.iter().flat_map(servers).filter_map(|server| match server {
        Server::Http(server) => server.token_file.clone().map(|path| ("upstream_token_file", path)),
        Server::Command(_) => None,
    });
    log.into_iter().chain(judge).chain(upstream).collect()
}

fn servers(route: &Route) -> Vec<&Server> {
    match &route.upstream {
        UpstreamConfig::One(server) => vec![server],
        UpstreamConfig::Many { servers, .. } => servers.iter().map(|(_, server)| server).collect(),
    }
}

fn listeners(config: &Config) -> Vec<SettingError> {
    let mut warnings = Vec::new();
    if !config.listen.ip().to_canonical().is_loopback() {
        let what = format!(
            "{} is not loopback, and the gateway speaks plain HTTP: calls and tokens can be read on the way. Let a proxy end \
             TLS on this machine",
            config.listen
        );
        warnings.push(mistake("listen", what));
    }
    if let Some(approvals) = config.approvals.as_ref().filter(|approvals| {
        let ends_tls = approvals.url.as_ref().is_some_and(|url| url.scheme() == "https");
        !approvals.listen.ip().to_canonical().is_loopback() && !ends_tls
    }) {
        let what = format!(
            "{} is not loopback, and the gateway uses plain HTTP: the questions to approvers can be read in the network. Let a \
             proxy end TLS, and name its URL in approvals.url",
            approvals.listen
        );
        warnings.push(mistake("approvals.listen", what));
    }
    if let Some(admin) = config.admin_listen.filter(|admin| !admin.ip().to_canonical().is_loopback()) {
        let what = format!("{admin} is not loopback: everyone who can connect can read the metrics");
        warnings.push(mistake("admin_listen", what));
    }
    warnings
}

/// Warns of a route that forwards calls of any client that can reach it: `without_vap = "advisory"` without
/// `[route.oauth]`.
fn open_route(config: &Config, route: &Route) -> Option<SettingError> {
    let open = route.without_vap == Posture::Advisory && route.oauth.is_none();
    if !open || config.listen.ip().to_canonical().is_loopback() {
        return None;
    }
    let what = format!(
        "{}: everyone who can connect to {} may call every tool: \"advisory\" denies nothing, and no [route.oauth] asks for a token",
        route.path, config.listen
    );
    Some(mistake("route.without_vap", what))
}

/// Warns of an identity provider whose keys are fetched without TLS, so that an attacker on the network can replace
/// them.
fn plain_keys(route: &Route) -> Option<SettingError> {
    match &route.oauth.as_ref()?.keys {
        KeySource::Url { url, .. } if is_plain(url) => {
            let what = format!(
                "{}: {url} is not https: an attacker in the network can replace the keys that sign tokens",
                route.path
            );
            Some(mistake("route.oauth.jwks_url", what))
        }
        _ => None,
    }
}

/// Warns of credentials that are sent to another host without TLS.
fn plain_credentials(config: &Config) -> Vec<SettingError> {
    let log = config.log.token_file.as_ref().and_then(|_| Url::parse(&config.log.url).ok());
    let log = log.map(|url| ("log.token_file", url));
    let judge = config.judge.as_ref().filter(|judge| judge.key_file.is_some());
    let judge = judge.map(|judge| ("judge.key_file", judge.url.clone()));
    let upstream = config.routes.iter().flat_map(servers).filter_map(|server| match server {
        Server::Http(server) if server.token_file.is_some() => {
            Some(("upstream_token_file", server.url.clone()))
        }
        _ => None,
    });
    let sent = log.into_iter().chain(judge).chain(upstream).filter(|(_, url)| is_plain(url));
    sent.map(|(key, url)| mistake(key, format!("it is sent to {url}, which is not https"))).collect()
}
