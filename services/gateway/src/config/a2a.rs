//! Reads the settings of a route about A2A.

use admission::rules::{AuthorityDemand, Posture};
use serving::config_file::SpannedText;
use toml::Spanned;
use url::Url;

use super::reader::GatewayReader;
use super::route::{Route, RouteProtocol, Server, UpstreamConfig};

/// The path of an agent card below the address of its agent (RFC 8615).
pub const AGENT_CARD_PATH: &str = "/.well-known/agent-card.json";

/// The settings of a route about its protocol, as written.
pub struct ProtocolSettings {
    /// `mcp` or `a2a`.
    pub protocol: Option<SpannedText>,
    /// The address of the agent's own card.
    pub agent_card: Option<SpannedText>,
}

/// Reads the protocol of a route. The card of an agent is by default below the agent's address.
pub fn of_route(
    reader: &mut GatewayReader<'_>,
    settings: ProtocolSettings,
    upstream: Option<&UpstreamConfig>,
) -> RouteProtocol {
    let is_a2a = reader.chosen("protocol", settings.protocol.as_ref(), &[("mcp", false), ("a2a", true)]);
    if !is_a2a {
        if let Some(text) = &settings.agent_card {
            reader.mistake(
                Some(text.span()),
                "agent_card",
                "only a route with protocol = \"a2a\" has a card",
            );
        }
        return RouteProtocol::Mcp;
    }
    let span = settings.protocol.as_ref().map(Spanned::span);
    let card = match (&settings.agent_card, upstream) {
        (Some(text), _) => reader.plain_url("agent_card", text),
        (None, Some(UpstreamConfig::One(Server::Http(server)))) => below(&server.url, AGENT_CARD_PATH),
        (None, _) => None,
    };
    match (card, upstream) {
        (Some(card), Some(UpstreamConfig::One(Server::Http(_)))) => RouteProtocol::A2a { card },
        (_, None) => RouteProtocol::Mcp,
        _ => {
            let why = "an A2A agent is one server over HTTP: give upstream";
            reader.mistake(span, "protocol", why);
            RouteProtocol::Mcp
        }
    }
}

fn below(url: &Url, path: &str) -> Option<Url> {
    let mut folder = url.clone();
    folder.set_query(None);
    folder.set_path(&format!("{}{path}", url.path().trim_end_matches('/')));
    Some(folder)
}

/// Checks that routes before agents decide by AgentROA alone, since A2A carries no VAP.
pub fn check(reader: &mut GatewayReader<'_>, routes: &[Route]) {
    for route in routes.iter().filter(|route| matches!(route.protocol, RouteProtocol::A2a { .. })) {
        let mut wrong = |key: &str, why: &str| {
            reader.mistake(None, key, format!("route {}: {why}", route.path));
        };
        if route.authority.demand == AuthorityDemand::Off {
            wrong("roa", "requests to an agent are decided by AgentROA: roa = \"required\" or \"advisory\"");
        }
        if !matches!(route.without_vap, Posture::Roa | Posture::Advisory) {
            wrong("without_vap", "A2A carries no VAP: without_vap = \"roa\" or \"advisory\"");
        }
        if route.filter_tools || !route.gated.is_empty() {
            wrong("protocol", "filter_tools and gated are for MCP: every request to an agent is decided");
        }
    }
}
