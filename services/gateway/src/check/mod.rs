//! Checks of a configuration against its environment before it serves: keys, log, servers. Nothing is changed or
//! registered.
//!
//! Each check yields a [`CheckFinding`]. A check that could not be made is not a failed check.
//!
//! Not here: parsing the file; a [`Config`] is the result of that.

mod effect;
mod era;
mod log;

use serde::Serialize;

use crate::a2a::AgentCard;
use crate::bounded_fetch::FetchError;
use crate::config::{CommandServer, Config, Route, Server, UpstreamConfig};
use crate::isolation::Host;
use crate::keys;
use crate::oauth::{FetchedKeys, TokenCheck};
use crate::servers::{confinement, one_server};
pub use effect::without_effect;
pub use era::{Eras, eras_of};

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckOutcome {
    /// The check succeeded.
    Ok,
    /// The setting works, but perhaps not as the operator expects.
    Warning,
    /// The check could not be made: an input is missing, or there was no answer.
    NotChecked,
    /// The check failed.
    Failed,
}

/// The result of one check, with its subject.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CheckFinding {
    /// The subject of the check.
    pub what: String,
    /// The result.
    pub outcome: CheckOutcome,
    /// The details, in words.
    pub detail: String,
}

impl CheckFinding {
    fn new(what: impl Into<String>, outcome: CheckOutcome, detail: impl Into<String>) -> Self {
        Self { what: what.into(), outcome, detail: detail.into() }
    }
}

/// Runs all checks.
pub async fn check(config: &Config) -> Vec<CheckFinding> {
    let mut findings = vec![keys_of(config)];
    findings.extend(log::check(config).await);
    findings.extend(isolation_of(config));
    for route in &config.routes {
        findings.extend(oauth(config, route));
        match AgentCard::of_route(config, route) {
            Some(card) => findings.push(agent(route, card).await),
            None => findings.extend(servers(config, route).await),
        }
    }
    findings
}

/// Checks the isolation of servers that the gateway starts; `None` if it starts none.
fn isolation_of(config: &Config) -> Option<CheckFinding> {
    let starts_servers = config.routes.iter().flat_map(|route| route.upstream.servers());
    if !starts_servers.into_iter().any(|server| matches!(server, Server::Command(_))) {
        return None;
    }
    let host = Host::detect();
    let what = "isolation of servers";
    Some(match config.require_isolation(host) {
        Ok(()) => CheckFinding::new(what, CheckOutcome::Ok, host.describe()),
        Err(error) => CheckFinding::new(what, CheckOutcome::Failed, error.to_string()),
    })
}

fn keys_of(config: &Config) -> CheckFinding {
    match keys::missing_paths(config) {
        Ok(missing) if missing.is_empty() => {
            CheckFinding::new("keys", CheckOutcome::Ok, "all there, and private")
        }
        Ok(missing) => {
            let names: Vec<String> = missing.iter().map(|path| path.display().to_string()).collect();
            let detail =
                format!("made at the first start, or by `tabellion gateway keys`: {}", names.join(", "));
            CheckFinding::new("keys", CheckOutcome::Ok, detail)
        }
        Err(error) => CheckFinding::new("keys", CheckOutcome::Failed, error.to_string()),
    }
}

fn oauth(config: &Config, route: &Route) -> Option<CheckFinding> {
    let settings = route.oauth.as_ref()?;
    let what = format!("tokens {}", route.path);
    Some(match TokenCheck::new(settings, &config.public_url, &route.path, &FetchedKeys::default()) {
        Ok(check) => {
            let detail = format!("for {}, metadata at {}", settings.audience, check.metadata().url());
            CheckFinding::new(what, CheckOutcome::Ok, detail)
        }
        Err(error) => CheckFinding::new(what, CheckOutcome::Failed, error.to_string()),
    })
}

/// Asks an agent for its card.
async fn agent(route: &Route, card: Result<AgentCard, FetchError>) -> CheckFinding {
    let what = format!("agent {}", route.path);
    let document = match card {
        Ok(card) => card.document().await,
        Err(error) => Err(error.into()),
    };
    match document {
        Ok(_) => CheckFinding::new(what, CheckOutcome::Ok, "it has an agent card"),
        Err(error) => CheckFinding::new(what, CheckOutcome::NotChecked, error.to_string()),
    }
}

/// Asks every server for its eras. Servers behind one route must share an era.
async fn servers(config: &Config, route: &Route) -> Vec<CheckFinding> {
    let servers: Vec<(String, &Server)> = match &route.upstream {
        UpstreamConfig::One(server) => vec![(route.path.clone(), server)],
        UpstreamConfig::Many { servers: all, .. } => {
            all.iter().map(|(prefix, server)| (format!("{} {prefix}", route.path), server)).collect()
        }
    };
    let mut findings = Vec::new();
    let mut asked = Vec::new();
    for (name, server) in servers {
        let what = format!("server {name}");
        match ask(config, route, server).await {
            Ok(eras) if eras.any() => {
                findings.push(CheckFinding::new(what, CheckOutcome::Ok, eras.to_string()));
                asked.push((name, eras));
            }
            Ok(_) => findings.push(CheckFinding::new(
                what,
                CheckOutcome::Failed,
                "it speaks no revision that we know",
            )),
            Err(why) => findings.push(CheckFinding::new(what, CheckOutcome::NotChecked, why)),
        }
    }
    if let (UpstreamConfig::Many { servers: all, .. }, true) = (&route.upstream, !asked.is_empty()) {
        findings.push(one_era(route, &asked, all.len()));
    }
    findings
}

fn one_era(route: &Route, asked: &[(String, Eras)], servers: usize) -> CheckFinding {
    let what = format!("one era {}", route.path);
    let shared = asked.iter().fold(Eras::ALL, |shared, (_, eras)| shared.and(*eras));
    if !shared.any() {
        let lines: Vec<String> = asked.iter().map(|(name, eras)| format!("{name}: {eras}")).collect();
        let detail = format!("servers behind one endpoint share an era: {}", lines.join("; "));
        return CheckFinding::new(what, CheckOutcome::Failed, detail);
    }
    match asked.len() == servers {
        true => CheckFinding::new(what, CheckOutcome::Ok, shared.to_string()),
        false => {
            CheckFinding::new(what, CheckOutcome::NotChecked, format!("{shared}, of those that answered"))
        }
    }
}

async fn ask(config: &Config, route: &Route, server: &Server) -> Result<Eras, String> {
    config.require_isolation(Host::detect()).map_err(|error| error.to_string())?;
    let own_files = config.own_files().map_err(|error| error.to_string())?;
    let confinement = |command: &CommandServer| confinement(command, &own_files, config);
    let mut children = Vec::new();
    let upstream =
        one_server(route, server, confinement, &mut children).map_err(|error| error.to_string())?;
    let eras = eras_of(upstream.as_ref()).await;
    for child in children {
        child.stop().await;
    }
    eras
}
