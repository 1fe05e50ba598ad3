//! Starts and stops the service.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use checks::RunChecks;
use client::ClientError;
use durable::FileAccess;
use outbox::{Delivery, LogConnection};
use scitt::{Algorithm, Signer, SigningKey};
use serving::database_metrics::DatabaseSystem;
use serving::failed_write::FailedWrite;
use serving::listener::BindError;
use serving::two_listeners::{ListenersConfig, RunningListeners, TwoListeners};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use verification_store::{StoreError, VerificationStore};
use verifier::TrustStore;

use crate::chain_signer::ChainSigner;
use crate::clients::ClientTokens;
use crate::config::{Config, LogConfig};
use crate::jobs::{Jobs, Waits};
use crate::limits::{CLIENT_CONNECTIONS, CONNECTIONS, LOG_PATIENCE, PRUNE_EVERY};
use crate::log_outbox::LogOutbox;
use crate::metrics::Metrics;
use crate::queue::JobQueue;
use crate::routes::{self, ServiceState};
use crate::running::RunningJobs;
use crate::store_observer::StoreObserver;
use crate::time::now;

/// The database in the state folder.
const DATABASE: &str = "verification.db";

/// Errors of starting a service.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The key is not an Ed25519 key, which VRF requires.
    #[error("the key is of another kind than Ed25519, which receipts are signed with")]
    Key,
    /// The state folder cannot be used.
    #[error("the state folder {folder} cannot be used: {error}")]
    State {
        /// The folder.
        folder: PathBuf,
        /// The underlying error.
        error: io::Error,
    },
    /// The database cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The connection to the log cannot be configured.
    #[error("the log {setting}: {why}")]
    Log {
        /// The setting.
        setting: &'static str,
        /// What is wrong.
        why: String,
    },
    /// The metrics cannot be registered.
    #[error("the metrics cannot be registered: {0}")]
    Metrics(String),
    /// An address cannot be bound.
    #[error(transparent)]
    Listen(#[from] BindError),
}

/// A running service.
pub struct VerificationService {
    jobs: Arc<Jobs>,
    listeners: RunningListeners,
    background: Vec<JoinHandle<()>>,
    stop_background: CancellationToken,
}

impl VerificationService {
    /// Opens the state, takes up unfinished jobs, and serves once this returns.
    ///
    /// # Errors
    /// [`StartError`] if the state, the key or the addresses cannot be used.
    pub async fn start(
        config: Config,
        key: SigningKey,
        runner: Arc<dyn RunChecks>,
    ) -> Result<Self, StartError> {
        if key.algorithm() != Algorithm::EdDsa {
            return Err(StartError::Key);
        }
        let metrics = Arc::new(Metrics::new().map_err(|error| StartError::Metrics(error.to_string()))?);
        let failed_write = Arc::new(FailedWrite::default());
        let observer = StoreObserver {
            durations: metrics.database.observer(DatabaseSystem::Sqlite),
            failed_write: failed_write.clone(),
        };
        let store = Arc::new(open(&config.state).await?.observed_by(Arc::new(observer)));
        let log = log_connection(&config.log)?;
        let (stored, changes) = (Arc::new(Notify::new()), watch::Sender::new(()));
        let stop = CancellationToken::new();
        let clients = Arc::new(ClientTokens::new(&config.clients));
        let jobs = Arc::new(Jobs {
            chain_signer: ChainSigner::new(key, store.clone(), log.client.clone(), stored.clone()),
            store: store.clone(),
            runner,
            metrics: metrics.clone(),
            running: RunningJobs::new(changes.clone()),
            changes: changes.clone(),
            queue: JobQueue::new(config.queue, config.workers, config.clients.len()),
            tasks: TaskTracker::new(),
            stop: stop.child_token(),
        });
        let waiting = LogOutbox {
            issuer: jobs.chain_signer.issuer().to_owned(),
            store: store.clone(),
            metrics: metrics.clone(),
            changes,
            silent: Default::default(),
        };
        let state = ServiceState {
            jobs: jobs.clone(),
            clients,
            metrics,
            failed_write,
            log: config.log.url.clone().into(),
            waits: Waits { result: config.wait, log_receipt: config.receipt_wait },
            body_bytes: config.body_bytes,
        };
        let listeners = TwoListeners::bind(listeners(&config), routes::admin(state.clone())).await?;
        let delivery = Delivery::new(waiting, log, Arc::new(now), stored, Duration::ZERO);
        let background = vec![
            tokio::spawn(delivery.run(stop.clone())),
            tokio::spawn(prune(store, config.keep, stop.clone())),
        ];
        jobs.resume().await?;
        let listeners = listeners.serve(routes::public(state));
        tracing::info!(address = %listeners.address(), issuer = jobs.chain_signer.issuer(), "verifying");
        Ok(Self { jobs, listeners, background, stop_background: stop })
    }

    /// The listen address for clients.
    pub fn address(&self) -> SocketAddr {
        self.listeners.address()
    }

    /// The listen address for health and metrics, if any.
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.listeners.admin_address()
    }

    /// The verifier's did:key, the issuer of all receipts.
    pub fn issuer(&self) -> &str {
        self.jobs.chain_signer.issuer()
    }

    /// Serves until `shutdown` resolves. Requests that wait for a result are then answered with 202, and unfinished jobs
    /// stay for the next start.
    pub async fn run_until(self, shutdown: impl Future<Output = ()>) {
        shutdown.await;
        tracing::info!("stopping");
        // Requests that wait for a result are answered now.
        self.jobs.stop.cancel();
        self.listeners.drain().await;
        self.stop_background.cancel();
        self.jobs.tasks.close();
        self.jobs.tasks.wait().await;
        if let Err(error) = self.jobs.store.end_all_checks().await {
            tracing::warn!(%error, "the next start will treat this stop as one that the checks caused");
        }
        for task in self.background {
            // A task that panicked has been reported already.
            let _ = task.await;
        }
        self.jobs.store.close().await;
    }
}

async fn open(folder: &Path) -> Result<VerificationStore, StartError> {
    durable::make_folder(folder, FileAccess::Secret)
        .map_err(|error| StartError::State { folder: folder.to_owned(), error })?;
    Ok(VerificationStore::open(&folder.join(DATABASE)).await?)
}

fn log_connection(config: &LogConfig) -> Result<LogConnection, StartError> {
    let read = |setting, file: &Option<PathBuf>| {
        let text = file.as_deref().map(std::fs::read_to_string).transpose();
        text.map_err(|error| StartError::Log { setting, why: error.to_string() })
    };
    let options = client::Options {
        patience: LOG_PATIENCE,
        extra_roots: read("ca_file", &config.ca_file)?.map(Into::into),
        token: read("token_file", &config.token_file)?.map(|token| token.trim().to_owned()),
        ..client::Options::default()
    };
    let not_a_url = |error: ClientError| StartError::Log { setting: "url", why: error.to_string() };
    let client = client::Client::new(&config.url, options).map_err(not_a_url)?;
    let trust = read("trust", &config.trust)?.map(|text| TrustStore::from_toml(&text)).transpose();
    let trust = trust.map_err(|error| StartError::Log { setting: "trust", why: error.to_string() })?;
    Ok(LogConnection { url: config.url.clone(), client, trust })
}

/// Removes results that were delivered longer than `keep` ago, until `stop` is cancelled.
async fn prune(store: Arc<VerificationStore>, keep: Duration, stop: CancellationToken) {
    let mut interval = tokio::time::interval(PRUNE_EVERY);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = interval.tick() => {}
        }
        let pruned = tokio::select! {
            () = stop.cancelled() => return,
            pruned = store.prune(now().saturating_sub(keep.as_secs())) => pruned,
        };
        match pruned {
            Ok(0) => {}
            Ok(jobs) => tracing::info!(jobs, "old results were removed"),
            Err(error) => tracing::warn!(%error, "old results were not removed"),
        }
    }
}

fn listeners(config: &Config) -> ListenersConfig {
    ListenersConfig {
        listen: config.listen,
        admin_listen: config.admin_listen,
        connections: CONNECTIONS,
        client_connections: CLIENT_CONNECTIONS,
        error_documentation: config.error_documentation.clone(),
    }
}
