//! Processing of a request: the checks that all protocols share, in their order, then the protocol of the endpoint.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use axum::body::Body;
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::IntoResponse;
use http::{Request, StatusCode};
use serving::http_metrics::{HttpMetrics, measured};
use serving::network::client_network;
use serving::rate_limit::RateLimiter;
use tower::ServiceExt;

use super::origin::{self, WebOrigin};
use super::refusal::RequestRefusal;
use super::{Authorized, AuthorizedRequest, Draining, Plan, Route, client_certificate, headers};
use crate::relay::Response;

/// The HTTP service for clients.
pub struct Front {
    plan: ArcSwap<Plan>,
    rate: ArcSwap<RateLimiter<IpAddr>>,
    http: Arc<HttpMetrics>,
    pub(super) draining: Draining,
}

impl Front {
    /// A front end that serves this plan, and records how long requests take.
    pub fn new(plan: Plan, http: Arc<HttpMetrics>) -> Arc<Self> {
        Arc::new(Self {
            rate: ArcSwap::from_pointee(RateLimiter::new(plan.intake.rate())),
            plan: ArcSwap::from_pointee(with_measured_pages(plan, &http)),
            http,
            draining: Draining::default(),
        })
    }

    /// Replaces the plan. Requests in flight finish with the previous one.
    pub fn reload(&self, plan: Plan) {
        let rate = plan.intake.rate();
        if self.rate.load().rate() != rate {
            self.rate.store(Arc::new(RateLimiter::new(rate)));
        }
        self.plan.store(Arc::new(with_measured_pages(plan, &self.http)));
    }

    /// Removes idle addresses from the rate limiter.
    pub(super) fn sweep(&self) {
        self.rate.load().sweep();
    }

    /// The maximum number of open connections.
    pub(super) fn connections(&self) -> usize {
        self.plan.load().intake.connections
    }

    /// Answers a request of this client address.
    pub async fn answer(&self, address: IpAddr, request: Request<Body>) -> Response {
        let plan = self.plan.load_full();
        let path = request.uri().path();
        let Some(route) = plan.routes.iter().find(|route| route.path == path) else {
            return self.page(&plan, address, request).await;
        };
        let (method, begun) = (request.method().clone(), Instant::now());
        let in_flight = self.http.in_flight();
        let response = self.answer_at_endpoint(&plan, route, address, request).await;
        drop(in_flight);
        self.http.answered(&method, &route.path, response.status(), begun.elapsed());
        response
    }

    /// Answers a request for a page. The router of the pages also answers one of an address that is over its rate, as only
    /// the router knows the page by whose route the request is measured.
    async fn page(&self, plan: &Plan, address: IpAddr, mut request: Request<Body>) -> Response {
        if let Some(wait) = self.over_rate(address) {
            request.extensions_mut().insert(OverRate(wait));
        }
        let page: Result<Response, std::convert::Infallible> = plan.pages.clone().oneshot(request).await;
        page.unwrap_or_else(|never| match never {})
    }

    /// Answers a request at an endpoint after the checks of its address, its certificate and its web origin.
    async fn answer_at_endpoint(
        &self,
        plan: &Plan,
        route: &Route,
        address: IpAddr,
        request: Request<Body>,
    ) -> Response {
        if let Some(wait) = self.over_rate(address) {
            return RequestRefusal::TooMany(wait).into_response();
        }
        let (mut head, body) = request.into_parts();
        let is_trusted = plan.certificate_proxies.contains(&address.to_canonical());
        let certificate = match client_certificate::take(&mut head.headers, is_trusted) {
            Ok(certificate) => certificate,
            Err(refusal) => return refusal.into_response(),
        };
        let page = match origin::check(&head, plan) {
            Ok(page) => page,
            Err(refusal) => return refusal.into_response(),
        };
        if page.is_some() && origin::is_preflight(&head) {
            return readable(origin::preflight(&head), page);
        }
        let sender = Sender { address, certificate };
        let request = Request::from_parts(head, body);
        readable(self.answer_protocol(route, request, sender, plan.intake.body_bytes).await, page)
    }

    /// Counts a request of this client address, and returns the time to wait if the address is over its rate.
    fn over_rate(&self, address: IpAddr) -> Option<Duration> {
        self.rate.load().charge(client_network(address)).err()
    }

    /// Answers a request of the client that started this process. It came over no network, so there are no rate limit, no
    /// web pages and no proxies.
    pub async fn answer_local(&self, request: Request<Body>) -> Response {
        let plan = self.plan.load_full();
        let path = request.uri().path();
        let Some(route) = plan.routes.iter().find(|route| route.path == path).cloned() else {
            return StatusCode::NOT_FOUND.into_response();
        };
        let sender = Sender { address: IpAddr::V4(Ipv4Addr::LOCALHOST), certificate: None };
        self.answer_protocol(&route, request, sender, plan.intake.body_bytes).await
    }

    /// Ends endless streams, and waits for requests in flight, at most for this time.
    pub async fn finish(&self, most: Duration) {
        if tokio::time::timeout(most, self.draining.finish()).await.is_err() {
            self.draining.give_up();
        }
    }

    /// Checks the head of a request, authenticates its sender, and lets the protocol of the endpoint answer.
    async fn answer_protocol(
        &self,
        route: &Route,
        request: Request<Body>,
        sender: Sender,
        body_bytes: usize,
    ) -> Response {
        let (head, body) = request.into_parts();
        let Sender { address, certificate } = sender;
        let checked = headers::refuse_repeated(&head.headers, &headers::SINGLE);
        if let Err(refusal) = checked.and_then(|()| route.protocol.check(&head)) {
            return refusal.into_response();
        }
        let authorized = match route.admits.admit(&head).await {
            Ok(authorized) => Authorized { certificate, ..authorized },
            Err(response) => return *response,
        };
        let draining = self.draining.clone();
        route
            .protocol
            .answer(AuthorizedRequest { head, authorized, draining, body, body_bytes, address })
            .await
    }
}

/// The sender of a request as the connection shows it.
struct Sender {
    address: IpAddr,
    /// The thumbprint of the client certificate that a trusted proxy sent.
    certificate: Option<String>,
}

/// A mark of a request whose address is over its rate: the time to wait.
#[derive(Clone, Copy)]
struct OverRate(Duration);

/// Returns a plan whose pages refuse the requests that are marked [`OverRate`], and measure all.
fn with_measured_pages(mut plan: Plan, http: &Arc<HttpMetrics>) -> Plan {
    plan.pages =
        plan.pages.layer(from_fn(refuse_over_rate)).layer(from_fn_with_state(http.clone(), measured));
    plan
}

/// Middleware: refuses a request that is marked [`OverRate`].
async fn refuse_over_rate(request: Request<Body>, next: Next) -> Response {
    match request.extensions().get().copied() {
        Some(OverRate(wait)) => RequestRefusal::TooMany(wait).into_response(),
        None => next.run(request).await,
    }
}

fn readable(mut response: Response, page: Option<WebOrigin>) -> Response {
    if let Some(page) = page {
        page.allow_reading(response.headers_mut());
    }
    response
}
