//! Client requests to a federation: for the one server that they name, or for all servers.

use std::sync::Arc;

use http::StatusCode;

use super::answers::Awaited;
use super::gather::ServerAnswer;
use super::names::ServerIndex;
use super::rewrite::{self, NameKind, NamedTarget};
use super::{FederatedRequest, FederationState, NO_COMMON_REVISION, bad, merge, streams};
use crate::frame::mirrored_value;
use crate::upstream::request::NAME;
use crate::upstream::text::{Edits, Json, RpcMessage, quoted};
use crate::upstream::{UpstreamAnswer, UpstreamError, answer};

impl FederationState {
    /// Forwards a request that names something of one server.
    pub(super) async fn one(
        &self,
        asked: FederatedRequest<'_>,
        message: &RpcMessage<'_>,
        target: &NamedTarget<'_>,
    ) -> Result<UpstreamAnswer, UpstreamError> {
        let mut exchange = asked.to(target.whose, rewrite::inward(&self.names, message, target));
        if exchange.headers.contains_key(NAME) {
            exchange.headers.insert(NAME, mirrored_value(&target.inside));
        }
        let answer = self.servers[target.whose].exchange(exchange).await?;
        Ok(self.passed(target.whose, answer, Awaited::to(Some(message))))
    }

    /// Sends a request without a result of its own (such as `ping`) to all servers. The client gets the first success.
    pub(super) async fn all(
        &self,
        asked: FederatedRequest<'_>,
        message: &RpcMessage<'_>,
    ) -> Result<UpstreamAnswer, UpstreamError> {
        let answers = self.gather(asked, self.to_everybody(message)).await?;
        Ok(match successes(answers) {
            Ok(parts) => parts
                .into_iter()
                .next()
                .map_or_else(|| no_such_method(asked, message), ServerAnswer::into_answer),
            Err(other) => other.into_answer(),
        })
    }

    pub(super) async fn discover(
        &self,
        asked: FederatedRequest<'_>,
        message: &RpcMessage<'_>,
    ) -> Result<UpstreamAnswer, UpstreamError> {
        let answers = self.gather(asked, self.to_everybody(message)).await?;
        if let Some(other) = answers.iter().find(|answer| answer.result().is_none()) {
            return Ok(other.clone().into_answer());
        }
        let id = message.id().map_or("null", Json::raw);
        let parts: Vec<_> =
            answers.iter().filter_map(|answer| Some((answer.whose, answer.result()?))).collect();
        Ok(match merge::discovered(&self.names, &parts) {
            Some(result) => answer::json(StatusCode::OK, merge::response(id, &result).into()),
            None => bad(asked, message, answer::INVALID_PARAMS, NO_COMMON_REVISION),
        })
    }

    pub(super) async fn list(
        &self,
        asked: FederatedRequest<'_>,
        message: &RpcMessage<'_>,
        list: &str,
    ) -> Result<UpstreamAnswer, UpstreamError> {
        let cursor = message.param("cursor").filter(|cursor| cursor.raw() != "null");
        let bodies = match cursor {
            None => self.to_everybody(message),
            Some(part) => {
                let Some(cursors) = part.string().and_then(|cursor| self.names.cursor_inside(&cursor)) else {
                    return Ok(bad(
                        asked,
                        message,
                        answer::INVALID_PARAMS,
                        "the cursor was not issued by this endpoint",
                    ));
                };
                let with = |cursor: String| {
                    let mut edits = Edits::of(message.text());
                    edits.replace(part, quoted(&cursor));
                    edits.done()
                };
                let more = cursors.into_iter().enumerate();
                more.filter_map(|(whose, cursor)| Some((whose, with(cursor?)))).collect()
            }
        };
        let answers = self.gather(asked, bodies).await?;
        let parts = match successes(answers) {
            Ok(parts) if parts.is_empty() => return Ok(no_such_method(asked, message)),
            Ok(parts) => parts,
            Err(other) => return Ok(other.into_answer()),
        };
        let parts: Vec<_> =
            parts.iter().filter_map(|answer| Some((answer.whose, answer.result()?))).collect();
        let id = message.id().map_or("null", Json::raw);
        let result = merge::listed(&self.names, list, &parts);
        Ok(answer::json(StatusCode::OK, merge::response(id, &result).into()))
    }

    pub(super) async fn subscribe(
        &self,
        asked: FederatedRequest<'_>,
        message: &RpcMessage<'_>,
    ) -> Result<UpstreamAnswer, UpstreamError> {
        let uris = message.at(&["params", "notifications", "resourceSubscriptions"]);
        let bodies = (0..self.servers.len()).map(|whose| {
            let mut edits = Edits::of(message.text());
            if let Some(uris) = uris {
                let mine = uris.items().into_iter().filter_map(Json::string).filter_map(|uri| {
                    self.names
                        .uri_inside(&uri)
                        .filter(|(server, _)| *server == whose)
                        .map(|(_, uri)| uri.to_owned())
                });
                edits.replace(uris, serde_json::json!(mine.collect::<Vec<_>>()).to_string());
            }
            (whose, edits.done())
        });
        let answers = self.ask(asked, bodies.collect()).await?;
        match streams::opened(answers) {
            Ok(open) => streams::subscribed(Arc::clone(&self.names), open, Awaited::to(Some(message))).await,
            Err(Some(refusal)) => Ok(self.passed(refusal.0, refusal.1, Awaited::to(Some(message)))),
            Err(None) => Ok(no_such_method(asked, message)),
        }
    }

    /// Forwards a notification: `notifications/progress` to the server of its token, any other to all servers (a
    /// request has the same id at each of them).
    pub(super) async fn tell(
        &self,
        asked: FederatedRequest<'_>,
        message: &RpcMessage<'_>,
    ) -> Result<UpstreamAnswer, UpstreamError> {
        if message.method().as_deref() == Some("notifications/progress") {
            let Some(token) = message.param("progressToken") else {
                return Ok(answer::empty(StatusCode::ACCEPTED));
            };
            let Some((whose, raw)) = self.names.id_inside(token) else {
                return Ok(answer::empty(StatusCode::ACCEPTED));
            };
            let mut edits = Edits::of(message.text());
            edits.replace(token, raw);
            let answer = self.servers[whose].exchange(asked.to(whose, edits.done())).await?;
            return Ok(self.passed(whose, answer, Awaited::Of(None)));
        }
        let answers = self.ask(asked, self.to_everybody(message)).await?;
        let refusal = answers.into_iter().find(|(_, answer)| !answer.status.is_success());
        Ok(match refusal {
            Some((whose, answer)) => self.passed(whose, answer, Awaited::Of(None)),
            None => answer::empty(StatusCode::ACCEPTED),
        })
    }

    fn passed(&self, whose: ServerIndex, answer: UpstreamAnswer, awaited: Awaited) -> UpstreamAnswer {
        streams::passed(Arc::clone(&self.names), whose, answer, awaited)
    }

    /// Forwards the client's response to the server that sent the request.
    pub(super) async fn reply(
        &self,
        asked: FederatedRequest<'_>,
        message: &RpcMessage<'_>,
    ) -> Result<UpstreamAnswer, UpstreamError> {
        match rewrite::reply_inward(&self.names, message) {
            Some((whose, body)) => {
                let answer = self.servers[whose].exchange(asked.to(whose, body)).await?;
                Ok(self.passed(whose, answer, Awaited::Of(None)))
            }
            None => Ok(bad(asked, message, answer::INVALID_REQUEST, "no server has asked for this")),
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
pub fn no_such_method(asked: FederatedRequest<'_>, message: &RpcMessage<'_>) -> UpstreamAnswer {
    bad(asked, message, answer::NO_METHOD, "no server behind this endpoint has this method")
}

/// The error for a name that no server has; in the legacy eras `-32002` for a resource.
pub fn no_such_name(
    asked: FederatedRequest<'_>,
    message: &RpcMessage<'_>,
    named: NameKind,
) -> UpstreamAnswer {
    let code = match named {
        NameKind::Uri(_) if asked.session.is_some() => -32002,
        _ => answer::INVALID_PARAMS,
    };
    bad(asked, message, code, "no server behind this endpoint has this name")
}
