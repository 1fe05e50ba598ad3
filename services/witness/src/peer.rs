//! Limits for peers: the number of connections, and a timeout for writes.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

use crate::limits::{PEER_CONNECTIONS, WRITE_TIME};

/// Number of connections of each peer.
#[derive(Clone, Debug, Default)]
pub struct Peers(Arc<Mutex<HashMap<IpAddr, usize>>>);

/// A counted connection; released on drop.
#[derive(Debug)]
pub struct Peer(Option<(Peers, IpAddr)>);

impl Peers {
    /// Counts a connection; `None` if the peer has [`PEER_CONNECTIONS`] already.
    pub fn enter(&self, address: IpAddr) -> Option<Peer> {
        let Some(peer) = counted(address) else { return Some(Peer(None)) };
        let mut peers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = peers.entry(peer).or_default();
        if *count >= PEER_CONNECTIONS {
            return None;
        }
        *count += 1;
        Some(Peer(Some((self.clone(), peer))))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let Some((peers, peer)) = &self.0 else { return };
        let mut peers = peers.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = peers.get_mut(peer) {
            *count -= 1;
            if *count == 0 {
                peers.remove(peer);
            }
        }
    }
}

/// The unit that an address is counted for: an IPv6 customer has a whole /64 network. `None` for loopback, the reverse
/// proxy.
fn counted(address: IpAddr) -> Option<IpAddr> {
    let address = address.to_canonical();
    match address {
        _ if address.is_loopback() => None,
        IpAddr::V4(_) => Some(address),
        IpAddr::V6(address) => Some(Ipv6Addr::from(u128::from(address) >> 64 << 64).into()),
    }
}

/// A stream whose writes fail after the peer has read nothing for [`WRITE_TIME`].
pub struct Impatient {
    stream: TcpStream,
    /// Timer of a pending write.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl Impatient {
    /// Wraps a stream.
    pub fn new(stream: TcpStream) -> Self {
        Self { stream, waiting: None }
    }

    fn in_time<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.waiting = None;
            return written;
        }
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(sleep(WRITE_TIME)));
        ready!(waiting.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the peer does not read")))
    }
}

impl AsyncRead for Impatient {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Impatient {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.in_time(context, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.in_time(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_peer_does_not_take_all_connections() {
        let peers = Peers::default();
        let at = |text: &str| text.parse::<IpAddr>().expect("an address");
        let held: Vec<Peer> =
            (0..PEER_CONNECTIONS).map(|_| peers.enter(at("2001:db8::1")).expect("room")).collect();
        assert!(peers.enter(at("2001:db8::ffff:2")).is_none(), "the same network");
        assert!(peers.enter(at("2001:db8:0:1::1")).is_some());
        assert!(peers.enter(at("192.0.2.1")).is_some());
        drop(held);
        assert!(peers.enter(at("2001:db8::1")).is_some());
        assert!(peers.0.lock().expect("whole").is_empty(), "who has left is forgotten");
    }
}
