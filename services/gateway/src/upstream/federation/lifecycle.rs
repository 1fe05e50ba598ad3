//! The life of a client's session: `initialize` opens a session at each server, all in one revision, and DELETE closes
//! them. The caller is [`Federation`](super::Federation).
//!
//! Not here: the event stream of a session (`listen`), the table of open sessions (`sessions`).

use std::sync::Arc;

use bytes::Bytes;
use futures::future::join_all;
use http::{HeaderMap, HeaderValue, Method, StatusCode};

use super::gather::{self, ServerAnswer};
use super::names::ServerIndex;
use super::sessions::{FederatedSession, ServerSession};
use super::{FederatedRequest, FederationState, NO_COMMON_REVISION, merge, rpc_error};
use crate::frame::error_code;
use crate::limits;
use crate::upstream::request::{SESSION, header, new_session_id};
use crate::upstream::text::{Edits, quoted};
use crate::upstream::{ClientName, Exchange, UpstreamAnswer, UpstreamError, answer};

impl FederationState {
    pub(super) async fn initialize(
        &self,
        request: FederatedRequest<'_>,
    ) -> Result<UpstreamAnswer, UpstreamError> {
        let _begun = match self.sessions.begin(&request.exchange.client) {
            Ok(begun) => begun,
            Err(why) => return Ok(answer::busy(request.id(), why)),
        };
        let mut opened = self.open(request, self.to_all_servers(request)).await?;
        if opened.refusal().is_none() {
            opened = self.in_earliest_revision(request, opened).await?;
        }
        let refusal = match opened.refusal() {
            Some(refusal) => Some(refusal.clone().into_answer()),
            None if opened.is_of_one_revision() => None,
            None => Some(rpc_error(request, error_code::INVALID_PARAMS, NO_COMMON_REVISION)),
        };
        match refusal {
            None => self.accept(request, opened),
            Some(refusal) => {
                self.close(&opened.sessions()).await;
                Ok(refusal)
            }
        }
    }

    /// Opens a session at each of these servers. If one gives no answer, the others are closed.
    async fn open(
        &self,
        request: FederatedRequest<'_>,
        bodies: Vec<(ServerIndex, Bytes)>,
    ) -> Result<OpenedSessions, UpstreamError> {
        let (mut opened, mut failure) = (OpenedSessions(Vec::new()), None);
        for answer in self.gather_each(request, bodies).await {
            match answer {
                Ok(answer) => opened.0.push(OpenedSession::of(answer)),
                Err(error) => failure = Some(error),
            }
        }
        match failure {
            None => Ok(opened),
            Some(error) => {
                self.close(&opened.sessions()).await;
                Err(error)
            }
        }
    }

    /// Opens the sessions again, in the earliest agreed revision, at the servers that agreed to a later one.
    async fn in_earliest_revision(
        &self,
        request: FederatedRequest<'_>,
        mut opened: OpenedSessions,
    ) -> Result<OpenedSessions, UpstreamError> {
        let earliest = opened.earliest_revision();
        let mut later = opened.sessions();
        later.retain(|session| session.version != *earliest);
        let Some(requested) = request.message.param("protocolVersion").filter(|_| !later.is_empty()) else {
            return Ok(opened);
        };
        self.close(&later).await;
        let mut edits = Edits::of(request.message.text());
        edits.replace(requested, quoted(&earliest));
        let body = edits.done();
        let bodies = later.iter().map(|session| (session.server, body.clone())).collect();
        match self.open(request, bodies).await {
            Ok(reopened) => {
                // All servers were asked, so a session is at the index of its server.
                for session in reopened.0 {
                    let server = session.answer.server;
                    opened.0[server] = session;
                }
                Ok(opened)
            }
            Err(error) => {
                self.close(&opened.sessions()).await;
                Err(error)
            }
        }
    }

    /// Opens the client's session, and answers `initialize` with the servers' merged results.
    fn accept(
        &self,
        request: FederatedRequest<'_>,
        opened: OpenedSessions,
    ) -> Result<UpstreamAnswer, UpstreamError> {
        let results = gather::results(opened.0.iter().map(|session| &session.answer));
        let result = merge::initialized(&self.names, &results, &opened.earliest_revision());
        let mut answer =
            answer::json(StatusCode::OK, merge::response(request.id().unwrap_or("null"), &result).into());
        let session = new_session_id()?;
        let value =
            HeaderValue::from_str(&session).map_err(|error| UpstreamError::Lost(error.to_string()))?;
        answer.headers.insert(SESSION, value);
        let client = request.exchange.client.clone();
        self.sessions.insert(session, FederatedSession::new(client, opened.sessions()));
        Ok(answer)
    }

    pub(super) async fn delete(&self, exchange: &Exchange) -> Result<UpstreamAnswer, UpstreamError> {
        let session = match self.named_session(exchange) {
            Ok(session) => session,
            Err(refusal) => return Ok(refusal),
        };
        if let Some(id) = header(exchange, &SESSION) {
            self.sessions.remove(id);
        }
        self.close(session.members()).await;
        Ok(answer::empty(StatusCode::OK))
    }

    /// The session that a GET or DELETE names, in a revision of that session, or the refusal.
    pub(super) fn named_session(&self, exchange: &Exchange) -> Result<Arc<FederatedSession>, UpstreamAnswer> {
        let id = header(exchange, &SESSION).ok_or_else(|| answer::session_missing(None))?;
        let session = self.sessions.get(id).ok_or_else(|| answer::no_such_session(None))?;
        match session.speaks(&exchange.headers) {
            true => Ok(session),
            false => Err(answer::unknown_revision(None)),
        }
    }

    /// Closes the sessions at their servers. Errors are ignored: a server that is not reached ends the idle session
    /// itself.
    pub(super) async fn close(&self, sessions: &[ServerSession]) {
        let closing = sessions.iter().filter(|session| session.id.is_some());
        join_all(closing.map(|session| {
            let headers = session.headers(&HeaderMap::new());
            let (body, client, time_limit) = (Bytes::new(), ClientName::Gateway, Some(limits::CLOSE_TIME));
            let exchange = Exchange { method: Method::DELETE, headers, body, client, time_limit };
            self.servers[session.server].exchange(exchange)
        }))
        .await;
    }
}

/// The sessions that `initialize` opened, in the order of the servers.
struct OpenedSessions(Vec<OpenedSession>);

/// One server's answer to `initialize`, and the session that it opened unless it refused.
struct OpenedSession {
    answer: ServerAnswer,
    session: ServerSession,
}

impl OpenedSession {
    fn of(answer: ServerAnswer) -> Self {
        let version = answer.result().and_then(|result| result.get("protocolVersion")?.string());
        let version = version.and_then(|version| HeaderValue::from_str(&version).ok());
        let session = ServerSession {
            server: answer.server,
            id: answer.headers.get(SESSION).cloned(),
            version: version.unwrap_or_else(|| HeaderValue::from_static("")),
        };
        Self { answer, session }
    }
}

impl OpenedSessions {
    fn sessions(&self) -> Vec<ServerSession> {
        self.0.iter().map(|opened| opened.session.clone()).collect()
    }

    /// The answer of the first server that refused.
    fn refusal(&self) -> Option<&ServerAnswer> {
        self.0.iter().map(|opened| &opened.answer).find(|answer| answer.result().is_none())
    }

    fn is_of_one_revision(&self) -> bool {
        self.0.iter().all(|opened| opened.session.version == self.0[0].session.version)
    }

    /// The earliest revision that a server agreed to. Revisions are dates, so their text order is their order.
    fn earliest_revision(&self) -> String {
        let versions = self.0.iter().filter_map(|opened| opened.session.version.to_str().ok());
        versions.min().unwrap_or_default().to_owned()
    }
}
