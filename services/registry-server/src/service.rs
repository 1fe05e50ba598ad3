//! Starts and stops the server.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use roa::registry::RegistryVersion;
use scitt::PublicKey;
use serving::listener::{Listener, ListenerSettings, RunningListener};

use crate::files::{RegistryFiles, UnusableFile};
use crate::limits::{CLIENT_CONNECTIONS, CONNECTION_AGE, CONNECTIONS, HEAD_BYTES, HEADERS, WRITE_TIME};
use crate::routes::routes;

/// Configuration of a server.
#[derive(Clone, Debug)]
pub struct Config {
    /// The listen address.
    pub listen: SocketAddr,
    /// The file of the registry.
    pub registry: PathBuf,
    /// The file of the revocation deltas, if they are served.
    pub deltas: Option<PathBuf>,
    /// The keys of the registry's operators.
    pub operators: Vec<PublicKey>,
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
    /// The address cannot be bound.
    #[error("cannot listen on {address}: {error}")]
    Listen {
        /// The configured address.
        address: SocketAddr,
        /// The underlying error.
        error: io::Error,
    },
}

/// A running server.
pub struct RegistryServer {
    files: Arc<RegistryFiles>,
    listener: RunningListener,
    address: SocketAddr,
}

impl RegistryServer {
    /// Verifies the files, and serves them once this returns.
    ///
    /// # Errors
    /// [`StartError`] if a file cannot be served or the address cannot be bound.
    pub async fn start(config: Config) -> Result<Self, StartError> {
        let Config { listen, registry, deltas, operators } = config;
        let files = Arc::new(RegistryFiles::new(registry, deltas, operators));
        files.registry().map_err(StartError::Registry)?;
        files.deltas().map_err(StartError::Deltas)?;
        let failed = |error| StartError::Listen { address: listen, error };
        let listener = Listener::bind(listen, settings()).await.map_err(failed)?.serve(routes(files.clone()));
        let address = listener.address().unwrap_or(listen);
        Ok(Self { files, listener, address })
    }

    /// Returns the listen address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the version of the registry that was verified last.
    pub fn version(&self) -> Option<RegistryVersion> {
        self.files.version()
    }

    /// Serves until `shutdown` resolves; requests in flight then finish.
    pub async fn run_until(self, shutdown: impl Future<Output = ()>) {
        shutdown.await;
        tracing::info!("stopping");
        self.listener.drain().await;
    }
}

fn settings() -> ListenerSettings {
    ListenerSettings {
        connections: CONNECTIONS,
        client_connections: CLIENT_CONNECTIONS,
        is_proxy: Arc::new(|address| address.to_canonical().is_loopback()),
        headers: HEADERS,
        head_bytes: HEAD_BYTES,
        write_time: Some(WRITE_TIME),
        age: Some(CONNECTION_AGE),
        ..ListenerSettings::default()
    }
}
