//! Listeners: accept connections over TCP or a Unix socket, bound their number and time, and drain them on stop.
//!
//! Plain connections speak HTTP/1.1 only; with TLS the client chooses between HTTP/1.1 and HTTP/2 (ALPN). So the
//! protocol is known before the first byte, and a time limit applies to a silent client from the start.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::Request;
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::server::conn::{http1, http2};
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

use crate::admin_socket::{AdminSocket, SocketPeer};
use crate::connections::{Busy, Connections, Place};
use crate::doors::{Bucket, Doorkeeper, Peer, address_bucket};
use crate::limits::{DRAIN_TIME, HANDSHAKE_TIME, HTTP2_STREAMS, HYPER_HEAD_BYTES, HYPER_HEADERS, SHARE_PART};
use crate::tail::Cut;
use crate::tls::Tls;

/// Pause after a failed `accept`, for example without free file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Interval of HTTP/2 pings, and timeout of their acknowledgement.
const PING: (Duration, Duration) = (Duration::from_secs(20), Duration::from_secs(10));

/// A bound listener that does not accept connections yet.
pub struct Listener {
    door: Door,
    tls: Option<Arc<Tls>>,
    connections: usize,
    header_time: Duration,
}

/// The socket that a listener accepts connections from.
enum Door {
    Tcp { listener: TcpListener, doorkeeper: Option<Arc<Doorkeeper>> },
    Socket(AdminSocket),
}

/// A listener that accepts connections.
pub struct Serving {
    stop: CancellationToken,
    kill: CancellationToken,
    tasks: TaskTracker,
}

impl Listener {
    /// Binds the address; port 0 takes a free port.
    pub async fn bind(
        address: SocketAddr,
        tls: Option<Arc<Tls>>,
        connections: usize,
        header_time: Duration,
    ) -> std::io::Result<Self> {
        let door = Door::Tcp { listener: TcpListener::bind(address).await?, doorkeeper: None };
        Ok(Self { door, tls, connections, header_time })
    }

    /// Creates a listener on the admin socket.
    pub fn on_socket(socket: AdminSocket, connections: usize, header_time: Duration) -> Self {
        Self { door: Door::Socket(socket), tls: None, connections, header_time }
    }

    /// The bound address; `None` for a Unix socket.
    pub fn address(&self) -> Option<SocketAddr> {
        match &self.door {
            Door::Tcp { listener, .. } => listener.local_addr().ok(),
            Door::Socket(_) => None,
        }
    }

    /// Exempts this rate limiter's trusted proxies from the limit of connections per address.
    pub fn knowing_proxies(mut self, of: Arc<Doorkeeper>) -> Self {
        if let Door::Tcp { doorkeeper, .. } = &mut self.door {
            *doorkeeper = Some(of);
        }
        self
    }

    /// Accepts connections until [`Serving::drain`].
    pub fn serve(self, router: Router) -> Serving {
        let serving = Serving {
            stop: CancellationToken::new(),
            kill: CancellationToken::new(),
            tasks: TaskTracker::new(),
        };
        let (stop, kill, tasks) = (serving.stop.clone(), serving.kill.clone(), serving.tasks.clone());
        serving.tasks.spawn(async move { self.accept(router, stop, kill, tasks).await });
        serving
    }

    async fn accept(
        mut self,
        router: Router,
        stop: CancellationToken,
        kill: CancellationToken,
        tasks: TaskTracker,
    ) {
        let connections = Connections::new(self.connections, (self.connections / SHARE_PART).max(1));
        loop {
            let arrived = tokio::select! {
                () = stop.cancelled() => return,
                arrived = self.door.arrival() => arrived,
            };
            let (stream, peer) = match arrived {
                Ok(arrived) => arrived,
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let cut = Cut::default();
            let Some(place) = connections.admit(self.door.share_of(&peer), cut.clone()) else {
                tracing::debug!(?peer, "no place for a connection");
                continue;
            };
            let connection = Connection {
                peer,
                place: Arc::new(place),
                cut: cut.clone(),
                router: router.clone(),
                tls: self.tls.clone(),
                header_time: self.header_time,
                stop: stop.clone(),
            };
            let kill = kill.clone();
            tasks.spawn(async move {
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
    /// Stops accepting, lets requests in flight finish, and closes the remaining connections after [`DRAIN_TIME`].
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

impl Door {
    async fn arrival(&mut self) -> std::io::Result<(Stream, Remote)> {
        match self {
            Self::Tcp { listener, .. } => {
                let (stream, peer) = listener.accept().await?;
                Ok((Stream::Tcp(stream), Remote::Address(Peer(peer))))
            }
            Self::Socket(socket) => {
                let (stream, peer) = socket.accept().await?;
                Ok((Stream::Socket(stream), Remote::Socket(peer)))
            }
        }
    }

    /// The bucket whose share of the connections this one counts in; `None` for a trusted proxy or the admin socket.
    fn share_of(&self, peer: &Remote) -> Option<Bucket> {
        let (Self::Tcp { doorkeeper, .. }, Remote::Address(Peer(address))) = (self, peer) else {
            return None;
        };
        let is_proxy = doorkeeper.as_ref().is_some_and(|doorkeeper| doorkeeper.is_proxy(address.ip()));
        (!is_proxy).then(|| address_bucket(address.ip()))
    }
}

enum Stream {
    Tcp(TcpStream),
    Socket(UnixStream),
}

/// The peer of a connection.
#[derive(Clone, Copy, Debug)]
enum Remote {
    Address(Peer),
    Socket(SocketPeer),
}

struct Connection {
    peer: Remote,
    place: Arc<Place>,
    cut: Cut,
    router: Router,
    tls: Option<Arc<Tls>>,
    header_time: Duration,
    stop: CancellationToken,
}

impl Connection {
    async fn run(self, stream: Stream) {
        let stream = match stream {
            Stream::Tcp(stream) => stream,
            Stream::Socket(stream) => return self.http1(stream).await,
        };
        let _ = stream.set_nodelay(true);
        let Some(tls) = self.tls.clone() else { return self.http1(stream).await };
        let shaken = tokio::time::timeout(HANDSHAKE_TIME, tls.acceptor().accept(stream)).await;
        let Ok(Ok(stream)) = shaken else {
            return tracing::debug!(peer = ?self.peer, "no TLS handshake");
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
            // A client may close its side after the request and still read the response.
            .half_close(true)
            .header_read_timeout(self.header_time)
            .max_headers(HYPER_HEADERS)
            .max_buf_size(HYPER_HEAD_BYTES)
            .serve_connection(
                TokioIo::new(stream),
                service(self.router.clone(), self.peer, self.cut.clone(), self.place.clone()),
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
                service(self.router.clone(), self.peer, self.cut.clone(), self.place.clone()),
            );
        self.drive(connection, http2::Connection::graceful_shutdown).await;
    }

    /// Runs a connection to its end; once the service stops, to the end of the request in progress.
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
            tracing::debug!(peer = ?self.peer, %error, "connection ended");
        }
    }
}

/// The routes as a hyper service, which adds the peer and the means to close the connection to each request.
fn service(
    router: Router,
    peer: Remote,
    cut: Cut,
    place: Arc<Place>,
) -> impl Service<
    Request<Incoming>,
    Response = Response,
    Error = Infallible,
    Future = impl Future<Output = Result<Response, Infallible>> + Send + 'static,
> {
    service_fn(move |mut request: Request<Incoming>| {
        match peer {
            Remote::Address(peer) => drop(request.extensions_mut().insert(peer)),
            Remote::Socket(peer) => drop(request.extensions_mut().insert(peer)),
        }
        request.extensions_mut().insert(cut.clone());
        let (router, busy) = (router.clone(), place.busy());
        async move {
            let response = router.oneshot(request).await?;
            Ok(response.map(|body| Body::new(Answering { body, _busy: busy })))
        }
    })
}

/// A response body: its connection counts as busy until it is sent.
struct Answering {
    body: Body,
    _busy: Busy,
}

impl hyper::body::Body for Answering {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
