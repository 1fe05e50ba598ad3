//! The agent card (A2A, section 5): the agent's own, with the address of the gateway and the AgentROA extension.
//!
//! Addresses at which clients could reach the agent without the gateway are removed, and so are signatures, which are
//! over the agent's own card.

use admission::rules::AuthorityDemand;
use bytes::Bytes;
use jose::json::{self, JsonError, Limits};
use serde_json::{Value, json};
use thiserror::Error;
use url::Url;

use super::EXTENSION;
use crate::bounded_fetch::{FetchError, get_bounded, http_client};
use crate::config::{Config, Route, RouteProtocol};
use crate::limits::{MAX_AGENT_CARD_BYTES, MAX_DEPTH};

/// The source of an agent's card, and what the gateway changes in it.
#[derive(Clone, Debug)]
pub struct AgentCard {
    source: Url,
    /// The address of the endpoint at the gateway.
    address: String,
    is_required: bool,
    http: reqwest::Client,
}

/// Reason why there is no agent card.
#[derive(Debug, Error)]
pub enum CardError {
    /// The card cannot be fetched.
    #[error("the agent card cannot be fetched: {0}")]
    Fetch(#[from] FetchError),
    /// The card is not JSON.
    #[error("the agent card is not JSON: {0}")]
    Json(#[from] JsonError),
    /// The card is not an object.
    #[error("the agent card is not an object")]
    NotAnObject,
}

impl AgentCard {
    /// Creates the card of a route; `None` if it does not stand before an agent.
    ///
    /// # Errors
    /// If the HTTP client cannot be made.
    pub fn of_route(config: &Config, route: &Route) -> Option<Result<Self, FetchError>> {
        let RouteProtocol::A2a { card } = &route.protocol else { return None };
        let address = format!("{}{}", config.public_url.as_str().trim_end_matches('/'), route.path);
        Some(Self::new(card.clone(), address, route.authority.demand == AuthorityDemand::Required))
    }

    fn new(source: Url, address: String, is_required: bool) -> Result<Self, FetchError> {
        let http = http_client(&[&source], None)?;
        Ok(Self { source, address, is_required, http })
    }

    /// Fetches the agent's card, and returns the gateway's.
    ///
    /// # Errors
    /// [`CardError`] if the agent has no card.
    pub async fn document(&self) -> Result<Bytes, CardError> {
        let text = get_bounded(&self.http, &self.source, MAX_AGENT_CARD_BYTES).await?;
        let card = json::parse_strict(&text, Limits { bytes: MAX_AGENT_CARD_BYTES, depth: MAX_DEPTH })?;
        Ok(self.changed(card)?.to_string().into())
    }

    fn changed(&self, mut card: Value) -> Result<Value, CardError> {
        let members = card.as_object_mut().ok_or(CardError::NotAnObject)?;
        for elsewhere in ["additionalInterfaces", "signatures", "supportsAuthenticatedExtendedCard"] {
            members.remove(elsewhere);
        }
        // A card may be for both versions: it then has the addresses of both.
        let interfaces = members.remove("supportedInterfaces").filter(Value::is_array);
        if members.remove("url").is_some() || interfaces.is_none() {
            members.insert("url".to_owned(), self.address.as_str().into());
            members.insert("preferredTransport".to_owned(), "JSONRPC".into());
        } else {
            members.remove("preferredTransport");
        }
        if let Some(interfaces) = interfaces {
            members.insert("supportedInterfaces".to_owned(), self.interfaces(&interfaces));
        }
        let capabilities = members.entry("capabilities").or_insert_with(|| json!({}));
        let capabilities = capabilities.as_object_mut().ok_or(CardError::NotAnObject)?;
        capabilities.remove("extendedAgentCard");
        let extensions = capabilities.entry("extensions").or_insert_with(|| json!([]));
        let extensions = extensions.as_array_mut().ok_or(CardError::NotAnObject)?;
        extensions.retain(|extension| extension["uri"] != EXTENSION);
        extensions.push(self.extension());
        Ok(card)
    }

    /// The interfaces of a card of A2A 1.0: JSON-RPC at the gateway, in the versions of the agent.
    fn interfaces(&self, all: &Value) -> Value {
        let all = all.as_array().map(Vec::as_slice).unwrap_or_default();
        let spoken = all.iter().filter(|interface| interface["protocolBinding"] == "JSONRPC");
        let through = |interface: &Value| {
            let mut interface = interface.clone();
            interface["url"] = self.address.as_str().into();
            interface
        };
        spoken.map(through).collect()
    }

    fn extension(&self) -> Value {
        json!({
            "uri": EXTENSION,
            "description": "AgentROA: requests carry a delegation chain, and answers an execution receipt",
            "required": self.is_required,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn changed(card: Value) -> Value {
        let source = "http://agent.example/.well-known/agent-card.json".parse().unwrap();
        AgentCard::new(source, "https://gw.example/a2a".to_owned(), true).unwrap().changed(card).unwrap()
    }

    #[test]
    fn a_card_names_the_gateway_alone_and_demands_the_extension() {
        let card = changed(json!({
            "name": "planner", "url": "http://agent.example/", "preferredTransport": "GRPC",
            "additionalInterfaces": [{ "url": "http://agent.example/", "transport": "JSONRPC" }],
            "signatures": [{ "protected": "x", "signature": "y" }], "capabilities": { "streaming": true },
        }));
        assert!(!card.to_string().contains("agent.example"), "{card}");
        assert_eq!(card["url"], "https://gw.example/a2a");
        assert_eq!(card["preferredTransport"], "JSONRPC");
        assert_eq!(card["capabilities"]["streaming"], true);
        assert_eq!(card["capabilities"]["extensions"][0]["uri"], EXTENSION);
        assert_eq!(card["capabilities"]["extensions"][0]["required"], true);
        assert!(card.get("signatures").is_none());
    }

    #[test]
    fn a_card_of_a2a_1_0_keeps_its_json_rpc_interfaces_at_the_gateway() {
        let both = changed(json!({
            "name": "planner", "url": "http://agent.example/", "capabilities": {},
            "supportedInterfaces": null,
        }));
        assert!(!both.to_string().contains("agent.example"), "{both}");
        let both = changed(json!({
            "name": "planner", "url": "http://agent.example/", "capabilities": {},
            "supportedInterfaces": [{ "url": "http://agent.example/", "protocolBinding": "GRPC" }],
        }));
        assert_eq!(
            (&both["url"], &both["supportedInterfaces"]),
            (&json!("https://gw.example/a2a"), &json!([]))
        );
        let card = changed(json!({
            "name": "planner", "capabilities": {},
            "supportedInterfaces": [
                { "url": "http://agent.example/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0" },
                { "url": "http://agent.example/rest", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0" },
            ],
        }));
        let expected = json!([{
            "url": "https://gw.example/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0",
        }]);
        assert_eq!(card["supportedInterfaces"], expected);
        assert!(card.get("url").is_none());
    }
}
