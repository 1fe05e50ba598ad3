//! The limit on connections per client address.
//!
//! Proxies on this machine stand for many clients and are not counted. A proxy on another machine is counted, and does
//! not need more than [`ADDRESS_CONNECTIONS`].

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

use crate::limits::ADDRESS_CONNECTIONS;

/// The number of open connections of each address.
#[derive(Clone, Debug, Default)]
pub struct Addresses(Arc<Mutex<HashMap<IpAddr, usize>>>);

/// One counted connection; it is released on drop.
#[derive(Debug)]
pub struct Counted(Option<(Addresses, IpAddr)>);

impl Addresses {
    /// Counts one more connection; `None` if the address has [`ADDRESS_CONNECTIONS`] already.
    pub fn enter(&self, address: IpAddr) -> Option<Counted> {
        let address = client(address);
        if address.is_loopback() {
            return Some(Counted(None));
        }
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(address).or_default();
        if *count >= ADDRESS_CONNECTIONS {
            return None;
        }
        *count += 1;
        Some(Counted(Some((self.clone(), address))))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let Some((addresses, address)) = &self.0 else { return };
        let mut counts = addresses.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(address) {
            *count -= 1;
            if *count == 0 {
                counts.remove(address);
            }
        }
    }
}

/// The address by which a client is counted: for IPv6 its /64 network, because one client usually has all addresses of
/// it.
pub fn client(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() => {
            Ipv6Addr::from(u128::from(address) >> 64 << 64).into()
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn at(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn an_address_has_a_share_of_the_connections_and_others_are_not_kept_out() {
        let addresses = Addresses::default();
        let mut open: Vec<Counted> =
            (0..ADDRESS_CONNECTIONS).map(|_| addresses.enter(at("2001:db8::1")).unwrap()).collect();
        for same in ["2001:db8::1", "2001:db8::ffff:1"] {
            assert!(addresses.enter(at(same)).is_none(), "{same} is of the same network");
        }
        for other in ["2001:db8:0:1::1", "192.0.2.1", "127.0.0.1", "::1"] {
            assert!(addresses.enter(at(other)).is_some(), "{other}");
        }
        open.pop();
        assert!(addresses.enter(at("2001:db8::1")).is_some(), "one was closed");
    }

    #[test]
    fn a_proxy_on_this_machine_is_not_counted() {
        let addresses = Addresses::default();
        let open: Vec<_> =
            (0..ADDRESS_CONNECTIONS + 1).map(|_| addresses.enter(at("::ffff:127.0.0.1"))).collect();
        assert!(open.iter().all(Option::is_some));
        drop(open);
        assert!(addresses.0.lock().unwrap().is_empty(), "nothing is kept of what is gone");
    }
}
