//! Start, reload and stop of the service.
//!
//! A start follows the order of trust: the database and its durability, the keys on record, the sequencer with its pin,
//! the policy on the log, and only then the listeners. A stop goes in the reverse order: no new connections, requests
//! in flight answered, the sequencer emptied, the database closed.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use sequencer::{Halt, Handle, Remedy, Role, Status};
use serving::limits::ADMIN_CONNECTIONS;
use serving::listener::{Listener, ListenerSettings, RunningListener};
use serving::signals::hangups;
use serving::tls::{Tls, TlsError};
use serving::unix_socket::AdminSocket;
use store::LogStore;
use tokio::sync::{Notify, watch};

use crate::admin_router;
use crate::background::maintenance::start as start_watching;
use crate::config::{Config, InvalidSetting};
use crate::edge::state::{EdgeState, origin_of, path_of};
use crate::index::Index;
use crate::limits::{HYPER_HEAD_BYTES, HYPER_HEADERS, SHARE_PART, STOP_TIME};
use crate::log::policies::PolicyEntry;
use crate::log::state::{Identity, Log};
use crate::metrics::Metrics;
use crate::router;
use crate::routes::app::App;
use crate::service::policy::{self, ConfiguredPolicy, PolicyError};
use crate::service::startup::{StartError, name_the_port, open_log, refuse_mistakes};
use crate::storage;
use crate::tail::EntryTails;
use crate::tasks::BackgroundTasks;

/// A running transparency service.
pub struct Service {
    public: RunningListener,
    admin: Vec<RunningListener>,
    addresses: ListenAddresses,
    log: Arc<Log>,
    edge: Arc<EdgeState>,
    tail: Arc<EntryTails>,
    tls: Option<Arc<Tls>>,
    background: BackgroundTasks,
    hangup: Arc<Notify>,
    /// The newest configured policy, if it could not be published yet.
    outstanding_policy: watch::Sender<Option<Arc<ConfiguredPolicy>>>,
}

/// The addresses that a service listens on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenAddresses {
    /// The public listener.
    pub public: SocketAddr,
    /// The admin listener over TCP.
    pub admin: Option<SocketAddr>,
    /// Path of the admin listener's Unix socket.
    pub admin_socket: Option<PathBuf>,
}

/// A part of a configuration that could not be applied in a reload; the other parts are in force.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    /// The configuration has mistakes: nothing was applied.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Config(Vec<InvalidSetting>),
    /// The new certificate cannot be used; the old one stays.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The new policy is not in force; the old one stays, or stays until this process registers again.
    #[error(transparent)]
    Policy(#[from] PolicyError),
}

impl Service {
    /// Opens the configured database and starts the service.
    pub async fn start(config: Config) -> Result<Self, StartError> {
        refuse_mistakes(&config)?;
        let store = storage::open(&config.database, config.migrate).await?;
        Self::start_on(config, store).await
    }

    /// Starts the service on a store that is open already.
    pub async fn start_on(mut config: Config, store: Arc<dyn LogStore>) -> Result<Self, StartError> {
        refuse_mistakes(&config)?;
        // From here on SIGHUP does not end the process.
        let hangup = hangups().unwrap_or_default();
        let tls = config.tls.as_ref().map(Tls::load).transpose()?.map(Arc::new);
        let settings = listener_settings(&config, config.limits.connections);
        let settings =
            ListenerSettings { tls: tls.clone(), access_log: false, refuses_faulty_heads: false, ..settings };
        let mut public = Listener::bind(config.listen, settings).await?;
        let admin = bind_admin(&config).await?;
        name_the_port(&mut config, &public);
        let metrics = Arc::new(Metrics::new()?);
        let store = storage::measured(store, &config.database, &metrics);
        let edge = EdgeState::new(&config.limits, &config.access, metrics.clone());
        let edge = Arc::new(EdgeState {
            error_documentation: config.error_documentation.clone(),
            own_origin: origin_of(&config.public_url),
            public_path: path_of(&config.public_url),
            ..edge
        });
        let log = Arc::new(open_log(&config, store, &edge, metrics).await?);
        let outstanding = match put_policy_in_force(&log, &config).await {
            Ok(outstanding) => outstanding,
            Err(error) => {
                // Release the lease and the database: the operator may correct the policy and restart at once.
                log.sequencer.stop().await;
                return Err(error.into());
            }
        };
        let outstanding_policy = watch::Sender::new(outstanding.map(|outstanding| outstanding.policy));
        let index = Index::new(log.clone());
        let tail = EntryTails::new(log.clone(), index.clone(), config.limits.tail);
        let app = App { log: log.clone(), edge: edge.clone(), index: index.clone(), tail: tail.clone() };
        let background = BackgroundTasks::default();
        start_watching(&log, &index, &config, &background);
        let publishing = policy::publish_later(log.clone(), outstanding_policy.subscribe());
        background.spawn("the publication of the policy", publishing);
        let addresses = ListenAddresses {
            public: public.address().unwrap_or(config.listen),
            admin: admin.iter().find_map(Listener::address),
            admin_socket: config.admin_socket.clone(),
        };
        let access = edge.access.clone();
        public.settings_mut().is_proxy = Arc::new(move |address| access.is_proxy(address));
        let public = public.serve(router::router(app));
        let routes = admin_router::router(&log, index, edge.access.clone());
        let admin = admin.into_iter().map(|listener| listener.serve(routes.clone())).collect();
        tracing::info!(public = %addresses.public, admin = ?addresses.admin, origin = log.identity.origin, "serving");
        Ok(Self { public, admin, addresses, log, edge, tail, tls, background, hangup, outstanding_policy })
    }

    /// The addresses of the listeners.
    pub fn addresses(&self) -> &ListenAddresses {
        &self.addresses
    }

    /// The log's names and keys.
    pub fn identity(&self) -> &Identity {
        &self.log.identity
    }

    /// The policy in force: relying parties pin its entry ID.
    pub fn policy(&self) -> Option<Arc<PolicyEntry>> {
        self.log.policies.current()
    }

    /// The sequencer's handle, for observing its role.
    pub fn sequencer(&self) -> &Handle {
        &self.log.sequencer
    }

    /// Applies limits, access settings, certificate and policy of a new configuration; other settings need a restart. A
    /// part that cannot be applied stays as it was.
    ///
    /// # Errors
    /// A [`ReloadError`] for each part that was not applied.
    pub async fn reload(&self, config: &Config) -> Result<(), Vec<ReloadError>> {
        let mistakes = config.mistakes();
        if !mistakes.is_empty() {
            return Err(vec![ReloadError::Config(mistakes)]);
        }
        self.edge.reload(&config.limits, &config.access);
        let mut failed = Vec::new();
        if let (Some(tls), Some(files)) = (&self.tls, &config.tls) {
            failed.extend(tls.reload(files).err().map(ReloadError::Tls));
        }
        failed.extend(self.reload_policy(config).await.err().map(ReloadError::Policy));
        if failed.is_empty() {
            tracing::info!("configuration reloaded");
            return Ok(());
        }
        Err(failed)
    }

    /// Publishes the configured policy, or leaves that to the background task while nothing is registered.
    async fn reload_policy(&self, config: &Config) -> Result<(), PolicyError> {
        // What was configured before is not published any more.
        self.outstanding_policy.send_replace(None);
        let outstanding = put_policy_in_force(&self.log, config).await?;
        let (policy, why) = outstanding.map(|outstanding| (outstanding.policy, outstanding.why)).unzip();
        self.outstanding_policy.send_replace(policy);
        match why {
            Some(why) => Err(PolicyError::NotRegistered(format!("{why}; it is registered once that ends"))),
            None => Ok(()),
        }
    }

    /// Serves until `shutdown` resolves, then stops. `reread` is called on SIGHUP and returns the configuration to
    /// apply.
    ///
    /// # Errors
    /// The [`Halt`] of the sequencer after which this process must not be trusted with reads either, or
    /// [`Halt::Panicked`] after the panic of a background task. Any other halt only prevents registration, and reads
    /// continue.
    pub async fn run_until(
        self,
        mut reread: impl FnMut() -> Result<Config, String>,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), Halt> {
        let mut shutdown = std::pin::pin!(shutdown);
        let mut status = self.log.sequencer.status();
        let ended = loop {
            tokio::select! {
                () = &mut shutdown => break Ok(()),
                () = self.hangup.notified() => reload(&self, reread()).await,
                halt = lost(&mut status) => break Err(halt),
                task = self.background.panicked() => {
                    tracing::error!(task, "a background task panicked: the process ends");
                    break Err(Halt::Panicked);
                }
            }
        };
        self.stop().await;
        ended
    }

    /// Stops accepting requests, answers those in flight, and stops sequencing. Takes at most ten seconds.
    pub async fn stop(self) {
        tracing::info!("stopping");
        // An open stream of entries would keep its request in flight for ever.
        self.tail.close();
        let stopping = async {
            let admin = async {
                for listener in self.admin {
                    listener.drain().await;
                }
            };
            tokio::join!(self.public.drain(), admin);
            self.tail.closed().await;
            tokio::join!(self.background.stop(), self.log.sequencer.stop());
            self.log.store.close().await;
        };
        if tokio::time::timeout(STOP_TIME, stopping).await.is_err() {
            tracing::warn!("stopped without waiting for everything");
        }
    }
}

/// Binds the admin listener's address and socket, as far as they are configured.
async fn bind_admin(config: &Config) -> Result<Vec<Listener>, StartError> {
    let settings = listener_settings(config, ADMIN_CONNECTIONS);
    let mut listeners = Vec::new();
    if let Some(address) = config.admin_listen {
        listeners.push(Listener::bind(address, settings.clone()).await?);
    }
    if let Some(path) = &config.admin_socket {
        let socket =
            AdminSocket::bind(path).map_err(|error| StartError::AdminSocket { path: path.clone(), error })?;
        listeners.push(Listener::on_socket(socket, settings));
    }
    Ok(listeners)
}

/// The settings of a listener; one client has a share of its connections.
fn listener_settings(config: &Config, connections: usize) -> ListenerSettings {
    ListenerSettings {
        error_documentation: config.error_documentation.clone(),
        connections,
        client_connections: connections / SHARE_PART,
        header_time: config.limits.header_time,
        headers: HYPER_HEADERS,
        head_bytes: HYPER_HEAD_BYTES,
        ..ListenerSettings::default()
    }
}

/// Waits until the sequencer halts in a way that only a new process can recover from.
async fn lost(status: &mut watch::Receiver<Status>) -> Halt {
    let over =
        |status: &Status| matches!(&status.role, Role::Halted(halt) if halt.remedy() == Remedy::Restart);
    match status.wait_for(over).await.map(|status| status.role.clone()) {
        Ok(Role::Halted(halt)) => halt,
        _ => std::future::pending().await,
    }
}

/// Reason why a service ended without a stop signal.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The service did not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The sequencer failed, or a background task panicked.
    #[error(transparent)]
    Sequencer(#[from] Halt),
}

/// Starts a service and runs it until `shutdown` resolves. `reread` is called on SIGHUP and returns the configuration
/// to apply.
pub async fn run(
    config: Config,
    reread: impl FnMut() -> Result<Config, String>,
    shutdown: impl Future<Output = ()>,
) -> Result<(), RunError> {
    let mut shutdown = std::pin::pin!(shutdown);
    let service = tokio::select! {
        started = Service::start(config) => started?,
        () = &mut shutdown => return Ok(()),
    };
    Ok(service.run_until(reread, shutdown).await?)
}

async fn reload(service: &Service, reread: Result<Config, String>) {
    let failures = match reread {
        Ok(config) => service.reload(&config).await.err().unwrap_or_default(),
        Err(why) => return tracing::error!(why, "the configuration was not reloaded"),
    };
    for failure in failures {
        tracing::error!(%failure, "not reloaded");
    }
}

/// A configured policy that cannot be published yet.
struct OutstandingPolicy {
    policy: Arc<ConfiguredPolicy>,
    /// The reason why this process registers nothing.
    why: Halt,
}

/// Publishes the configured policy. If this process registers nothing, it follows the log's policy, because a halted log
/// is still served, and the configured one is returned unless it is in force or the log is frozen.
async fn put_policy_in_force(log: &Log, config: &Config) -> Result<Option<OutstandingPolicy>, PolicyError> {
    let configured = policy::read(config)?;
    let obstacle = log.sequencer.status().borrow().obstacle().cloned();
    let Some(why) = obstacle else {
        policy::publish(log, &configured).await?;
        return Ok(None);
    };
    if policy::is_in_force(log, &configured).await? || why == Halt::Frozen {
        return Ok(None);
    }
    tracing::warn!(%why, "the configured policy is published once this process registers");
    Ok(Some(OutstandingPolicy { policy: Arc::new(configured), why }))
}
