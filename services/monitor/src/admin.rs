//! The monitor's administrative HTTP endpoints: `/metrics` (Prometheus text format) and `/livez` (liveness probe).

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use tokio::net::TcpListener;

use crate::metrics::Metrics;

/// The bound listener of the administrative endpoints; serves [`Metrics`].
pub struct Admin {
    listener: TcpListener,
    address: SocketAddr,
    metrics: Arc<Metrics>,
}

impl Admin {
    /// Binds the listener to `address`; requests are accepted only after [`serve`](Self::serve) is called.
    ///
    /// # Errors
    /// If the address cannot be bound.
    pub async fn bind(address: SocketAddr, metrics: Arc<Metrics>) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address, metrics })
    }

    /// The bound address; contains the actual port if port 0 was configured.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves `/livez` and `/metrics` until the future is dropped; logs an error if the server stops before that.
    pub async fn serve(self) {
        let routes = Router::new()
            .route("/livez", get(|| async { "alive\n" }))
            .route("/metrics", get(text))
            .with_state(self.metrics);
        if let Err(error) = axum::serve(self.listener, routes).await {
            tracing::error!(%error, "metrics are not served any more");
        }
    }
}

async fn text(State(metrics): State<Arc<Metrics>>) -> Response {
    match metrics.text() {
        Ok(text) => ([(CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response(),
        Err(error) => {
            tracing::error!(%error, "metrics could not be written");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}
