//! Answers on their way to the client: JSON or a stream of events, byte for byte, with somebody looking on.
//!
//! A [`Tap`] sees each JSON-RPC message of an answer before the client does, and may replace or withhold it. Everything
//! around the messages (event ids, names, retry, comments, order, the moment of flushing) is not its business.
//!
//! * [`pass`]: nobody looks; the client's going away ends the upstream's answer, as if there were no gateway;
//! * [`watch`]: somebody looks, and the client's going away ends it all the same (GET streams, `initialize`);
//! * [`forward`]: the answer to a call: in the modern era the client's going away cancels it, in the legacy era the answer is
//!   read to its end, for its outcome goes on record;
//! * [`open`]: a stream that the gateway starts itself, to ask the client something before the upstream has been asked.

mod answer;
pub mod events;
mod opened;
mod tapped;
#[cfg(test)]
mod tests;

use async_trait::async_trait;
use bytes::Bytes;

use crate::front::Client;
use crate::upstream::{Answer, Exchange, Upstream, UpstreamError};

pub use answer::{error, forward, is_event_stream, is_message, json, pass, watch};
pub use opened::{Opened, open};

/// What looks on while an answer passes.
#[async_trait]
pub trait Tap: Send + 'static {
    /// A message passes towards the client: the exact text of one JSON-RPC message (or of what an event has for data).
    async fn message(&mut self, text: Bytes) -> Passing;

    /// The answer is over. What it gives is sent as a last message, in the form of the answer; a complete answer that was
    /// neither JSON nor events (a bare 404, say) passes as it is, and what it gives is not sent.
    async fn over(&mut self, how: Over) -> Option<Bytes>;
}

/// What becomes of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Passing {
    /// It goes on as it is, byte for byte.
    Untouched,
    /// This goes on in its place.
    Replaced(Bytes),
    /// Nothing goes on.
    Withheld,
}

/// How an answer ended. In the legacy era a stream may end or break before the response was in it: the client may come
/// back for the rest with a GET, which [`crate::front::Handlers::late`] sees.
#[derive(Debug)]
pub enum Over {
    /// Its body ended.
    Complete,
    /// It broke.
    Broken(UpstreamError),
    /// The client went away, and that cancelled the request (modern).
    Abandoned,
    /// The client went away and came back with a GET that resumes (legacy): what is still to come comes there.
    Resumed,
}

/// Why there is no answer.
#[derive(Clone, Debug)]
pub enum Unanswered {
    /// The upstream gave none.
    Upstream(UpstreamError),
    /// The client took the request back (modern: it went away); it had been sent, or part of it.
    Cancelled,
}

/// Sends a request to an upstream, once. A client of the modern era that goes away takes it back.
///
/// # Errors
/// If there is no answer.
pub async fn ask(upstream: &dyn Upstream, exchange: Exchange, client: &Client) -> Result<Answer, Unanswered> {
    tokio::select! {
        biased;
        answer = upstream.exchange(exchange) => answer.map_err(Unanswered::Upstream),
        () = client.cancelled() => Err(Unanswered::Cancelled),
    }
}
