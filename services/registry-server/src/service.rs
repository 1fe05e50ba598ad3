//! Starts and stops the server.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use roa::registry::RegistryVersion;
use scitt::PublicKey;
use serving::listener::BindError;
use serving::problem::ErrorDocumentation;
use serving::two_listeners::{ListenersConfig, RunningListeners, TwoListeners};

use crate::files::{RegistryFiles, UnusableFile};
use crate::limits::{CLIENT_CONNECTIONS, CONNECTIONS};
use crate::metrics::Metrics;
use crate::routes::{self, ServerState};

/// Configuration of a server.
#[derive(Clone, Debug)]
pub struct Config {
    /// The listen address.
    pub listen: SocketAddr,
    /// Listen address of the metrics and health endpoints, if any.
    pub admin_listen: Option<SocketAddr>,
    /// The file of the registry.
    pub registry: PathBuf,
    /// The file of the revocation deltas, if they are served.
    pub deltas: Option<PathBuf>,
    /// The keys of the registry's operators.
    pub operators: Vec<PublicKey>,
    /// Where the codes of problems are documented.
    pub error_documentation: ErrorDocumentation,
}

/// Errors of starting a server.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The registry cannot be served.
    #[error("the registry {0}")]
    Registry(#[source] UnusableFile),
    /// The file of deltas cannot be served.
    #[error("the file of deltas {0}")]
    Deltas(#[source] UnusableFile),
    /// An address cannot be bound.
    #[error(transparent)]
    Listen(#[from] BindError),
    /// The metrics cannot be registered.
    #[error(transparent)]
    Metrics(#[from] prometheus::Error),
}

/// A running server.
pub struct RegistryServer {
    files: Arc<RegistryFiles>,
    listeners: RunningListeners,
}

impl RegistryServer {
    /// Verifies the files, and serves them once this returns.
    ///
    /// # Errors
    /// [`StartError`] if a file cannot be served or the address cannot be bound.
    pub async fn start(config: Config) -> Result<Self, StartError> {
        let Config { listen, admin_listen, registry, deltas, operators, error_documentation } = config;
        let files = Arc::new(RegistryFiles::new(registry, deltas, operators));
        files.registry().map_err(StartError::Registry)?;
        files.deltas().map_err(StartError::Deltas)?;
        let state = ServerState { files: files.clone(), metrics: Arc::new(Metrics::new()?) };
        let listeners = ListenersConfig {
            listen,
            admin_listen,
            connections: CONNECTIONS,
            client_connections: CLIENT_CONNECTIONS,
            error_documentation,
        };
        let listeners = TwoListeners::bind(listeners, routes::admin(state.clone())).await?;
        Ok(Self { files, listeners: listeners.serve(routes::public(state)) })
    }

    /// Returns the listen address.
    pub fn address(&self) -> SocketAddr {
        self.listeners.address()
    }

    /// Returns the listen address of the metrics, if any.
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.listeners.admin_address()
    }

    /// Returns the version of the registry that was verified last.
    pub fn version(&self) -> Option<RegistryVersion> {
        self.files.version()
    }

    /// Serves until `shutdown` resolves; requests in flight then finish.
    pub async fn run_until(self, shutdown: impl Future<Output = ()>) {
        shutdown.await;
        tracing::info!("stopping");
        self.listeners.drain().await;
    }
}
