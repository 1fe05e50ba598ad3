//! Settings of a route that its posture makes ineffective: rules, ceilings and costs that apply to no caller, or not to
//! all.
//!
//! They are not mistakes: a route may be migrating from `advisory` to `deny`. But the operator probably expects each
//! rule to apply.

use admission::rules::{Ceiling, Posture, Then};

use super::{CheckFinding, CheckOutcome};
use crate::config::{Config, Requirement, Route, UpstreamConfig, waits};

/// The warnings for settings without effect, route by route.
#[must_use]
pub fn without_effect(config: &Config) -> Vec<CheckFinding> {
    config.routes.iter().flat_map(|route| of_route(config, route)).collect()
}

fn of_route(config: &Config, route: &Route) -> Vec<CheckFinding> {
    let warn = |what: String, detail: String| {
        CheckFinding::new(format!("{what} {}", route.path), CheckOutcome::Warning, detail)
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
    findings.extend(asserted(route).into_iter().map(|detail| warn("confirmations".to_owned(), detail)));
    if !matches!(route.without_vap, Posture::Deny | Posture::Commitment) {
        let posture = route.without_vap.as_str();
        findings.extend(sessions_only(config, route).into_iter().map(|setting| {
            let detail = format!(
                "it binds sessions only: with without_vap = \"{posture}\" a caller without VAP has none"
            );
            warn(setting.to_owned(), detail)
        }));
    }
    if route.without_vap != Posture::Restricted && !route.restricted.is_empty() {
        let detail = "it lists tools for without_vap = \"restricted\", which is not set".to_owned();
        findings.push(warn("restricted".to_owned(), detail));
    }
    if route.without_vap != Posture::Commitment && route.commitment.is_some() {
        let detail = "it is for callers under without_vap = \"commitment\", and that is not set".to_owned();
        findings.push(warn("commitment".to_owned(), detail));
    }
    if let UpstreamConfig::Many { separator, .. } = &route.upstream
        && !separator.chars().all(is_in_model_names)
    {
        let detail = format!(
            "the names of tools hold {separator:?}, which the APIs of OpenAI and Anthropic refuse in the name of a \
             tool (letters, digits, _ and -, at most 64): \"__\" fits"
        );
        findings.push(warn("separator".to_owned(), detail));
    }
    if route.principal_ceiling.is_some() && !has_lasting_names(config, route) {
        let detail = "nobody here can show a token, a certificate or a key, so every commitment is denied \
                      (no_principal): give the route [route.oauth], or an [[agent]] a key"
            .to_owned();
        findings.push(warn("principal_ceiling".to_owned(), detail));
    }
    findings
}

/// The warning for rules whose questions are answered by the client that sent the call.
fn asserted(route: &Route) -> Option<String> {
    let asking = route.rules.iter().filter(|rule| rule.then() == Then::Confirm && !waits(route, rule));
    let names: Vec<&str> = asking.map(|rule| rule.name().as_str()).collect();
    (!names.is_empty()).then(|| {
        format!(
            "a yes to {} is asserted by the client: the software that asks for the call answers for its user; with \
             then = \"approve\", or confirmations = \"approver\", somebody outside of it signs",
            names.join(", ")
        )
    })
}

/// The names of settings that only apply to VAP sessions.
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

/// Returns whether a caller can have an identity that it cannot change at will.
fn has_lasting_names(config: &Config, route: &Route) -> bool {
    route.oauth.is_some() || config.keyring.has_agents() || !config.certificate_proxies.is_empty()
}

/// Returns whether the model APIs of OpenAI and Anthropic allow this character in a tool's name.
fn is_in_model_names(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_' || character == '-'
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// The subjects of the warnings for a route with these settings, and these further tables.
    fn warned(route: &str, tables: &str) -> Vec<String> {
        without_effect(&config(route, tables)).into_iter().map(|finding| finding.what).collect()
    }

    fn config(route: &str, tables: &str) -> Config {
        let text = format!(
            "issuer = \"https://gw.example\"\nlisten = \"127.0.0.1:0\"\nstate = \"gw\"\n[log]\nurl = \"http://127.0.0.1:9\"\n\
             {tables}\n[[route]]\npath = \"/mcp\"\n{route}\n"
        );
        Config::from_toml(&text, std::path::Path::new(".")).unwrap()
    }

    const ONE: &str = "upstream = \"http://127.0.0.1:9/mcp\"\n";
    const RULES: &str =
        "[[route.rule]]\nname = \"no\"\nthen = \"deny\"\n[[route.rule]]\nname = \"yes\"\nthen = \"allow\"\n";

    #[test]
    fn a_rule_or_a_ceiling_that_the_posture_ignores_is_warned_of() {
        let limits = "ceiling = { max_calls = 2 }\ncost = { default = { usd = 1 } }\nsigned = \"required\"\n";
        let with = |posture: &str| warned(&format!("{ONE}without_vap = \"{posture}\"\n{limits}{RULES}"), "");
        assert_eq!(with("advisory"), ["rule /mcp", "ceiling /mcp", "cost /mcp", "signed /mcp"]);
        assert_eq!(with("restricted"), ["ceiling /mcp", "cost /mcp", "signed /mcp"]);
        assert_eq!(with("deny"), Vec::<String>::new());
        assert_eq!(warned(&format!("{ONE}restricted = [\"a\"]"), ""), ["restricted /mcp"]);
        let commitment = "[route.commitment]\ngoal = \"g\"\n";
        assert_eq!(warned(&format!("{ONE}{commitment}"), ""), ["commitment /mcp"]);
        let used = format!("{ONE}without_vap = \"commitment\"\n{commitment}");
        assert_eq!(warned(&used, ""), Vec::<String>::new());
    }

    #[test]
    fn a_ceiling_that_can_bind_nobody_is_warned_of() {
        let ceiling = "principal_ceiling = { max_calls = 2 }\n";
        assert_eq!(warned(&format!("{ONE}{ceiling}"), ""), ["principal_ceiling /mcp"]);
        let folder = tempfile::tempdir().unwrap();
        let keys = folder.path().join("jwks.json");
        let key = r#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo","kid":"k"}]}"#;
        std::fs::write(&keys, key).unwrap();
        let agent = format!("[[agent]]\nid = \"a\"\njwk = {:?}", keys.display().to_string());
        assert_eq!(warned(&format!("{ONE}{ceiling}"), &agent), Vec::<String>::new());
        let proxied = Config {
            certificate_proxies: vec!["127.0.0.1".parse().unwrap()],
            ..config(&format!("{ONE}{ceiling}"), "")
        };
        assert_eq!(without_effect(&proxied).len(), 0, "a proxy hands on certificates");
    }

    #[test]
    fn names_that_model_apis_refuse_are_warned_of() {
        let servers = |separator: &str| {
            format!("{separator}\n[[route.server]]\nprefix = \"a\"\nupstream = \"http://127.0.0.1:9/mcp\"\n")
        };
        assert_eq!(warned(&servers(""), ""), Vec::<String>::new());
        assert_eq!(warned(&servers("separator = \".\""), ""), ["separator /mcp"]);
    }
}
