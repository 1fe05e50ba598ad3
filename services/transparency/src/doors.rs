//! Authentication and rate limits of the public listener. They never decide what is registered, and audits ignore them.
//!
//! A bearer token determines its client's bucket and role; without one the bucket is the address, a /64 for IPv6.
//! `X-Forwarded-For` is trusted only from listed proxies. A request that ends in a 5xx is not counted. Beyond the limit
//! the response is 429 with `Retry-After` (SCRAPI -11, 2.3.4 and 5.3). Every response carries the remaining quota
//! (`RateLimit`, `RateLimit-Policy`: draft-ietf-httpapi-ratelimit-headers-10).

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use governor::clock::{Clock, DefaultClock};
use governor::middleware::StateInformationMiddleware;
use governor::state::keyed::DefaultKeyedStateStore;
use governor::{Quota, RateLimiter};
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use secrecy::ExposeSecret;
use sha2::{Digest, Sha256};
use store::Quotas;
use subtle::ConstantTimeEq;

use crate::access::{Caller, CallerRole, needed};
use crate::config::{ClosedTypes, Doors, Network, Token};
use crate::issuer_door::{Bill, IssuerDoor};
use crate::issuer_quota::{Issuer, IssuerRates};
use crate::limits::{Limits, RATE_BUCKETS, RATE_COUNT_EVERY, Rate};
use crate::problem::Problem;
use crate::watch::now;

/// The peer address of a TCP connection, put into each request by the listener.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub SocketAddr);

/// The key of a rate counter: requests with the same bucket are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bucket {
    /// A client with the configuration's token of this index.
    Token(usize),
    /// A client at this IPv4 address.
    V4(Ipv4Addr),
    /// A client in this IPv6 /64.
    V6Net(u64),
    /// An issuer, while this process counts it without the database.
    Issuer(Issuer),
    /// All addresses and issuers together, once there are more than [`RATE_BUCKETS`].
    Crowd,
}

impl Bucket {
    /// The bucket to count in once there are too many. Tokens keep their own, since the configuration bounds their
    /// number.
    fn crowded(self) -> Bucket {
        match self {
            Bucket::Token(_) => self,
            Bucket::V4(_) | Bucket::V6Net(_) | Bucket::Issuer(_) | Bucket::Crowd => Bucket::Crowd,
        }
    }
}

/// A client is over its rate limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverRate {
    /// The allowed rate.
    pub rate: Rate,
    /// The time until the next request is allowed.
    pub wait: Duration,
}

impl OverRate {
    /// The wait in whole seconds, rounded up, for `Retry-After`.
    pub fn seconds(&self) -> u64 {
        self.wait.as_secs() + u64::from(self.wait.subsec_nanos() > 0)
    }
}

/// Reason why the middleware refuses a request.
#[derive(Clone, Copy, Debug)]
pub enum TurnedAway {
    /// A token is required, and the request has none.
    NoToken,
    /// The token is unknown or expired.
    UnknownToken,
    /// The client is over its rate limit.
    OverRate(OverRate),
}

/// The rate limiter and the table of tokens. Reloadable.
pub struct Doorkeeper {
    orders: ArcSwap<Orders>,
}

struct Orders {
    tokens: Vec<KnownToken>,
    anonymous: Caller,
    closed_types: Arc<ClosedTypes>,
    cors_origins: Vec<String>,
    token_required: bool,
    trusted_proxies: Vec<Network>,
    writes: Arc<Meter>,
    reads: Arc<Meter>,
    issuer: Option<Arc<IssuerDoor>>,
}

/// A token of the configuration. Only the digest of its secret is kept.
struct KnownToken {
    digest: [u8; 32],
    caller: Caller,
    expires: Option<u64>,
}

impl Doorkeeper {
    /// Creates a rate limiter from the configuration.
    pub fn new(doors: &Doors, limits: &Limits) -> Self {
        let writes = Arc::new(Meter::new("writes", limits.writes));
        let reads = Arc::new(Meter::new("reads", limits.reads));
        let issuer = IssuerDoor::at(limits.into());
        Self { orders: ArcSwap::from_pointee(Orders::new(doors, writes, reads, issuer)) }
    }

    /// Applies a new configuration. Counts are kept where the rate is unchanged.
    pub fn reload(&self, doors: &Doors, limits: &Limits) {
        let old = self.orders.load_full();
        let keep = |meter: &Arc<Meter>, rate: Rate| {
            if meter.rate == rate { meter.clone() } else { Arc::new(Meter::new(meter.name, rate)) }
        };
        let rates = IssuerRates::from(limits);
        let issuer = match &old.issuer {
            Some(door) if *door.rates() == rates => Some(door.clone()),
            _ => IssuerDoor::at(rates),
        };
        let (writes, reads) = (keep(&old.writes, limits.writes), keep(&old.reads, limits.reads));
        self.orders.store(Arc::new(Orders::new(doors, writes, reads, issuer)));
    }

    /// The caller with this bearer token; `None` without a token or with an unknown one.
    pub fn caller(&self, headers: &HeaderMap) -> Option<Caller> {
        let orders = self.orders.load();
        let place = orders.known(bearer(headers)?)?;
        Some(orders.tokens.get(place)?.caller.clone())
    }

    /// The content types whose bodies only auditors may read.
    pub fn closed_types(&self) -> Arc<ClosedTypes> {
        self.orders.load().closed_types.clone()
    }

    /// Returns `true` if a web page of this origin may read non-public resources.
    pub fn admits_origin(&self, origin: &str) -> bool {
        self.orders.load().cors_origins.iter().any(|listed| listed == "*" || listed == origin)
    }

    /// Returns `true` if this address is a trusted proxy, which serves many clients.
    pub fn is_proxy(&self, address: IpAddr) -> bool {
        self.orders.load().is_proxy(address)
    }

    /// The uncharged [`Bill`] of a registration, to be charged to its issuer once its signature is verified.
    pub fn bill(&self) -> Bill {
        Bill::at(self.orders.load().issuer.clone())
    }

    /// Removes the counters of clients without recent requests.
    pub async fn sweep(&self, counters: &dyn Quotas) {
        let orders = self.orders.load_full();
        orders.writes.sweep();
        orders.reads.sweep();
        if let Some(door) = &orders.issuer {
            door.sweep(counters).await;
        }
    }
}

/// The counter that a request was charged to, for handlers that charge one request several times.
#[derive(Clone)]
pub struct Turnstile {
    meter: Arc<Meter>,
    bucket: Bucket,
}

impl Turnstile {
    /// Charges one more request.
    pub fn charge(&self) -> Result<(), OverRate> {
        self.meter.charge(self.bucket).map(|_| ())
    }

    /// The bucket of the request's client.
    pub fn bucket(&self) -> Bucket {
        self.bucket
    }

    /// Refunds one request that failed through no fault of the client.
    pub fn give_back(&self) {
        self.meter.give_back(self.bucket);
    }
}

/// Middleware: determines the bucket, charges it, and refunds a request that ends in a 5xx.
pub async fn enter(State(keeper): State<Arc<Doorkeeper>>, mut request: Request, next: Next) -> Response {
    let orders = keeper.orders.load_full();
    let reads = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    let meter = if reads { &orders.reads } else { &orders.writes };
    let arrived = orders.arrival(&request, reads);
    let charged = arrived.and_then(|(bucket, caller)| Ok((bucket, meter.charge_once(bucket)?, caller)));
    let (bucket, left, caller) = match charged {
        Ok(charged) => charged,
        Err(turned_away) => return refuse(turned_away, meter),
    };
    if let Err(problem) = may_use(&caller, &request) {
        let mut response = problem.into_response();
        meter.tell(response.headers_mut(), left, None);
        return response;
    }
    request.extensions_mut().insert(Turnstile { meter: meter.clone(), bucket });
    request.extensions_mut().insert(caller);
    let mut response = next.run(request).await;
    if response.status().is_server_error() {
        meter.give_back(bucket);
    }
    meter.tell(response.headers_mut(), left, None);
    response
}

/// Refuses a caller whose role is below the route's ([`needed`]). A path without a route passes: the router answers it.
fn may_use(caller: &Caller, request: &Request) -> Result<(), Problem> {
    let Some(route) = request.extensions().get::<MatchedPath>() else { return Ok(()) };
    let needed = needed(route.as_str()).ok_or_else(|| {
        tracing::error!(route = route.as_str(), "no role is listed for this route: nobody may use it");
        Problem::internal()
    })?;
    caller.must_be(needed)
}

fn refuse(turned_away: TurnedAway, meter: &Meter) -> Response {
    let mut response = Problem::from(turned_away).into_response();
    if let TurnedAway::OverRate(over) = turned_away {
        meter.tell(response.headers_mut(), 0, Some(over.seconds()));
    }
    response
}

impl Orders {
    fn new(doors: &Doors, writes: Arc<Meter>, reads: Arc<Meter>, issuer: Option<Arc<IssuerDoor>>) -> Self {
        let anonymous = doors.anonymous_role;
        Self {
            tokens: doors.tokens.iter().map(|token| KnownToken::of(token, anonymous)).collect(),
            anonymous: Caller::anonymous(anonymous),
            closed_types: Arc::new(doors.closed_types.clone()),
            cors_origins: doors.cors_origins.clone(),
            token_required: doors.token_required,
            trusted_proxies: doors.trusted_proxies.clone(),
            writes,
            reads,
            issuer,
        }
    }

    /// The bucket that a request is counted in, and its caller.
    fn arrival(&self, request: &Request, reads: bool) -> Result<(Bucket, Caller), TurnedAway> {
        let Some(secret) = bearer(request.headers()) else {
            if self.token_required && !reads {
                return Err(TurnedAway::NoToken);
            }
            return Ok((address_bucket(self.client_address(request)), self.anonymous.clone()));
        };
        let place = self.known(secret).ok_or_else(|| self.unknown_token(request))?;
        Ok((Bucket::Token(place), self.tokens[place].caller.clone()))
    }

    /// Charges a request with an unknown token to its address, which limits guessing.
    fn unknown_token(&self, request: &Request) -> TurnedAway {
        let guesser = address_bucket(self.client_address(request));
        self.writes.charge_once(guesser).err().unwrap_or(TurnedAway::UnknownToken)
    }

    /// Compares the secret with every token in constant time. An expired token is not found.
    fn known(&self, secret: &[u8]) -> Option<usize> {
        let digest = Sha256::digest(secret);
        let mut found = None;
        for (place, token) in self.tokens.iter().enumerate() {
            if bool::from(token.digest.as_slice().ct_eq(digest.as_slice())) {
                found = Some(place);
            }
        }
        found.filter(|place| self.tokens[*place].expires.is_none_or(|expires| now() < expires))
    }

    fn is_proxy(&self, address: IpAddr) -> bool {
        self.trusted_proxies.iter().any(|net| net.holds(address))
    }

    /// The client's address: the last hop that is not a trusted proxy.
    fn client_address(&self, request: &Request) -> IpAddr {
        let Some(Peer(peer)) = request.extensions().get::<Peer>().copied() else {
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

/// The hops of `X-Forwarded-For`, in order; `None` for a hop that is not an IP address.
fn forwarded(headers: &HeaderMap) -> impl DoubleEndedIterator<Item = Option<IpAddr>> {
    let lines = headers.get_all("x-forwarded-for").iter().filter_map(|line| line.to_str().ok());
    let hops: Vec<_> = lines.flat_map(|line| line.split(',')).map(|hop| hop.trim().parse().ok()).collect();
    hops.into_iter()
}

/// The bucket of a client at this address.
pub fn address_bucket(address: IpAddr) -> Bucket {
    match address.to_canonical() {
        IpAddr::V4(address) => Bucket::V4(address),
        IpAddr::V6(address) => Bucket::V6Net((address.to_bits() >> 64) as u64),
    }
}

fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(AUTHORIZATION)?.as_bytes();
    let (scheme, secret) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| secret.trim_ascii())
}

impl KnownToken {
    fn of(token: &Token, anonymous: CallerRole) -> Self {
        let caller = Caller {
            name: Some(token.name.as_str().into()),
            role: token.role.unwrap_or(anonymous),
            scope: Arc::new(token.scope.clone()),
        };
        let digest = Sha256::digest(token.secret.expose_secret().as_bytes()).into();
        Self { digest, caller, expires: token.expires }
    }
}

type Limiter = RateLimiter<Bucket, DefaultKeyedStateStore<Bucket>, DefaultClock, StateInformationMiddleware>;

/// A rate limit with one counter per bucket.
pub struct Meter {
    name: &'static str,
    rate: Rate,
    /// The `RateLimit-Policy` field: the burst (`q`) and the seconds in which it is replenished (`w`).
    policy: Option<HeaderValue>,
    limiter: Limiter,
    clock: DefaultClock,
    charged: AtomicU64,
    crowded: AtomicBool,
    /// Refunds per bucket: requests that were charged and then failed through no fault of the client.
    given_back: Mutex<HashMap<Bucket, u32>>,
}

impl Meter {
    /// Creates a meter with this rate. Clients see `name` in `RateLimit`.
    pub fn new(name: &'static str, rate: Rate) -> Self {
        let quota = Quota::with_period(rate.interval()).unwrap_or(Quota::per_second(rate.requests));
        let quota = quota.allow_burst(rate.burst);
        let window = (rate.interval() * rate.burst.get()).as_secs_f64().ceil() as u64;
        let policy = format!("\"{name}\";q={};w={}", rate.burst, window.max(1));
        Self {
            name,
            rate,
            policy: HeaderValue::from_str(&policy).ok(),
            limiter: RateLimiter::keyed(quota).with_middleware(),
            clock: DefaultClock::default(),
            charged: AtomicU64::new(0),
            crowded: AtomicBool::new(false),
            given_back: Mutex::default(),
        }
    }

    fn charge_once(&self, bucket: Bucket) -> Result<u32, TurnedAway> {
        self.charge(bucket).map_err(TurnedAway::OverRate)
    }

    /// Charges one request and returns how many more are allowed at once.
    pub fn charge(&self, bucket: Bucket) -> Result<u32, OverRate> {
        let bucket = if self.is_crowded() { bucket.crowded() } else { bucket };
        match self.limiter.check_key(&bucket) {
            Ok(state) => Ok(state.remaining_burst_capacity()),
            Err(_) if self.take_back(bucket) => Ok(0),
            Err(early) => Err(OverRate { rate: self.rate, wait: early.wait_time_from(self.clock.now()) }),
        }
    }

    /// Returns `true` if there are more than [`RATE_BUCKETS`] buckets. Counting them locks the whole map, so it happens
    /// only every [`RATE_COUNT_EVERY`] charges.
    fn is_crowded(&self) -> bool {
        if self.charged.fetch_add(1, Ordering::Relaxed).is_multiple_of(RATE_COUNT_EVERY) {
            self.crowded.store(self.limiter.len() > RATE_BUCKETS, Ordering::Relaxed);
        }
        self.crowded.load(Ordering::Relaxed)
    }

    fn tell(&self, headers: &mut HeaderMap, left: u32, wait: Option<u64>) {
        let wait = wait.map_or_else(String::new, |seconds| format!(";t={seconds}"));
        if let (Some(policy), Ok(state)) =
            (&self.policy, HeaderValue::from_str(&format!("\"{}\";r={left}{wait}", self.name)))
        {
            headers.insert(HeaderName::from_static("ratelimit-policy"), policy.clone());
            headers.insert(HeaderName::from_static("ratelimit"), state);
        }
    }

    /// Refunds one request.
    pub fn give_back(&self, bucket: Bucket) {
        let mut given = self.given_back.lock().unwrap_or_else(PoisonError::into_inner);
        if given.len() < RATE_BUCKETS {
            let credit = given.entry(bucket).or_default();
            *credit = (*credit + 1).min(self.rate.burst.get());
        }
    }

    fn take_back(&self, bucket: Bucket) -> bool {
        let mut given = self.given_back.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(credit) = given.get_mut(&bucket) else { return false };
        *credit -= 1;
        if *credit == 0 {
            given.remove(&bucket);
        }
        true
    }

    /// Removes the buckets that are fully replenished, and all refunds.
    pub fn sweep(&self) {
        self.limiter.retain_recent();
        self.limiter.shrink_to_fit();
        self.given_back.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(peer: &str, forwarded: &[&str]) -> Request {
        let mut request = Request::new(axum::body::Body::empty());
        request.extensions_mut().insert(Peer(SocketAddr::new(peer.parse().unwrap(), 1)));
        for line in forwarded {
            request.headers_mut().append("x-forwarded-for", line.parse().unwrap());
        }
        request
    }

    fn keeper(proxies: &[&str]) -> Doorkeeper {
        let trusted_proxies = proxies.iter().map(|net| net.parse().unwrap()).collect();
        Doorkeeper::new(&Doors { trusted_proxies, ..Doors::default() }, &Limits::default())
    }

    fn client(keeper: &Doorkeeper, peer: &str, forwarded: &[&str]) -> String {
        keeper.orders.load().client_address(&request(peer, forwarded)).to_string()
    }

    #[test]
    fn forwarded_headers_are_believed_only_from_listed_proxies() {
        let keeper = keeper(&["10.0.0.0/8"]);
        assert_eq!(client(&keeper, "203.0.113.9", &["198.51.100.1"]), "203.0.113.9");
        assert_eq!(client(&keeper, "10.0.0.1", &["198.51.100.1"]), "198.51.100.1");
        // Hops that the client itself claims are left of those that the trusted proxies saw.
        assert_eq!(client(&keeper, "10.0.0.1", &["1.1.1.1, 198.51.100.1", "10.0.0.2"]), "198.51.100.1");
        assert_eq!(client(&keeper, "10.0.0.1", &["nonsense"]), "10.0.0.1");
    }

    #[test]
    fn an_ipv6_client_is_its_64_bit_network() {
        let one = address_bucket("2001:db8:1:2:3::1".parse().unwrap());
        let other = address_bucket("2001:db8:1:2:ffff::9".parse().unwrap());
        let foreign = address_bucket("2001:db8:1:3::1".parse().unwrap());
        assert_eq!(one, other);
        assert_ne!(one, foreign);
        assert_eq!(
            address_bucket("::ffff:192.0.2.1".parse().unwrap()),
            address_bucket("192.0.2.1".parse().unwrap())
        );
    }

    #[test]
    fn a_token_keeps_its_share_among_more_addresses_than_are_counted() {
        let meter = Meter::new("writes", Rate::per_second(1, 2));
        for net in 0..(RATE_BUCKETS as u64 + 2 * RATE_COUNT_EVERY) {
            let _ = meter.charge(Bucket::V6Net(net));
        }
        assert!(meter.charge(Bucket::V6Net(u64::MAX)).is_err(), "newcomers share one bucket");
        assert!(meter.charge(Bucket::Token(0)).is_ok());
    }

    #[test]
    fn a_request_that_failed_through_our_fault_is_given_back() {
        let meter = Meter::new("writes", Rate::per_second(1, 1));
        let bucket = Bucket::Crowd;
        assert!(meter.charge(bucket).is_ok());
        let refused = meter.charge(bucket).unwrap_err();
        assert!(refused.wait > Duration::ZERO && refused.wait <= Duration::from_secs(1));
        meter.give_back(bucket);
        assert!(meter.charge(bucket).is_ok());
        assert!(meter.charge(bucket).is_err());
    }
}
