//! Listeners: accept connections over TCP, TLS or a Unix socket, bound their number and time, and drain them on stop.
//!
//! With TLS the client chooses between HTTP/1.1 and HTTP/2 (ALPN). Plain connections speak HTTP/1.1, and HTTP/2 with
//! prior knowledge where [`ListenerSettings::http2`] permits it: its first bytes are peeked at without being consumed.
//! So the protocol is known before hyper reads, and a time limit applies to a silent client from the start.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::header::{CONNECTION, CONTENT_LENGTH};
use http::{HeaderValue, Request, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::Service;

use crate::connections::{ConnectionCloser, ConnectionSlot, Connections};
use crate::guarded_body::guarded;
use crate::head_fault::HeadFault;
use crate::limits::{
    ACCEPT_PAUSE, ADMIN_CONNECTIONS, DRAIN_TIME, HANDSHAKE_TIME, HEAD_BYTES, HEADER_TIME, HEADERS,
    HTTP2_STREAMS, PING_EVERY, PING_TIME,
};
use crate::network::client_network;
use crate::problem::{self, ErrorDocumentation};
use crate::request_id::numbered;
use crate::tls::Tls;
use crate::unix_socket::{AdminSocket, SocketPeer};
use crate::unread_body::discarding_the_rest;
use crate::write_timeout::WriteTimeout;

/// The connection preface of HTTP/2 (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Pause before peeking again, when a preface arrived only in part.
const PREFACE_PAUSE: Duration = Duration::from_millis(5);

/// The peer address of a TCP connection. The listener adds it to the extensions of each request.
#[derive(Clone, Copy, Debug)]
pub struct PeerAddress(pub SocketAddr);

/// Settings of a [`Listener`]. The default is for an admin listener: few connections, HTTP/1.1.
#[derive(Clone)]
pub struct ListenerSettings {
    /// Maximum number of open connections.
    pub connections: usize,
    /// Maximum number of open connections of one client: an IPv4 address or an IPv6 /64 network.
    pub client_connections: usize,
    /// Addresses that [`Self::client_connections`] does not apply to, because they are reverse proxies.
    pub is_proxy: Arc<dyn Fn(IpAddr) -> bool + Send + Sync>,
    /// Certificate and key; `None` for plain connections.
    pub tls: Option<Arc<Tls>>,
    /// Permits HTTP/2 with prior knowledge on plain connections.
    pub http2: bool,
    /// Maximum number of concurrent streams of one HTTP/2 connection.
    pub http2_streams: u32,
    /// Permits a client to close its side after a request and still read the response. Otherwise such a client counts
    /// as disconnected.
    pub half_close: bool,
    /// Time limit for a request head, and for an idle connection between two requests.
    pub header_time: Duration,
    /// Maximum number of header fields.
    pub headers: usize,
    /// Maximum size of a request head, in bytes.
    pub head_bytes: usize,
    /// Timeout for a client that does not read the response, if any.
    pub write_time: Option<Duration>,
    /// Maximum age of a connection, if any: it then ends after the request in progress.
    pub age: Option<Duration>,
    /// Time for requests in flight to finish after a stop.
    pub drain_time: Duration,
    /// Writes a line to the log for each response. A daemon that writes its own turns it off.
    pub access_log: bool,
    /// Refuses requests with a [`HeadFault`]. A daemon that words these refusals itself turns it off, and finds the fault in
    /// the request's extensions.
    pub refuses_faulty_heads: bool,
    /// Where the codes of problems are documented.
    pub error_documentation: ErrorDocumentation,
}

impl Default for ListenerSettings {
    fn default() -> Self {
        Self {
            connections: ADMIN_CONNECTIONS,
            client_connections: ADMIN_CONNECTIONS,
            is_proxy: Arc::new(|_| false),
            tls: None,
            http2: false,
            http2_streams: HTTP2_STREAMS,
            half_close: true,
            header_time: HEADER_TIME,
            headers: HEADERS,
            head_bytes: HEAD_BYTES,
            write_time: None,
            age: None,
            drain_time: DRAIN_TIME,
            access_log: true,
            refuses_faulty_heads: true,
            error_documentation: ErrorDocumentation::default(),
        }
    }
}

/// A bound listener that does not accept connections yet.
pub struct Listener {
    socket: ListeningSocket,
    settings: ListenerSettings,
}

/// The socket that a listener accepts connections from.
enum ListeningSocket {
    Tcp(TcpListener),
    Unix(AdminSocket),
}

/// A listener that accepts connections.
pub struct RunningListener {
    address: Option<SocketAddr>,
    stop: CancellationToken,
    kill: CancellationToken,
    tasks: TaskTracker,
    drain_time: Duration,
}

/// The error for an address that cannot be bound.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {error}")]
pub struct BindError {
    /// The configured address.
    pub address: SocketAddr,
    /// The system's error.
    pub error: io::Error,
}

impl BindError {
    /// Returns the code of the failure, which `tabellion help` explains.
    pub fn code(&self) -> &'static str {
        match self.error.kind() {
            io::ErrorKind::AddrInUse => "address-in-use",
            _ => "cannot-listen",
        }
    }
}

impl Listener {
    /// Binds the address; port 0 takes a free port.
    ///
    /// # Errors
    /// [`BindError`] if the address cannot be bound.
    pub async fn bind(address: SocketAddr, settings: ListenerSettings) -> Result<Self, BindError> {
        let socket = TcpListener::bind(address).await.map_err(|error| BindError { address, error })?;
        Ok(Self::on_tcp(socket, settings))
    }

    /// Creates a listener on a bound TCP socket.
    pub fn on_tcp(listener: TcpListener, settings: ListenerSettings) -> Self {
        Self { socket: ListeningSocket::Tcp(listener), settings }
    }

    /// Creates a listener on the admin socket.
    pub fn on_socket(socket: AdminSocket, settings: ListenerSettings) -> Self {
        Self { socket: ListeningSocket::Unix(socket), settings }
    }

    /// The settings, until the listener serves.
    pub fn settings_mut(&mut self) -> &mut ListenerSettings {
        &mut self.settings
    }

    /// The bound address; `None` for a Unix socket.
    pub fn address(&self) -> Option<SocketAddr> {
        match &self.socket {
            ListeningSocket::Tcp(listener) => listener.local_addr().ok(),
            ListeningSocket::Unix(_) => None,
        }
    }

    /// Accepts connections, and passes their requests to `service`, until [`RunningListener::drain`].
    pub fn serve<S>(self, service: S) -> RunningListener
    where
        S: Service<Request<Body>, Response = Response, Error = Infallible> + Clone + Send + Sync + 'static,
        S::Future: Send,
    {
        let running = RunningListener {
            address: self.address(),
            stop: CancellationToken::new(),
            kill: CancellationToken::new(),
            tasks: TaskTracker::new(),
            drain_time: self.settings.drain_time,
        };
        let (stop, kill, tasks) = (running.stop.clone(), running.kill.clone(), running.tasks.clone());
        running.tasks.spawn(async move { self.accept(service, stop, kill, tasks).await });
        running
    }

    async fn accept<S>(
        mut self,
        service: S,
        stop: CancellationToken,
        kill: CancellationToken,
        tasks: TaskTracker,
    ) where
        S: Service<Request<Body>, Response = Response, Error = Infallible> + Clone + Send + Sync + 'static,
        S::Future: Send,
    {
        let settings = Arc::new(self.settings);
        let connections = Connections::new(settings.connections, settings.client_connections.max(1));
        while let Some(arrived) = stop.run_until_cancelled(self.socket.accept()).await {
            let (stream, peer) = match arrived {
                Ok(arrived) => arrived,
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let cut = ConnectionCloser::default();
            let Some(slot) = connections.admit(peer.counted(&settings), cut.clone()) else {
                tracing::debug!(?peer, "no place for a connection");
                continue;
            };
            let connection = ServedConnection {
                peer,
                slot: Arc::new(slot),
                cut: cut.clone(),
                service: service.clone(),
                settings: settings.clone(),
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

impl RunningListener {
    /// The bound address; `None` for a Unix socket.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Stops accepting, lets requests in flight finish, and closes the remaining connections after
    /// [`ListenerSettings::drain_time`].
    pub async fn drain(self) {
        self.drain_with(std::future::ready(())).await;
    }

    /// Drains the listener, and waits for `work` in the same time. Returns `false` if not everything has finished.
    pub async fn drain_with(self, work: impl Future<Output = ()>) -> bool {
        self.stop.cancel();
        self.tasks.close();
        let finished = async { tokio::join!(self.tasks.wait(), work) };
        if tokio::time::timeout(self.drain_time, finished).await.is_ok() {
            return true;
        }
        tracing::warn!(connections = self.tasks.len(), "cut connections that did not finish");
        self.cut().await;
        false
    }

    /// Stops without waiting for requests in flight.
    pub async fn cut(self) {
        self.stop.cancel();
        self.tasks.close();
        self.kill.cancel();
        self.tasks.wait().await;
    }
}

impl ListeningSocket {
    async fn accept(&mut self) -> io::Result<(ClientStream, ClientAddress)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                Ok((ClientStream::Tcp(stream), ClientAddress::Tcp(PeerAddress(peer))))
            }
            Self::Unix(socket) => {
                let (stream, peer) = socket.accept().await?;
                Ok((ClientStream::Unix(stream), ClientAddress::Unix(peer)))
            }
        }
    }
}

enum ClientStream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// The peer of a connection.
#[derive(Clone, Copy, Debug)]
enum ClientAddress {
    Tcp(PeerAddress),
    Unix(SocketPeer),
}

impl ClientAddress {
    /// The network whose share of the connections this one counts in; `None` for a proxy or the admin socket.
    fn counted(&self, settings: &ListenerSettings) -> Option<IpAddr> {
        let Self::Tcp(PeerAddress(address)) = self else { return None };
        (!(settings.is_proxy)(address.ip())).then(|| client_network(address.ip()))
    }
}

struct ServedConnection<S> {
    peer: ClientAddress,
    slot: Arc<ConnectionSlot>,
    cut: ConnectionCloser,
    service: S,
    settings: Arc<ListenerSettings>,
    stop: CancellationToken,
}

impl<S> ServedConnection<S>
where
    S: Service<Request<Body>, Response = Response, Error = Infallible> + Clone + Send + Sync + 'static,
    S::Future: Send,
{
    // The two protocols are boxed, because most connections are idle and should not reserve the space that the other
    // protocol needs.
    async fn run(self, stream: ClientStream) {
        let stream = match stream {
            ClientStream::Tcp(stream) => stream,
            ClientStream::Unix(stream) => return Box::pin(self.http1(stream)).await,
        };
        let _ = stream.set_nodelay(true);
        if let Some(tls) = &self.settings.tls {
            let shaken = tokio::time::timeout(HANDSHAKE_TIME, tls.acceptor().accept(stream)).await;
            return match shaken {
                Ok(Ok(stream)) if stream.get_ref().1.alpn_protocol() == Some(b"h2") => {
                    Box::pin(self.http2(stream)).await
                }
                Ok(Ok(stream)) => Box::pin(self.http1(stream)).await,
                _ => tracing::debug!(peer = ?self.peer, "no TLS handshake"),
            };
        }
        if !self.settings.http2 {
            return Box::pin(self.http1(stream)).await;
        }
        let preface = tokio::time::timeout(self.settings.header_time, begins_with_preface(&stream));
        match self.stop.run_until_cancelled(preface).await {
            Some(Ok(Ok(true))) => Box::pin(self.http2(stream)).await,
            Some(Ok(Ok(false))) => Box::pin(self.http1(stream)).await,
            _ => tracing::debug!(peer = ?self.peer, "a connection without a request"),
        }
    }

    async fn http1(self, stream: impl AsyncRead + AsyncWrite + Unpin) {
        let stream = WriteTimeout::new(stream, self.settings.write_time);
        let service = self.hyper_service();
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .half_close(self.settings.half_close)
            .header_read_timeout(self.settings.header_time)
            .max_headers(self.settings.headers)
            .max_buf_size(self.settings.head_bytes)
            .serve_connection(TokioIo::new(stream), service);
        self.drive(connection, http1::Connection::graceful_shutdown).await;
    }

    async fn http2(self, stream: impl AsyncRead + AsyncWrite + Unpin) {
        let stream = WriteTimeout::new(stream, self.settings.write_time);
        let service = self.hyper_service();
        let connection = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .max_header_list_size(u32::try_from(self.settings.head_bytes).unwrap_or(u32::MAX))
            .max_concurrent_streams(self.settings.http2_streams)
            .keep_alive_interval(PING_EVERY)
            .keep_alive_timeout(PING_TIME)
            .serve_connection(TokioIo::new(stream), service);
        self.drive(connection, http2::Connection::graceful_shutdown).await;
    }

    /// Runs a connection to its end; after a stop or at its maximum age, to the end of the request in progress.
    async fn drive<C>(&self, connection: C, wind_down: impl FnOnce(Pin<&mut C>))
    where
        C: Future<Output = hyper::Result<()>>,
    {
        let mut connection = pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = self.is_over() => {
                wind_down(connection.as_mut());
                match self.settings.age {
                    // A client must not keep an old connection by a slow request.
                    Some(_) => match tokio::time::timeout(self.settings.header_time, connection).await {
                        Ok(ended) => ended,
                        Err(_) => return,
                    },
                    None => connection.await,
                }
            }
        };
        if let Err(error) = ended {
            tracing::debug!(peer = ?self.peer, %error, "connection ended");
        }
    }

    /// Waits for the stop of the listener or the maximum age of the connection.
    async fn is_over(&self) {
        match self.settings.age {
            Some(age) => drop(tokio::time::timeout(age, self.stop.cancelled()).await),
            None => self.stop.cancelled().await,
        }
    }

    /// The service for hyper, which adds a number, the peer, and the means to close the connection to each request.
    fn hyper_service(
        &self,
    ) -> impl hyper::service::Service<
        Request<Incoming>,
        Response = Response,
        Error = Infallible,
        Future = impl Future<Output = Result<Response, Infallible>> + Send + use<S> + 'static,
    > + use<S> {
        let (service, peer, cut, slot) =
            (self.service.clone(), self.peer, self.cut.clone(), self.slot.clone());
        let (settings, stop) = (self.settings.clone(), self.stop.clone());
        service_fn(move |request: Request<Incoming>| {
            let mut request = discarding_the_rest(request, &stop);
            match peer {
                ClientAddress::Tcp(peer) => drop(request.extensions_mut().insert(peer)),
                ClientAddress::Unix(peer) => drop(request.extensions_mut().insert(peer)),
            }
            request.extensions_mut().insert(cut.clone());
            let (service, busy, settings) = (service.clone(), slot.busy(), settings.clone());
            // Boxed, so that the memory is freed when the response begins: hyper keeps the future's space for as long as
            // the connection lives.
            Box::pin(async move {
                let fault = HeadFault::of(&request);
                if let Some(fault) = fault {
                    request.extensions_mut().insert(fault);
                }
                let (id, response) = match fault.filter(|_| settings.refuses_faulty_heads) {
                    Some(fault) => numbered(refusing(fault), request, settings.access_log).await?,
                    None => numbered(service, request, settings.access_log).await?,
                };
                let mut response = problem::written(response, id, &settings.error_documentation);
                if fault.is_some_and(HeadFault::ends_connection) {
                    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                }
                Ok(without_length_of_no_content(response).map(|body| guarded(body, busy)))
            })
        })
    }
}

/// Creates a service that answers every request with the refusal of this fault.
fn refusing(
    fault: HeadFault,
) -> impl Service<Request<Body>, Response = Response, Error = Infallible, Future: Send> {
    tower::service_fn(move |_: Request<Body>| {
        std::future::ready(Ok::<_, Infallible>(fault.problem().into_response()))
    })
}

/// Removes the length from a response that has no content with any method (RFC 9110, section 8.6): axum writes it
/// into every response, and hyper sends it to HEAD.
fn without_length_of_no_content(mut response: Response) -> Response {
    if matches!(response.status(), StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED) {
        response.headers_mut().remove(CONTENT_LENGTH);
    }
    response
}

/// Peeks at the first bytes without consuming them.
async fn begins_with_preface(stream: &TcpStream) -> io::Result<bool> {
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use axum::Router;
    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// Without a write timeout the writes below would block forever, and the next connection would have no slot.
    #[tokio::test]
    async fn a_client_that_asks_and_never_reads_keeps_no_slot() {
        let write_time = Duration::from_secs(1);
        let settings =
            ListenerSettings { connections: 1, write_time: Some(write_time), ..ListenerSettings::default() };
        let listener = Listener::bind(([127, 0, 0, 1], 0).into(), settings).await.unwrap();
        let running = listener.serve(Router::new().route("/", get(|| async { "x".repeat(1 << 20) })));
        let mut silent = TcpStream::connect(running.address().unwrap()).await.unwrap();
        let asked = async { while silent.write_all(b"GET / HTTP/1.1\r\nhost: w\r\n\r\n").await.is_ok() {} };
        tokio::time::timeout(write_time * 30, asked).await.expect("the connection is cut");
        let served = async {
            let mut next = TcpStream::connect(running.address().unwrap()).await.unwrap();
            next.write_all(b"GET / HTTP/1.1\r\nhost: w\r\n\r\n").await.unwrap();
            next.readable().await.unwrap();
        };
        tokio::time::timeout(write_time * 30, served).await.expect("the next has its slot");
        running.cut().await;
    }

    #[tokio::test]
    async fn a_response_that_has_no_content_has_no_length_either_also_to_head() {
        let routes = Router::new()
            .route("/204", get(|| async { StatusCode::NO_CONTENT }))
            .route("/304", get(|| async { StatusCode::NOT_MODIFIED }))
            .route("/200", get(|| async { "here" }));
        let listener = Listener::bind(([127, 0, 0, 1], 0).into(), ListenerSettings::default());
        let running = listener.await.unwrap().serve(routes);
        for method in ["GET", "HEAD"] {
            for (status, expected) in [("204", None), ("304", None), ("200", Some("content-length: 4"))] {
                let mut stream = TcpStream::connect(running.address().unwrap()).await.unwrap();
                let request = format!("{method} /{status} HTTP/1.1\r\nhost: w\r\nconnection: close\r\n\r\n");
                stream.write_all(request.as_bytes()).await.unwrap();
                let mut received = String::new();
                stream.read_to_string(&mut received).await.unwrap();
                assert!(received.starts_with(&format!("HTTP/1.1 {status}")), "{received}");
                let length = received.lines().find(|line| line.starts_with("content-length"));
                assert_eq!(length, expected, "{method}: {received}");
            }
        }
        running.cut().await;
    }
}
