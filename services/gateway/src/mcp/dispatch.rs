//! The choice of the handler for a message.

use axum::response::IntoResponse;
use http::StatusCode;

use super::inbound::VAP_SLOTS;
use super::refusal::McpRefusal;
use super::taps::{Advertising, Listening};
use super::{Inbound, Opening};
use crate::frame::{Kind, TOOLS_CALL};
use crate::front::{headers, unanswered};
use crate::relay::{self, Response};
use crate::upstream::request::SESSION;

/// The method that only the gateway answers.
const AMEND: &str = "vap/amend";

/// Hands a message to its handler, or passes it to the upstream.
pub async fn dispatched(inbound: Inbound) -> Result<Response, McpRefusal> {
    match inbound.frame.kind() {
        Kind::Request => request(inbound).await,
        Kind::Notification if inbound.frame.method() == Some(AMEND) => Err(McpRefusal::AmendWithoutId),
        Kind::Notification if inbound.endpoint.handlers.notified(&inbound).await => Ok(swallowed()),
        Kind::Response if inbound.endpoint.handlers.answered(&inbound).await => Ok(swallowed()),
        Kind::Notification | Kind::Response | Kind::Unknown => Ok(passed(inbound).await),
    }
}

/// Runs the handler of a request to its end: a decision must not be dropped half way because its client disconnects.
async fn request(inbound: Inbound) -> Result<Response, McpRefusal> {
    let method = inbound.frame.method().unwrap_or_default().to_owned();
    let carries = inbound.frame.meta_keys().any(|key| VAP_SLOTS.contains(&key));
    let handlers = inbound.endpoint.handlers.clone();
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
    match inbound.endpoint.upstream.exchange(inbound.exchange).await {
        Ok(answer) => {
            if opening.frame.method() == Some("initialize") {
                let named = headers::text(&answer.headers, &SESSION);
                opening.caller = opening.caller.given(named.map(str::to_owned));
            }
            relay::watch(answer, Box::new(Advertising { endpoint: inbound.endpoint, opening })).await
        }
        Err(error) => unanswered(opening.frame.id(), &error),
    }
}

async fn passed(inbound: Inbound) -> Response {
    let id = inbound.frame.id().filter(|_| inbound.frame.kind() == Kind::Request).cloned();
    match inbound.endpoint.upstream.exchange(inbound.exchange).await {
        Ok(answer) => {
            let tap = Listening { endpoint: inbound.endpoint, caller: inbound.caller, own: id };
            relay::watch(answer, Box::new(tap)).await
        }
        Err(error) => unanswered(id.as_ref(), &error),
    }
}

fn swallowed() -> Response {
    StatusCode::ACCEPTED.into_response()
}
