//! Reads the `[agentroa]` section, and the settings of a route about AgentROA.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use admission::rules::{
    AuthorityDemand, AuthorityRules, CapabilityServers, DegradedMode, Posture, ToolClass,
};
use roa::text::Text;
use scitt::{Curve, PublicKey};
use serving::config_file::SpannedText;
use toml::Spanned;
use url::Url;
use vap::glob::Pattern;

use super::UpstreamConfig;
use super::file;
use super::reader::{GatewayReader, named};
use super::route::Route;
use crate::limits::REGISTRY_REFRESH;

/// The source of a registry, or of its revocation deltas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegistrySource {
    /// A file.
    File(PathBuf),
    /// The address of the file on an HTTP server.
    Url(Url),
}

impl RegistrySource {
    /// The URL; `None` for a file.
    #[must_use]
    pub fn url(&self) -> Option<&Url> {
        match self {
            Self::File(_) => None,
            Self::Url(url) => Some(url),
        }
    }
}

/// The Agent Identity Registry, and the gateway's name in it.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentRoaConfig {
    /// The source of the registry.
    pub source: RegistrySource,
    /// The source of the registry's revocation deltas.
    pub deltas: Option<RegistrySource>,
    /// The keys of the registry's operators.
    pub operators: Vec<PublicKey>,
    /// The interval at which the registry is read again.
    pub refresh: Duration,
    /// The identifier of this gateway in execution receipts.
    pub gateway_id: String,
    /// The name of the evidence key in the registry (role `gateway`).
    pub signer: String,
    /// The form in which execution receipts are registered.
    pub receipts: ReceiptForm,
    /// Whether the delegation chain that a receipt names is registered too. By default it is, unless receipts are
    /// registered by their hash.
    pub register_chains: bool,
}

/// The form in which execution receipts are registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiptForm {
    /// The receipt itself.
    Plain,
    /// Its SHA-256 digest in a hash envelope (RFC 9995). The receipt stays in the gateway's database.
    Hash,
}

/// Reads the section.
pub fn read(
    reader: &mut GatewayReader<'_>,
    section: Option<Spanned<file::AgentRoaSection>>,
) -> Option<AgentRoaConfig> {
    let section = section?;
    let span = section.span();
    let section = section.into_inner();
    let sources = [
        ("registry", (&section.registry, &section.registry_url)),
        ("deltas", (&section.deltas, &section.deltas_url)),
    ];
    let [registry, deltas] = sources.map(|(key, given)| registry_source(reader, &span, key, given));
    if section.registry.is_none() && section.registry_url.is_none() {
        reader.mistake(
            Some(span.clone()),
            "agentroa.registry",
            "a registry (a file) or registry_url is needed",
        );
    }
    if section.registry_keys.is_empty() {
        let why = "the keys of the registry's operators are needed: registry_keys = [\"operator.pub\"]";
        reader.mistake(Some(span), "agentroa.registry_keys", why);
    }
    let operators = section.registry_keys.iter().filter_map(|path| operator_key(reader, path)).collect();
    let gateway_id = name(reader, "agentroa.gateway_id", &section.gateway_id);
    let signer = name(reader, "agentroa.signer", &section.signer);
    let refresh = reader.time("agentroa.refresh", section.refresh.as_ref()).unwrap_or(REGISTRY_REFRESH);
    let forms = [("plain", ReceiptForm::Plain), ("hash", ReceiptForm::Hash)];
    let receipts = reader.chosen("agentroa.receipts", section.receipts.as_ref(), &forms);
    let register_chains = section.register_chains.unwrap_or(receipts == ReceiptForm::Plain);
    let (source, gateway_id, signer) = (registry?, gateway_id?, signer?);
    Some(AgentRoaConfig { source, deltas, operators, refresh, gateway_id, signer, receipts, register_chains })
}

/// Reads a source that is a file (`key`) or an address (`key_url`), if it is given.
fn registry_source(
    reader: &mut GatewayReader<'_>,
    section: &Range<usize>,
    key: &str,
    given: (&Option<PathBuf>, &Option<SpannedText>),
) -> Option<RegistrySource> {
    match given {
        (Some(path), None) => Some(RegistrySource::File(reader.path(path))),
        (None, Some(text)) => reader.plain_url(&format!("agentroa.{key}_url"), text).map(RegistrySource::Url),
        (None, None) => None,
        (Some(_), Some(_)) => {
            let why = format!("either {key} (a file) or {key}_url");
            reader.mistake(Some(section.clone()), &format!("agentroa.{key}"), why);
            None
        }
    }
}

/// Reads the public key of an operator: PEM (SubjectPublicKeyInfo) or a JWK.
fn operator_key(reader: &mut GatewayReader<'_>, path: &Spanned<PathBuf>) -> Option<PublicKey> {
    let file = reader.path(path.get_ref());
    let read = std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()));
    let key = read.and_then(|text| match text.starts_with("-----BEGIN") {
        true => PublicKey::from_spki_pem(&text).map_err(|error| error.to_string()),
        false => PublicKey::from_jwk_json(text.as_bytes()).map_err(|error| error.to_string()),
    });
    let key = key.and_then(|key| match key.curve() {
        Curve::Ed25519 => Ok(key),
        other => Err(format!("an Ed25519 key is needed, not one of {other}")),
    });
    match key {
        Ok(key) => Some(key),
        Err(why) => {
            reader.mistake(Some(path.span()), "agentroa.registry_keys", why);
            None
        }
    }
}

fn name(reader: &mut GatewayReader<'_>, key: &str, text: &SpannedText) -> Option<String> {
    match text.get_ref().parse::<Text>() {
        Ok(name) => Some(name.to_string()),
        Err(why) => reader.wrong(text, key, why.to_string()),
    }
}

/// The settings of a route about AgentROA, as written.
pub struct RouteSettings {
    /// `off`, `advisory` or `required`.
    pub roa: Option<SpannedText>,
    /// The identifier of the route's one server.
    pub server_id: Option<SpannedText>,
    /// `deny` or `reads`.
    pub degraded: Option<SpannedText>,
    /// The classes of tools.
    pub classes: BTreeMap<String, file::ToolClassSection>,
}

/// Reads the settings of a route.
pub fn of_route(
    reader: &mut GatewayReader<'_>,
    settings: RouteSettings,
    upstream: Option<&UpstreamConfig>,
) -> AuthorityRules {
    let demands = [AuthorityDemand::Off, AuthorityDemand::Advisory, AuthorityDemand::Required]
        .map(|demand| (demand.as_str(), demand));
    let modes = [DegradedMode::Deny, DegradedMode::Reads].map(|mode| (mode.as_str(), mode));
    let demand = reader.chosen("roa", settings.roa.as_ref(), &demands);
    let degraded = reader.chosen("degraded", settings.degraded.as_ref(), &modes);
    let servers = match (upstream, settings.server_id) {
        (Some(UpstreamConfig::Many { separator, servers }), None) => CapabilityServers::Prefixed {
            separator: separator.clone(),
            servers: servers.iter().map(|(prefix, _)| prefix.clone()).collect(),
        },
        (Some(UpstreamConfig::Many { .. }), Some(text)) => {
            reader.mistake(
                Some(text.span()),
                "server_id",
                "with several servers, the prefixes are the identifiers",
            );
            CapabilityServers::None
        }
        (_, Some(text)) => server_id(reader, &text).map_or(CapabilityServers::None, CapabilityServers::One),
        (_, None) => {
            if let Some(text) = settings.roa.as_ref().filter(|_| demand != AuthorityDemand::Off) {
                reader.mistake(
                    Some(text.span()),
                    "server_id",
                    "AgentROA names tools by server: give server_id",
                );
            }
            CapabilityServers::None
        }
    };
    let classes = settings.classes.into_iter();
    let classes = classes.filter_map(|(tool, class)| tool_class(reader, &tool, class)).collect();
    AuthorityRules { demand, servers, classes, degraded }
}

fn tool_class(
    reader: &mut GatewayReader<'_>,
    tool: &str,
    class: file::ToolClassSection,
) -> Option<(Pattern, ToolClass)> {
    let key = format!("tool_class.{tool}");
    let pattern = named(reader, &key, tool)?;
    let classification = match class.classification {
        Some(label) => Some(name(reader, &format!("{key}.classification"), &label)?),
        None => None,
    };
    Some((pattern, ToolClass { price: class.price, slo: class.slo, classification }))
}

/// An identifier without a dot, since the first dot of a capability ends it.
fn server_id(reader: &mut GatewayReader<'_>, text: &SpannedText) -> Option<String> {
    let id = text.get_ref();
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    match !id.is_empty() && id.bytes().all(fits) {
        true => Some(id.clone()),
        false => reader.wrong(text, "server_id", "letters, digits, - and _, without a dot"),
    }
}

/// Checks that routes which need a registry have one.
pub fn check(reader: &mut GatewayReader<'_>, config: Option<&AgentRoaConfig>, routes: &[Route]) {
    for route in routes {
        let needs = route.authority.demand != AuthorityDemand::Off;
        if needs && config.is_none() {
            let why = format!("route {} enforces AgentROA: give [agentroa] with the registry", route.path);
            reader.mistake(None, "agentroa", why);
        }
        let mut gated = route.gated.iter().filter(|_| needs);
        if let Some((method, server)) = gated.find_map(|method| ambiguous(route, method)) {
            let path = &route.path;
            let why = format!("route {path}: {method} would be a tool of the server {server}");
            reader.mistake(None, "gated", why);
        }
        if route.without_vap == Posture::Roa && route.authority.demand != AuthorityDemand::Required {
            let why = format!("route {}: without_vap = \"roa\" needs roa = \"required\"", route.path);
            reader.mistake(None, "without_vap", why);
        }
    }
}

/// Returns a gated method and the server of a route that has a tool of this name, as its clients see it. A method has no
/// capability where there are several servers.
fn ambiguous<'a>(route: &'a Route, method: &'a str) -> Option<(&'a str, &'a str)> {
    match &route.authority.servers {
        CapabilityServers::None | CapabilityServers::One(_) => None,
        servers @ CapabilityServers::Prefixed { .. } => {
            servers.split(method).map(|(server, _)| (method, server))
        }
    }
}
