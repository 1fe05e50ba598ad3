//! Reads the `[[route]]` sections.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use admission::effective::ScopeCeiling;
use admission::risk::{Degree, Weights};
use admission::rules::{
    Ceiling, CostRules, Decider, PolicyRule, Posture, PrincipalCeiling, RuleError, SensitivityRules, Then,
};
use admission::signature::Freshness;
use admission::tool::{ToolPins, ToolRules};
use serving::config_file::{Amount, SpannedText};
use toml::Spanned;
use url::Url;
use vap::message::Sensitivity;

use super::a2a::{self, ProtocolSettings};
use super::agentroa::{self, RouteSettings};
use super::file;
use super::oauth::{KeySource, OAuth, OAuthMode, TOKEN_ALGORITHMS};
use super::reader::{GatewayReader, length, named, pattern};
use super::route::{Requirement, Route, Server, UpstreamConfig};
use super::{amounts, commitment, servers};
use crate::limits::{
    ARGUMENT_BYTES, CALL_TIME, JUDGE_THRESHOLD, MAX_BODY_BYTES, MAX_CALL_TIME, MAX_ROUTES, MAX_RULES,
    REQUEST_TIME, SHORTEST_SETTING, UPSTREAM_TIMEOUT,
};

/// Path prefix that is reserved for the gateway.
const RESERVED: &str = "/.well-known/";
/// Methods besides `tools/call` that have effects and may be gated.
const GATEABLE: [&str; 5] =
    ["resources/read", "prompts/get", "completion/complete", "tasks/update", "resources/subscribe"];

/// The words for a tool's sensitivity, as an error message.
const SENSITIVITIES: &str = "one of reads, writes_data, writes_money, deletes, sends_external, grants_access";

/// Reads all routes.
pub fn read(
    reader: &mut GatewayReader<'_>,
    routes: Vec<Spanned<file::RouteSection>>,
    public_url: Option<&Url>,
) -> Vec<Route> {
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

fn one(
    reader: &mut GatewayReader<'_>,
    route: Spanned<file::RouteSection>,
    public_url: Option<&Url>,
) -> Option<Route> {
    let span = route.span();
    let mut route = route.into_inner();
    // The other settings are read even if the path is bad, so that all mistakes are reported together.
    let path = path(reader, &route.path);
    let upstream = servers::upstream(reader, span, &mut route);
    let without_vap = reader.chosen(
        "without_vap",
        route.without_vap.as_ref(),
        &[
            ("deny", Posture::Deny),
            ("restricted", Posture::Restricted),
            ("advisory", Posture::Advisory),
            ("roa", Posture::Roa),
            ("commitment", Posture::Commitment),
        ],
    );
    let at = route.without_vap.as_ref().map(Spanned::span);
    let commitment = commitment::of_route(reader, route.commitment.take(), (without_vap, at));
    let required = [("optional", Requirement::Optional), ("required", Requirement::Required)];
    let signed = reader.chosen("signed", route.signed.as_ref(), &required);
    let fresh = [("optional", Freshness::Optional), ("required", Freshness::Required)];
    let freshness = reader.chosen("freshness", route.freshness.as_ref(), &fresh);
    let pins = [ToolPins::FirstUse, ToolPins::Approved, ToolPins::Off].map(|pins| (pins.as_str(), pins));
    let tools = ToolRules {
        pins: reader.chosen("tool_pins", route.tool_pins.as_ref(), &pins),
        check_arguments: route.check_arguments.unwrap_or(true),
    };
    let deciders = [("client", Decider::Client), ("approver", Decider::Approver)];
    let (risk, threshold) = risk(reader, route.risk);
    let oauth_at = route.oauth.as_ref().map(Spanned::span);
    let oauth = route
        .oauth
        .and_then(|oauth| oauth_of(reader, oauth, public_url, path.as_deref().unwrap_or_default()));
    if let (Some(oauth), Some(upstream)) = (&oauth, &upstream)
        && !may_hold_tokens(oauth, upstream)
    {
        let why = "mode \"upstream\" hands the client's token on: it needs one server over HTTP, and no upstream_token_file";
        reader.mistake(oauth_at, "oauth.mode", why);
    }
    let settings = RouteSettings {
        roa: route.roa.take(),
        server_id: route.server_id.take(),
        degraded: route.degraded.take(),
        classes: std::mem::take(&mut route.tool_class),
    };
    let settings_of_protocol =
        ProtocolSettings { protocol: route.protocol.take(), agent_card: route.agent_card.take() };
    let protocol = a2a::of_route(reader, settings_of_protocol, upstream.as_ref());
    let authority = agentroa::of_route(reader, settings, upstream.as_ref());
    let timeout = reader.time("timeout", route.timeout.as_ref()).unwrap_or(UPSTREAM_TIMEOUT);
    Some(Route {
        protocol,
        without_vap,
        commitment,
        authority,
        restricted: route.restricted.iter().filter_map(|text| pattern(reader, "restricted", text)).collect(),
        signed,
        amendments_signed: route.amendments_signed.unwrap_or(true),
        confirmations: reader.chosen("confirmations", route.confirmations.as_ref(), &deciders),
        commitments_need_approval: route.commitments_need_approval.unwrap_or(false),
        amendments_need_approval: route.amendments_need_approval.unwrap_or(false),
        freshness,
        ceiling: ceiling(reader, &route.ceiling, &route.agent_ceilings),
        principal_ceiling: route.principal_ceiling.map(|given| principal_ceiling(reader, &given)),
        costs: costs(reader, route.cost),
        sensitivities: sensitivities(reader, route.sensitivity),
        risk,
        threshold,
        gated: route.gated.iter().filter_map(|text| gated(reader, text)).collect(),
        rules: rules(reader, route.rules),
        judge: route.judge.unwrap_or(true),
        oauth,
        forward_invocation: route.forward_invocation.unwrap_or(true),
        filter_tools: route.filter_tools.unwrap_or(false),
        tools,
        arguments_bytes: arguments_bytes(reader, route.arguments_bytes.as_ref()),
        timeout,
        call_timeout: time_limit(reader, "call_timeout", route.call_timeout.as_ref()).unwrap_or(CALL_TIME),
        request_timeout: time_limit(reader, "request_timeout", route.request_timeout.as_ref())
            .unwrap_or(timeout.clamp(REQUEST_TIME, MAX_CALL_TIME)),
        upstream: upstream?,
        path: path?,
    })
}

fn path(reader: &mut GatewayReader<'_>, text: &SpannedText) -> Option<String> {
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

fn ceiling(
    reader: &mut GatewayReader<'_>,
    given: &file::CeilingSection,
    agents: &[file::AgentCeilingSection],
) -> Ceiling {
    let scope = scope_ceiling(reader, "ceiling", (&given.tools_allow, &given.tools_deny));
    let agents = agents.iter().map(|given| {
        let lists = (&*given.tools_allow, &*given.tools_deny);
        (given.agent.get_ref().clone(), scope_ceiling(reader, "agent_ceiling", lists))
    });
    let agents = agents.collect();
    Ceiling {
        max_calls: reader.number("ceiling.max_calls", given.max_calls.as_ref(), 1..),
        latest: reader.timestamp("ceiling.latest", given.latest.as_ref()),
        lasts: length(reader, "ceiling.lasts", given.lasts.as_ref()),
        limits: amounts::meters(reader, "ceiling.limits", &given.limits),
        scope,
        agents,
    }
}

/// Reads the patterns of tools that sessions may have in their scope, and of those that they may not.
pub(super) fn scope_ceiling(
    reader: &mut GatewayReader<'_>,
    key: &str,
    (allow, deny): (&[SpannedText], &[SpannedText]),
) -> ScopeCeiling {
    let mut patterns = |name: &str, texts: &[SpannedText]| {
        let key = format!("{key}.{name}");
        texts.iter().filter_map(|text| pattern(reader, &key, text)).collect()
    };
    ScopeCeiling { tools_allow: patterns("tools_allow", allow), tools_deny: patterns("tools_deny", deny) }
}

fn principal_ceiling(
    reader: &mut GatewayReader<'_>,
    given: &file::PrincipalCeilingSection,
) -> PrincipalCeiling {
    let key = "principal_ceiling";
    PrincipalCeiling {
        max_calls: reader.number(&format!("{key}.max_calls"), given.max_calls.as_ref(), 1..),
        limits: amounts::meters(reader, &format!("{key}.limits"), &given.limits),
        window: length(reader, &format!("{key}.window"), given.window.as_ref())
            .map(|window| window.as_secs()),
    }
}

fn costs(reader: &mut GatewayReader<'_>, given: file::CostsSection) -> CostRules {
    let tools = given.tools.iter().filter_map(|(tool, meters)| {
        let key = format!("cost.tools.{tool}");
        Some((named(reader, &key, tool)?, amounts::meters(reader, &key, meters)))
    });
    let tools = tools.collect();
    CostRules {
        tools,
        default: amounts::meters(reader, "cost.default", &given.default),
        cap: amounts::meters(reader, "cost.cap", &given.cap),
        strict: given.strict,
    }
}

fn sensitivities(reader: &mut GatewayReader<'_>, given: BTreeMap<String, Amount>) -> SensitivityRules {
    let mut tools = Vec::new();
    for (tool, words) in given {
        let key = format!("sensitivity.{tool}");
        let Some(pattern) = named(reader, &key, &tool) else { continue };
        let span = words.span();
        let words = match words.into_inner() {
            toml::Value::Array(words) => words,
            word => vec![word],
        };
        for word in words {
            match word.try_into::<Sensitivity>() {
                Ok(class) => tools.push((pattern.clone(), class)),
                Err(_) => reader.mistake(Some(span.clone()), &key, SENSITIVITIES),
            }
        }
    }
    SensitivityRules { tools }
}

fn risk(reader: &mut GatewayReader<'_>, given: file::RiskSection) -> (Weights, Degree) {
    let mut degree = |key: &str, number: &Spanned<f64>| {
        let value = *number.get_ref();
        if !(0.0..=1.0).contains(&value) {
            reader.mistake(Some(number.span()), key, "a number from 0 to 1");
        }
        Degree::of(value)
    };
    let mut weights = Weights::default();
    let mut unknown = Vec::new();
    for (name, number) in &given.weights {
        let weight = match name.as_str() {
            "sensitivity" => &mut weights.sensitivity,
            "burn_rate" => &mut weights.burn_rate,
            "looping" => &mut weights.looping,
            "novelty" => &mut weights.novelty,
            "proximity" => &mut weights.proximity,
            _ => {
                unknown.push(number.span());
                continue;
            }
        };
        *weight = degree("risk.weights", number);
    }
    let threshold = given.threshold.as_ref().map(|threshold| degree("risk.threshold", threshold));
    for span in unknown {
        let why = "one of sensitivity, burn_rate, looping, novelty, proximity";
        reader.mistake(Some(span), "risk.weights", why);
    }
    (weights, threshold.unwrap_or_else(|| Degree::of(JUDGE_THRESHOLD)))
}

/// Reads the longest time of a call, or of another request.
fn time_limit(reader: &mut GatewayReader<'_>, key: &str, given: Option<&SpannedText>) -> Option<Duration> {
    reader.duration(key, given, SHORTEST_SETTING..=MAX_CALL_TIME)
}

/// Reads the maximum length of arguments, which is bounded by the maximum length of a message.
fn arguments_bytes(reader: &mut GatewayReader<'_>, given: Option<&Amount>) -> usize {
    let bytes = reader.size("arguments_bytes", given, 1..=MAX_BODY_BYTES as u64);
    bytes.map_or(ARGUMENT_BYTES, |bytes| bytes as usize)
}

fn gated(reader: &mut GatewayReader<'_>, text: &SpannedText) -> Option<String> {
    match GATEABLE.contains(&text.get_ref().as_str()) {
        true => Some(text.get_ref().clone()),
        false => reader.wrong(text, "gated", format!("one of {}", GATEABLE.join(", "))),
    }
}

fn rules(reader: &mut GatewayReader<'_>, given: Vec<file::RuleSection>) -> Vec<PolicyRule> {
    if let Some(last) = given.get(MAX_RULES) {
        reader.mistake(Some(last.name.span()), "route.rule", format!("no more than {MAX_RULES} rules"));
    }
    let mut names = BTreeSet::new();
    let mut read = Vec::new();
    for rule in given {
        let name = rule.name.get_ref();
        if !names.insert(name.clone()) {
            reader.mistake(Some(rule.name.span()), "rule.name", format!("a second rule {name}"));
        }
        read.extend(one_rule(reader, &rule));
    }
    read
}

fn one_rule(reader: &mut GatewayReader<'_>, rule: &file::RuleSection) -> Option<PolicyRule> {
    let words = [
        ("deny", Then::Deny),
        ("allow", Then::Allow),
        ("confirm", Then::Confirm),
        ("approve", Then::Approve),
    ];
    let then = reader.chosen("rule.then", Some(&rule.then), &words);
    let tool = rule.tool.as_ref().map(|text| pattern(reader, "rule.tool", text));
    let when = rule.when.as_ref().map(|text| text.get_ref().as_str());
    match PolicyRule::new(rule.name.get_ref(), tool.flatten(), when, then) {
        Ok(rule) => Some(rule),
        Err(RuleError::Name) => reader.wrong(&rule.name, "rule.name", RuleError::Name.to_string()),
        Err(why @ (RuleError::Condition(_) | RuleError::Member(_))) => {
            reader.wrong(rule.when.as_ref().unwrap_or(&rule.name), "rule.when", why.to_string())
        }
    }
}

fn oauth_of(
    reader: &mut GatewayReader<'_>,
    oauth: Spanned<file::OAuthSection>,
    public_url: Option<&Url>,
    path: &str,
) -> Option<OAuth> {
    let span = oauth.span();
    let oauth = oauth.into_inner();
    // Without a public URL a mistake was reported already, and there will be no configuration.
    let base = public_url.map(Url::as_str).unwrap_or_default().trim_end_matches('/');
    let own = || format!("{base}{path}");
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
            let metadata = oauth.metadata.as_ref().and_then(|text| reader.plain_url("oauth.metadata", text));
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
        (None, Some(text)) => KeySource::Url { url: reader.plain_url("oauth.jwks_url", &text)?, ca_file },
        _ => {
            reader.mistake(Some(span), "oauth.jwks", "either jwks (a file) or jwks_url");
            return None;
        }
    };
    let usual = || TOKEN_ALGORITHMS.iter().map(|name| (*name).to_owned()).collect();
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

/// Returns whether mode B is possible: a token is forwarded only to the single server that it was issued for.
/// With several servers, all of them would receive it.
fn may_hold_tokens(oauth: &OAuth, upstream: &UpstreamConfig) -> bool {
    match (&oauth.mode, upstream) {
        (OAuthMode::Gateway, _) => true,
        (OAuthMode::Upstream { .. }, UpstreamConfig::One(Server::Http(server))) => {
            server.token_file.is_none()
        }
        (OAuthMode::Upstream { .. }, _) => false,
    }
}

fn algorithm(reader: &mut GatewayReader<'_>, text: &SpannedText) -> Option<String> {
    match TOKEN_ALGORITHMS.contains(&text.get_ref().as_str()) {
        true => Some(text.get_ref().clone()),
        false => reader.wrong(text, "oauth.algorithms", format!("one of {}", TOKEN_ALGORITHMS.join(", "))),
    }
}

/// A scope token (RFC 6749, section 3.3), which needs no quoting in a challenge.
fn scope(reader: &mut GatewayReader<'_>, text: &SpannedText) -> Option<String> {
    let sound = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
    match !text.get_ref().is_empty() && text.get_ref().bytes().all(sound) {
        true => Some(text.get_ref().clone()),
        false => reader.wrong(text, "oauth.scopes", "a scope has no spaces and no quotes"),
    }
}
