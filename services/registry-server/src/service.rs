//! Starts and stops the server.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use roa::registry::RegistryVersion;
use scitt::PublicKey;
use serving::listener::{BindError, Listener, ListenerSettings, RunningListener};
use serving::problem::ErrorDocumentation;

use crate::files::{RegistryFiles, UnusableFile};
use crate::limits::{CLIENT_CONNECTIONS, CONNECTION_AGE, CONNECTIONS, HEAD_BYTES, HEADERS, WRITE_TIME};
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
    public: RunningListener,
    admin: Option<RunningListener>,
    address: SocketAddr,
}

impl RegistryServer {
    /// Verifies the files, and serves them once this returns.
    ///
    /// # Errors
    /// [`StartError`] if a file cannot be served or the address cannot be bound.
    pub async fn start(config: Config) -> Result<Self, StartError> {
        let Config { listen, admin_listen, registry, deltas, operators, error_documentation } = config;
        let settings = ListenerSettings { error_documentation, ..settings() };
        let files = Arc::new(RegistryFiles::new(registry, deltas, operators));
        files.registry().map_err(StartError::Registry)?;
        files.deltas().map_err(StartError::Deltas)?;
        let state = ServerState { files: files.clone(), metrics: Arc::new(Metrics::new()?) };
        let public = Listener::bind(listen, public_settings(settings.clone())).await?;
        let admin = match admin_listen {
            Some(address) => {
                Some(Listener::bind(address, settings).await?.serve(routes::admin(state.clone())))
            }
            None => None,
        };
        let public = public.serve(routes::public(state));
        let address = public.address().unwrap_or(listen);
        Ok(Self { files, public, admin, address })
    }

    /// Returns the listen address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the listen address of the metrics, if any.
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.admin.as_ref().and_then(RunningListener::address)
    }

    /// Returns the version of the registry that was verified last.
    pub fn version(&self) -> Option<RegistryVersion> {
        self.files.version()
    }

    /// Serves until `shutdown` resolves; requests in flight then finish.
    pub async fn run_until(self, shutdown: impl Future<Output = ()>) {
        shutdown.await;
        tracing::info!("stopping");
        self.public.drain().await;
        if let Some(admin) = self.admin {
            admin.drain().await;
        }
    }
}

fn public_settings(settings: ListenerSettings) -> ListenerSettings {
    ListenerSettings {
        connections: CONNECTIONS,
        client_connections: CLIENT_CONNECTIONS,
        is_proxy: Arc::new(|address| address.to_canonical().is_loopback()),
        ..settings
    }
}

/// Settings of the admin listener.
fn settings() -> ListenerSettings {
    ListenerSettings {
        headers: HEADERS,
        head_bytes: HEAD_BYTES,
        write_time: Some(WRITE_TIME),
        age: Some(CONNECTION_AGE),
        ..ListenerSettings::default()
    }
}
