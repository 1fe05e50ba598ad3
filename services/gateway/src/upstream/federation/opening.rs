//! Sessions with all servers: opening them in one revision, listening, and closing.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::join_all;
use http::{HeaderMap, HeaderValue, Method, StatusCode};

use super::answers::Awaited;
use super::gather::{self, ServerAnswer};
use super::names::{ResumePosition, ServerIndex};
use super::sessions::{FederatedSession, ServerSession};
use super::{FederatedRequest, FederationState, NO_COMMON_REVISION, bad, merge, streams};
use crate::upstream::request::{LAST_EVENT, SESSION, header, new_session_id};
use crate::upstream::text::{Edits, Json, RpcMessage, quoted};
use crate::upstream::{ClientName, Exchange, UpstreamAnswer, UpstreamError, answer};

impl FederationState {
    pub(super) async fn initialize(
        &self,
        request: &Exchange,
        message: &RpcMessage<'_>,
    ) -> Result<UpstreamAnswer, UpstreamError> {
        let id = message.id().map_or("null", Json::raw);
        if !self.sessions.have_room() {
            return Ok(answer::busy(Some(id), "there are as many sessions as there may be"));
        }
        let asked = FederatedRequest { request, session: None };
        let mut opened = self.open(asked, self.to_everybody(message)).await?;
        if opened.refused().is_none() {
            opened = self.agreed(asked, message, opened).await?;
        }
        if let Some(refused) = opened.refused() {
            let answer = refused.into_answer();
            self.close(&opened.members).await;
            return Ok(answer);
        }
        if !opened.is_of_one_revision() {
            self.close(&opened.members).await;
            return Ok(bad(asked, message, answer::INVALID_PARAMS, NO_COMMON_REVISION));
        }
        let parts: Vec<_> =
            opened.answers.iter().filter_map(|answer| Some((answer.whose, answer.result()?))).collect();
        let result = merge::initialized(&self.names, &parts, &opened.version());
        let mut answer = answer::json(StatusCode::OK, merge::response(id, &result).into());
        let session = new_session_id()?;
        let value =
            HeaderValue::from_str(&session).map_err(|error| UpstreamError::Lost(error.to_string()))?;
        answer.headers.insert(SESSION, value);
        self.sessions.insert(session, FederatedSession::new(opened.members));
        Ok(answer)
    }

    /// Opens a session at each of these servers. If one fails, the others are closed.
    async fn open(
        &self,
        asked: FederatedRequest<'_>,
        bodies: Vec<(ServerIndex, Bytes)>,
    ) -> Result<OpenedServers, UpstreamError> {
        let awaited = &Awaited::of(asked.request);
        let opening = bodies.into_iter().map(|(whose, body)| async move {
            let answer = self.servers[whose].exchange(asked.to(whose, body)).await?;
            gather::read((whose, self.names.server(whose)), answer, awaited).await
        });
        let mut opened = OpenedServers::default();
        let mut failure = None;
        for answer in join_all(opening).await {
            match answer {
                Ok(answer) => opened.add(answer),
                Err(error) => failure = Some(error),
            }
        }
        match failure {
            None => Ok(opened),
            Some(error) => {
                self.close(&opened.members).await;
                Err(error)
            }
        }
    }

    /// Brings the sessions to one revision: at servers that agreed to a later revision than others, the session is
    /// opened again in the earliest one.
    async fn agreed(
        &self,
        asked: FederatedRequest<'_>,
        message: &RpcMessage<'_>,
        mut opened: OpenedServers,
    ) -> Result<OpenedServers, UpstreamError> {
        let version = opened.version();
        let later: Vec<ServerIndex> =
            (0..opened.answers.len()).filter(|at| opened.members[*at].version != *version).collect();
        let (Some(part), false) = (message.param("protocolVersion"), later.is_empty()) else {
            return Ok(opened);
        };
        self.close(&later.iter().map(|at| opened.members[*at].clone()).collect::<Vec<_>>()).await;
        let mut edits = Edits::of(message.text());
        edits.replace(part, quoted(&version));
        let body = edits.done();
        let bodies = later.iter().map(|at| (opened.answers[*at].whose, body.clone())).collect();
        let again = match self.open(asked, bodies).await {
            Ok(again) => again,
            Err(error) => {
                self.close(&opened.members).await;
                return Err(error);
            }
        };
        for ((at, answer), member) in later.into_iter().zip(again.answers).zip(again.members) {
            (opened.answers[at], opened.members[at]) = (answer, member);
        }
        Ok(opened)
    }

    pub(super) async fn delete(&self, request: &Exchange) -> Result<UpstreamAnswer, UpstreamError> {
        let session = match self.named(request) {
            Ok(session) => session,
            Err(refusal) => return Ok(refusal),
        };
        if let Some(id) = header(request, &SESSION) {
            self.sessions.remove(id);
        }
        self.close(session.members()).await;
        Ok(answer::empty(StatusCode::OK))
    }

    /// The session that a GET or DELETE names, in a revision of that session, or the refusal.
    fn named(&self, request: &Exchange) -> Result<Arc<FederatedSession>, UpstreamAnswer> {
        let id = header(request, &SESSION).ok_or_else(|| answer::session_missing(None))?;
        let session = self.sessions.get(id).ok_or_else(|| answer::no_such_session(None))?;
        match session.speaks(&request.headers) {
            true => Ok(session),
            false => Err(answer::unknown_revision(None)),
        }
    }

    /// Closes the sessions at their servers. Errors are ignored: a server that is not reached ends the idle session
    /// itself.
    pub(super) async fn close(&self, members: &[ServerSession]) {
        let closing = members.iter().filter(|member| member.id.is_some());
        join_all(closing.map(|member| {
            let headers = member.headers(&HeaderMap::new());
            let (body, client) = (Bytes::new(), ClientName::Gateway);
            let exchange = Exchange { method: Method::DELETE, headers, body, client, time_limit: None };
            self.servers[member.whose].exchange(exchange)
        }))
        .await;
    }

    pub(super) async fn listen(&self, request: &Exchange) -> Result<UpstreamAnswer, UpstreamError> {
        let session = match self.named(request) {
            Ok(session) => session,
            Err(refusal) => return Ok(refusal),
        };
        let places = match header(request, &LAST_EVENT).map(|id| self.names.event_inside(id)) {
            None => vec![None; self.servers.len()],
            Some(Some(ResumePosition::All(places))) => places,
            Some(Some(ResumePosition::One(whose, id))) => {
                let answer = self.open_stream(request, &session, whose, Some(&id)).await;
                let awaited = Awaited::Session(Arc::clone(&session));
                let answer =
                    answer.map(|answer| streams::passed(Arc::clone(&self.names), whose, answer, awaited));
                return self.noticed(request, answer).await;
            }
            Some(None) => {
                let why = "Last-Event-ID names no event of this session";
                return Ok(answer::error(StatusCode::BAD_REQUEST, None, answer::NO_SESSION, why));
            }
        };
        let opened_in = &session;
        let opening = places.iter().enumerate().map(|(whose, place)| async move {
            Ok::<_, UpstreamError>((
                whose,
                self.open_stream(request, opened_in, whose, place.as_deref()).await?,
            ))
        });
        let answers = join_all(opening).await.into_iter().collect::<Result<Vec<_>, _>>()?;
        if answers.iter().any(|(_, answer)| answer.status == StatusCode::NOT_FOUND) {
            return self.noticed(request, Ok(answer::no_such_session(None))).await;
        }
        Ok(match streams::opened(answers) {
            Ok(open) => streams::common(Arc::clone(&self.names), &session, places, open),
            Err(Some(refusal)) => {
                streams::passed(Arc::clone(&self.names), refusal.0, refusal.1, Awaited::Of(None))
            }
            Err(None) => answer::not_allowed("POST, DELETE"),
        })
    }

    async fn open_stream(
        &self,
        request: &Exchange,
        session: &Arc<FederatedSession>,
        whose: ServerIndex,
        place: Option<&str>,
    ) -> Result<UpstreamAnswer, UpstreamError> {
        let mut exchange = FederatedRequest { request, session: Some(session) }.to(whose, Bytes::new());
        if let Some(place) = place.and_then(|place| HeaderValue::from_str(place).ok()) {
            exchange.headers.insert(LAST_EVENT, place);
        }
        self.servers[whose].exchange(exchange).await
    }
}

/// The servers' answers to `initialize`, and the session at each of them.
#[derive(Default)]
struct OpenedServers {
    answers: Vec<ServerAnswer>,
    members: Vec<ServerSession>,
}

impl OpenedServers {
    fn add(&mut self, answer: ServerAnswer) {
        let version = answer.result().and_then(|result| result.get("protocolVersion")?.string());
        let version = version.and_then(|version| HeaderValue::from_str(&version).ok());
        self.members.push(ServerSession {
            whose: answer.whose,
            id: answer.headers.get(SESSION).cloned(),
            version: version.unwrap_or_else(|| HeaderValue::from_static("")),
        });
        self.answers.push(answer);
    }

    fn refused(&self) -> Option<ServerAnswer> {
        self.answers.iter().find(|answer| answer.result().is_none()).cloned()
    }

    fn is_of_one_revision(&self) -> bool {
        self.members.iter().all(|member| member.version == self.members[0].version)
    }

    /// The earliest revision that a server agreed to. Revisions are dates, so their text order is their order.
    fn version(&self) -> String {
        let versions = self.members.iter().filter_map(|member| member.version.to_str().ok());
        versions.min().unwrap_or_default().to_owned()
    }
}
