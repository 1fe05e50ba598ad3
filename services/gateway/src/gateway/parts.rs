//! The parts of a gateway, in the order of their start: keys, evidence store, decision writer, routes. They stop in the
//! reverse order.

use std::sync::Arc;

use arc_swap::ArcSwap;
use axum::middleware::from_fn_with_state;
use serving::http_metrics::measured;
use serving::listener::{Listener, ListenerSettings, RunningListener};
use serving::problem::for_every_error;
use tokio::sync::Mutex;
use tokio_util::task::AbortOnDropHandle;

use super::admin::{self, AdminState};
use super::build::Builder;
use super::description;
use crate::approvals;
use crate::authority::{AgentRoa, ReceiptSigner, RegistryState, SteadyClock, TimeSource};
use crate::calls::{Patience, Shared};
use crate::check::without_effect;
use crate::clarify::state::Sealer;
use crate::config::Config;
use crate::current_rules::{CurrentRules, rules_of};
use crate::decision_writer::{Clock, DecisionWriter, RulesOf, RunningWriter};
use crate::evidence_store;
use crate::front::{self, Front};
use crate::isolation::Host;
use crate::keys::Keys;
use crate::start_error::StartError;
use crate::telemetry::Telemetry;

/// A gateway without a listener for clients.
pub struct Parts {
    pub config: Config,
    pub keys: Keys,
    pub writer: DecisionWriter,
    pub front: Arc<Front>,
    pub telemetry: Arc<Telemetry>,
    pub builder: Mutex<Builder>,
    /// The listener for health and metrics.
    pub admin: Option<RunningListener>,
    /// The listener for approvers.
    pub approvals: Option<RunningListener>,
    running_writer: RunningWriter,
    /// The task that refreshes the AgentROA registry, if one is configured.
    registry_refresh: Option<AbortOnDropHandle<()>>,
}

/// The routes for clients, and the other listeners.
struct Listening {
    front: Arc<Front>,
    admin: Option<RunningListener>,
    approvals: Option<RunningListener>,
}

impl Parts {
    /// Starts all parts.
    pub async fn start(config: Config, clock: Clock) -> Result<Self, StartError> {
        config.require_isolation(Host::detect())?;
        warn_of_settings_without_effect(&config);
        let keys = Keys::open(&config)?;
        let telemetry = Arc::new(Telemetry::new()?);
        let store = evidence_store::open(&config, &telemetry.database).await?;
        let log = evidence_store::log(&config)?;
        let writer_keys = evidence_store::writer_keys(&keys)?;
        let settings = evidence_store::settings(&config);
        let rules = CurrentRules::new(ArcSwap::from_pointee(rules_of(&config)));
        let current = rules.clone();
        let current_rules: RulesOf = Arc::new(move |route: &str| current.load().get(route).cloned());
        let agent_roa = agent_roa(&config, &keys, clock.clone())?;
        let (writer, running_writer) =
            DecisionWriter::open(store, &writer_keys, log, clock, settings, current_rules).await?;
        let mut registry_refresh = None;
        if let (Some(agent_roa), Some(agentroa)) = (agent_roa, &config.agentroa) {
            let (registry, positions) = (agent_roa.registry().clone(), Arc::new(writer.clone()));
            registry.refresh_or_log(&*positions).await;
            let refresh = registry.keep_fresh(positions, agentroa.refresh);
            registry_refresh = Some(AbortOnDropHandle::new(tokio::spawn(refresh)));
            writer.enforce(Arc::new(agent_roa)).await;
        }
        let sealer = Sealer::new((*keys.state).clone(), &config.issuer);
        let shared = Shared::new(writer.clone(), sealer, telemetry.clone(), Patience::default());
        let mut builder = Builder::new(keys.clone(), shared, rules.clone());
        match Self::listen(&config, &mut builder, &writer, rules, &telemetry).await {
            Ok(Listening { front, admin, approvals }) => Ok(Self {
                config,
                keys,
                writer,
                front,
                telemetry,
                builder: Mutex::new(builder),
                admin,
                approvals,
                running_writer,
                registry_refresh,
            }),
            Err(error) => {
                drop(builder);
                running_writer.stop().await;
                Err(error)
            }
        }
    }

    /// Builds the routes for clients, and starts the listeners for operators and approvers.
    async fn listen(
        config: &Config,
        builder: &mut Builder,
        writer: &DecisionWriter,
        rules: CurrentRules,
        telemetry: &Arc<Telemetry>,
    ) -> Result<Listening, StartError> {
        let front = Front::new(builder.plan(config)?, telemetry.http.clone());
        let admin = admin_listener(config, writer, telemetry).await?;
        let approvals = approvals_listener(config, writer, rules, telemetry).await?;
        Ok(Listening { front, admin, approvals })
    }

    /// Applies a configuration.
    ///
    /// # Errors
    /// The reason why it cannot be applied, in words; the current one then stays.
    pub async fn reload(&mut self, config: Config) -> Result<(), String> {
        let fixed = self.config.needs_restart(&config);
        if !fixed.is_empty() {
            return Err(format!("only a new start changes {}", fixed.join(", ")));
        }
        let mut builder = self.builder.lock().await;
        let plan = builder.plan(&config).map_err(|error| error.to_string())?;
        warn_of_settings_without_effect(&config);
        self.front.reload(plan);
        builder.stop_removed_children().await;
        drop(builder);
        self.config = config;
        Ok(())
    }

    /// Stops all parts, after the clients' requests have ended.
    pub async fn stop(self) {
        if let Some(task) = self.registry_refresh {
            task.abort();
            // It may be in the middle of a refresh, and have the database.
            let _ = task.await;
        }
        self.builder.into_inner().stop().await;
        self.running_writer.stop().await;
        if let Some(admin) = self.admin {
            admin.cut().await;
        }
        if let Some(approvals) = self.approvals {
            approvals.cut().await;
        }
    }
}

/// Starts the listener for health and metrics, if it is configured.
async fn admin_listener(
    config: &Config,
    writer: &DecisionWriter,
    telemetry: &Arc<Telemetry>,
) -> Result<Option<RunningListener>, StartError> {
    let Some(address) = config.admin_listen else { return Ok(None) };
    let listener = Listener::bind(address, ListenerSettings::default()).await?;
    let state = AdminState { writer: writer.clone(), telemetry: telemetry.clone() };
    Ok(Some(listener.serve(admin::routes(state).merge(description::routes()))))
}

/// Starts the listener for approvers, if it is configured.
async fn approvals_listener(
    config: &Config,
    writer: &DecisionWriter,
    rules: CurrentRules,
    telemetry: &Telemetry,
) -> Result<Option<RunningListener>, StartError> {
    let Some(approvals) = &config.approvals else { return Ok(None) };
    let settings = ListenerSettings {
        error_documentation: config.error_documentation.clone(),
        ..front::listener_settings(config.intake.connections)
    };
    let listener = Listener::bind(approvals.listen, settings).await?;
    let address = listener.address().unwrap_or(approvals.listen);
    let url = approvals.url.as_ref().map(url::Url::as_str);
    let routes = approvals::routes(address, url, writer.clone(), rules);
    let routes = for_every_error(routes.merge(description::routes()), approvals::RESOURCES);
    let http = telemetry.http.clone();
    let running = listener.serve(routes.layer(from_fn_with_state(http, measured)));
    tracing::info!(%address, "approvers are served");
    Ok(Some(running))
}

/// Creates the enforcement of AgentROA, if it is configured. Its receipts are signed with the evidence key.
fn agent_roa(config: &Config, keys: &Keys, clock: Clock) -> Result<Option<AgentRoa>, StartError> {
    let Some(agentroa) = &config.agentroa else { return Ok(None) };
    let failed = |error: &dyn std::fmt::Display| StartError::AgentRoa(error.to_string());
    let steady = SteadyClock::new(Arc::new(move || clock.now()));
    let now: TimeSource = Arc::new(move || steady.now());
    let (source, deltas) = (agentroa.source.clone(), agentroa.deltas.clone());
    let registry = RegistryState::new(source, deltas, agentroa.operators.clone(), now);
    let registry = registry.map_err(|error| failed(&error))?;
    let signer = ReceiptSigner::new(agentroa, keys.evidence.clone());
    let signer = signer.map_err(|error| failed(&error))?;
    Ok(Some(AgentRoa::new(Arc::new(registry), signer, &config.issuer)))
}

/// Logs a warning for each setting that has no effect on its route.
fn warn_of_settings_without_effect(config: &Config) {
    for finding in without_effect(config) {
        tracing::warn!(setting = finding.what, "{}", finding.detail);
    }
}
