//! The network of a client, as the unit that limits apply to, and addresses in settings.

use std::net::{IpAddr, Ipv6Addr};

use url::Url;

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

/// Parses the address of an HTTP service or page. `None` if it is not an HTTP URL, or has credentials, a query or a fragment.
pub(crate) fn http_address(text: &str) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    let is_http = matches!(url.scheme(), "http" | "https");
    let has_more = url.query().is_some() || url.fragment().is_some();
    let has_credentials = !url.username().is_empty() || url.password().is_some();
    (is_http && !has_more && !has_credentials).then_some(url)
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
