//! Authentication and rate limits of the public listener. They never decide what is registered, and audits ignore them.
//!
//! A bearer token determines its client's bucket and role; without one the bucket is the address, a /64 for IPv6.
//! `X-Forwarded-For` is trusted only from listed proxies. A request that ends in a 5xx is not counted. Beyond the limit
//! the response is 429 with `Retry-After` (SCRAPI -11, 2.3.4 and 5.3). The response to a request that was counted, or that
//! is over the limit, carries the remaining quota (`RateLimit`, `RateLimit-Policy`:
//! draft-ietf-httpapi-ratelimit-headers-10).

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use arc_swap::ArcSwap;
use axum::extract::{MatchedPath, Request};
use axum::response::{IntoResponse, Response};
use data_encoding::BASE64;
use http::header::AUTHORIZATION;
use http::{HeaderMap, Method};
use secrecy::ExposeSecret;
use serving::listener::PeerAddress;
use serving::network::client_network;
use sha2::{Digest, Sha256};
use store::QuotaStore;
use subtle::ConstantTimeEq;

use crate::config::roles::CallerRole;
use crate::config::roles::ClosedTypes;
use crate::config::{AccessConfig, ClientToken, Network};
use crate::edge::access::{AuthenticatedCaller, needed};
use crate::edge::problem::Problem;
use crate::limits::{Limits, Rate};
use crate::quota::issuer_quota::{IssuerCharge, IssuerQuota};
use crate::quota::meter::{RateBucket, RateMeter};
use crate::quota::rates::{IssuerRates, OverRate};
use crate::time::now;

/// Reason why the middleware refuses a request.
#[derive(Clone, Copy, Debug)]
pub enum AccessRefusal {
    /// A token is required, and the request has none.
    NoToken,
    /// The token is unknown or expired.
    UnknownToken,
    /// The client is over its rate limit.
    OverRate(OverRate),
}

/// The rate limiter and the table of tokens. Reloadable.
pub struct AccessControl {
    rules: ArcSwap<AccessRules>,
}

struct AccessRules {
    tokens: Vec<RegisteredToken>,
    anonymous: AuthenticatedCaller,
    closed_types: Arc<ClosedTypes>,
    cors_origins: Vec<String>,
    token_required: bool,
    trusted_proxies: Vec<Network>,
    writes: Arc<RateMeter>,
    reads: Arc<RateMeter>,
    issuer: Option<Arc<IssuerQuota>>,
}

/// A token of the configuration. Only the digest of its secret is kept.
struct RegisteredToken {
    digest: [u8; 32],
    caller: AuthenticatedCaller,
    expires: Option<u64>,
}

impl AccessControl {
    /// Creates a rate limiter from the configuration.
    pub fn new(access: &AccessConfig, limits: &Limits) -> Self {
        let writes = Arc::new(RateMeter::new("writes", limits.writes));
        let reads = Arc::new(RateMeter::new("reads", limits.reads));
        let issuer = IssuerQuota::at(limits.into());
        Self { rules: ArcSwap::from_pointee(AccessRules::new(access, writes, reads, issuer)) }
    }

    /// Applies a new configuration. Counts are kept where the rate is unchanged.
    pub fn reload(&self, access: &AccessConfig, limits: &Limits) {
        let old = self.rules.load_full();
        let keep = |meter: &Arc<RateMeter>, rate: Rate| {
            if meter.rate() == rate { meter.clone() } else { Arc::new(RateMeter::new(meter.name, rate)) }
        };
        let rates = IssuerRates::from(limits);
        let issuer = match &old.issuer {
            Some(quota) if *quota.rates() == rates => Some(quota.clone()),
            _ => IssuerQuota::at(rates),
        };
        let (writes, reads) = (keep(&old.writes, limits.writes), keep(&old.reads, limits.reads));
        self.rules.store(Arc::new(AccessRules::new(access, writes, reads, issuer)));
    }

    /// The caller with this bearer token; `None` without a token or with an unknown one.
    pub fn caller(&self, headers: &HeaderMap) -> Option<AuthenticatedCaller> {
        let rules = self.rules.load();
        let index = rules.known(bearer(headers)?)?;
        Some(rules.tokens.get(index)?.caller.clone())
    }

    /// The content types whose bodies only auditors may read.
    pub fn closed_types(&self) -> Arc<ClosedTypes> {
        self.rules.load().closed_types.clone()
    }

    /// Returns `true` if a web page of this origin may read non-public resources.
    pub fn admits_origin(&self, origin: &str) -> bool {
        self.rules.load().cors_origins.iter().any(|listed| listed == "*" || listed == origin)
    }

    /// Returns `true` if this address is a trusted proxy, which serves many clients.
    pub fn is_proxy(&self, address: IpAddr) -> bool {
        self.rules.load().is_proxy(address)
    }

    /// The uncharged [`IssuerCharge`] of a registration, to be charged to its issuer once its signature is verified.
    pub fn issuer_charge(&self) -> IssuerCharge {
        IssuerCharge::at(self.rules.load().issuer.clone())
    }

    /// Removes the counters of clients without recent requests.
    pub async fn sweep(&self, counters: &dyn QuotaStore) {
        let rules = self.rules.load_full();
        rules.writes.sweep();
        rules.reads.sweep();
        if let Some(quota) = &rules.issuer {
            quota.sweep(counters).await;
        }
    }
}

/// The counter that a request was charged to, for handlers that charge one request several times.
#[derive(Clone)]
pub struct RequestCharge {
    meter: Arc<RateMeter>,
    bucket: RateBucket,
}

impl RequestCharge {
    /// Charges one more request.
    pub fn charge(&self) -> Result<(), OverRate> {
        self.meter.charge(self.bucket).map(|_| ())
    }

    /// The bucket of the request's client.
    pub fn bucket(&self) -> RateBucket {
        self.bucket
    }

    /// Refunds one request that failed through no fault of the client.
    pub fn refund(&self) {
        self.meter.refund(self.bucket);
    }
}

/// Determines the bucket of a request, charges it, and refunds a request that `answer` ends in a 5xx.
pub async fn authenticate_and_limit<A: Future<Output = Response>>(
    access_control: &AccessControl,
    mut request: Request,
    answer: impl FnOnce(Request) -> A,
) -> Response {
    let rules = access_control.rules.load_full();
    let reads = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    let meter = if reads { &rules.reads } else { &rules.writes };
    let arrived = rules.client_of(&request, reads);
    let charged = arrived.and_then(|(bucket, caller)| Ok((bucket, charge_once(meter, bucket)?, caller)));
    let (bucket, left, caller) = match charged {
        Ok(charged) => charged,
        Err(refusal) => return refuse(refusal, meter),
    };
    if let Err(problem) = may_use(&caller, &request) {
        let mut response = problem.into_response();
        meter.write_headers(response.headers_mut(), left, None);
        return response;
    }
    request.extensions_mut().insert(RequestCharge { meter: meter.clone(), bucket });
    request.extensions_mut().insert(caller);
    let mut response = answer(request).await;
    if response.status().is_server_error() {
        meter.refund(bucket);
    }
    meter.write_headers(response.headers_mut(), left, None);
    response
}

/// Refuses a caller whose role is below the route's ([`needed`]). A path without a route passes: the router answers it.
fn may_use(caller: &AuthenticatedCaller, request: &Request) -> Result<(), Problem> {
    let Some(route) = request.extensions().get::<MatchedPath>() else { return Ok(()) };
    let needed = needed(route.as_str()).ok_or_else(|| {
        tracing::error!(route = route.as_str(), "no role is listed for this route: all callers are refused");
        Problem::internal()
    })?;
    caller.must_be(needed)
}

fn refuse(refusal: AccessRefusal, meter: &RateMeter) -> Response {
    let mut response = Problem::from(refusal).into_response();
    if let AccessRefusal::OverRate(over) = refusal {
        meter.write_headers(response.headers_mut(), 0, Some(over.seconds()));
    }
    response
}

impl AccessRules {
    fn new(
        access: &AccessConfig,
        writes: Arc<RateMeter>,
        reads: Arc<RateMeter>,
        issuer: Option<Arc<IssuerQuota>>,
    ) -> Self {
        let anonymous = access.anonymous_role;
        Self {
            tokens: access.tokens.iter().map(|token| RegisteredToken::of(token, anonymous)).collect(),
            anonymous: AuthenticatedCaller::anonymous(anonymous),
            closed_types: Arc::new(access.closed_types.clone()),
            cors_origins: access.cors_origins.clone(),
            token_required: access.token_required,
            trusted_proxies: access.trusted_proxies.clone(),
            writes,
            reads,
            issuer,
        }
    }

    /// The bucket that a request is counted in, and its caller.
    fn client_of(
        &self,
        request: &Request,
        reads: bool,
    ) -> Result<(RateBucket, AuthenticatedCaller), AccessRefusal> {
        let Some(secret) = secret(request.headers(), reads) else {
            if self.token_required && !reads {
                return Err(AccessRefusal::NoToken);
            }
            return Ok((self.address_bucket(request), self.anonymous.clone()));
        };
        let index = self.known(&secret).ok_or_else(|| self.unknown_token(request))?;
        Ok((RateBucket::Token(index), self.tokens[index].caller.clone()))
    }

    /// Charges a request with an unknown token to its address, which limits guessing.
    fn unknown_token(&self, request: &Request) -> AccessRefusal {
        charge_once(&self.writes, self.address_bucket(request)).err().unwrap_or(AccessRefusal::UnknownToken)
    }

    /// Compares the secret with every token in constant time. An expired token is not found.
    fn known(&self, secret: &[u8]) -> Option<usize> {
        let digest = Sha256::digest(secret);
        let mut found = None;
        for (index, token) in self.tokens.iter().enumerate() {
            if bool::from(token.digest.as_slice().ct_eq(digest.as_slice())) {
                found = Some(index);
            }
        }
        found.filter(|index| self.tokens[*index].expires.is_none_or(|expires| now() < expires))
    }

    fn is_proxy(&self, address: IpAddr) -> bool {
        self.trusted_proxies.iter().any(|net| net.holds(address))
    }

    /// The bucket of a client without a token.
    fn address_bucket(&self, request: &Request) -> RateBucket {
        RateBucket::Address(client_network(self.client_address(request)))
    }

    /// The client's address: the last hop that is not a trusted proxy.
    fn client_address(&self, request: &Request) -> IpAddr {
        let Some(PeerAddress(peer)) = request.extensions().get::<PeerAddress>().copied() else {
            return IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        };
        let mut client = peer.ip();
        for hop in forwarded(request.headers()).rev() {
            if !self.is_proxy(client) {
                break;
            }
            let Some(hop) = hop else { break };
            client = hop;
        }
        client
    }
}

fn charge_once(meter: &RateMeter, bucket: RateBucket) -> Result<u32, AccessRefusal> {
    meter.charge(bucket).map_err(AccessRefusal::OverRate)
}

/// The hops of `X-Forwarded-For`, in order; `None` for a hop that is not an IP address, with or without a port.
fn forwarded(headers: &HeaderMap) -> impl DoubleEndedIterator<Item = Option<IpAddr>> {
    let lines = headers.get_all("x-forwarded-for").iter().filter_map(|line| line.to_str().ok());
    let hops: Vec<_> = lines.flat_map(|line| line.split(',')).map(|hop| hop_address(hop.trim())).collect();
    hops.into_iter()
}

/// Parses a hop. Some load balancers add the client's port, and then write an IPv6 address in brackets.
fn hop_address(hop: &str) -> Option<IpAddr> {
    let unbracketed = hop.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(hop);
    let with_port = || hop.parse::<SocketAddr>().ok().map(|address| address.ip());
    unbracketed.parse().ok().or_else(with_port)
}

/// The token of a request. For reads it may be a password (RFC 7617) of any user: a browser has no other way to send it.
fn secret(headers: &HeaderMap, reads: bool) -> Option<Vec<u8>> {
    let token = bearer(headers).map(<[u8]>::to_vec);
    token.or_else(|| password(headers).filter(|_| reads))
}

fn password(headers: &HeaderMap) -> Option<Vec<u8>> {
    let value = headers.get(AUTHORIZATION)?.as_bytes();
    let (scheme, credentials) = value.split_at_checked(6)?;
    let credentials = credentials.trim_ascii();
    let pair = BASE64.decode(credentials).ok().filter(|_| scheme.eq_ignore_ascii_case(b"basic "))?;
    let colon = pair.iter().position(|byte| *byte == b':')?;
    Some(pair[colon + 1..].to_vec())
}

fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(AUTHORIZATION)?.as_bytes();
    let (scheme, secret) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| secret.trim_ascii())
}

impl RegisteredToken {
    fn of(token: &ClientToken, anonymous: CallerRole) -> Self {
        let caller = AuthenticatedCaller {
            name: Some(token.name.as_str().into()),
            role: token.role.unwrap_or(anonymous),
            scope: Arc::new(token.scope.clone()),
        };
        let digest = Sha256::digest(token.secret.expose_secret().as_bytes()).into();
        Self { digest, caller, expires: token.expires }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(peer: &str, forwarded: &[&str]) -> Request {
        let mut request = Request::new(axum::body::Body::empty());
        request.extensions_mut().insert(PeerAddress(SocketAddr::new(peer.parse().unwrap(), 1)));
        for line in forwarded {
            request.headers_mut().append("x-forwarded-for", line.parse().unwrap());
        }
        request
    }

    fn access_control(proxies: &[&str]) -> AccessControl {
        let trusted_proxies = proxies.iter().map(|net| net.parse().unwrap()).collect();
        AccessControl::new(&AccessConfig { trusted_proxies, ..AccessConfig::default() }, &Limits::default())
    }

    fn client(access_control: &AccessControl, peer: &str, forwarded: &[&str]) -> String {
        access_control.rules.load().client_address(&request(peer, forwarded)).to_string()
    }

    #[test]
    fn forwarded_headers_are_believed_only_from_listed_proxies() {
        let access_control = access_control(&["10.0.0.0/8"]);
        assert_eq!(client(&access_control, "203.0.113.9", &["198.51.100.1"]), "203.0.113.9");
        assert_eq!(client(&access_control, "10.0.0.1", &["198.51.100.1"]), "198.51.100.1");
        // Hops that the client itself claims are left of those that the trusted proxies saw.
        assert_eq!(
            client(&access_control, "10.0.0.1", &["1.1.1.1, 198.51.100.1", "10.0.0.2"]),
            "198.51.100.1"
        );
        assert_eq!(client(&access_control, "10.0.0.1", &["nonsense"]), "10.0.0.1");
    }

    #[test]
    fn a_forwarded_address_may_have_a_port_and_brackets() {
        let access_control = access_control(&["10.0.0.0/8"]);
        for (hop, address) in [
            ("198.51.100.1:4711", "198.51.100.1"),
            ("[2001:db8::1]:4711", "2001:db8::1"),
            ("[2001:db8::1]", "2001:db8::1"),
            ("2001:db8::1", "2001:db8::1"),
            ("198.51.100.1:", "10.0.0.1"),
            ("[198.51.100.1", "10.0.0.1"),
            ("client.example:80", "10.0.0.1"),
        ] {
            assert_eq!(client(&access_control, "10.0.0.1", &[hop]), address, "{hop}");
        }
    }

    #[test]
    fn a_client_without_a_token_is_counted_by_its_network() {
        let access_control = access_control(&[]);
        let bucket = |peer: &str| access_control.rules.load().address_bucket(&request(peer, &[]));
        assert_eq!(bucket("2001:db8:1:2:3::1"), bucket("2001:db8:1:2:ffff::9"));
        assert_ne!(bucket("2001:db8:1:2:3::1"), bucket("2001:db8:1:3::1"));
        assert_eq!(bucket("::ffff:192.0.2.1"), bucket("192.0.2.1"));
    }
}
