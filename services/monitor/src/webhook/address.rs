//! Address filter for webhooks, against server-side request forgery into the operator's network.
//!
//! Host names are resolved when the connection is made and the result is filtered then: a name that had a public
//! address when the configuration was read may have a private one later. IP addresses in a URL never reach the resolver
//! and are checked at startup. Only known public addresses pass.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::Host;

/// Error: the target's address is not public.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not a public address: set allow_private for this webhook if that is meant")]
pub struct NotPublic(pub String);

/// Rejects a URL whose host is an IP address that is not public.
pub fn check_literal(url: &Url) -> Result<(), NotPublic> {
    let address = match url.host() {
        Some(Host::Ipv4(address)) => IpAddr::V4(address),
        Some(Host::Ipv6(address)) => IpAddr::V6(address),
        _ => return Ok(()),
    };
    if is_public(address) { Ok(()) } else { Err(NotPublic(address.to_string())) }
}

/// Returns `true` for globally reachable addresses outside the special-purpose registries.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// Excludes the IANA special-purpose registry (RFC 6890), multicast and reserved addresses.
fn is_public_v4(address: Ipv4Addr) -> bool {
    let special = matches!(
        address.octets(),
        [0 | 10 | 127, ..]
            | [100, 64..=127, ..]
            | [169, 254, ..]
            | [172, 16..=31, ..]
            | [192, 168, ..]
            | [192, 0, 0 | 2, _]
            | [192, 88, 99, _]
            | [198, 18 | 19, ..]
            | [198, 51, 100, _]
            | [203, 0, 113, _]
            | [224..=255, ..]
    );
    !special
}

/// Accepts global unicast (2000::/3) without its special-purpose blocks; an embedded IPv4 address decides instead, if
/// there is one.
fn is_public_v6(address: Ipv6Addr) -> bool {
    if let Some(inner) = carried(address) {
        return is_public_v4(inner);
    }
    let segments = address.segments();
    let special =
        matches!(segments, [0x2001, 0..=0x01ff, ..] | [0x2001, 0x0db8, ..] | [0x3fff, 0..=0x0fff, ..]);
    (0x2000..=0x3fff).contains(&segments[0]) && !special
}

/// The IPv4 address embedded in an IPv4-mapped, NAT64 (64:ff9b::/96) or 6to4 address.
fn carried(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let from = |high: u16, low: u16| Ipv4Addr::from_bits((u32::from(high) << 16) | u32::from(low));
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(from(high, low)),
        [0x2002, high, low, ..] => Some(from(high, low)),
        _ => None,
    }
}

/// DNS resolver that drops addresses which are not public.
#[derive(Debug)]
pub struct PublicOnly;

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let name = name.as_str().to_owned();
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let public: Vec<SocketAddr> =
                found.iter().copied().filter(|address| is_public(address.ip())).collect();
            if public.is_empty() && !found.is_empty() {
                return Err(NotPublic(name).into());
            }
            Ok(Box::new(public.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_inside_somebodys_network_is_not_public() {
        for text in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "127.9.9.9",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.51.100.1",
            "203.0.113.9",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "64:ff9b::a00:1",
            "64:ff9b:1::1",
            "fc00::1",
            "fd12::1",
            "fe80::1",
            "ff02::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "2001::1",
            "3fff::1",
            "100::1",
        ] {
            assert!(!is_public(text.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn what_everybody_reaches_is_public() {
        for text in [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "198.20.0.1",
            "223.255.255.255",
            "2606:4700::1111",
            "2001:4860:4860::8888",
            "64:ff9b::808:808",
            "2002:808:808::1",
            "::ffff:8.8.8.8",
        ] {
            assert!(is_public(text.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn an_address_in_a_url_is_judged_however_it_is_written() {
        for url in [
            "https://127.0.0.1/",
            "https://127.1/",
            "https://0x7f000001/",
            "https://2130706433/",
            "https://0177.0.0.1/",
            "https://[::1]/",
            "https://[::ffff:127.0.0.1]/",
            "http://169.254.169.254/x",
        ] {
            assert!(check_literal(&url.parse().unwrap()).is_err(), "{url}");
        }
        check_literal(&"https://hooks.example/x".parse().unwrap()).unwrap();
        check_literal(&"https://1.1.1.1/x".parse().unwrap()).unwrap();
    }

    #[tokio::test]
    async fn a_name_that_means_a_private_address_is_refused_when_it_is_resolved() {
        let Err(refused) = PublicOnly.resolve("localhost".parse().unwrap()).await else {
            panic!("localhost is not public");
        };
        assert!(refused.downcast_ref::<NotPublic>().is_some(), "{refused}");
    }
}
