//! Client requests to a federation: for the one server that they name, or for all servers.

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;

use super::answers::Awaited;
use super::gather::{self, ServerAnswer, UnreadAnswer};
use super::names::ServerIndex;
use super::rewrite::{self, NameKind, NamedTarget};
use super::{FederatedRequest, FederationState, NO_COMMON_REVISION, merge, rpc_error, streams};
use crate::frame::{error_code, mirrored_value};
use crate::upstream::request::NAME;
use crate::upstream::text::{Edits, Json, quoted};
use crate::upstream::{UpstreamAnswer, UpstreamError, answer};

impl FederationState {
    /// Forwards a request that names something of one server.
    pub(super) async fn forward(
        &self,
        request: FederatedRequest<'_>,
        target: &NamedTarget<'_>,
    ) -> Result<UpstreamAnswer, UpstreamError> {
        let mut exchange = request.to(target.server, rewrite::inward(&self.names, request.message, target));
        if exchange.headers.contains_key(NAME) {
            exchange.headers.insert(NAME, mirrored_value(&target.inside));
        }
        let answer = self.servers[target.server].exchange(exchange).await?;
        let answer = UnreadAnswer { server: target.server, answer };
        Ok(self.passed(answer, request.awaited()))
    }

    /// Sends a request without a result of its own (such as `ping`) to all servers. The client gets the first success.
    pub(super) async fn first_success(
        &self,
        request: FederatedRequest<'_>,
    ) -> Result<UpstreamAnswer, UpstreamError> {
        let answers = self.gather(request, self.to_all_servers(request)).await?;
        Ok(match successes(answers) {
            Ok(successes) => successes
                .into_iter()
                .next()
                .map_or_else(|| no_such_method(request), ServerAnswer::into_answer),
            Err(other) => other.into_answer(),
        })
    }

    pub(super) async fn discover(
        &self,
        request: FederatedRequest<'_>,
    ) -> Result<UpstreamAnswer, UpstreamError> {
        let answers = self.gather(request, self.to_all_servers(request)).await?;
        if let Some(other) = answers.iter().find(|answer| answer.result().is_none()) {
            return Ok(other.clone().into_answer());
        }
        let id = request.id().unwrap_or("null");
        Ok(match merge::discovered(&self.names, &gather::results(&answers)) {
            Some(result) => answer::json(StatusCode::OK, merge::response(id, &result).into()),
            None => rpc_error(request, error_code::INVALID_PARAMS, NO_COMMON_REVISION),
        })
    }

    pub(super) async fn list(
        &self,
        request: FederatedRequest<'_>,
        list: &str,
    ) -> Result<UpstreamAnswer, UpstreamError> {
        let Some(bodies) = self.page_requests(request) else {
            let why = "the cursor was not issued by this endpoint";
            return Ok(rpc_error(request, error_code::INVALID_PARAMS, why).unsent());
        };
        let answers = self.gather(request, bodies).await?;
        let successes = match successes(answers) {
            Ok(successes) if successes.is_empty() => return Ok(no_such_method(request)),
            Ok(successes) => successes,
            Err(other) => return Ok(other.into_answer()),
        };
        let id = request.id().unwrap_or("null");
        let result = merge::listed(&self.names, list, &gather::results(&successes));
        Ok(answer::json(StatusCode::OK, merge::response(id, &result).into()))
    }

    /// The requests for the first page of each server, or for the pages that the cursor denotes. `None` if the cursor is
    /// not one of ours.
    fn page_requests(&self, request: FederatedRequest<'_>) -> Option<Vec<(ServerIndex, Bytes)>> {
        let cursor = request.message.param("cursor").filter(|cursor| cursor.raw() != "null");
        let Some(cursor) = cursor else { return Some(self.to_all_servers(request)) };
        let with = |next: String| {
            let mut edits = Edits::of(request.message.text());
            edits.replace(cursor, quoted(&next));
            edits.done()
        };
        let more = self.names.cursor_inside(&cursor.string()?)?.into_iter().enumerate();
        Some(more.filter_map(|(server, next)| Some((server, with(next?)))).collect())
    }

    pub(super) async fn subscribe(
        &self,
        request: FederatedRequest<'_>,
    ) -> Result<UpstreamAnswer, UpstreamError> {
        let uris = request.message.at(&["params", "notifications", "resourceSubscriptions"]);
        let bodies = (0..self.servers.len()).map(|server| {
            let mut edits = Edits::of(request.message.text());
            if let Some(uris) = uris {
                let mine = uris.items().into_iter().filter_map(Json::string).filter_map(|uri| {
                    self.names
                        .uri_inside(&uri)
                        .filter(|(owner, _)| *owner == server)
                        .map(|(_, uri)| uri.to_owned())
                });
                edits.replace(uris, serde_json::json!(mine.collect::<Vec<_>>()).to_string());
            }
            (server, edits.done())
        });
        let answers = self.ask(request, bodies.collect()).await?;
        match streams::opened(answers) {
            Ok(open) => streams::subscribed(Arc::clone(&self.names), open, request.awaited()).await,
            Err(Some(refusal)) => Ok(self.passed(*refusal, request.awaited())),
            Err(None) => Ok(no_such_method(request)),
        }
    }

    /// Forwards a notification: `notifications/progress` to the server of its token, any other to all servers (a
    /// request has the same id at each of them).
    pub(super) async fn notify(
        &self,
        request: FederatedRequest<'_>,
    ) -> Result<UpstreamAnswer, UpstreamError> {
        if request.message.method().as_deref() == Some("notifications/progress") {
            let Some(token) = request.message.param("progressToken") else {
                return Ok(answer::empty(StatusCode::ACCEPTED));
            };
            let Some((server, raw)) = self.names.id_inside(token) else {
                return Ok(answer::empty(StatusCode::ACCEPTED));
            };
            let mut edits = Edits::of(request.message.text());
            edits.replace(token, raw);
            let answer = self.send(request, server, edits.done()).await?;
            return Ok(self.passed(answer, Awaited::Of(None)));
        }
        let answers = self.ask(request, self.to_all_servers(request)).await?;
        let refusal = answers.into_iter().find(|unread| !unread.answer.status.is_success());
        Ok(match refusal {
            Some(refusal) => self.passed(refusal, Awaited::Of(None)),
            None => answer::empty(StatusCode::ACCEPTED),
        })
    }

    /// Forwards the client's response to the server that sent the request. One to no request is refused with the status
    /// 400 and the id `null`: a response has no answer.
    pub(super) async fn reply(&self, request: FederatedRequest<'_>) -> Result<UpstreamAnswer, UpstreamError> {
        match rewrite::reply_inward(&self.names, request.message) {
            Some((server, body)) => {
                let answer = self.send(request, server, body).await?;
                Ok(self.passed(answer, Awaited::Of(None)))
            }
            None => {
                let why = "no server has asked for this";
                Ok(answer::error(StatusCode::BAD_REQUEST, None, error_code::INVALID_REQUEST, why).unsent())
            }
        }
    }
}

/// The successful answers. Servers without the method are left out; any other failure is returned as the error, to be
/// passed to the client.
fn successes(answers: Vec<ServerAnswer>) -> Result<Vec<ServerAnswer>, Box<ServerAnswer>> {
    let (successes, other): (Vec<_>, Vec<_>) =
        answers.into_iter().partition(|answer| answer.result().is_some());
    match other.into_iter().find(|answer| !answer.has_no_such_method()) {
        Some(other) => Err(Box::new(other)),
        None => Ok(successes),
    }
}

/// The error for a method that no server has.
pub fn no_such_method(request: FederatedRequest<'_>) -> UpstreamAnswer {
    rpc_error(request, error_code::METHOD_NOT_FOUND, "no server behind this endpoint has this method")
}

/// The error for a name that no server has; in the legacy eras [`error_code::RESOURCE_NOT_FOUND`] for a resource.
pub fn no_such_name(request: FederatedRequest<'_>, named: NameKind) -> UpstreamAnswer {
    let code = match named {
        NameKind::Uri(_) if request.session.is_some() => error_code::RESOURCE_NOT_FOUND,
        _ => error_code::INVALID_PARAMS,
    };
    rpc_error(request, code, "no server behind this endpoint has this name").unsent()
}
