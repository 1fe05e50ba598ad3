//! A further HTTP listener of the gateway, separate from the clients' one: for health and metrics, or for approvers.

use std::io;
use std::net::SocketAddr;

use axum::Router;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// An HTTP server on an address of its own, until it is stopped.
pub(crate) struct Listener {
    address: SocketAddr,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Listener {
    /// Serves `router` on this listener. `what` names the routes in the log, if the server ends by itself.
    ///
    /// # Errors
    /// If the listener has no local address.
    pub(crate) fn serve(listener: TcpListener, router: Router, what: &'static str) -> io::Result<Self> {
        let (address, stop) = (listener.local_addr()?, CancellationToken::new());
        let told = stop.clone();
        let task = tokio::spawn(async move {
            let served =
                axum::serve(listener, router).with_graceful_shutdown(async move { told.cancelled().await });
            if let Err(error) = served.await {
                tracing::error!(%error, "{what} are not served any more");
            }
        });
        Ok(Self { address, stop, task })
    }

    /// The address on which this listener serves.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops the server without waiting for open requests.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        self.task.abort();
        let _ = self.task.await;
    }
}
