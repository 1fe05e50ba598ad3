//! One request at an MCP endpoint: POST with a message, GET for a stream, DELETE of a session.

use std::sync::Arc;
use std::time::Duration;

use admission::invocation::{AiInvocation, KEYS};
use admission::principal::{Caller, Era};
use axum::response::IntoResponse;
use bytes::Bytes;
use http::{Method, StatusCode};
use tokio_util::sync::DropGuard;

use super::dispatch::dispatched;
use super::inbound::{InvocationMember, VAP_KEYS, chain_material};
use super::refusal::McpRefusal;
use super::taps::Listening;
use super::timed::Timed;
use super::{Endpoint, Inbound, MatchesById, McpSessions, mirrors};
use crate::frame::{Frame, SUBSCRIBE, TOOLS_CALL};
use crate::front::watched::{ending_with, watched};
use crate::front::{AuthorizedRequest, RequestRefusal, unanswered};
use crate::limits::{CLOSE_TIME, RESUME_PAUSE};
use crate::relay::{self, Client, Response};
use crate::upstream::request::{LAST_EVENT, SESSION, speaks_modern};
use crate::upstream::{Exchange, Upstream, UpstreamAnswer, UpstreamError, fields};

/// The legacy method that opens a session.
const INITIALIZE: &str = "initialize";

/// One request at one endpoint.
pub struct Visit<'a> {
    /// The endpoint.
    pub endpoint: Arc<Endpoint>,
    /// The sessions and streams of all endpoints.
    pub sessions: &'a McpSessions,
    /// The request.
    pub request: AuthorizedRequest,
}

impl Visit<'_> {
    /// Answers the request.
    pub async fn answer(self) -> Response {
        let (owners, path) = (&self.sessions.owners, &self.endpoint.path);
        let token = self.request.authorized.token.as_ref();
        if self.session().is_some_and(|session| owners.is_of_another(path, session, token)) {
            return McpRefusal::NoSession.into_response();
        }
        match self.request.head.method {
            Method::POST => self.post().await.unwrap_or_else(IntoResponse::into_response),
            Method::GET => self.get().await,
            _ => self.delete().await,
        }
    }

    async fn post(mut self) -> Result<Response, McpRefusal> {
        let text = self.request.message().await?;
        let frame = Frame::parse(text).map_err(RequestRefusal::Message)?;
        let head = &self.request.head;
        let era = mirrors::era(&frame, &head.headers);
        if era == Era::Modern {
            mirrors::check(&frame, &head.headers)?;
        }
        let (client, gone) = self.client(era);
        let stop = (frame.method() == Some(SUBSCRIBE)).then(|| self.request.draining.stop.clone());
        let timed = Timed::begin(self.sessions.telemetry.as_ref(), &frame, &head.headers);
        let opener =
            (frame.method() == Some(INITIALIZE)).then(|| self.request.authorized.token.clone()).flatten();
        let (sessions, path) = (self.sessions, self.endpoint.path.clone());
        let inbound = self.inbound(frame, client)?;
        let response = timed.over(dispatched(inbound)).await?;
        sessions.owners.opened(&path, &response, opener.as_ref());
        let response = watched(response, gone);
        Ok(match stop {
            Some(stop) => ending_with(response, stop),
            None => response,
        })
    }

    fn client(&self, era: Era) -> (Client, DropGuard) {
        let count = self.sessions.resumptions.of(&self.endpoint.path, self.session());
        Client::new(era, self.request.reads_events(), count, self.request.draining.tasks.clone())
    }

    fn inbound(self, whole: Frame, client: Client) -> Result<Inbound, McpRefusal> {
        let caller = self.caller(client.era());
        let chain = chain_material(&whole, &self.request.head.headers);
        let invocation = invocation(&whole);
        let mut hidden = VAP_KEYS.to_vec();
        if !self.endpoint.forward_invocation {
            hidden.extend(KEYS);
        }
        let mut exchange = self.request.exchange(whole.without_meta(&hidden));
        exchange.time_limit = self.time_limit(&whole);
        let frame = match invocation {
            None => whole,
            Some(_) => Frame::parse(whole.without_meta(&KEYS)).map_err(RequestRefusal::Message)?,
        };
        let (endpoint, era) = (self.endpoint, client.era());
        Ok(Inbound { endpoint, exchange, frame, chain, invocation, era, caller, client })
    }

    /// The longest time for the answer to a message. `None` if its answer has no end, or if the handlers limit it.
    fn time_limit(&self, message: &Frame) -> Option<Duration> {
        match message.method().unwrap_or_default() {
            TOOLS_CALL | SUBSCRIBE => None,
            method => self.endpoint.handlers.time_limit(method),
        }
    }

    async fn get(self) -> Response {
        let caller = self.caller(self.era());
        let exchange = self.request.exchange(Bytes::new());
        let resumes = exchange.headers.contains_key(LAST_EVENT);
        let is_resumed = resumes && self.request.head.extensions.get::<MatchesById>().is_none();
        let (resumptions, path) = (&self.sessions.resumptions, &self.endpoint.path);
        let let_go = self.session().filter(|_| resumes);
        let let_go = let_go.is_some_and(|session| resumptions.resumed(path, session));
        match listened(&*self.endpoint.upstream, exchange, let_go).await {
            Ok(answer) => {
                let handlers = self.endpoint.handlers.clone();
                let tap = Listening { handlers, caller, own: None, is_resumed };
                ending_with(relay::watch(answer, Box::new(tap), None).await, self.request.draining.stop)
            }
            Err(error) => unanswered(None, &error),
        }
    }

    async fn delete(self) -> Response {
        let caller = self.caller(self.era());
        let exchange = Exchange { time_limit: Some(CLOSE_TIME), ..self.request.exchange(Bytes::new()) };
        match self.endpoint.upstream.exchange(exchange).await {
            Ok(answer) => {
                if answer.status.is_success() || answer.status == StatusCode::NOT_FOUND {
                    self.endpoint.handlers.ended(&caller).await;
                }
                relay::pass(answer)
            }
            Err(error) => unanswered(None, &error),
        }
    }

    fn era(&self) -> Era {
        match speaks_modern(&self.request.head.headers) {
            true => Era::Modern,
            false => Era::Legacy,
        }
    }

    fn session(&self) -> Option<&str> {
        fields::text(&self.request.head.headers, &SESSION)
    }

    fn caller(&self, era: Era) -> Caller {
        let authorized = &self.request.authorized;
        Caller {
            era,
            token: authorized.token.clone(),
            certificate: authorized.certificate.clone(),
            mcp_session: self.session().map(str::to_owned),
            is_session_issued: self.session().is_some_and(|session| self.endpoint.handlers.gave(session)),
            route: self.endpoint.path.clone(),
        }
    }
}

/// Opens the GET stream; retries once after a conflict, if a reader of the stream was released just now and the server
/// may not know it yet.
async fn listened(
    upstream: &dyn Upstream,
    exchange: Exchange,
    let_go: bool,
) -> Result<UpstreamAnswer, UpstreamError> {
    let answer = upstream.exchange(exchange.clone()).await?;
    if !let_go || answer.status != StatusCode::CONFLICT {
        return Ok(answer);
    }
    drop(answer);
    tokio::time::sleep(RESUME_PAUSE).await;
    upstream.exchange(exchange).await
}

/// Reads the caller's statement about its reasons. If both keys are present with different values, neither is believed,
/// and the audit record shows a malformed statement (S-1).
fn invocation(frame: &Frame) -> Option<InvocationMember> {
    let found: Vec<_> = KEYS.iter().filter_map(|key| Some((*key, frame.meta(key)?))).collect();
    let ((_, text), others) = found.split_first()?;
    let text = if others.iter().all(|(_, other)| vap::exact::equal(text, other)) { text } else { "" };
    let keys = found.iter().map(|(key, _)| *key).collect();
    Some(InvocationMember { keys, invocation: AiInvocation::read(text) })
}
