//! The gateway's posture: what it demands and supports, published before a client sends anything (V-34, VAP section
//! 13).
//!
//! Three places publish the same facts: `GET /.well-known/vap` for all routes, and for the requested route
//! `capabilities.experimental.vap` in the legacy eras and `capabilities.extensions["dev.tabellion/vap"]` in the modern
//! one. The public verdict keys are at `GET /.well-known/jwks.json`.
//!
//! Not here: inserting it into a server's answer (`calls`, with [`Reply`](crate::frame::reply::Reply)).

use admission::rules::{Decider, Rules};
use admission::signature::{Demands, Freshness};
use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{StatusCode, header};
use serde_json::{Value, json};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use vap::message::{MessageType, VERSION};

use crate::config::Config;

/// Path of the JWK set with the public verdict keys.
pub const JWKS: &str = "/.well-known/jwks.json";
/// Identifier of the extension in the modern era's `capabilities.extensions`.
pub const EXTENSION: &str = "dev.tabellion/vap";
/// Member name in the legacy `capabilities.experimental`.
pub const EXPERIMENTAL: &str = "vap";

/// The posture of one route as JSON text, to insert into a server's `capabilities`.
#[must_use]
pub fn of_route(config: &Config, rules: &Rules) -> String {
    let text = jose::jcs::canonical(&document(config, rules));
    // Canonical JSON is UTF-8.
    String::from_utf8(text).unwrap_or_default()
}

/// The posture of all routes: the body of `GET /.well-known/vap`.
#[must_use]
pub fn of_all(config: &Config) -> Bytes {
    let routes = config.routes.iter().map(|route| {
        let mut document = document(config, &config.rules(route));
        document["path"] = route.path.clone().into();
        document
    });
    let whole = json!({
        "issuer": config.issuer,
        "jwks_uri": jwks_uri(config),
        "log": config.log.url,
        "routes": routes.collect::<Vec<Value>>(),
    });
    Bytes::from(jose::jcs::canonical(&whole))
}

fn document(config: &Config, rules: &Rules) -> Value {
    let mut document = json!({
        "version": VERSION,
        "issuer": config.issuer,
        "jwks_uri": jwks_uri(config),
        "without_vap": rules.posture.as_str(),
        "require_commitment": true,
        "require_signed": rules.demands.signed,
        "signatures": signatures(&rules.demands),
        "approval": { "commitments": rules.approvals.commitments, "amendments": rules.approvals.amendments },
        "freshness": match rules.demands.freshness {
            Freshness::Optional => "optional",
            Freshness::Required => "required",
        },
        "algorithms": ["EdDSA", "ES256"],
        "tiers": tiers(rules),
        "shapes": ["flat", "nested"],
        "carriers": { "legacy": ["initialize", "tools/list", "ping"], "modern": ["server/discover", "tools/list"],
                      "amend": ["tools/list", "ping", "vap/amend"] },
        "verdict": { "signed": true, "detached": true, "req": true },
        "audit": { "format": "application/vap-audit+json", "log": config.log.url,
                   "receipt_required": config.log.receipt_required },
        "gated": rules.gated_methods,
        "tools": { "pins": rules.tools.pins.as_str(), "arguments_checked": rules.tools.check_arguments },
        "confirmations": confirmations(rules),
    });
    if let Some(judge) = &rules.judge {
        document["semantic_triggers"] = json!(judge.triggers(&rules.risk));
    }
    document
}

/// The messages to sign. An agent whose key the operator configured signs its commitments in any case, so that no one else
/// can use its name.
fn signatures(demands: &Demands) -> Value {
    let of = |kind, otherwise: &'static str| if demands.demand(kind) { "required" } else { otherwise };
    json!({
        "commitments": of(MessageType::ScopeCommitment, "required_of_agents_with_keys"),
        "amendments": of(MessageType::ScopeAmendment, "optional"),
        "calls": of(MessageType::IntentCall, "optional"),
    })
}

/// The party that answers confirmations: the client, or an approver who signs. A rule with `approve` always waits for
/// an approver.
fn confirmations(rules: &Rules) -> &'static str {
    match rules.approvals.confirmations {
        Decider::Client => "asserted_by_client",
        Decider::Approver => "signed_by_approver",
    }
}

/// The active tiers, by the words of a Verdict's `method`. A tier that does not run is not advertised (V-28).
fn tiers(rules: &Rules) -> Vec<&'static str> {
    let policy = (!rules.policy.is_empty()).then_some("policy");
    let semantic = rules.judge.is_some().then_some("semantic");
    ["static"].into_iter().chain(policy).chain(semantic).collect()
}

fn jwks_uri(config: &Config) -> String {
    format!("{}{JWKS}", config.public_url.as_str().trim_end_matches('/'))
}

/// The well-known documents of a gateway.
#[derive(Clone)]
pub struct PublicDocuments {
    /// The posture of all routes.
    pub posture: Bytes,
    /// The JWK set with the public verdict keys.
    pub jwks: Bytes,
}

/// Routes of the well-known documents. A reload of the configuration makes them anew.
pub fn routes(documents: PublicDocuments) -> Router {
    Router::from(described()).with_state(documents)
}

/// The routes with their OpenAPI description.
pub fn described() -> OpenApiRouter<PublicDocuments> {
    OpenApiRouter::new().routes(routes!(vap)).routes(routes!(verdict_keys))
}

/// What the gateway demands and supports, on each of its routes (VAP section 13).
#[utoipa::path(
    get,
    path = "/.well-known/vap",
    tag = "Clients",
    responses((status = 200, description = "The posture of all routes", body = Object))
)]
async fn vap(State(documents): State<PublicDocuments>) -> Response {
    document_of("application/json", documents.posture)
}

/// The public keys of Verdicts (RFC 7517).
#[utoipa::path(
    get,
    path = "/.well-known/jwks.json",
    tag = "Clients",
    responses((status = 200, description = "A JWK set", body = Object, content_type = "application/jwk-set+json"))
)]
async fn verdict_keys(State(documents): State<PublicDocuments>) -> Response {
    document_of("application/jwk-set+json", documents.jwks)
}

/// A public document with `Access-Control-Allow-Origin: *`, so that any web page may read it.
pub fn document_of(media_type: &'static str, body: Bytes) -> Response {
    let headers = [
        (header::CONTENT_TYPE, media_type),
        (header::CACHE_CONTROL, "public, max-age=60"),
        (header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (StatusCode::OK, headers, body).into_response()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use admission::risk::Degree;
    use admission::rules::{PolicyRule, Posture, Then};
    use decimal::Decimal;

    use crate::config::{Dev, Requirement, Server};

    fn config() -> Config {
        let dev = Dev {
            upstream: Server::http("http://127.0.0.1:3001/mcp".parse().unwrap()),
            log: "http://127.0.0.1:7390/".into(),
            folder: "gw".into(),
            listen: "127.0.0.1:7400".parse().unwrap(),
            issuer: "https://gw.example".into(),
            evidence_key: "k".into(),
            without_vap: Posture::Advisory,
            hide: Vec::new(),
        };
        Config::dev(dev).unwrap()
    }

    fn document(config: &Config) -> Value {
        serde_json::from_str(&of_route(config, &config.rules(&config.routes[0]))).unwrap()
    }

    #[test]
    fn v_34_what_is_demanded_is_known_before_anything_is_sent() {
        let mut config = config();
        config.routes[0].signed = Requirement::Required;
        let document = document(&config);
        assert_eq!(
            (&document["require_signed"], &document["without_vap"]),
            (&json!(true), &json!("advisory"))
        );
        let all: Value = serde_json::from_slice(&of_all(&config)).unwrap();
        assert_eq!(all["routes"][0]["path"], "/mcp");
        assert_eq!(all["jwks_uri"], "http://127.0.0.1:7400/.well-known/jwks.json");
    }

    #[test]
    fn v_34_the_messages_that_need_a_signature_or_an_approval_are_listed() {
        let mut config = config();
        let usual = json!({
            "commitments": "required_of_agents_with_keys", "amendments": "required", "calls": "optional",
        });
        assert_eq!(document(&config)["signatures"], usual);
        assert_eq!(document(&config)["approval"], json!({ "commitments": false, "amendments": false }));
        let route = &mut config.routes[0];
        (route.amendments_signed, route.amendments_need_approval) = (false, true);
        assert_eq!(document(&config)["signatures"]["amendments"], "optional");
        assert_eq!(document(&config)["approval"], json!({ "commitments": false, "amendments": true }));
        config.routes[0].signed = Requirement::Required;
        let all = json!({ "commitments": "required", "amendments": "required", "calls": "required" });
        assert_eq!(document(&config)["signatures"], all);
    }

    fn judge(commitments: bool) -> crate::config::Judge {
        crate::config::Judge {
            url: "http://127.0.0.1:1/v1".parse().unwrap(),
            model: "m".into(),
            key_file: None,
            timeout: std::time::Duration::from_secs(1),
            sample_rate: 0.1,
            confidence: 0.5,
            commitments,
            cache: std::time::Duration::from_secs(1),
            meter: crate::judge::Meter::Answers,
            cost: Decimal::ZERO,
            cap: Decimal::MAX,
        }
    }

    #[test]
    fn v_28_a_tier_that_does_not_exist_is_not_advertised() {
        let mut config = config();
        assert_eq!(document(&config)["tiers"], json!(["static"]));
        config.routes[0].rules.push(PolicyRule::new("no", None, None, Then::Deny).unwrap());
        assert_eq!(document(&config)["tiers"], json!(["static", "policy"]));
        config.judge = Some(judge(false));
        assert_eq!(document(&config)["tiers"], json!(["static", "policy", "semantic"]));
        config.routes[0].judge = false;
        assert_eq!(document(&config)["tiers"], json!(["static", "policy"]));
    }

    #[test]
    fn what_the_judge_is_asked_for_is_said_in_the_words_of_a_verdict() {
        let mut config = config();
        config.judge = Some(judge(false));
        let signals = json!([
            "sensitivity",
            "burn_rate_anomaly",
            "looping",
            "novelty",
            "threshold_proximity",
            "random_sample"
        ]);
        assert_eq!(document(&config)["semantic_triggers"], signals);
        config.judge = Some(judge(true));
        config.routes[0].risk.sensitivity = Degree::ZERO;
        config.routes[0].threshold = Degree::ONE;
        assert_eq!(
            document(&config)["semantic_triggers"],
            json!(["session_start", "amendment", "random_sample"])
        );
    }
}
