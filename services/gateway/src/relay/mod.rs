//! Answers on their way to the client: JSON or a stream of events, byte for byte, with somebody looking on.
//!
//! A [`Tap`] sees each JSON-RPC message of an answer before the client does, and may replace or withhold it. Everything
//! around the messages (event ids, names, retry, comments, order, the moment of flushing) is not its business.

use async_trait::async_trait;
use bytes::Bytes;

use crate::upstream::UpstreamError;

/// What looks on while an answer passes.
#[async_trait]
pub trait Tap: Send + 'static {
    /// A message passes towards the client: the exact text of one JSON-RPC message.
    async fn message(&mut self, text: Bytes) -> Passing;

    /// The answer is over. What it gives is sent as a last message, in the form of the answer.
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

/// How an answer ended.
#[derive(Debug)]
pub enum Over {
    /// Its body ended.
    Complete,
    /// It broke.
    Broken(UpstreamError),
    /// The client went away.
    Abandoned,
}
