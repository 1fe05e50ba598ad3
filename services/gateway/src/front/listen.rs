//! The clients' listener: its settings, and the drain of a [`Front`].
//!
//! HTTP/1.1 and HTTP/2 (with prior knowledge) share one port; TLS is terminated before the gateway.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http::Request;
use serving::limits::HEADER_TIME;
use serving::listener::{Listener, ListenerSettings, PeerAddress, RunningListener};
use tokio::net::TcpListener;

use super::Front;
use crate::limits::{ADDRESS_CONNECTIONS, DRAIN_TIME, HTTP2_STREAMS};

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
        Self { head: HEADER_TIME, drain: DRAIN_TIME }
    }
}

/// A running listener with its connections.
pub struct Serving {
    /// The address of the listener.
    pub address: SocketAddr,
    front: Arc<Front>,
    listener: RunningListener,
}

impl Front {
    /// Serves the connections of this listener.
    ///
    /// # Errors
    /// If the listener has no local address.
    pub fn serve(self: &Arc<Self>, listener: TcpListener, times: Times) -> io::Result<Serving> {
        let address = listener.local_addr()?;
        let settings = ListenerSettings {
            http2: true,
            http2_streams: HTTP2_STREAMS,
            // A client that closes its side counts as gone: nothing else shows that while it waits for an answer.
            half_close: false,
            header_time: times.head,
            drain_time: times.drain,
            ..settings(self.connections())
        };
        let front = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let front = front.clone();
            let peer = request.extensions().get().map(|PeerAddress(peer)| peer.ip());
            let peer = peer.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
            async move { Ok::<_, Infallible>(front.answer(peer, request).await) }
        });
        let listener = Listener::on_tcp(listener, settings).serve(service);
        tokio::spawn(sweep(self.clone()));
        Ok(Serving { address, front: self.clone(), listener })
    }
}

impl Serving {
    /// Stops accepting connections, ends endless streams, lets requests in flight finish, and cuts what is left after
    /// [`Times::drain`]. Calls of disconnected clients are waited for as well, because their outcome is yet to be
    /// recorded.
    pub async fn drain(self) {
        let draining = &self.front.draining;
        if !self.listener.drain_with(draining.finish()).await {
            draining.give_up();
        }
    }
}

/// Settings of a listener with this many connections. Proxies on this machine stand for many clients; a proxy on another
/// machine does not need more than [`ADDRESS_CONNECTIONS`].
pub fn settings(connections: usize) -> ListenerSettings {
    ListenerSettings {
        connections,
        client_connections: ADDRESS_CONNECTIONS,
        is_proxy: Arc::new(|address| address.to_canonical().is_loopback()),
        ..ListenerSettings::default()
    }
}

async fn sweep(front: Arc<Front>) {
    while tokio::time::timeout(SWEEP, front.draining.stop.cancelled()).await.is_err() {
        front.sweep();
    }
}
