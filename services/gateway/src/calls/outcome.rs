//! An admitted call on its way: forwarded once, its answer looked at as it passes.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use http::StatusCode;

use super::call::Call;
use super::ending::Ending;
use super::{Calls, Shared};
use crate::desk::{Pass, Told};
use crate::frame::reply::Reply;
use crate::front::Response;
use crate::relay::{self, Opened, Over, Passing, Tap, Unanswered};
use crate::upstream::{Answer, UpstreamError};
use admission::principal::Era;

impl Calls {
    /// Forwards a call, and answers with what comes.
    pub(super) async fn forward(&self, call: Call, told: Box<Told>, pass: Pass) -> Response {
        let client = call.client.clone();
        match self.sent(call, told, pass).await {
            Ok((answer, outcome)) => relay::forward(answer, Box::new(outcome), &client).await,
            Err(words) => relay::json(StatusCode::OK, words),
        }
    }

    /// The same, on a stream that is open already.
    pub(super) async fn forward_on(&self, opened: Opened, call: Call, told: Box<Told>, pass: Pass) {
        match self.sent(call, told, pass).await {
            Ok((answer, outcome)) => opened.carry(answer, Box::new(outcome)).await,
            Err(words) => {
                opened.send(&words).await;
            }
        }
    }

    /// Sends a call, once. What it gives back in place of an answer is an error for the caller.
    async fn sent(&self, call: Call, told: Box<Told>, pass: Pass) -> Result<(Answer, Outcome), Bytes> {
        let ending = Ending::of(&call, (self.route.clone(), told), pass, self.shared.clone());
        if call.client.era() == Era::Modern && call.client.is_gone() {
            // Taken back before anything of it was sent.
            let words = ending.lost(&UpstreamError::NeverSent("cancelled".into()));
            ending.never_sent().await;
            return Err(words);
        }
        match relay::ask(&*call.route.upstream, call.exchange, &call.client).await {
            Ok(answer) => {
                let refused = !answer.status.is_success();
                Ok((answer, Outcome { ending: Some(ending), refused, shared: self.shared.clone() }))
            }
            Err(Unanswered::Upstream(error)) => {
                tracing::warn!(%error, "a call was not answered");
                let words = ending.lost(&error);
                if matches!(error, UpstreamError::NeverSent(_)) {
                    ending.never_sent().await;
                }
                Err(words)
            }
            // Nobody reads this.
            Err(Unanswered::Cancelled) => Err(ending.lost(&UpstreamError::Lost("cancelled".into()))),
        }
    }
}

/// Waits for the answer to a call. Dropped before that, the call's outcome is `unknown`.
struct Outcome {
    ending: Option<Ending>,
    /// Whether the status says that there will be no result.
    refused: bool,
    shared: Arc<Shared>,
}

#[async_trait]
impl Tap for Outcome {
    async fn message(&mut self, text: Bytes) -> Passing {
        let Some(ending) = &self.ending else { return Passing::Untouched };
        let Ok(reply) = Reply::parse(text.clone()) else { return unreadable(ending, &text) };
        if !reply.answers(&ending.id) {
            return Passing::Untouched;
        }
        match self.ending.take() {
            Some(ending) => ending.end(&reply).await,
            None => Passing::Untouched,
        }
    }

    async fn over(&mut self, how: Over) -> Option<Bytes> {
        let ending = self.ending.take()?;
        match how {
            // An answer of HTTP alone: it has passed as it is, and nothing comes after it.
            Over::Complete if self.refused => None,
            // A legacy server may end this stream and answer on another.
            Over::Complete | Over::Resumed if ending.era() == Era::Legacy => {
                self.shared.clone().unanswered.keep(ending);
                None
            }
            Over::Complete | Over::Resumed => {
                Some(ending.lost(&UpstreamError::Lost("it has no answer".into())))
            }
            Over::Broken(error) => Some(ending.lost(&error)),
            Over::Abandoned => None,
        }
    }
}

/// Other readers might see a Verdict in what we cannot read: it does not pass under our name (V-5).
fn unreadable(ending: &Ending, text: &[u8]) -> Passing {
    match ending.is_told() && relay::is_message(text) {
        true => Passing::Withheld,
        false => Passing::Untouched,
    }
}
