//! A2A (JSON-RPC over HTTP), behind the front end: every request to the agent is a call that AgentROA authorizes.
//!
//! A request is decided like a tool call, under the name of its method (`message/send`, `tasks/get`, …) and the
//! route's `server_id`. The chain is a member of `params.metadata`, named by the extension [`EXTENSION`]; it is
//! forwarded, since the agent may delegate further. The proof beside it is not. The execution receipt is a member of
//! the `metadata` of the first result, or of the `data` of an error; a response header refers to it as well.
//!
//! | module | content |
//! |---|---|
//! | `request` | a request: chain, proof, arguments, and the text that the agent receives |
//! | `answer` | the agent's answer as it passes: receipt and outcome |
//! | `error_data` | the receipt in the data of an error, in the forms of A2A 0.3 and 1.0 |
//! | `card` | the agent card, with the gateway's address and the extension |
//!
//! Not here: the decision (`calls`, `authority`), the checks of all protocols (`front`).

mod answer;
mod card;
mod error_data;
mod request;

use std::sync::Arc;

use async_trait::async_trait;
use axum::body::Body;
use axum::response::IntoResponse;
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};

pub use card::{AgentCard, CardError};

use crate::calls::{Calls, REFUSED, receipt_header, refusal_words, with_receipt_header};
use crate::decision_writer::{AdmittedCall, CallOutcomeReport, DecisionAnswer};
use crate::frame::reply;
use crate::front::watched::watched;
use crate::front::{AuthorizedRequest, Protocol, RequestRefusal, unanswered};
use crate::relay::{self, Client, Response, Unanswered};
use crate::upstream::{Upstream, UpstreamError};
use admission::principal::Era;
use answer::AnswerTap;
use request::{AgentRequest, AgentRequestError};
use tokio_util::sync::CancellationToken;
use vap::audit::CallStatus;

/// The URI of the A2A extension. Agent cards list it, and the members of `metadata` begin with it.
pub const EXTENSION: &str = "https://tabellion.dev/a2a/agentroa/v1";
/// The member of `params.metadata` with the chain: an envelope, or an envelope with its attestations.
pub const CHAIN: &str = "https://tabellion.dev/a2a/agentroa/v1/roa";
/// The member of `params.metadata` with the proof of possession, as a compact JWS.
pub const PROOF: &str = "https://tabellion.dev/a2a/agentroa/v1/roa-proof";
/// The member of a result's `metadata` with the execution receipt.
pub const RECEIPT: &str = "https://tabellion.dev/a2a/agentroa/v1/aer";

/// The JSON-RPC code of A2A for an agent without an extended card.
const NO_EXTENDED_CARD: i32 = -32007;

/// The header with the extensions that a client activates, in A2A 0.3 and 1.0.
const EXTENSION_HEADERS: [HeaderName; 2] =
    [HeaderName::from_static("x-a2a-extensions"), HeaderName::from_static("a2a-extensions")];

/// A2A at one endpoint.
#[derive(Clone)]
pub struct A2a {
    agent: Arc<dyn Upstream>,
    calls: Calls,
}

impl A2a {
    /// Creates the protocol of an endpoint before this agent. `calls` decides under the rules of the route.
    #[must_use]
    pub fn new(agent: Arc<dyn Upstream>, calls: Calls) -> Self {
        Self { agent, calls }
    }

    async fn call(self, request: AgentRequest, client: Client) -> Response {
        if request.is_for_card() {
            let words = "the authenticated extended card is not configured";
            return relay::json(
                StatusCode::OK,
                reply::error(Some(&request.id), NO_EXTENDED_CARD, words, None),
            );
        }
        // Checked before the arguments are processed: their canonical form takes time in proportion to their length.
        if let Err(too_long) = self.calls.check_length(request.arguments_bytes()) {
            return relay::json(StatusCode::OK, too_long.message(Some(&request.id)));
        }
        let decision = self.calls.decided(request.job(&self.calls)).await;
        self.forward_or_refuse(request, decision, client).await
    }

    /// Forwards a request that is admitted, and refuses it otherwise.
    async fn forward_or_refuse(
        &self,
        request: AgentRequest,
        mut decision: Box<DecisionAnswer>,
        client: Client,
    ) -> Response {
        let response = match decision.pass.take() {
            Some(admitted) => self.forward(request, &decision, admitted, client).await,
            None => refusal(&request, &decision),
        };
        with_receipt_header(response, receipt_header(&decision))
    }

    async fn forward(
        &self,
        request: AgentRequest,
        decision: &DecisionAnswer,
        mut admitted: AdmittedCall,
        client: Client,
    ) -> Response {
        let AgentRequest { id, error_data, held, .. } = request;
        if client.is_gone() {
            settle_unsent(admitted).await;
            return relay::cancelled();
        }
        let limit = self.calls.limit(CancellationToken::new());
        match limit.within(relay::ask(&*self.agent, admitted.release(held), &client)).await {
            Ok(Ok(answer)) => {
                let tap = AnswerTap::new(id.clone(), error_data, admitted, decision);
                let awaited = tap.is_annotated().then_some(&id);
                relay::forward(answer, Box::new(tap), (&client, limit), awaited).await
            }
            Err(why) => relay::json(StatusCode::OK, relay::lost_answer(Some(&id), &why.to_string())),
            Ok(Err(Unanswered::Upstream(error))) => {
                if matches!(error, UpstreamError::NeverSent(_)) {
                    settle_unsent(admitted).await;
                }
                unanswered(Some(&id), &error)
            }
            Ok(Err(Unanswered::Cancelled)) => relay::cancelled(),
        }
    }
}

/// Settles a request of which nothing was sent: the reservation is released.
async fn settle_unsent(admitted: AdmittedCall) {
    admitted.settle(CallOutcomeReport { status: CallStatus::Refused, cost: None, result: None }).await;
}

#[async_trait]
impl Protocol for A2a {
    fn check(&self, head: &Parts) -> Result<(), RequestRefusal> {
        match head.method {
            Method::POST => Ok(()),
            _ => Err(RequestRefusal::Method("POST")),
        }
    }

    async fn answer(&self, mut request: AuthorizedRequest) -> Response {
        let text = match request.message().await {
            Ok(text) => text,
            Err(refusal) => return refusal.into_response(),
        };
        let read = match AgentRequest::read(text, &request, self.calls.route()) {
            Ok(read) => read,
            Err(AgentRequestError::Message(error)) => return RequestRefusal::Message(error).into_response(),
            Err(error) => return relay::error(StatusCode::BAD_REQUEST, error.code(), &error.to_string()),
        };
        let reads_events = request.reads_events();
        let activated = activated(&request.head.headers);
        let (client, gone) =
            Client::new(Era::Modern, reads_events, Arc::default(), request.draining.tasks.clone());
        let a2a = self.clone();
        let mut response = client.finish(a2a.call(read, client.clone())).await;
        response.headers_mut().extend(activated.map(|name| (name, HeaderValue::from_static(EXTENSION))));
        watched(response, gone)
    }
}

/// Returns the header in which the client activated the extension: the answer repeats it there.
fn activated(headers: &HeaderMap) -> Option<HeaderName> {
    let named = |name: &&HeaderName| {
        let values = headers.get_all(*name).iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).any(|extension| extension.trim() == EXTENSION)
    };
    EXTENSION_HEADERS.iter().find(named).cloned()
}

/// Refuses a request, with its receipt. The answer to a method that streams is an event, as its readers expect.
fn refusal(request: &AgentRequest, decision: &DecisionAnswer) -> Response {
    let receipt = decision.receipt.as_ref();
    let data = receipt.and_then(|receipt| request.error_data.with_receipt(None, &receipt.json));
    let message = reply::error(Some(&request.id), REFUSED, &refusal_words(decision), data.as_deref());
    match request.streams {
        true => relay::events(StatusCode::OK, HeaderMap::new(), Body::from(event(&message))),
        false => relay::json(StatusCode::OK, message),
    }
}

fn event(message: &Bytes) -> Vec<u8> {
    [b"data: ", &message[..], b"\n\n"].concat()
}
