//! Forwarding of answers to the client: JSON or an event stream, byte for byte, inspected by a tap.
//!
//! A [`Tap`] receives each JSON-RPC message of an answer before the client does, and may replace or withhold it.
//! Everything around the messages (event ids, names, retry, comments, order, the time of flushing) is outside its
//! control.
//!
//! * [`pass`]: without a tap; a disconnect of the client ends the upstream's answer, as without a gateway;
//! * [`watch`]: with a tap; a disconnect ends the answer as well (GET streams, `initialize`), and an error takes the place
//!   of a request's answer that is withheld, late, or none at all;
//! * [`forward`]: the answer to a call, with a tap; in the modern era a disconnect cancels it, in the legacy era the
//!   answer is read to its end, because its outcome is recorded, but not beyond the [`CallLimit`];
//! * [`open`]: a stream that the gateway starts itself, to ask the client a question before the upstream receives the
//!   request.

mod answer;
mod awaited_answer;
mod call_limit;
mod client;
mod lost_answer;
mod opened;
mod tapped;
#[cfg(test)]
mod tests;

use async_trait::async_trait;
use bytes::Bytes;

use crate::upstream::{Exchange, Upstream, UpstreamAnswer, UpstreamError};

pub use answer::{AnswerForm, cancelled, error, events, form, forward, json, pass, watch};
pub use awaited_answer::{AwaitedRequest, may_be_answer};
pub use call_limit::{CallLimit, GivenUp};
pub use client::Client;
pub use lost_answer::{UPSTREAM_FAILED, failure_text, lost_answer};
pub use opened::{OpenedStream, open};

/// A response to a client. Each frame of its body is flushed at once.
pub type Response = axum::response::Response;

/// An observer of an answer's messages.
#[async_trait]
pub trait Tap: Send + 'static {
    /// Receives a message on its way to the client: the exact text of one JSON-RPC message, or of an event's data.
    async fn message(&mut self, text: Bytes) -> Passing;

    /// Receives the end of the answer. The returned text is sent as a last message in the form of the answer. After a
    /// complete answer that is no event stream, it takes the place of a successful one without a response. A response or a
    /// refusal that the tap has passed is passed, and the text is not sent.
    async fn over(&mut self, how: Over) -> Option<Bytes>;
}

/// The decision of a tap on a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Passing {
    /// The message is passed byte for byte.
    Untouched,
    /// This text is passed instead.
    Replaced(Bytes),
    /// The message is not passed.
    Withheld,
}

/// The way in which an answer ended. In the legacy era a stream may end or break before the response: the client may
/// fetch the rest with a GET, which [`crate::mcp::ServerMessages::late`] receives.
#[derive(Debug)]
pub enum Over {
    /// The body ended.
    Complete {
        /// `true` if a legacy server may send the answer on another stream: after an event stream and after a 202.
        may_follow: bool,
    },
    /// The body broke off.
    Broken(UpstreamError),
    /// The client disconnected, which cancelled the request (modern era).
    Abandoned,
    /// The client disconnected, and resumed with a GET (legacy era): the rest arrives on that stream.
    Resumed,
    /// The answer is not awaited any longer.
    GivenUp(GivenUp),
}

/// Reason why a request has no answer.
#[derive(Clone, Debug)]
pub enum Unanswered {
    /// The upstream gave no answer.
    Upstream(UpstreamError),
    /// The client cancelled the request (in the modern era by a disconnect) after it was sent at least in part.
    Cancelled,
}

/// Sends a request to an upstream, once. A client of the modern era cancels it by a disconnect.
///
/// # Errors
/// [`Unanswered`] if there is no answer.
pub async fn ask(
    upstream: &dyn Upstream,
    exchange: Exchange,
    client: &Client,
) -> Result<UpstreamAnswer, Unanswered> {
    tokio::select! {
        biased;
        answer = upstream.exchange(exchange) => answer.map_err(Unanswered::Upstream),
        () = client.cancelled() => Err(Unanswered::Cancelled),
    }
}
