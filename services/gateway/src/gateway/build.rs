//! Builds the routes from the configuration: upstreams, token checks, rules and metadata documents.
//!
//! Objects that hold connections, children or sessions are kept for as long as their configuration does not change.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::response::IntoResponse;
use axum::routing::get;
use bytes::Bytes;
use zeroize::Zeroizing;

use super::description;
use crate::a2a::{A2a, AgentCard};
use crate::calls::{Calls, Judging, Offer, Shared};
use crate::config::{
    AGENT_CARD_PATH, CommandServer, Config, OAuthMode, Route as RouteConfig, RouteProtocol, Server,
    UpstreamConfig,
};
use crate::current_rules::{CurrentRules, rules_of};
use crate::evidence_store::secret;
use crate::front::{AllowAll, Authorizer, Plan, Protocol, Route};
use crate::isolation::{Host, OwnFiles};
use crate::judge::{HttpJudge, JudgeSettings};
use crate::keys::Keys;
use crate::mcp::{Endpoint, Mcp, McpSessions};
use crate::oauth::{FetchedKeys, TokenCheck};
use crate::posture::{self, PublicDocuments};
use crate::servers::{confinement, one_server};
use crate::start_error::StartError;
use crate::telemetry::{Metered, Telemetry};
use crate::upstream::Upstream;
use crate::upstream::federation::Federation;
use crate::upstream::stdio::Stdio;
use crate::upstream::time_limited::TimeLimited;
use crate::upstream::without_challenges::WithoutChallenges;

/// A builder of plans, with the objects that successive plans share.
pub struct Builder {
    keys: Keys,
    telemetry: Arc<Telemetry>,
    shared: Arc<Shared>,
    sessions: Arc<McpSessions>,
    rules: CurrentRules,
    /// The upstreams by the path of their route.
    upstreams: BTreeMap<String, RouteUpstream>,
    fetched_keys: FetchedKeys,
    /// Children of servers that are not part of any route any more.
    removed_children: Vec<Arc<Stdio>>,
}

/// The upstream of a route, with its servers that are child processes.
#[derive(Clone)]
struct RouteUpstream {
    settings: UpstreamSettings,
    upstream: Arc<dyn Upstream>,
    children: Vec<Arc<Stdio>>,
}

/// The settings that an upstream was made from: as long as they are the same, so is the upstream.
#[derive(Clone, PartialEq)]
struct UpstreamSettings {
    upstream: UpstreamConfig,
    timeout: Duration,
    own_files: OwnFiles,
}

impl Builder {
    /// Makes an empty builder.
    pub fn new(keys: Keys, shared: Arc<Shared>, rules: CurrentRules) -> Self {
        let telemetry = shared.telemetry.clone();
        let sessions = Arc::new(McpSessions::measured(telemetry.clone()));
        let (upstreams, fetched_keys) = (BTreeMap::new(), FetchedKeys::default());
        let removed_children = Vec::new();
        Self { keys, telemetry, shared, sessions, rules, upstreams, fetched_keys, removed_children }
    }

    /// Builds the plan for this configuration. On an error, the current state is not changed.
    ///
    /// # Errors
    /// A [`StartError`] if an upstream or a token check cannot be made.
    pub fn plan(&mut self, config: &Config) -> Result<Plan, StartError> {
        config.require_isolation(Host::detect())?;
        let own_files = config.own_files()?;
        let mut upstreams = BTreeMap::new();
        let mut routes = Vec::new();
        let judge = judge(config)?;
        let mut pages = documents(config, &self.keys).merge(description::routes());
        for route in &config.routes {
            let upstream = self.upstream(config, &own_files, route)?;
            let (admits, metadata) = self.token_check(config, route)?;
            pages = pages.merge(metadata).merge(agent_card(config, route)?);
            routes.push(Arc::new(Route {
                path: route.path.clone(),
                admits,
                protocol: self.protocol(config, route, &upstream.upstream, judge.as_ref()),
            }));
            upstreams.insert(route.path.clone(), upstream);
        }
        self.rules.store(Arc::new(rules_of(config)));
        let before = std::mem::replace(&mut self.upstreams, upstreams);
        let children: Vec<&Arc<Stdio>> = self.upstreams.values().flat_map(|route| &route.children).collect();
        let removed = before.into_values().flat_map(|route| route.children);
        let removed = removed.filter(|child| !children.iter().any(|other| Arc::ptr_eq(other, child)));
        self.removed_children.extend(removed);
        Ok(Plan {
            routes,
            hosts: config.hosts.clone(),
            origins: config.origins.clone(),
            certificate_proxies: config.certificate_proxies.clone(),
            intake: config.intake.clone(),
            pages,
        })
    }

    /// The upstream of a route; the existing one, if its configuration is the same.
    fn upstream(
        &self,
        config: &Config,
        own_files: &OwnFiles,
        route: &RouteConfig,
    ) -> Result<RouteUpstream, StartError> {
        let (upstream, timeout, own_files) = (route.upstream.clone(), route.timeout, own_files.clone());
        let settings = UpstreamSettings { upstream, timeout, own_files };
        if let Some(existing) =
            self.upstreams.get(&route.path).filter(|existing| existing.settings == settings)
        {
            return Ok(existing.clone());
        }
        let own_files = &settings.own_files;
        let mut children = Vec::new();
        let mut one = |server: &Server, name: String| -> Result<Arc<dyn Upstream>, StartError> {
            let confinement = |command: &CommandServer| confinement(command, own_files, config);
            let server = one_server(route, server, confinement, &mut children)?;
            Ok(Arc::new(TimeLimited::new(server, name)))
        };
        let upstream = match &route.upstream {
            UpstreamConfig::One(server) => one(server, format!("the server behind {}", route.path))?,
            UpstreamConfig::Many { servers, separator } => {
                let mut all = Vec::new();
                for (prefix, server) in servers {
                    all.push((prefix.clone(), one(server, format!("the server {prefix}"))?));
                }
                let federation = Federation::new(all, separator);
                Arc::new(federation.map_err(|error| StartError::Names { route: route.path.clone(), error })?)
            }
        };
        let upstream = Arc::new(Metered::new(upstream, self.telemetry.clone()));
        Ok(RouteUpstream { settings, upstream, children })
    }

    fn protocol(
        &self,
        config: &Config,
        route: &RouteConfig,
        upstream: &Arc<dyn Upstream>,
        judge: Option<&Judging>,
    ) -> Arc<dyn Protocol> {
        let upstream = without_foreign_challenges(route, upstream);
        let calls = self.calls(config, route, judge);
        if let RouteProtocol::A2a { .. } = route.protocol {
            return Arc::new(A2a::new(upstream, calls));
        }
        let (path, forward_invocation) = (route.path.clone(), route.forward_invocation);
        let endpoint = Endpoint { path, upstream, handlers: Arc::new(calls), forward_invocation };
        Arc::new(Mcp::new(endpoint, self.sessions.clone()))
    }

    fn calls(&self, config: &Config, route: &RouteConfig, judge: Option<&Judging>) -> Calls {
        let judging = judge.filter(|_| route.judge).cloned();
        let rules = config.rules(route);
        let posture = posture::of_route(config, &rules).into();
        let (filter_tools, arguments_bytes) = (route.filter_tools, route.arguments_bytes);
        let (call_time, request_time) = (route.call_timeout, route.request_timeout);
        let offer = Offer { posture, filter_tools, arguments_bytes, call_time, request_time };
        Calls::new(rules, offer, judging, self.shared.clone())
    }

    /// The authentication of a route, and the page with its resource metadata.
    fn token_check(
        &self,
        config: &Config,
        route: &RouteConfig,
    ) -> Result<(Arc<dyn Authorizer>, Router), StartError> {
        let Some(oauth) = &route.oauth else { return Ok((Arc::new(AllowAll), Router::new())) };
        let check = TokenCheck::new(oauth, &config.public_url, &route.path, &self.fetched_keys)
            .map_err(|error| StartError::OAuth { route: route.path.clone(), error })?;
        let check = Arc::new(check);
        let shown = check.clone();
        let metadata = Router::new().route(check.metadata().path(), get(move || metadata(shown.clone())));
        Ok((check, metadata))
    }

    /// Ends the children of servers that are not served any more.
    pub async fn stop_removed_children(&mut self) {
        for child in std::mem::take(&mut self.removed_children) {
            child.stop().await;
        }
    }

    /// Ends all children.
    pub async fn stop(mut self) {
        let upstreams = std::mem::take(&mut self.upstreams);
        self.removed_children.extend(upstreams.into_values().flat_map(|route| route.children));
        self.stop_removed_children().await;
    }
}

/// Hides the authentication challenges of an upstream, unless it receives the client's own token, or the gateway has
/// neither a credential nor a check for it.
fn without_foreign_challenges(route: &RouteConfig, upstream: &Arc<dyn Upstream>) -> Arc<dyn Upstream> {
    let is_ours = match &route.oauth {
        Some(oauth) => oauth.mode == OAuthMode::Gateway,
        None => has_credential(&route.upstream),
    };
    match is_ours {
        true => Arc::new(WithoutChallenges::new(upstream.clone())),
        false => upstream.clone(),
    }
}

/// Returns whether any server receives a credential of the gateway's own.
fn has_credential(upstream: &UpstreamConfig) -> bool {
    upstream.servers().any(|server| matches!(server, Server::Http(http) if http.token_file.is_some()))
}

/// Makes the judge of the semantic tier, if one is configured.
fn judge(config: &Config) -> Result<Option<Judging>, StartError> {
    let Some(judge) = &config.judge else { return Ok(None) };
    let settings = JudgeSettings {
        url: judge.url.clone(),
        model: judge.model.clone(),
        token: judge.key_file.as_deref().map(secret).transpose()?.map(Zeroizing::new),
        timeout: judge.timeout,
    };
    let asked = HttpJudge::new(settings).map_err(|error| StartError::Judge(error.to_string()))?;
    Ok(Some(Judging { judge: Arc::new(asked), meter: judge.meter, usual: judge.cost }))
}

async fn metadata(check: Arc<TokenCheck>) -> crate::relay::Response {
    match check.metadata().document().await {
        Ok(document) => posture::document_of("application/json", document),
        Err(error) => {
            tracing::warn!(%error, "the server's resource metadata cannot be fetched");
            http::StatusCode::BAD_GATEWAY.into_response()
        }
    }
}

/// The page with the agent card of a route before an agent.
fn agent_card(config: &Config, route: &RouteConfig) -> Result<Router, StartError> {
    let Some(card) = AgentCard::of_route(config, route) else { return Ok(Router::new()) };
    let card = card.map_err(|error| StartError::AgentCard { route: route.path.clone(), error })?;
    let path = format!("{}{}", route.path, AGENT_CARD_PATH);
    Ok(Router::new().route(&path, get(move || card_of(card.clone()))))
}

async fn card_of(card: AgentCard) -> crate::relay::Response {
    match card.document().await {
        Ok(document) => posture::document_of("application/json", document),
        Err(error) => {
            tracing::warn!(%error, "there is no agent card");
            http::StatusCode::BAD_GATEWAY.into_response()
        }
    }
}

fn documents(config: &Config, keys: &Keys) -> Router {
    let (posture, jwks) = (posture::of_all(config), Bytes::copy_from_slice(keys.jwks()));
    posture::routes(PublicDocuments { posture, jwks })
}
