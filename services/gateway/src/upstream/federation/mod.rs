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
mod merge;
mod names;
mod opening;
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
use self::gather::ServerAnswer;
pub use self::names::BadName;
use self::names::{ServerIndex, ServerNames};
use self::requests::{no_such_method, no_such_name};
use self::sessions::{FederatedSession, FederatedSessions};
use super::fields::text;
use super::request::{LAST_EVENT, SESSION, header, is_initialize, is_method_of_the_past, is_modern};
use super::text::{Json, RpcKind, RpcMessage};
use super::{Exchange, SessionHold, Upstream, UpstreamAnswer, UpstreamError, answer};
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
            .map(|member| self.0.servers[member.whose].hold(&member.headers(&HeaderMap::new())));
        at_servers.fold(SessionHold::of(session.clone()), SessionHold::and)
    }
}

/// A client's request, with its session in the legacy eras.
#[derive(Clone, Copy)]
struct FederatedRequest<'a> {
    request: &'a Exchange,
    session: Option<&'a Arc<FederatedSession>>,
}

impl FederatedRequest<'_> {
    /// The exchange with one server, with that server's session headers.
    fn to(&self, whose: ServerIndex, body: Bytes) -> Exchange {
        let headers = match self.session {
            Some(session) => session.headers(whose, &self.request.headers),
            None => without_session(&self.request.headers),
        };
        let (client, time_limit) = (self.request.client.clone(), self.request.time_limit);
        Exchange { method: self.request.method.clone(), headers, body, client, time_limit }
    }

    /// Records the request for its session: only streams of a session can be resumed later.
    fn remember(&self, message: &RpcMessage<'_>, whose: Option<ServerIndex>) {
        if let Some(session) = self.session {
            session.asked().remember(message.id(), whose);
        }
    }
}

impl FederationState {
    async fn post(&self, request: &Exchange) -> Result<UpstreamAnswer, UpstreamError> {
        let Some(message) = std::str::from_utf8(&request.body).ok().and_then(RpcMessage::read) else {
            return Ok(answer::no_message());
        };
        if is_modern(request, &message) {
            let asked = FederatedRequest { request, session: None };
            return match message.kind {
                RpcKind::Request => self.request(asked, &message).await,
                RpcKind::Notification => Ok(answer::empty(StatusCode::ACCEPTED)),
                RpcKind::Response => Ok(answer::no_responses()),
            };
        }
        let id = message.id().map(Json::raw);
        let session = match self.session(request, &message) {
            Ok(Some(_)) if is_initialize(&message) => return Ok(answer::initialized_already(id)),
            Ok(Some(session)) if session.speaks(&request.headers) => session,
            Ok(Some(_)) => return Ok(answer::unknown_revision(id)),
            Ok(None) => return self.initialize(request, &message).await,
            Err(refusal) => return Ok(refusal),
        };
        let asked = FederatedRequest { request, session: Some(&session) };
        let answer = match message.kind {
            RpcKind::Request => self.request(asked, &message).await,
            RpcKind::Notification => self.tell(asked, &message).await,
            RpcKind::Response => self.reply(asked, &message).await,
        };
        self.noticed(request, answer).await
    }

    /// The session that a request names; `None` if the request opens one.
    fn session(
        &self,
        request: &Exchange,
        message: &RpcMessage<'_>,
    ) -> Result<Option<Arc<FederatedSession>>, UpstreamAnswer> {
        let id = message.id().map(Json::raw);
        match header(request, &SESSION) {
            Some(named) => match self.sessions.get(named) {
                Some(session) => Ok(Some(session)),
                None if is_initialize(message) => Ok(None),
                None => Err(answer::no_such_session(id)),
            },
            None if is_initialize(message) => Ok(None),
            None => Err(answer::session_missing(id)),
        }
    }

    /// Ends the client's session if a server answered 404, because it lost its own session.
    async fn noticed(
        &self,
        request: &Exchange,
        answer: Result<UpstreamAnswer, UpstreamError>,
    ) -> Result<UpstreamAnswer, UpstreamError> {
        let lost = answer.as_ref().is_ok_and(|answer| answer.status == StatusCode::NOT_FOUND);
        let named = header(request, &SESSION).filter(|_| lost);
        if let Some(session) = named.and_then(|id| self.sessions.remove(id)) {
            self.close(session.members()).await;
        }
        answer
    }

    async fn request(
        &self,
        asked: FederatedRequest<'_>,
        message: &RpcMessage<'_>,
    ) -> Result<UpstreamAnswer, UpstreamError> {
        let method = message.method().unwrap_or_default();
        if let Some(named) = rewrite::named(&method) {
            let target = rewrite::target(&self.names, message, named);
            asked.remember(message, target.as_ref().map(|target| target.whose));
            return match target {
                Some(target) => self.one(asked, message, &target).await,
                None => Ok(no_such_name(asked, message, named)),
            };
        }
        asked.remember(message, None);
        match method.as_str() {
            "server/discover" => self.discover(asked, message).await,
            "tools/list" => self.list(asked, message, "tools").await,
            "prompts/list" => self.list(asked, message, "prompts").await,
            "resources/list" => self.list(asked, message, "resources").await,
            "resources/templates/list" => self.list(asked, message, "resourceTemplates").await,
            "tasks/list" => self.list(asked, message, "tasks").await,
            "subscriptions/listen" => self.subscribe(asked, message).await,
            "ping" | "logging/setLevel" => self.all(asked, message).await,
            _ => Ok(no_such_method(asked, message)),
        }
    }

    fn to_everybody(&self, message: &RpcMessage<'_>) -> Vec<(ServerIndex, Bytes)> {
        let body = Bytes::copy_from_slice(message.text().as_bytes());
        (0..self.servers.len()).map(|whose| (whose, body.clone())).collect()
    }

    async fn ask(
        &self,
        asked: FederatedRequest<'_>,
        bodies: Vec<(ServerIndex, Bytes)>,
    ) -> Result<Vec<(ServerIndex, UpstreamAnswer)>, UpstreamError> {
        let asking = bodies.into_iter().map(|(whose, body)| async move {
            Ok((whose, self.servers[whose].exchange(asked.to(whose, body)).await?))
        });
        join_all(asking).await.into_iter().collect()
    }

    /// The complete answers to these requests, in the order of the requests.
    async fn gather(
        &self,
        asked: FederatedRequest<'_>,
        bodies: Vec<(ServerIndex, Bytes)>,
    ) -> Result<Vec<ServerAnswer>, UpstreamError> {
        let awaited = &Awaited::of(asked.request);
        let asking = bodies.into_iter().map(|(whose, body)| async move {
            let answer = self.servers[whose].exchange(asked.to(whose, body)).await?;
            gather::read((whose, self.names.server(whose)), answer, awaited).await
        });
        join_all(asking).await.into_iter().collect()
    }
}

const NO_COMMON_REVISION: &str = "the servers behind this endpoint have no revision in common";

/// A JSON-RPC error as answer. In the legacy eras the HTTP status is 200, in the modern era it is an error as well.
fn bad(asked: FederatedRequest<'_>, message: &RpcMessage<'_>, code: i64, why: &str) -> UpstreamAnswer {
    let status = match (asked.session.is_some(), code) {
        (true, _) => StatusCode::OK,
        (false, answer::NO_METHOD) => StatusCode::NOT_FOUND,
        (false, _) => StatusCode::BAD_REQUEST,
    };
    answer::error(status, message.id().map(Json::raw), code, why)
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
