//! The event stream of a session, which a GET opens or resumes: that of one server, or those of all servers as one.

use std::sync::Arc;

use futures::future::join_all;
use http::{HeaderValue, StatusCode};

use super::answers::Awaited;
use super::gather::UnreadAnswer;
use super::names::{ResumePosition, ServerIndex};
use super::sessions::FederatedSession;
use super::{FederationState, streams};
use crate::frame::error_code;
use crate::upstream::request::{LAST_EVENT, header};
use crate::upstream::{Exchange, UpstreamAnswer, UpstreamError, answer};

impl FederationState {
    pub(super) async fn listen(&self, exchange: &Exchange) -> Result<UpstreamAnswer, UpstreamError> {
        let session = match self.named_session(exchange) {
            Ok(session) => session,
            Err(refusal) => return Ok(refusal),
        };
        let answer = match header(exchange, &LAST_EVENT).map(|id| self.names.event_inside(id)) {
            None => self.listen_to_all(exchange, &session, vec![None; self.servers.len()]).await,
            Some(Some(ResumePosition::All(last_events))) => {
                self.listen_to_all(exchange, &session, last_events).await
            }
            Some(Some(ResumePosition::One(server, last_event))) => {
                let answer = self.open_stream(exchange, &session, server, Some(&last_event)).await;
                answer.map(|answer| self.passed(answer, Awaited::Session(Arc::clone(&session))))
            }
            Some(None) => {
                let why = "Last-Event-ID names no event of this session";
                Ok(answer::error(StatusCode::BAD_REQUEST, None, error_code::TRANSPORT_REFUSAL, why))
            }
        };
        self.end_lost_session(exchange, answer).await
    }

    /// The streams of all servers as one, each resumed after its last event.
    async fn listen_to_all(
        &self,
        exchange: &Exchange,
        session: &Arc<FederatedSession>,
        last_events: Vec<Option<String>>,
    ) -> Result<UpstreamAnswer, UpstreamError> {
        let streams = last_events
            .iter()
            .enumerate()
            .map(|(server, last_event)| self.open_stream(exchange, session, server, last_event.as_deref()));
        let answers = join_all(streams).await.into_iter().collect::<Result<Vec<_>, _>>()?;
        if answers.iter().any(|opened| opened.answer.status == StatusCode::NOT_FOUND) {
            return Ok(answer::no_such_session(None));
        }
        Ok(match streams::opened(answers) {
            Ok(open) => streams::common(Arc::clone(&self.names), session, last_events, open),
            Err(Some(refusal)) => self.passed(*refusal, Awaited::Of(None)),
            Err(None) => answer::not_allowed("POST, DELETE"),
        })
    }

    async fn open_stream(
        &self,
        exchange: &Exchange,
        session: &FederatedSession,
        server: ServerIndex,
        last_event: Option<&str>,
    ) -> Result<UnreadAnswer, UpstreamError> {
        let mut exchange =
            Exchange { headers: session.headers(server, &exchange.headers), ..exchange.clone() };
        if let Some(last_event) = last_event.and_then(|id| HeaderValue::from_str(id).ok()) {
            exchange.headers.insert(LAST_EVENT, last_event);
        }
        Ok(UnreadAnswer { server, answer: self.servers[server].exchange(exchange).await? })
    }
}
