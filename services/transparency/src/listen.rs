//! Connections: accepted one by one, bounded in number and time, drained on stop.
//!
//! Plain connections speak HTTP/1.1 only; with TLS the client chooses between it and HTTP/2 (ALPN).
//! So the protocol is known before the first byte, and a silent client meets a time limit from the start.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::response::Response;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

use crate::doors::Peer;
use crate::limits::{DRAIN_TIME, HANDSHAKE_TIME, HTTP2_STREAMS, HYPER_HEAD_BYTES, HYPER_HEADERS};
use crate::tail::Cut;
use crate::tls::Tls;

/// How long to wait after a failed `accept` (descriptors exhausted, say) before trying again.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// HTTP/2 pings: how often, and how long the answer may take.
const PING: (Duration, Duration) = (Duration::from_secs(20), Duration::from_secs(10));

/// A bound listener that is not served yet.
pub struct Listener {
    tcp: TcpListener,
    tls: Option<Arc<Tls>>,
    connections: usize,
    header_time: Duration,
}

/// A listener being served.
pub struct Serving {
    /// Where.
    pub address: SocketAddr,
    stop: CancellationToken,
    kill: CancellationToken,
    tasks: TaskTracker,
}

impl Listener {
    /// Takes the address; port 0 takes a free port.
    pub async fn bind(
        address: SocketAddr,
        tls: Option<Arc<Tls>>,
        connections: usize,
        header_time: Duration,
    ) -> std::io::Result<Self> {
        Ok(Self { tcp: TcpListener::bind(address).await?, tls, connections, header_time })
    }

    /// Where it listens.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.tcp.local_addr()
    }

    /// Accepts connections until told to stop.
    pub fn serve(self, router: Router) -> std::io::Result<Serving> {
        let serving = Serving {
            address: self.tcp.local_addr()?,
            stop: CancellationToken::new(),
            kill: CancellationToken::new(),
            tasks: TaskTracker::new(),
        };
        let (stop, kill, tasks) = (serving.stop.clone(), serving.kill.clone(), serving.tasks.clone());
        serving.tasks.spawn(async move { self.accept(router, stop, kill, tasks).await });
        Ok(serving)
    }

    async fn accept(
        self,
        router: Router,
        stop: CancellationToken,
        kill: CancellationToken,
        tasks: TaskTracker,
    ) {
        let room = Arc::new(Semaphore::new(self.connections));
        loop {
            let arrival = async {
                let place = room.clone().acquire_owned().await.ok()?;
                match self.tcp.accept().await {
                    Ok((stream, peer)) => Some((place, stream, peer)),
                    Err(error) => {
                        tracing::warn!(%error, "a connection could not be accepted");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                        None
                    }
                }
            };
            let arrived = tokio::select! {
                () = stop.cancelled() => return,
                arrived = arrival => arrived,
            };
            let Some((place, stream, peer)) = arrived else { continue };
            let cut = Cut::default();
            let connection = Connection {
                peer,
                cut: cut.clone(),
                router: router.clone(),
                tls: self.tls.clone(),
                header_time: self.header_time,
                stop: stop.clone(),
            };
            let kill = kill.clone();
            tasks.spawn(async move {
                let _place = place;
                tokio::select! {
                    () = kill.cancelled() => {}
                    () = cut.0.cancelled() => {}
                    () = connection.run(stream) => {}
                }
            });
        }
    }
}

impl Serving {
    /// Takes no more connections, lets requests in flight finish, cuts what is left after [`DRAIN_TIME`].
    pub async fn drain(self) {
        self.stop.cancel();
        self.tasks.close();
        if tokio::time::timeout(DRAIN_TIME, self.tasks.wait()).await.is_err() {
            tracing::warn!(connections = self.tasks.len(), "cut connections that did not finish");
            self.kill.cancel();
            self.tasks.wait().await;
        }
    }
}

struct Connection {
    peer: SocketAddr,
    cut: Cut,
    router: Router,
    tls: Option<Arc<Tls>>,
    header_time: Duration,
    stop: CancellationToken,
}

impl Connection {
    async fn run(self, stream: TcpStream) {
        let _ = stream.set_nodelay(true);
        let Some(tls) = self.tls.clone() else { return self.http1(stream).await };
        let shaken = tokio::time::timeout(HANDSHAKE_TIME, tls.acceptor().accept(stream)).await;
        let Ok(Ok(stream)) = shaken else {
            return tracing::debug!(peer = %self.peer, "no TLS handshake");
        };
        if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
            self.http2(stream).await
        } else {
            self.http1(stream).await
        }
    }

    async fn http1(self, stream: impl AsyncRead + AsyncWrite + Unpin) {
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            // A client may close its side once it has asked; it still wants the answer.
            .half_close(true)
            .header_read_timeout(self.header_time)
            .max_headers(HYPER_HEADERS)
            .max_buf_size(HYPER_HEAD_BYTES)
            .serve_connection(
                TokioIo::new(stream),
                service(self.router.clone(), Peer(self.peer), self.cut.clone()),
            );
        self.drive(connection, http1::Connection::graceful_shutdown).await;
    }

    async fn http2(self, stream: impl AsyncRead + AsyncWrite + Unpin) {
        let connection = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .max_header_list_size(HYPER_HEAD_BYTES as u32)
            .max_concurrent_streams(HTTP2_STREAMS)
            .keep_alive_interval(PING.0)
            .keep_alive_timeout(PING.1)
            .serve_connection(
                TokioIo::new(stream),
                service(self.router.clone(), Peer(self.peer), self.cut.clone()),
            );
        self.drive(connection, http2::Connection::graceful_shutdown).await;
    }

    /// Runs a connection to its end; once the service stops, to the end of what it is answering.
    async fn drive<C>(&self, connection: C, wind_down: impl FnOnce(Pin<&mut C>))
    where
        C: Future<Output = hyper::Result<()>>,
    {
        let mut connection = pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = self.stop.cancelled() => {
                wind_down(connection.as_mut());
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(peer = %self.peer, %error, "connection ended");
        }
    }
}

/// The routes as hyper calls them, with the peer's address in each request, and the means to be rid of him.
fn service(
    router: Router,
    peer: Peer,
    cut: Cut,
) -> impl Service<
    Request<Incoming>,
    Response = Response,
    Error = Infallible,
    Future = impl Future<Output = Result<Response, Infallible>> + Send + 'static,
> {
    service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(peer);
        request.extensions_mut().insert(cut.clone());
        router.clone().oneshot(request)
    })
}
