//! A running gateway: its parts are assembled at start, reconfigured on reload, and shut down at stop.
//!
//! The start order is: keys, evidence store, decision writer (which settles the calls that the last run left open, and
//! registers the keys), routes, and finally the listener. The stop order is the reverse: requests in flight finish, the
//! decision writer writes the jobs that it was given, and records that wait for the log stay in the outbox for the next
//! start.
//!
//! A reloaded configuration changes routes, rules, agents and limits. A route with an unchanged server keeps it, with
//! its sessions and children. A configuration that cannot be applied changes nothing, and is reported.
//!
//! Not here: flags, files of the command, and signals (`tabellion gateway run`).

mod admin;
mod build;

use std::net::SocketAddr;
use std::sync::Arc;

use arc_swap::ArcSwap;
use serving::listener::{Listener, ListenerSettings, RunningListener};
use tokio::net::TcpListener;
use tokio::sync::{Mutex, Notify};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::approvals;
use crate::authority::{AgentRoa, ReceiptSigner, RegistryState, SteadyClock, TimeSource};
use crate::calls::{Patience, Shared};
use crate::check::without_effect;
use crate::clarify::state::Sealer;
use crate::config::watch::FileStates;
use crate::config::{Config, Mistakes};
use crate::current_rules::{CurrentRules, rules_of};
use crate::decision_writer::{Clock, DecisionWriter, RulesOf, RunningWriter};
use crate::evidence_store;
use crate::front::{self, Front, Serving, Times};
use crate::isolation::Host;
use crate::keys::Keys;
use crate::start_error::StartError;
use crate::telemetry::Telemetry;
use build::Builder;

/// A running gateway.
pub struct Gateway {
    config: Config,
    keys: Keys,
    writer: DecisionWriter,
    running: RunningWriter,
    builder: Mutex<Builder>,
    front: Arc<Front>,
    public: Serving,
    admin: Option<RunningListener>,
    approvals: Option<RunningListener>,
    telemetry: Arc<Telemetry>,
    /// Ends the refreshing of the registry.
    fresh: DropGuard,
}

impl Gateway {
    /// Starts a gateway; it serves clients once this returns.
    ///
    /// # Errors
    /// A [`StartError`] if a key, the evidence store, a server or an address cannot be used.
    pub async fn start(config: Config) -> Result<Self, StartError> {
        Self::start_with_clock(config, Clock::system()).await
    }

    /// Starts a gateway that takes the time of its decisions from a clock.
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub async fn start_with_clock(config: Config, clock: Clock) -> Result<Self, StartError> {
        config.require_isolation(Host::detect())?;
        warn_of_what_has_no_effect(&config);
        let keys = Keys::open(&config)?;
        let telemetry = Arc::new(Telemetry::new()?);
        let store = evidence_store::open(&config).await?;
        let log = evidence_store::log(&config)?;
        let writer_keys = evidence_store::writer_keys(&keys)?;
        let settings = evidence_store::settings(&config);
        let rules = CurrentRules::new(ArcSwap::from_pointee(rules_of(&config)));
        let current = rules.clone();
        let rules_now: RulesOf = Arc::new(move |route: &str| current.load().get(route).cloned());
        let agent_roa = agent_roa(&config, &keys, clock.clone())?;
        let (writer, running) =
            DecisionWriter::open(store, &writer_keys, log, clock, settings, rules_now).await?;
        let fresh = CancellationToken::new();
        if let (Some(agent_roa), Some(agentroa)) = (agent_roa, &config.agentroa) {
            let (registry, positions) = (agent_roa.registry().clone(), Arc::new(writer.clone()));
            registry.refresh_or_log(&*positions).await;
            tokio::spawn(registry.keep_fresh(positions, agentroa.refresh, fresh.clone()));
            writer.enforce(Arc::new(agent_roa)).await;
        }
        let sealer = Sealer::new((*keys.state).clone(), &config.issuer);
        let shared = Shared::new(writer.clone(), sealer, telemetry.clone(), Patience::default());
        let builder = Builder::new(keys.clone(), shared, rules.clone());
        match Self::serve(&config, builder, &writer, (rules, &telemetry)).await {
            Ok((builder, front, public, (admin, approvals))) => {
                let builder = Mutex::new(builder);
                Ok(Self {
                    config,
                    keys,
                    writer,
                    running,
                    builder,
                    front,
                    public,
                    admin,
                    approvals,
                    telemetry,
                    fresh: fresh.drop_guard(),
                })
            }
            Err(error) => {
                running.stop().await;
                Err(error)
            }
        }
    }

    async fn serve(
        config: &Config,
        mut builder: Builder,
        writer: &DecisionWriter,
        (rules, telemetry): (CurrentRules, &Arc<Telemetry>),
    ) -> Result<(Builder, Arc<Front>, Serving, (Option<RunningListener>, Option<RunningListener>)), StartError>
    {
        let listener = TcpListener::bind(config.listen).await.map_err(|error| at(config.listen, error))?;
        let front = Front::new(builder.plan(config)?);
        let admin = match config.admin_listen {
            Some(address) => {
                let listener = listen(address, ListenerSettings::default()).await?;
                Some(listener.serve(admin::routes(writer.clone(), telemetry.clone())))
            }
            None => None,
        };
        let approvals = match &config.approvals {
            Some(approvals) => {
                let settings = front::listener_settings(config.intake.connections);
                let listener = listen(approvals.listen, settings).await?;
                let address = listener.address().unwrap_or(approvals.listen);
                let url = approvals.url.as_ref().map(url::Url::as_str);
                let served = listener.serve(approvals::routes(address, url, writer.clone(), rules));
                tracing::info!(%address, "approvers are served");
                Some(served)
            }
            None => None,
        };
        let public = front.serve(listener, Times::default()).map_err(|error| at(config.listen, error))?;
        tracing::info!(address = %public.address, issuer = config.issuer, "the gateway serves");
        Ok((builder, front, public, (admin, approvals)))
    }

    /// The address of the clients' listener.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.public.address
    }

    /// The address of the listener for health and metrics, if any.
    #[must_use]
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.admin.as_ref().and_then(RunningListener::address)
    }

    /// The address of the listener for approvers, if any.
    #[must_use]
    pub fn approvals_address(&self) -> Option<SocketAddr> {
        self.approvals.as_ref().and_then(RunningListener::address)
    }

    /// The decision writer, for its status.
    #[must_use]
    pub fn writer(&self) -> &DecisionWriter {
        &self.writer
    }

    /// The gateway's keys.
    #[must_use]
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Serves until `stop` resolves. The configuration is read again with `reread` when `hangup` is notified, and when
    /// one of its files changes.
    pub async fn run_until(
        mut self,
        reread: impl Fn() -> Result<Config, Mistakes>,
        hangup: Arc<Notify>,
        stop: impl Future<Output = ()>,
    ) {
        let mut stop = std::pin::pin!(stop);
        let mut seen = FileStates::of(&self.config.sources);
        loop {
            let changed = async {
                match self.config.sources.is_empty() {
                    true => std::future::pending().await,
                    false => seen.changed().await,
                }
            };
            tokio::select! {
                () = &mut stop => break,
                () = hangup.notified() => tracing::info!("asked to read the configuration again"),
                () = changed => tracing::info!("a file of the configuration changed"),
            }
            // The state of the files is taken before they are read, so that a change during the reload is noticed the
            // next time.
            let files = self.config.sources.clone();
            seen = FileStates::of(&files);
            if self.reload(reread()).await && self.config.sources != files {
                seen = FileStates::of(&self.config.sources);
            }
        }
        self.stop().await;
    }

    /// Applies a configuration. Returns false, and logs the reason, if it cannot be applied; the current one then
    /// stays.
    pub async fn reload(&mut self, config: Result<Config, Mistakes>) -> bool {
        let taken = match config {
            Ok(config) => self.take_up(config).await,
            Err(mistakes) => Err(mistakes.to_string()),
        };
        self.telemetry.reloaded(if taken.is_ok() { "taken" } else { "refused" });
        match &taken {
            Ok(()) => tracing::info!("the configuration was read again"),
            Err(why) => tracing::error!(why, "the configuration stays as it was"),
        }
        taken.is_ok()
    }

    async fn take_up(&mut self, config: Config) -> Result<(), String> {
        let fixed = self.config.needs_restart(&config);
        if !fixed.is_empty() {
            return Err(format!("only a new start changes {}", fixed.join(", ")));
        }
        let mut builder = self.builder.lock().await;
        let plan = builder.plan(&config).map_err(|error| error.to_string())?;
        warn_of_what_has_no_effect(&config);
        self.front.reload(plan);
        builder.forget().await;
        drop(builder);
        self.config = config;
        Ok(())
    }

    /// Stops the gateway: requests in flight finish, and decisions are written.
    pub async fn stop(self) {
        tracing::info!("stopping");
        drop(self.fresh);
        self.public.drain().await;
        self.builder.into_inner().stop().await;
        self.running.stop().await;
        if let Some(admin) = self.admin {
            admin.cut().await;
        }
        if let Some(approvals) = self.approvals {
            approvals.cut().await;
        }
    }
}

/// Creates the enforcement of AgentROA, if it is configured. Its receipts are signed with the evidence key.
fn agent_roa(config: &Config, keys: &Keys, clock: Clock) -> Result<Option<AgentRoa>, StartError> {
    let Some(agentroa) = &config.agentroa else { return Ok(None) };
    let failed = |error: &dyn std::fmt::Display| StartError::AgentRoa(error.to_string());
    let steady = SteadyClock::new(Arc::new(move || clock.now()));
    let now: TimeSource = Arc::new(move || steady.now());
    let sources = (agentroa.source.clone(), agentroa.deltas.clone());
    let registry = RegistryState::new(sources, agentroa.operators.clone(), now);
    let registry = registry.map_err(|error| failed(&error))?;
    let signer = ReceiptSigner::new(agentroa, keys.evidence.clone());
    let signer = signer.map_err(|error| failed(&error))?;
    Ok(Some(AgentRoa::new(Arc::new(registry), signer, &config.issuer)))
}

/// Logs a warning for each setting that has no effect on its route.
fn warn_of_what_has_no_effect(config: &Config) {
    for finding in without_effect(config) {
        tracing::warn!(setting = finding.what, "{}", finding.detail);
    }
}

async fn listen(address: SocketAddr, settings: ListenerSettings) -> Result<Listener, StartError> {
    Listener::bind(address, settings).await.map_err(|error| at(address, error))
}

fn at(address: SocketAddr, error: std::io::Error) -> StartError {
    StartError::Listen { address, error }
}
