//! The connections of the clients' listener: limited in number and time, and drained on stop.
//!
//! HTTP/1.1 and HTTP/2 (with prior knowledge) share one port; TLS is terminated before the gateway. The first bytes
//! tell the protocol. They are peeked at without being consumed, so that a silent client runs into a time limit from
//! the start.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::addresses::Addresses;
use super::{Front, Response};
use crate::limits::{DRAIN_TIME, HEAD_TIME, HTTP2_STREAMS, MAX_HEAD_BYTES, MAX_HEADERS};

/// The connection preface of HTTP/2 (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Pause before peeking again, when a preface arrived only in part.
const PREFACE_PAUSE: Duration = Duration::from_millis(5);
/// Pause after a failed `accept`, for example when file descriptors are exhausted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// HTTP/2 pings: their interval, and the timeout for the answer.
const PING: (Duration, Duration) = (Duration::from_secs(20), Duration::from_secs(10));
/// Interval at which idle addresses are removed from the rate limiter.
const SWEEP: Duration = Duration::from_secs(60);

/// Time limits of connections.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// Maximum time for a client to send its headers, or the next request on an idle connection.
    pub head: Duration,
    /// Maximum time for requests in flight to finish when the gateway stops.
    pub drain: Duration,
}

impl Default for Times {
    fn default() -> Self {
        Self { head: HEAD_TIME, drain: DRAIN_TIME }
    }
}

/// A running listener with its connections.
pub struct Serving {
    /// The address of the listener.
    pub address: SocketAddr,
    front: Arc<Front>,
    times: Times,
    kill: CancellationToken,
    connections: TaskTracker,
}

impl Front {
    /// Serves the connections of this listener.
    ///
    /// # Errors
    /// If the listener has no local address.
    pub fn serve(self: &Arc<Self>, listener: TcpListener, times: Times) -> io::Result<Serving> {
        let serving = Serving {
            address: listener.local_addr()?,
            front: self.clone(),
            times,
            kill: CancellationToken::new(),
            connections: TaskTracker::new(),
        };
        let door = Door { front: self.clone(), head_time: times.head };
        serving.connections.spawn(accept(listener, door, serving.kill.clone(), serving.connections.clone()));
        serving.connections.spawn(sweep(self.clone()));
        Ok(serving)
    }
}

impl Serving {
    /// Stops accepting connections, ends endless streams, lets requests in flight finish, and cuts what is left after
    /// [`Times::drain`]. Calls of disconnected clients are waited for as well, because their outcome is yet to be
    /// recorded.
    pub async fn drain(self) {
        self.front.stop.cancel();
        self.connections.close();
        self.front.tasks.close();
        let finished = async {
            self.connections.wait().await;
            self.front.tasks.wait().await;
        };
        if tokio::time::timeout(self.times.drain, finished).await.is_err() {
            let (connections, calls) = (self.connections.len(), self.front.tasks.len());
            tracing::warn!(connections, calls, "cut what did not finish");
            self.kill.cancel();
            self.connections.wait().await;
        }
    }
}

async fn sweep(front: Arc<Front>) {
    while tokio::time::timeout(SWEEP, front.stop.cancelled()).await.is_err() {
        front.sweep();
    }
}

/// The context of each connection.
#[derive(Clone)]
struct Door {
    front: Arc<Front>,
    head_time: Duration,
}

async fn accept(listener: TcpListener, door: Door, kill: CancellationToken, connections: TaskTracker) {
    let room = Arc::new(Semaphore::new(door.front.connections()));
    let addresses = Addresses::default();
    loop {
        let arrival = async {
            let place = room.clone().acquire_owned().await.ok()?;
            match listener.accept().await {
                Ok((stream, peer)) => Some((place, stream, peer)),
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    None
                }
            }
        };
        let arrived = tokio::select! {
            () = door.front.stop.cancelled() => return,
            arrived = arrival => arrived,
        };
        let Some((place, stream, peer)) = arrived else { continue };
        let Some(counted) = addresses.enter(peer.ip()) else {
            tracing::debug!(%peer, "closed: its address has as many connections as it may");
            continue;
        };
        let (door, kill) = (door.clone(), kill.clone());
        connections.spawn(async move {
            let _places = (place, counted);
            tokio::select! {
                () = kill.cancelled() => {}
                () = door.serve(stream, peer) => {}
            }
        });
    }
}

impl Door {
    async fn serve(&self, stream: TcpStream, peer: SocketAddr) {
        let _ = stream.set_nodelay(true);
        let two = tokio::select! {
            two = tokio::time::timeout(self.head_time, speaks_http2(&stream)) => two,
            () = self.front.stop.cancelled() => return,
        };
        match two {
            // Boxed, because most connections are idle and should not reserve the space that the other protocol needs.
            Ok(Ok(true)) => Box::pin(self.http2(stream, peer)).await,
            Ok(Ok(false)) => Box::pin(self.http1(stream, peer)).await,
            Ok(Err(_)) | Err(_) => tracing::debug!(%peer, "a connection said nothing"),
        }
    }

    async fn http1(&self, stream: TcpStream, peer: SocketAddr) {
        // `half_close(false)` reports a client that closes its side as gone: nothing else shows that while it waits for
        // an answer.
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .half_close(false)
            .header_read_timeout(self.head_time)
            .max_headers(MAX_HEADERS)
            .max_buf_size(MAX_HEAD_BYTES)
            .serve_connection(TokioIo::new(stream), service(peer, self.front.clone()));
        drive(connection, http1::Connection::graceful_shutdown, peer, &self.front).await;
    }

    async fn http2(&self, stream: TcpStream, peer: SocketAddr) {
        let connection = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .max_header_list_size(u32::try_from(MAX_HEAD_BYTES).unwrap_or(u32::MAX))
            .max_concurrent_streams(HTTP2_STREAMS)
            .keep_alive_interval(PING.0)
            .keep_alive_timeout(PING.1)
            .serve_connection(TokioIo::new(stream), service(peer, self.front.clone()));
        drive(connection, http2::Connection::graceful_shutdown, peer, &self.front).await;
    }
}

/// Peeks at the first bytes without consuming them.
async fn speaks_http2(stream: &TcpStream) -> io::Result<bool> {
    let mut first = [0; PREFACE.len()];
    loop {
        let seen = stream.peek(&mut first).await?;
        match first.get(..seen) {
            None | Some([]) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Some(seen) if seen == PREFACE => return Ok(true),
            Some(seen) if !PREFACE.starts_with(seen) => return Ok(false),
            Some(_) => tokio::time::sleep(PREFACE_PAUSE).await,
        }
    }
}

/// Runs a connection to its end. When the gateway stops, the requests in flight are finished first.
async fn drive<C>(connection: C, wind_down: impl FnOnce(Pin<&mut C>), peer: SocketAddr, front: &Front)
where
    C: Future<Output = hyper::Result<()>>,
{
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = front.stop.cancelled() => {
            wind_down(connection.as_mut());
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%peer, %error, "a connection ended");
    }
}

fn service(
    peer: SocketAddr,
    front: Arc<Front>,
) -> impl Service<
    Request<Incoming>,
    Response = Response,
    Error = Infallible,
    Future = impl Future<Output = Result<Response, Infallible>> + Send + 'static,
> + Clone {
    service_fn(move |request: Request<Incoming>| {
        let front = front.clone();
        // Boxed, so that the memory is freed when the answer begins: hyper keeps the service's space for as long as the
        // connection lives.
        Box::pin(async move { Ok(front.answer(peer.ip(), request.map(Body::new)).await) })
    })
}
