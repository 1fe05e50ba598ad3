//! HTTP/1.1 connections: limited in number and duration, drained on stop. TLS is the reverse proxy's task.

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
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

use crate::limits::{
    ACCEPT_PAUSE, CONNECTION_AGE, DRAIN_TIME, HEAD_BYTES, HEADER_TIME, HEADERS, REQUEST_TIME, WRITE_TIME,
};
use crate::peer::{Impatient, Peer, Peers};

/// A running listener.
pub struct Serving {
    /// The bound address.
    pub address: SocketAddr,
    stop: CancellationToken,
    kill: CancellationToken,
    tasks: TaskTracker,
}

/// Accepts up to `connections` concurrent connections until drained.
pub fn serve(tcp: TcpListener, connections: usize, router: Router) -> std::io::Result<Serving> {
    let serving = Serving {
        address: tcp.local_addr()?,
        stop: CancellationToken::new(),
        kill: CancellationToken::new(),
        tasks: TaskTracker::new(),
    };
    let (stop, kill, tasks) = (serving.stop.clone(), serving.kill.clone(), serving.tasks.clone());
    serving.tasks.spawn(async move {
        let (room, peers) = (Arc::new(Semaphore::new(connections)), Peers::default());
        while let Some(stream) = stop.run_until_cancelled(accept(&tcp, &room, &peers)).await {
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
    peers: &Peers,
) -> Option<((OwnedSemaphorePermit, Peer), TcpStream)> {
    let place = room.clone().acquire_owned().await.ok()?;
    match tcp.accept().await {
        Ok((stream, address)) => Some(((place, peers.enter(address.ip())?), stream)),
        Err(error) => {
            tracing::warn!(%error, "a connection could not be accepted");
            tokio::time::sleep(ACCEPT_PAUSE).await;
            None
        }
    }
}

/// Serves a connection. After a stop or [`CONNECTION_AGE`] it finishes the request in flight, within a timeout.
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
            .serve_connection(TokioIo::new(Impatient::new(stream)), service)
    );
    let ended = tokio::select! {
        ended = connection.as_mut() => Some(ended),
        () = stop.cancelled() => None,
        () = tokio::time::sleep(CONNECTION_AGE) => None,
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            connection.as_mut().graceful_shutdown();
            match tokio::time::timeout(REQUEST_TIME + WRITE_TIME, connection).await {
                Ok(ended) => ended,
                Err(_) => return,
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended");
    }
}

impl Serving {
    /// Stops accepting, finishes requests in flight, and closes remaining connections after [`DRAIN_TIME`].
    pub async fn drain(self) {
        self.stop.cancel();
        self.tasks.close();
        if tokio::time::timeout(DRAIN_TIME, self.tasks.wait()).await.is_err() {
            self.kill.cancel();
            self.tasks.wait().await;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::time::Duration;

    use axum::routing::get;
    use tokio::io::AsyncWriteExt;

    use super::*;

    /// Without [`WRITE_TIME`] the writes below would block forever, and the next connection would wait for the slot.
    #[tokio::test]
    async fn who_asks_and_never_reads_keeps_no_place() {
        let router = Router::new().route("/", get(|| async { "x".repeat(1 << 20) }));
        let serving = serve(TcpListener::bind("127.0.0.1:0").await.unwrap(), 1, router).unwrap();
        let mut silent = TcpStream::connect(serving.address).await.unwrap();
        let asked = async { while silent.write_all(b"GET / HTTP/1.1\r\nhost: w\r\n\r\n").await.is_ok() {} };
        tokio::time::timeout(WRITE_TIME * 4, asked).await.expect("the connection is cut");
        let served = async {
            let mut next = TcpStream::connect(serving.address).await.unwrap();
            next.write_all(b"GET / HTTP/1.1\r\nhost: w\r\n\r\n").await.unwrap();
            next.readable().await.unwrap();
        };
        tokio::time::timeout(Duration::from_secs(30), served).await.expect("the next has its place");
    }
}
