//! The open connections of a listener, and the choice of one to close when there is no room for a new one.
//!
//! A network (an IPv4 address or an IPv6 /64) may have a share of all connections. A client above its share loses its own
//! connection that was idle longest; at the total limit, the network with the most connections loses one. So neither a flood nor a client that
//! forgets to close excludes others. A connection that is answering a request is never closed for this.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio_util::sync::CancellationToken;

/// Closes the connection of a request, for example when its client does not read the response. The listener adds it
/// to the extensions of each request.
#[derive(Clone, Default)]
pub struct ConnectionCloser(pub CancellationToken);

/// The open connections of one listener.
pub struct Connections {
    most: usize,
    of_network: usize,
    started: Instant,
    open: Mutex<ConnectionTable>,
}

#[derive(Default)]
struct ConnectionTable {
    next: u64,
    connections: HashMap<u64, OpenConnection>,
    /// Number of open connections of each network; there are no zeros.
    counts: HashMap<Option<IpAddr>, usize>,
}

struct OpenConnection {
    /// The client's network; `None` for a trusted proxy or the admin socket, which have no share.
    from: Option<IpAddr>,
    cut: ConnectionCloser,
    activity: Arc<ConnectionActivity>,
}

/// The number of requests in progress on a connection, and the time it became idle.
#[derive(Default)]
pub struct ConnectionActivity {
    requests: AtomicU32,
    /// Milliseconds from the listener's start to the moment the connection last became idle.
    idle_since: AtomicU64,
}

/// The registration of one connection in [`Connections`], until it is dropped.
pub struct ConnectionSlot {
    connections: Arc<Connections>,
    number: u64,
    /// The connection's activity.
    pub activity: Arc<ConnectionActivity>,
}

/// Guard of a request in progress: the connection is not idle until it is dropped.
pub struct BusyGuard {
    connections: Arc<Connections>,
    activity: Arc<ConnectionActivity>,
}

impl Connections {
    /// Creates a table for `most` connections in all and `of_network` from one network.
    pub fn new(most: usize, of_network: usize) -> Arc<Self> {
        Arc::new(Self { most, of_network, started: Instant::now(), open: Mutex::default() })
    }

    /// Registers a new connection. `None` if there is no room and no idle connection to close.
    pub fn admit(self: &Arc<Self>, from: Option<IpAddr>, cut: ConnectionCloser) -> Option<ConnectionSlot> {
        let mut open = self.open();
        let full = match from {
            Some(_) if open.counts.get(&from).is_some_and(|count| *count >= self.of_network) => Some(from),
            _ if open.connections.len() >= self.most => Some(open.most_numerous()),
            _ => None,
        };
        if let Some(from) = full {
            open.cut_longest_idle(from)?;
        }
        let activity = Arc::new(ConnectionActivity::default());
        activity.idle_since.store(self.now(), Ordering::Relaxed);
        let number = open.next;
        open.next += 1;
        *open.counts.entry(from).or_default() += 1;
        open.connections.insert(number, OpenConnection { from, cut, activity: activity.clone() });
        Some(ConnectionSlot { connections: self.clone(), number, activity })
    }

    fn open(&self) -> MutexGuard<'_, ConnectionTable> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl ConnectionTable {
    fn most_numerous(&self) -> Option<IpAddr> {
        self.counts.iter().max_by_key(|(_, count)| **count).and_then(|(from, _)| *from)
    }

    /// Closes the longest idle connection of this network; `None` if all of them are answering requests.
    fn cut_longest_idle(&mut self, from: Option<IpAddr>) -> Option<()> {
        let of_network = self.connections.iter().filter(|(_, connection)| connection.from == from);
        let idle = of_network.filter(|(_, connection)| connection.activity.is_idle());
        let since = |connection: &OpenConnection| connection.activity.idle_since.load(Ordering::Relaxed);
        let (number, _) = idle.min_by_key(|(number, connection)| (since(connection), **number))?;
        let number = *number;
        self.remove(number)?.cut.0.cancel();
        Some(())
    }

    fn remove(&mut self, number: u64) -> Option<OpenConnection> {
        let connection = self.connections.remove(&number)?;
        if let Entry::Occupied(mut count) = self.counts.entry(connection.from) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
        Some(connection)
    }
}

impl ConnectionActivity {
    fn is_idle(&self) -> bool {
        self.requests.load(Ordering::Relaxed) == 0
    }
}

impl ConnectionSlot {
    /// Marks the connection as busy until the returned guard is dropped.
    pub fn busy(&self) -> BusyGuard {
        self.activity.requests.fetch_add(1, Ordering::Relaxed);
        BusyGuard { connections: self.connections.clone(), activity: self.activity.clone() }
    }
}

impl Drop for BusyGuard {
    fn drop(&mut self) {
        self.activity.idle_since.store(self.connections.now(), Ordering::Relaxed);
        self.activity.requests.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.connections.open().remove(self.number);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::net::Ipv4Addr;

    use super::*;

    const ONE: Option<IpAddr> = Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)));
    const OTHER: Option<IpAddr> = Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2)));

    fn admit(
        connections: &Arc<Connections>,
        from: Option<IpAddr>,
    ) -> Option<(ConnectionSlot, ConnectionCloser)> {
        let cut = ConnectionCloser::default();
        Some((connections.admit(from, cut.clone())?, cut))
    }

    #[test]
    fn an_address_that_has_its_share_loses_its_longest_idle_connection_to_its_next() {
        let connections = Connections::new(10, 2);
        let (first, first_cut) = admit(&connections, ONE).unwrap();
        let (_second, second_cut) = admit(&connections, ONE).unwrap();
        let (_other, other_cut) = admit(&connections, OTHER).unwrap();
        let busy = first.busy();
        let (_third, _) = admit(&connections, ONE).unwrap();
        assert!(second_cut.0.is_cancelled(), "the first one is answering a request");
        assert!(!first_cut.0.is_cancelled() && !other_cut.0.is_cancelled());
        drop(busy);
    }

    #[test]
    fn a_newcomer_of_an_address_whose_whole_share_is_busy_is_refused() {
        let connections = Connections::new(10, 1);
        let (place, _) = admit(&connections, ONE).unwrap();
        let busy = place.busy();
        assert!(admit(&connections, ONE).is_none());
        assert!(admit(&connections, OTHER).is_some());
        drop(busy);
        assert!(admit(&connections, ONE).is_some());
    }

    #[test]
    fn when_all_places_are_taken_the_address_with_the_most_connections_makes_room() {
        let connections = Connections::new(3, 3);
        let (_quiet, quiet_cut) = admit(&connections, OTHER).unwrap();
        let (_first, first_cut) = admit(&connections, ONE).unwrap();
        let (_second, _) = admit(&connections, ONE).unwrap();
        assert!(admit(&connections, Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 3)))).is_some());
        assert!(first_cut.0.is_cancelled() && !quiet_cut.0.is_cancelled());
    }

    #[test]
    fn a_connection_that_ends_gives_its_place_back() {
        let connections = Connections::new(1, 1);
        drop(admit(&connections, ONE).unwrap());
        let (place, cut) = admit(&connections, ONE).unwrap();
        assert!(!cut.0.is_cancelled());
        drop(place);
        assert!(connections.open().counts.is_empty());
    }
}
