//! A listener of the gateway beside that of its clients: for health and metrics, for approvers.

use std::io;
use std::net::SocketAddr;

use axum::Router;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// What serves on an address of its own, until it is stopped.
pub(crate) struct Listener {
    address: SocketAddr,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Listener {
    /// Serves these routes there. `what` names them in the log, should that end by itself.
    ///
    /// # Errors
    /// If the listener has no address.
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

    /// The address that it serves on.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops it; no caller is waited for.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        self.task.abort();
        let _ = self.task.await;
    }
}
