//! The network of a client, as the unit that limits apply to.

use std::net::{IpAddr, Ipv6Addr};

/// Returns the address by which a client is counted: for IPv6 its /64 network, because one client usually has all
/// addresses of it.
pub fn client_network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() => {
            Ipv6Addr::from(u128::from(address) >> 64 << 64).into()
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_network_is_one_client_and_an_ipv4_address_is_one() {
        let network = |text: &str| text.parse().map(client_network).ok();
        assert_eq!(network("2001:db8::1"), network("2001:db8::ffff:1"));
        assert_ne!(network("2001:db8::1"), network("2001:db8:0:1::1"));
        assert_ne!(network("192.0.2.1"), network("192.0.2.2"));
        assert_eq!(network("::ffff:192.0.2.1"), network("192.0.2.1"));
        assert!(network("::1").is_some_and(|address| address.is_loopback()));
    }
}
