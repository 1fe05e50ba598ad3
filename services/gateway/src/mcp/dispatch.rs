//! The choice of the handler for a message.

use axum::response::IntoResponse;
use http::StatusCode;

use super::inbound::VAP_SLOTS;
use super::refusal::McpRefusal;
use super::taps::{Advertising, Listening};
use super::{Inbound, Opening, RequestKind};
use crate::frame::{Kind, TOOLS_CALL};
use crate::front::unanswered;
use crate::relay::{self, AwaitedRequest, Response};
use crate::upstream::fields;
use crate::upstream::request::SESSION;

/// The method that only the gateway answers.
const AMEND: &str = "vap/amend";

/// Hands a message to its handler, or passes it to the upstream.
pub async fn dispatched(inbound: Inbound) -> Result<Response, McpRefusal> {
    match inbound.frame.kind() {
        Kind::Request => Ok(request(inbound).await),
        Kind::Notification if needs_id(&inbound) => Err(McpRefusal::WithoutId),
        Kind::Notification | Kind::Response if inbound.endpoint.handlers.takes(&inbound) => Ok(swallowed()),
        Kind::Notification | Kind::Response | Kind::Unknown => Ok(passed(inbound).await),
    }
}

/// Returns whether messages of this method are decided or answered by the gateway, and so must be requests: some servers
/// execute such a message also without an id.
fn needs_id(inbound: &Inbound) -> bool {
    let method = inbound.frame.method().unwrap_or_default();
    method == AMEND || inbound.endpoint.handlers.gates(method)
}

/// Runs the handler of a request to its end: a decision must not be dropped half way because its client disconnects.
async fn request(inbound: Inbound) -> Response {
    let carries = || inbound.frame.meta_keys().any(|key| VAP_SLOTS.contains(&key));
    let (handlers, client) = (inbound.endpoint.handlers.clone(), inbound.client.clone());
    let kind = match inbound.frame.method().unwrap_or_default() {
        TOOLS_CALL => RequestKind::ToolCall,
        AMEND => RequestKind::Amendment,
        other if handlers.gates(other) => RequestKind::Gated,
        _ if carries() => RequestKind::Carrier,
        "initialize" | "server/discover" => return advertised(inbound).await,
        _ => return passed(inbound).await,
    };
    client.finish(handlers.request(kind, inbound)).await
}

async fn advertised(inbound: Inbound) -> Response {
    let mut opening = Opening { frame: inbound.frame, caller: inbound.caller };
    match inbound.endpoint.upstream.exchange(inbound.exchange).await {
        Ok(answer) => {
            if opening.frame.method() == Some("initialize") {
                let named = fields::text(&answer.headers, &SESSION);
                opening.caller = opening.caller.with_issued_session(named.map(str::to_owned));
            }
            let (frame, caller) = (opening.frame.clone(), opening.caller.clone());
            let request = frame.id().map(|id| AwaitedRequest { id, era: inbound.era });
            let handlers = &inbound.endpoint.handlers;
            let tap = Box::new(Advertising { handlers: handlers.clone(), opening });
            let tap = handlers.resumable(&caller, &frame, &answer, tap);
            relay::watch(answer, tap, request).await
        }
        Err(error) => unanswered(opening.frame.id(), &error),
    }
}

async fn passed(inbound: Inbound) -> Response {
    let id = inbound.frame.id().filter(|_| inbound.frame.kind() == Kind::Request).cloned();
    match inbound.endpoint.upstream.exchange(inbound.exchange).await {
        Ok(answer) => {
            let (handlers, era) = (inbound.endpoint.handlers.clone(), inbound.era);
            let request = id.as_ref().map(|id| AwaitedRequest { id, era });
            let tap = Listening { handlers, caller: inbound.caller, own: id.clone(), is_resumed: false };
            relay::watch(answer, Box::new(tap), request).await
        }
        Err(error) => unanswered(id.as_ref(), &error),
    }
}

fn swallowed() -> Response {
    StatusCode::ACCEPTED.into_response()
}
