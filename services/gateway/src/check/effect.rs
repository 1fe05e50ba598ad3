//! What a route's configuration says and its posture never asks: rules, ceilings and costs that bind nobody, or not everybody.
//!
//! None of it is a mistake: a route may be on its way from `advisory` to `deny`. But whoever wrote a rule believes that it holds.

use admission::rules::{Ceiling, Posture, Then};

use super::{Finding, Outcome};
use crate::config::{Config, Requirement, Route};

/// A warning for each setting without effect, route by route.
#[must_use]
pub fn without_effect(config: &Config) -> Vec<Finding> {
    config.routes.iter().flat_map(|route| of_route(config, route)).collect()
}

fn of_route(config: &Config, route: &Route) -> Vec<Finding> {
    let warn = |what: String, detail: String| {
        Finding::new(format!("{what} {}", route.path), Outcome::Warning, detail)
    };
    let mut findings = Vec::new();
    if route.without_vap == Posture::Advisory {
        for rule in route.rules.iter().filter(|rule| rule.then() != Then::Allow) {
            let detail = format!(
                "with without_vap = \"advisory\" a call without VAP goes on whatever rule {} says; what it would \
                 have decided is in the record (advised)",
                rule.name().as_str()
            );
            findings.push(warn("rule".to_owned(), detail));
        }
    }
    if route.without_vap != Posture::Deny {
        let posture = route.without_vap.as_str();
        findings.extend(sessions_only(config, route).into_iter().map(|setting| {
            let detail = format!(
                "it binds sessions only: with without_vap = \"{posture}\" a caller without VAP has none"
            );
            warn(setting.to_owned(), detail)
        }));
    }
    if route.without_vap != Posture::Restricted && !route.restricted.is_empty() {
        let detail =
            "it lists what without_vap = \"restricted\" lets through, and that is not set".to_owned();
        findings.push(warn("restricted".to_owned(), detail));
    }
    if route.principal_ceiling.is_some() && !has_lasting_names(config, route) {
        let detail = "nobody here can show a token, a certificate or a key, so every commitment is denied \
                      (no_principal): give the route [route.oauth], or an [[agent]] a key"
            .to_owned();
        findings.push(warn("principal_ceiling".to_owned(), detail));
    }
    findings
}

/// Settings that only mean something in a VAP session.
fn sessions_only(config: &Config, route: &Route) -> Vec<&'static str> {
    let costs = &route.costs;
    let has_costs =
        costs.strict || !costs.default.is_empty() || !costs.cap.is_empty() || !costs.tools.is_empty();
    let settings = [
        ("ceiling", route.ceiling != Ceiling::default()),
        ("principal_ceiling", route.principal_ceiling.is_some()),
        ("cost", has_costs),
        ("signed", route.signed == Requirement::Required),
        ("judge", route.judge && config.judge.is_some()),
    ];
    settings.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| name).collect()
}

/// Whether a caller can have a name that it cannot change at will.
fn has_lasting_names(config: &Config, route: &Route) -> bool {
    route.oauth.is_some() || config.keyring.has_agents()
}
