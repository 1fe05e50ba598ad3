//! Processing of a request: the checks in their order, then the handlers or the upstream.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use admission::invocation::{AiInvocation, KEYS};
use admission::principal::{Caller, Era};
use arc_swap::ArcSwap;
use axum::body::Body;
use axum::response::IntoResponse;
use http::request::Parts;
use http::{Method, Request, StatusCode};
use serving::network::client_network;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

use super::inbound::{InvocationMember, chain_material};
use super::origin::{self, WebOrigin};
use super::owners::Owners;
use super::pace::AddressRateLimit;
use super::refusal::{self, RequestRefusal, unanswered};
use super::resumption::Resumptions;
use super::taps::{Advertising, Listening};
use super::timed::Timed;
use super::watched::{ending_with, watched};
use super::{Authorized, Inbound, Opening, Plan, Route, VAP_KEYS, VAP_SLOTS, headers, intake, mirrors};
use crate::frame::{Frame, Kind, TOOLS_CALL};
use crate::limits::RESUME_PAUSE;
use crate::relay;
use crate::relay::{Client, Response};
use crate::telemetry::Telemetry;
use crate::upstream::request::speaks_modern;
use crate::upstream::{ClientName, Exchange, UpstreamAnswer, UpstreamError};

/// The method that only the gateway answers.
const AMEND: &str = "vap/amend";
/// The legacy method that opens a session.
const INITIALIZE: &str = "initialize";
/// The modern method whose answer does not end by itself.
const SUBSCRIBE: &str = "subscriptions/listen";

/// The HTTP service for clients.
pub struct Front {
    plan: ArcSwap<Plan>,
    pace: ArcSwap<AddressRateLimit>,
    resumptions: Resumptions,
    owners: Owners,
    telemetry: OnceLock<Arc<Telemetry>>,
    pub(super) tasks: TaskTracker,
    pub(super) stop: CancellationToken,
}

impl Front {
    /// A front end that serves this plan.
    pub fn new(plan: Plan) -> Arc<Self> {
        Arc::new(Self {
            pace: ArcSwap::from_pointee(AddressRateLimit::new(&plan.intake)),
            plan: ArcSwap::from_pointee(plan),
            resumptions: Resumptions::default(),
            owners: Owners::default(),
            telemetry: OnceLock::new(),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        })
    }

    /// Replaces the plan. Requests in flight finish with the previous one.
    pub fn reload(&self, plan: Plan) {
        if !self.pace.load().is_at(&plan.intake) {
            self.pace.store(Arc::new(AddressRateLimit::new(&plan.intake)));
        }
        self.plan.store(Arc::new(plan));
    }

    /// Sets the telemetry that measures all messages from now on. Later calls are ignored.
    pub fn time(&self, telemetry: Arc<Telemetry>) {
        let _ = self.telemetry.set(telemetry);
    }

    /// Removes idle addresses from the rate limiter.
    pub(super) fn sweep(&self) {
        self.pace.load().sweep();
    }

    /// The maximum number of open connections.
    pub(super) fn connections(&self) -> usize {
        self.plan.load().intake.connections
    }

    /// Answers a request of this client address.
    pub async fn answer(&self, address: IpAddr, request: Request<Body>) -> Response {
        if let Err(wait) = self.pace.load().charge(address) {
            return RequestRefusal::TooMany(wait).into_response();
        }
        let plan = self.plan.load_full();
        let path = request.uri().path();
        let Some(route) = plan.routes.iter().find(|route| route.path == path).cloned() else {
            let page: Result<Response, std::convert::Infallible> = plan.pages.clone().oneshot(request).await;
            return page.unwrap_or_else(|never| match never {});
        };
        let (head, body) = request.into_parts();
        let page = match origin::check(&head, &plan) {
            Ok(page) => page,
            Err(refusal) => return refusal.into_response(),
        };
        let visit = Visit { front: self, route, head, address };
        let answer = visit.answer(body, page.is_some(), plan.intake.body_bytes).await;
        readable(answer.unwrap_or_else(IntoResponse::into_response), page)
    }
}

fn readable(mut response: Response, page: Option<WebOrigin>) -> Response {
    if let Some(page) = page {
        page.may_read(response.headers_mut());
    }
    response
}

/// One request at one endpoint.
struct Visit<'a> {
    front: &'a Front,
    route: Arc<Route>,
    head: Parts,
    address: IpAddr,
}

impl Visit<'_> {
    async fn answer(self, body: Body, from_page: bool, limit: usize) -> Result<Response, RequestRefusal> {
        if from_page && origin::is_preflight(&self.head) {
            return Ok(origin::preflight(&self.head));
        }
        if !refusal::is_served(&self.head.method) {
            return Err(RequestRefusal::Method);
        }
        self.refuse_repeated_headers()?;
        let admitted = match self.route.admits.admit(&self.head).await {
            Ok(admitted) => admitted,
            Err(response) => return Ok(*response),
        };
        let (owners, path) = (&self.front.owners, &self.route.path);
        if self.session().is_some_and(|session| owners.is_of_another(path, session, admitted.token.as_ref()))
        {
            return Err(RequestRefusal::NoSession);
        }
        match self.head.method {
            Method::POST => self.post(admitted, body, limit).await,
            Method::GET => Ok(self.get(admitted).await),
            _ => Ok(self.delete(admitted).await),
        }
    }

    /// Refuses repeated headers: the gateway might read one of them, and the upstream another.
    fn refuse_repeated_headers(&self) -> Result<(), RequestRefusal> {
        let once = [
            ("Mcp-Session-Id", headers::SESSION),
            ("MCP-Protocol-Version", headers::VERSION),
            ("Mcp-Method", headers::METHOD),
        ];
        match once.iter().find(|(_, name)| headers::repeats(&self.head.headers, name)) {
            Some((name, _)) => Err(RequestRefusal::RepeatedHeader(name)),
            None => Ok(()),
        }
    }

    async fn post(self, admitted: Authorized, body: Body, limit: usize) -> Result<Response, RequestRefusal> {
        let address = client_network(self.address);
        let counted = (!address.is_loopback()).then_some(address);
        let text = intake::read(&self.head.headers, body, limit, counted).await?;
        let frame = Frame::parse(text).map_err(RequestRefusal::Message)?;
        let era = mirrors::era(&frame, &self.head.headers);
        if era == Era::Modern {
            mirrors::check(&frame, &self.head.headers)?;
        }
        let (client, gone) = self.client(era);
        let stop = (frame.method() == Some(SUBSCRIBE)).then(|| self.front.stop.clone());
        let timed = Timed::begin(self.front.telemetry.get(), &frame, &self.head.headers);
        let opener = (frame.method() == Some(INITIALIZE)).then(|| admitted.token.clone()).flatten();
        let (front, path) = (self.front, self.route.path.clone());
        let inbound = self.inbound(frame, admitted, client)?;
        let response = timed.over(dispatched(inbound)).await?;
        front.owners.opened(&path, &response, opener.as_ref());
        let response = watched(response, gone);
        Ok(match stop {
            Some(stop) => ending_with(response, stop),
            None => response,
        })
    }

    fn client(&self, era: Era) -> (Client, tokio_util::sync::DropGuard) {
        let count = self.front.resumptions.of(&self.route.path, self.session());
        let accepts =
            self.head.headers.get_all(http::header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let reads_events = accepts.into_iter().any(|value| value.contains("text/event-stream"));
        Client::new(era, reads_events, count, self.front.tasks.clone())
    }

    fn inbound(self, whole: Frame, admitted: Authorized, client: Client) -> Result<Inbound, RequestRefusal> {
        let caller = self.caller(&admitted, client.era());
        let chain = chain_material(&whole, &self.head.headers);
        let invocation = invocation(&whole);
        let mut hidden = VAP_KEYS.to_vec();
        if !self.route.forward_invocation {
            hidden.extend(KEYS);
        }
        let exchange = self.exchange(admitted, whole.without_meta(&hidden));
        let frame = match invocation {
            None => whole,
            Some(_) => Frame::parse(whole.without_meta(&KEYS)).map_err(RequestRefusal::Message)?,
        };
        let era = client.era();
        Ok(Inbound { route: self.route, exchange, frame, chain, invocation, era, caller, client })
    }

    async fn get(self, admitted: Authorized) -> Response {
        let caller = self.caller(&admitted, self.era());
        let exchange = self.exchange(admitted, bytes::Bytes::new());
        let resumes = exchange.headers.contains_key(headers::LAST_EVENT);
        let let_go = self.session().filter(|_| resumes);
        let let_go = let_go.is_some_and(|session| self.front.resumptions.resumed(&self.route.path, session));
        match self.listened(exchange, let_go).await {
            Ok(answer) => {
                let tap = Listening { route: self.route, caller, own: None };
                ending_with(relay::watch(answer, Box::new(tap)).await, self.front.stop.clone())
            }
            Err(error) => unanswered(None, &error),
        }
    }

    /// Opens the GET stream; retries once after a conflict, if a reader of the stream was released just now and the
    /// server may not know it yet.
    async fn listened(&self, exchange: Exchange, let_go: bool) -> Result<UpstreamAnswer, UpstreamError> {
        let answer = self.route.upstream.exchange(exchange.clone()).await?;
        if !let_go || answer.status != StatusCode::CONFLICT {
            return Ok(answer);
        }
        drop(answer);
        tokio::time::sleep(RESUME_PAUSE).await;
        self.route.upstream.exchange(exchange).await
    }

    async fn delete(self, admitted: Authorized) -> Response {
        let caller = self.caller(&admitted, self.era());
        let exchange = self.exchange(admitted, bytes::Bytes::new());
        match self.route.upstream.exchange(exchange).await {
            Ok(answer) => {
                if answer.status.is_success() || answer.status == StatusCode::NOT_FOUND {
                    self.route.handlers.ended(&caller).await;
                }
                relay::pass(answer)
            }
            Err(error) => unanswered(None, &error),
        }
    }

    fn client_name(&self, admitted: &Authorized) -> ClientName {
        match &admitted.token {
            Some(token) => ClientName::Token(token.iss.clone(), token.sub.clone()),
            None if self.address.to_canonical().is_loopback() => ClientName::LocalProxy,
            None => ClientName::Address(client_network(self.address)),
        }
    }

    fn era(&self) -> Era {
        match speaks_modern(&self.head.headers) {
            true => Era::Modern,
            false => Era::Legacy,
        }
    }

    fn session(&self) -> Option<&str> {
        headers::text(&self.head.headers, &headers::SESSION)
    }

    fn caller(&self, admitted: &Authorized, era: Era) -> Caller {
        Caller {
            era,
            token: admitted.token.clone(),
            certificate: admitted.certificate.clone(),
            mcp_session: self.session().map(str::to_owned),
            is_given: self.session().is_some_and(|session| self.route.handlers.gave(session)),
            route: self.route.path.clone(),
        }
    }

    fn exchange(&self, admitted: Authorized, body: bytes::Bytes) -> Exchange {
        let client = self.client_name(&admitted);
        let headers = headers::to_upstream(&self.head.headers, admitted.authorization);
        Exchange { method: self.head.method.clone(), headers, body, client }
    }
}

/// Reads the caller's statement about its reasons. If both keys are present with different values, neither is believed,
/// and the audit record shows a malformed statement (S-1).
fn invocation(frame: &Frame) -> Option<InvocationMember> {
    let found: Vec<_> = KEYS.iter().filter_map(|key| Some((*key, frame.meta(key)?))).collect();
    match found.as_slice() {
        [] => None,
        [(key, text)] => Some(InvocationMember { key, invocation: AiInvocation::read(text) }),
        [(key, text), rest @ ..] => {
            let agree = rest.iter().all(|(_, other)| other == text);
            let text = if agree { text } else { "" };
            Some(InvocationMember { key, invocation: AiInvocation::read(text) })
        }
    }
}

async fn dispatched(inbound: Inbound) -> Result<Response, RequestRefusal> {
    match inbound.frame.kind() {
        Kind::Request => request(inbound).await,
        Kind::Notification if inbound.frame.method() == Some(AMEND) => Err(RequestRefusal::AmendWithoutId),
        Kind::Notification if inbound.route.handlers.notified(&inbound).await => Ok(swallowed()),
        Kind::Response if inbound.route.handlers.answered(&inbound).await => Ok(swallowed()),
        Kind::Notification | Kind::Response | Kind::Unknown => Ok(passed(inbound).await),
    }
}

/// Runs the handler of a request to its end: a decision must not be dropped half way because its client disconnects.
async fn request(inbound: Inbound) -> Result<Response, RequestRefusal> {
    let method = inbound.frame.method().unwrap_or_default().to_owned();
    let carries = inbound.frame.meta_keys().any(|key| VAP_SLOTS.contains(&key));
    let handlers = inbound.route.handlers.clone();
    let client = inbound.client.clone();
    Ok(match method.as_str() {
        TOOLS_CALL => client.finish(async move { handlers.tools_call(inbound).await }).await,
        AMEND => client.finish(async move { handlers.amend(inbound).await }).await,
        other if handlers.gates(other) => client.finish(async move { handlers.gated(inbound).await }).await,
        _ if carries => client.finish(async move { handlers.carrier(inbound).await }).await,
        "initialize" | "server/discover" => advertised(inbound).await,
        _ => passed(inbound).await,
    })
}

async fn advertised(inbound: Inbound) -> Response {
    let mut opening = Opening { frame: inbound.frame, caller: inbound.caller };
    match inbound.route.upstream.exchange(inbound.exchange).await {
        Ok(answer) => {
            if opening.frame.method() == Some("initialize") {
                let named = headers::text(&answer.headers, &headers::SESSION);
                opening.caller = opening.caller.given(named.map(str::to_owned));
            }
            relay::watch(answer, Box::new(Advertising { route: inbound.route, opening })).await
        }
        Err(error) => unanswered(opening.frame.id(), &error),
    }
}

async fn passed(inbound: Inbound) -> Response {
    let id = inbound.frame.id().filter(|_| inbound.frame.kind() == Kind::Request).cloned();
    match inbound.route.upstream.exchange(inbound.exchange).await {
        Ok(answer) => {
            let tap = Listening { route: inbound.route, caller: inbound.caller, own: id };
            relay::watch(answer, Box::new(tap)).await
        }
        Err(error) => unanswered(id.as_ref(), &error),
    }
}

fn swallowed() -> Response {
    StatusCode::ACCEPTED.into_response()
}
