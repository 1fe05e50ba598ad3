//! Connections: bounded in number and time, drained on stop. HTTP/1.1 without TLS: that is the proxy's in front.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;

use axum::Router;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

use crate::limits::{ACCEPT_PAUSE, DRAIN_TIME, HEAD_BYTES, HEADER_TIME, HEADERS};

/// A listener being served.
pub struct Serving {
    /// Where.
    pub address: SocketAddr,
    stop: CancellationToken,
    kill: CancellationToken,
    tasks: TaskTracker,
}

/// Accepts connections, so many at one time, until drained.
pub fn serve(tcp: TcpListener, connections: usize, router: Router) -> std::io::Result<Serving> {
    let serving = Serving {
        address: tcp.local_addr()?,
        stop: CancellationToken::new(),
        kill: CancellationToken::new(),
        tasks: TaskTracker::new(),
    };
    let (stop, kill, tasks) = (serving.stop.clone(), serving.kill.clone(), serving.tasks.clone());
    serving.tasks.spawn(async move {
        let room = Arc::new(Semaphore::new(connections));
        while let Some(stream) = stop.run_until_cancelled(accept(&tcp, &room)).await {
            let Some((place, stream)) = stream else { continue };
            let (router, stop, kill) = (router.clone(), stop.clone(), kill.clone());
            tasks.spawn(async move {
                let _place = place;
                kill.run_until_cancelled(talk(stream, router, stop)).await;
            });
        }
    });
    Ok(serving)
}

async fn accept(
    tcp: &TcpListener,
    room: &Arc<Semaphore>,
) -> Option<(tokio::sync::OwnedSemaphorePermit, TcpStream)> {
    let place = room.clone().acquire_owned().await.ok()?;
    match tcp.accept().await {
        Ok((stream, _)) => Some((place, stream)),
        Err(error) => {
            tracing::warn!(%error, "a connection could not be accepted");
            tokio::time::sleep(ACCEPT_PAUSE).await;
            None
        }
    }
}

/// Runs a connection to its end; once stopped, to the end of what it is answering.
async fn talk(stream: TcpStream, router: Router, stop: CancellationToken) {
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request: Request<Incoming>| {
        let router = router.clone();
        async move { Ok::<_, Infallible>(router.oneshot(request).await.unwrap_or_else(|never| match never {})) }
    });
    let mut connection = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .half_close(true)
            .header_read_timeout(HEADER_TIME)
            .max_headers(HEADERS)
            .max_buf_size(HEAD_BYTES)
            .serve_connection(TokioIo::new(stream), service)
    );
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended");
    }
}

impl Serving {
    /// Takes no more connections, lets requests under way finish, cuts what is left after [`DRAIN_TIME`].
    pub async fn drain(self) {
        self.stop.cancel();
        self.tasks.close();
        if tokio::time::timeout(DRAIN_TIME, self.tasks.wait()).await.is_err() {
            self.kill.cancel();
            self.tasks.wait().await;
        }
    }
}
