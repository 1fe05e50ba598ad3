//! The two listeners of a daemon that is not on the way of every call: one for its clients, and one for health and metrics.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;

use crate::limits::{CONNECTION_AGE, FEW_HEADERS, SHORT_HEAD_BYTES, WRITE_TIME};
use crate::listener::{BindError, Listener, ListenerSettings, RunningListener};
use crate::problem::ErrorDocumentation;

/// Addresses and limits of the two listeners.
#[derive(Clone, Debug)]
pub struct ListenersConfig {
    /// Listen address for clients.
    pub listen: SocketAddr,
    /// Listen address for health and metrics, if any.
    pub admin_listen: Option<SocketAddr>,
    /// Maximum number of clients' connections.
    pub connections: usize,
    /// Maximum number of connections of one client. Loopback connections are not counted, because they come from the reverse
    /// proxy.
    pub client_connections: usize,
    /// Where the codes of problems are documented.
    pub error_documentation: ErrorDocumentation,
}

/// Two bound listeners, of which only that for health and metrics accepts connections yet.
pub struct TwoListeners {
    public: Listener,
    admin: Option<RunningListener>,
    listen: SocketAddr,
}

/// Two listeners that accept connections.
pub struct RunningListeners {
    public: RunningListener,
    admin: Option<RunningListener>,
    address: SocketAddr,
}

impl TwoListeners {
    /// Binds both addresses, and serves health and metrics with the routes `admin`.
    ///
    /// # Errors
    /// [`BindError`] if an address cannot be bound.
    pub async fn bind(config: ListenersConfig, admin: Router) -> Result<Self, BindError> {
        let public = Listener::bind(config.listen, public_settings(&config)).await?;
        let admin = match config.admin_listen {
            Some(address) => Some(Listener::bind(address, settings(&config)).await?.serve(admin)),
            None => None,
        };
        Ok(Self { public, admin, listen: config.listen })
    }

    /// Serves clients with the routes `public`.
    pub fn serve(self, public: Router) -> RunningListeners {
        let public = self.public.serve(public);
        let address = public.address().unwrap_or(self.listen);
        RunningListeners { public, admin: self.admin, address }
    }
}

impl RunningListeners {
    /// The listen address for clients.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The listen address for health and metrics, if any.
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.admin.as_ref().and_then(RunningListener::address)
    }

    /// Stops accepting connections, and waits for requests in flight.
    pub async fn drain(self) {
        self.public.drain().await;
        if let Some(admin) = self.admin {
            admin.drain().await;
        }
    }
}

fn settings(config: &ListenersConfig) -> ListenerSettings {
    ListenerSettings {
        error_documentation: config.error_documentation.clone(),
        headers: FEW_HEADERS,
        head_bytes: SHORT_HEAD_BYTES,
        write_time: Some(WRITE_TIME),
        age: Some(CONNECTION_AGE),
        ..ListenerSettings::default()
    }
}

fn public_settings(config: &ListenersConfig) -> ListenerSettings {
    ListenerSettings {
        connections: config.connections,
        client_connections: config.client_connections,
        is_proxy: Arc::new(|address| address.to_canonical().is_loopback()),
        ..settings(config)
    }
}
