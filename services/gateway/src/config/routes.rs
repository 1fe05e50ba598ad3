//! Routes, from what is written to what can run.

use std::collections::{BTreeMap, BTreeSet};

use expression::Expression;
use toml::Spanned;
use url::Url;

use super::file::{self, Text};
use super::oauth::{KeySource, OAuth, OAuthMode};
use super::read::Reader;
use super::route::{Ceiling, Costs, Posture, Requirement, Risk, Route, RuleConfig, Sensitivity, Then};
use super::{amounts, servers};
use crate::limits::{MAX_PATTERN_BYTES, MAX_ROUTES, MAX_RULES, UPSTREAM_TIMEOUT};
use crate::oauth::ALGORITHMS;

/// Paths that are ours.
const RESERVED: &str = "/.well-known/";
/// Methods besides `tools/call` that act, and may be gated.
const GATEABLE: [&str; 5] =
    ["resources/read", "prompts/get", "completion/complete", "tasks/update", "resources/subscribe"];

/// Reads every route.
pub fn read(reader: &mut Reader<'_>, routes: Vec<Spanned<file::Route>>, public_url: &Url) -> Vec<Route> {
    if !(1..=MAX_ROUTES).contains(&routes.len()) {
        reader.mistake(None, "route", format!("1 to {MAX_ROUTES} routes, not {}", routes.len()));
    }
    let mut paths = BTreeSet::new();
    let mut read = Vec::new();
    for route in routes {
        let path = route.get_ref().path.clone();
        if !paths.insert(path.get_ref().clone()) {
            reader.mistake(Some(path.span()), "route.path", format!("a second route {}", path.get_ref()));
        }
        read.extend(one(reader, route, public_url));
    }
    read
}

fn one(reader: &mut Reader<'_>, route: Spanned<file::Route>, public_url: &Url) -> Option<Route> {
    let span = route.span();
    let mut route = route.into_inner();
    let path = path(reader, &route.path)?;
    let upstream = servers::upstream(reader, span, &mut route);
    let without_vap = chosen(
        reader,
        "without_vap",
        route.without_vap.as_ref(),
        &[("deny", Posture::Deny), ("restricted", Posture::Restricted), ("advisory", Posture::Advisory)],
    );
    let signed = requirement(reader, "signed", route.signed.as_ref());
    let freshness = requirement(reader, "freshness", route.freshness.as_ref());
    let oauth = route.oauth.and_then(|oauth| oauth_of(reader, oauth, public_url, &path));
    Some(Route {
        without_vap,
        restricted: route.restricted.iter().filter_map(|text| pattern(reader, "restricted", text)).collect(),
        signed,
        freshness,
        ceiling: ceiling(reader, "ceiling", &route.ceiling),
        principal_ceiling: route.principal_ceiling.map(|given| ceiling(reader, "principal_ceiling", &given)),
        costs: costs(reader, route.cost),
        sensitivity: sensitivities(reader, route.sensitivity),
        risk: risk(reader, route.risk),
        gated: route.gated.iter().filter_map(|text| gated(reader, text)).collect(),
        rules: rules(reader, route.rules),
        judge: route.judge.unwrap_or(true),
        oauth,
        forward_invocation: route.forward_invocation.unwrap_or(true),
        filter_tools: route.filter_tools.unwrap_or(false),
        timeout: reader.time("timeout", route.timeout.as_ref()).unwrap_or(UPSTREAM_TIMEOUT),
        upstream: upstream?,
        path,
    })
}

fn path(reader: &mut Reader<'_>, text: &Text) -> Option<String> {
    let path = text.get_ref();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
    let segments = path.strip_prefix('/').map(|rest| rest.split('/'));
    let sound = path.bytes().all(plain)
        && segments.is_some_and(|mut all| all.all(|segment| !matches!(segment, "" | "." | "..")));
    match sound && !path.starts_with(RESERVED) {
        true => Some(path.clone()),
        false => {
            reader.wrong(text, "route.path", "a path like /mcp: no slash last, and not below /.well-known")
        }
    }
}

/// One of a few words; the first is the usual one.
fn chosen<T: Copy>(reader: &mut Reader<'_>, key: &str, text: Option<&Text>, words: &[(&str, T)]) -> T {
    let usual = words[0].1;
    let Some(text) = text else { return usual };
    match words.iter().find(|(word, _)| word == text.get_ref()) {
        Some((_, value)) => *value,
        None => {
            let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            reader.mistake(Some(text.span()), key, format!("one of {}", words.join(", ")));
            usual
        }
    }
}

fn requirement(reader: &mut Reader<'_>, key: &str, text: Option<&Text>) -> Requirement {
    chosen(reader, key, text, &[("optional", Requirement::Optional), ("required", Requirement::Required)])
}

/// A pattern of tool names (V-8): any text, `*` for any run.
fn pattern(reader: &mut Reader<'_>, key: &str, text: &Text) -> Option<String> {
    match (1..=MAX_PATTERN_BYTES).contains(&text.get_ref().len()) {
        true => Some(text.get_ref().clone()),
        false => reader.wrong(text, key, format!("a pattern has 1 to {MAX_PATTERN_BYTES} bytes")),
    }
}

fn ceiling(reader: &mut Reader<'_>, key: &str, given: &file::Ceiling) -> Ceiling {
    Ceiling {
        max_calls: given.max_calls.as_ref().map(|calls| {
            reader.positive(
                &format!("{key}.max_calls"),
                Some(Spanned::new(calls.span(), *calls.get_ref())),
                1,
            )
        }),
        max_duration: reader.time(&format!("{key}.max_duration"), given.max_duration.as_ref()),
        limits: amounts::meters(reader, &format!("{key}.limits"), &given.limits),
    }
}

fn costs(reader: &mut Reader<'_>, given: file::Costs) -> Costs {
    let tools = given.tools.iter();
    Costs {
        tools: tools
            .map(|(tool, meters)| {
                (tool.clone(), amounts::meters(reader, &format!("cost.tools.{tool}"), meters))
            })
            .collect(),
        default: amounts::meters(reader, "cost.default", &given.default),
        cap: amounts::meters(reader, "cost.cap", &given.cap),
        strict: given.strict,
    }
}

fn sensitivities(
    reader: &mut Reader<'_>,
    given: BTreeMap<String, Vec<Text>>,
) -> BTreeMap<String, Vec<Sensitivity>> {
    let mut read = BTreeMap::new();
    for (tool, words) in given {
        let words = words.iter().filter_map(|text| {
            let found = Sensitivity::ALL.into_iter().find(|sensitivity| sensitivity.name() == text.get_ref());
            let names = Sensitivity::ALL.map(Sensitivity::name).join(", ");
            found.or_else(|| reader.wrong(text, &format!("sensitivity.{tool}"), format!("one of {names}")))
        });
        let words = words.collect();
        read.insert(tool, words);
    }
    read
}

fn risk(reader: &mut Reader<'_>, given: file::Risk) -> Risk {
    let mut sound = |key: &str, number: &Spanned<f64>| {
        let value = *number.get_ref();
        if !(0.0..=1.0).contains(&value) {
            reader.mistake(Some(number.span()), key, "a number from 0 to 1");
        }
        value
    };
    let weights = given.weights.iter();
    Risk {
        weights: weights.map(|(name, weight)| (name.clone(), sound("risk.weights", weight))).collect(),
        threshold: given.threshold.as_ref().map(|threshold| sound("risk.threshold", threshold)),
    }
}

fn gated(reader: &mut Reader<'_>, text: &Text) -> Option<String> {
    match GATEABLE.contains(&text.get_ref().as_str()) {
        true => Some(text.get_ref().clone()),
        false => reader.wrong(text, "gated", format!("one of {}", GATEABLE.join(", "))),
    }
}

fn rules(reader: &mut Reader<'_>, given: Vec<file::Rule>) -> Vec<RuleConfig> {
    if let Some(last) = given.get(MAX_RULES) {
        reader.mistake(Some(last.name.span()), "route.rule", format!("no more than {MAX_RULES} rules"));
    }
    let mut names = BTreeSet::new();
    let mut read = Vec::new();
    for rule in given {
        if !names.insert(rule.name.get_ref().clone()) {
            reader.mistake(
                Some(rule.name.span()),
                "rule.name",
                format!("a second rule {}", rule.name.get_ref()),
            );
        }
        read.extend(one_rule(reader, &rule));
    }
    read
}

fn one_rule(reader: &mut Reader<'_>, rule: &file::Rule) -> Option<RuleConfig> {
    let name = rule.name.get_ref();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if name.is_empty() || name.len() > MAX_PATTERN_BYTES || !name.bytes().all(plain) {
        reader.mistake(Some(rule.name.span()), "rule.name", "letters, digits, dots, hyphens and underscores");
    }
    let tool = rule.tool.as_ref().map_or(Some("*".to_owned()), |text| pattern(reader, "rule.tool", text));
    let then = chosen(
        reader,
        "rule.then",
        Some(&rule.then),
        &[("deny", Then::Deny), ("allow", Then::Allow), ("confirm", Then::Confirm)],
    );
    match Expression::compile(rule.when.get_ref()) {
        Ok(when) => Some(RuleConfig { name: name.clone(), tool: tool?, when, then }),
        Err(error) => reader.wrong(&rule.when, "rule.when", error.to_string()),
    }
}

fn oauth_of(
    reader: &mut Reader<'_>,
    oauth: Spanned<file::OAuth>,
    public_url: &Url,
    path: &str,
) -> Option<OAuth> {
    let span = oauth.span();
    let oauth = oauth.into_inner();
    let own = || format!("{}{path}", public_url.as_str().trim_end_matches('/'));
    let (mode, audience) = match oauth.mode.get_ref().as_str() {
        "gateway" => {
            if let Some(text) = &oauth.metadata {
                reader.mistake(
                    Some(text.span()),
                    "oauth.metadata",
                    "the gateway's metadata is its own in this mode",
                );
            }
            (OAuthMode::Gateway, oauth.resource.map_or_else(own, Spanned::into_inner))
        }
        "upstream" => {
            let Some(resource) = oauth.resource else {
                reader.mistake(Some(span), "oauth.resource", "mode \"upstream\" needs the server's own id");
                return None;
            };
            let metadata = oauth.metadata.as_ref().and_then(|text| reader.http("oauth.metadata", text));
            let Some(metadata) = metadata else {
                let why = "mode \"upstream\" needs the URL of the server's resource metadata";
                reader.mistake(Some(span), "oauth.metadata", why);
                return None;
            };
            (OAuthMode::Upstream { metadata }, resource.into_inner())
        }
        _ => {
            return reader.wrong(
                &oauth.mode,
                "oauth.mode",
                "gateway or upstream: for whom tokens are (R-27)",
            );
        }
    };
    let ca_file = reader.relative(oauth.jwks_ca_file);
    let keys = match (oauth.jwks, oauth.jwks_url) {
        (Some(file), None) => KeySource::File(reader.source_file(Some(file))?),
        (None, Some(text)) => KeySource::Url { url: reader.http("oauth.jwks_url", &text)?, ca_file },
        _ => {
            reader.mistake(Some(span), "oauth.jwks", "either jwks (a file) or jwks_url");
            return None;
        }
    };
    let usual = || ALGORITHMS.iter().map(|name| (*name).to_owned()).collect();
    let algorithms = match oauth.algorithms {
        None => usual(),
        Some(given) => given.iter().filter_map(|text| algorithm(reader, text)).collect::<Vec<_>>(),
    };
    let issuer = oauth.issuer.into_inner();
    let servers = oauth.authorization_servers.map(|all| all.into_iter().map(Spanned::into_inner).collect());
    Some(OAuth {
        mode,
        audience,
        authorization_servers: servers.unwrap_or_else(|| vec![issuer.clone()]),
        issuer,
        keys,
        algorithms,
        scopes: oauth.scopes.iter().filter_map(|text| scope(reader, text)).collect(),
        token_type: oauth.token_type,
    })
}

fn algorithm(reader: &mut Reader<'_>, text: &Text) -> Option<String> {
    match ALGORITHMS.contains(&text.get_ref().as_str()) {
        true => Some(text.get_ref().clone()),
        false => reader.wrong(text, "oauth.algorithms", format!("one of {}", ALGORITHMS.join(", "))),
    }
}

/// RFC 6749, section 3.3: what may stand in a challenge without quoting.
fn scope(reader: &mut Reader<'_>, text: &Text) -> Option<String> {
    let sound = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
    match !text.get_ref().is_empty() && text.get_ref().bytes().all(sound) {
        true => Some(text.get_ref().clone()),
        false => reader.wrong(text, "oauth.scopes", "a scope has no spaces and no quotes"),
    }
}
