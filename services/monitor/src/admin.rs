//! Metrics and a sign of life, for whoever watches the watcher.

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

/// A bound listener.
pub struct Admin {
    listener: TcpListener,
    address: SocketAddr,
    metrics: Arc<Metrics>,
}

impl Admin {
    /// Binds the address; nothing is served yet.
    ///
    /// # Errors
    /// If it cannot be bound.
    pub async fn bind(address: SocketAddr, metrics: Arc<Metrics>) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address, metrics })
    }

    /// Where.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until the future is dropped.
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
