//! Several servers behind one endpoint, presented as one server.
//!
//! The names of what servers offer get the server's name as prefix (`names`). A request goes to the server that its
//! name denotes, with the rest of its text unchanged (`rewrite`). Lists, capabilities and instructions are merged
//! (`merge`); a page of a list contains a page of each server, and its cursor says which of them have more. A session
//! with the client is a session with each server, all in the same revision. If one server loses its session, the
//! client's session ends too (404), and the client opens a new one. Requests of servers reach the client with ids that
//! contain the server's name and therefore cannot collide. A server may answer only requests that went to it
//! (`answers`).
//!
//! All servers must speak the client's era: messages are not translated between eras. If one does not, the endpoint
//! refuses as that server would, and the client can fall back to an era that all of them speak, if there is one.
//!
//! Not here: texts in tool results, and arguments. A resource URI in them is not renamed.

mod answers;
mod gather;
mod lifecycle;
mod listen;
mod merge;
mod names;
mod requests;
mod rewrite;
mod sent_requests;
mod sessions;
mod streams;

use std::sync::{Arc, Weak};

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt;
use futures::future::join_all;
use futures::stream::FuturesUnordered;
use http::{HeaderMap, Method, StatusCode};

use self::answers::Awaited;
use self::gather::{ServerAnswer, UnreadAnswer};
pub use self::names::BadName;
use self::names::{ServerIndex, ServerNames};
use self::requests::{no_such_method, no_such_name};
use self::sessions::{FederatedSession, FederatedSessions};
use super::fields::text;
use super::request::{LAST_EVENT, SESSION, header, is_initialize, is_method_of_the_past, is_modern};
use super::text::{Json, RpcKind, RpcMessage};
use super::{Exchange, SessionHold, Upstream, UpstreamAnswer, UpstreamError, answer};
use crate::frame::{SUBSCRIBE, TOOLS_LIST, error_code};
use crate::limits;

/// Several servers as one [`Upstream`].
pub struct Federation(Arc<FederationState>);

struct FederationState {
    names: Arc<ServerNames>,
    servers: Vec<Arc<dyn Upstream>>,
    sessions: FederatedSessions,
}

impl Federation {
    /// Makes a federation of these named servers. Must be called within a tokio runtime, since it spawns a task that
    /// closes idle sessions.
    ///
    /// # Errors
    /// A [`BadName`] if the names or the separator are unsuitable.
    pub fn new(servers: Vec<(String, Arc<dyn Upstream>)>, separator: &str) -> Result<Self, BadName> {
        let (names, servers): (Vec<_>, Vec<_>) = servers.into_iter().unzip();
        let names = Arc::new(ServerNames::new(names, separator)?);
        let inner = Arc::new(FederationState { names, servers, sessions: FederatedSessions::default() });
        tokio::spawn(close_idle(Arc::downgrade(&inner)));
        Ok(Self(inner))
    }

    /// The number of open legacy sessions.
    pub fn sessions(&self) -> usize {
        self.0.sessions.len()
    }
}

#[async_trait]
impl Upstream for Federation {
    async fn exchange(&self, request: Exchange) -> Result<UpstreamAnswer, UpstreamError> {
        match request.method {
            Method::POST => self.0.post(&request).await,
            _ if is_method_of_the_past(&request) => Ok(answer::not_allowed("POST")),
            Method::GET => self.0.listen(&request).await,
            Method::DELETE => self.0.delete(&request).await,
            _ => Ok(answer::not_allowed("GET, POST, DELETE")),
        }
    }

    fn hold(&self, headers: &HeaderMap) -> SessionHold {
        let session = text(headers, &SESSION).and_then(|id| self.0.sessions.get(id));
        let Some(session) = session else { return SessionHold::default() };
        let at_servers = session
            .members()
            .iter()
            .map(|member| self.0.servers[member.server].hold(&member.headers(&HeaderMap::new())));
        at_servers.fold(SessionHold::of(session.clone()), SessionHold::and)
    }
}

/// A client's request, with its session in the legacy eras.
#[derive(Clone, Copy)]
struct FederatedRequest<'a> {
    exchange: &'a Exchange,
    message: &'a RpcMessage<'a>,
    session: Option<&'a Arc<FederatedSession>>,
}

impl FederatedRequest<'_> {
    /// The exchange with one server, with that server's session headers.
    fn to(&self, server: ServerIndex, body: Bytes) -> Exchange {
        let headers = match self.session {
            Some(session) => session.headers(server, &self.exchange.headers),
            None => without_session(&self.exchange.headers),
        };
        let (client, time_limit) = (self.exchange.client.clone(), self.exchange.time_limit);
        Exchange { method: self.exchange.method.clone(), headers, body, client, time_limit }
    }

    fn id(&self) -> Option<&str> {
        self.message.id().map(Json::raw)
    }

    /// The response that the client awaits.
    fn awaited(&self) -> Awaited {
        Awaited::to(Some(self.message))
    }

    /// Records the request for its session: only streams of a session can be resumed later.
    fn remember(&self, server: Option<ServerIndex>) {
        if let Some(session) = self.session {
            session.sent_requests().remember(self.message.id(), server);
        }
    }
}

impl FederationState {
    async fn post(&self, exchange: &Exchange) -> Result<UpstreamAnswer, UpstreamError> {
        let Some(message) = RpcMessage::read_bytes(&exchange.body) else {
            return Ok(answer::no_message());
        };
        let request = FederatedRequest { exchange, message: &message, session: None };
        if is_modern(exchange, &message) {
            return match message.kind {
                RpcKind::Request => self.request(request).await,
                RpcKind::Notification => Ok(answer::empty(StatusCode::ACCEPTED)),
                RpcKind::Response => Ok(answer::no_responses()),
            };
        }
        let session = match self.session(request) {
            Ok(Some(_)) if is_initialize(&message) => return Ok(answer::initialized_already(request.id())),
            Ok(Some(session)) if session.speaks(&exchange.headers) => session,
            Ok(Some(_)) => return Ok(answer::unknown_revision(request.id())),
            Ok(None) => return self.initialize(request).await,
            Err(refusal) => return Ok(refusal),
        };
        let request = FederatedRequest { session: Some(&session), ..request };
        let answer = match message.kind {
            RpcKind::Request => self.request(request).await,
            RpcKind::Notification => self.notify(request).await,
            RpcKind::Response => self.reply(request).await,
        };
        self.end_lost_session(exchange, answer).await
    }

    /// The session that a request names; `None` if the request opens one.
    fn session(
        &self,
        request: FederatedRequest<'_>,
    ) -> Result<Option<Arc<FederatedSession>>, UpstreamAnswer> {
        let named = header(request.exchange, &SESSION);
        match (named.and_then(|id| self.sessions.get(id)), named) {
            (Some(session), _) => Ok(Some(session)),
            (None, _) if is_initialize(request.message) => Ok(None),
            (None, Some(_)) => Err(answer::no_such_session(request.id()).unsent()),
            (None, None) => Err(answer::session_missing(request.id())),
        }
    }

    /// Ends the client's session if a server answered 404, because it lost its own session.
    async fn end_lost_session(
        &self,
        exchange: &Exchange,
        answer: Result<UpstreamAnswer, UpstreamError>,
    ) -> Result<UpstreamAnswer, UpstreamError> {
        let is_lost = answer.as_ref().is_ok_and(|answer| answer.status == StatusCode::NOT_FOUND);
        let named = header(exchange, &SESSION).filter(|_| is_lost);
        if let Some(session) = named.and_then(|id| self.sessions.remove(id)) {
            self.close(session.members()).await;
        }
        answer
    }

    async fn request(&self, request: FederatedRequest<'_>) -> Result<UpstreamAnswer, UpstreamError> {
        let method = request.message.method().unwrap_or_default();
        if let Some(named) = rewrite::named(&method) {
            let target = rewrite::target(&self.names, request.message, named);
            request.remember(target.as_ref().map(|target| target.server));
            return match target {
                Some(target) => self.forward(request, &target).await,
                None => Ok(no_such_name(request, named)),
            };
        }
        request.remember(None);
        match method.as_str() {
            "server/discover" => self.discover(request).await,
            TOOLS_LIST => self.list(request, "tools").await,
            "prompts/list" => self.list(request, "prompts").await,
            "resources/list" => self.list(request, "resources").await,
            "resources/templates/list" => self.list(request, "resourceTemplates").await,
            "tasks/list" => self.list(request, "tasks").await,
            SUBSCRIBE => self.subscribe(request).await,
            "ping" | "logging/setLevel" => self.first_success(request).await,
            _ => Ok(no_such_method(request).unsent()),
        }
    }

    /// The message, for each server.
    fn to_all_servers(&self, request: FederatedRequest<'_>) -> Vec<(ServerIndex, Bytes)> {
        let body = Bytes::copy_from_slice(request.message.text().as_bytes());
        (0..self.servers.len()).map(|server| (server, body.clone())).collect()
    }

    /// The answers to these requests, in the order of the requests.
    async fn ask(
        &self,
        request: FederatedRequest<'_>,
        bodies: Vec<(ServerIndex, Bytes)>,
    ) -> Result<Vec<UnreadAnswer>, UpstreamError> {
        let asking = bodies.into_iter().map(|(server, body)| self.send(request, server, body));
        join_all(asking).await.into_iter().collect()
    }

    /// The complete answers to these requests, in the order of the requests.
    async fn gather(
        &self,
        request: FederatedRequest<'_>,
        bodies: Vec<(ServerIndex, Bytes)>,
    ) -> Result<Vec<ServerAnswer>, UpstreamError> {
        self.gather_each(request, bodies).await.into_iter().collect()
    }

    /// The complete answer or the error of each server, in the order of the requests.
    async fn gather_each(
        &self,
        request: FederatedRequest<'_>,
        bodies: Vec<(ServerIndex, Bytes)>,
    ) -> Vec<Result<ServerAnswer, UpstreamError>> {
        let awaited = &request.awaited();
        let asking = bodies.into_iter().map(|(server, body)| async move {
            let answer = self.send(request, server, body).await?;
            gather::read(answer, awaited).await
        });
        join_all(asking).await
    }

    async fn send(
        &self,
        request: FederatedRequest<'_>,
        server: ServerIndex,
        body: Bytes,
    ) -> Result<UnreadAnswer, UpstreamError> {
        let answer = self.servers[server].exchange(request.to(server, body)).await?;
        Ok(UnreadAnswer { server, answer })
    }

    /// One server's answer, rewritten for the client.
    fn passed(&self, answer: UnreadAnswer, awaited: Awaited) -> UpstreamAnswer {
        streams::passed(Arc::clone(&self.names), answer, awaited)
    }
}

const NO_COMMON_REVISION: &str = "the servers behind this endpoint have no revision in common";

/// A JSON-RPC error as answer. In the legacy eras the HTTP status is 200, in the modern era it is an error as well.
fn rpc_error(request: FederatedRequest<'_>, code: i32, why: &str) -> UpstreamAnswer {
    let status = match (request.session.is_some(), code) {
        (true, _) => StatusCode::OK,
        (false, error_code::METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        (false, _) => StatusCode::BAD_REQUEST,
    };
    answer::error(status, request.id(), code, why)
}

fn without_session(headers: &HeaderMap) -> HeaderMap {
    let mut headers = headers.clone();
    headers.remove(SESSION);
    headers.remove(LAST_EVENT);
    headers
}

async fn close_idle(federation: Weak<FederationState>) {
    loop {
        tokio::time::sleep(limits::SESSION_SWEEP).await;
        let Some(inner) = federation.upgrade() else { return };
        let idle = inner.sessions.remove_idle();
        let closing: FuturesUnordered<_> =
            idle.iter().map(|session| inner.close(session.members())).collect();
        closing.collect::<()>().await;
    }
}
