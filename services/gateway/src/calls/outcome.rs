//! The forwarding of an admitted call: it is sent once, and its answer is inspected as it passes.

use async_trait::async_trait;
use bytes::Bytes;
use http::StatusCode;
use tokio::time::Instant;

use super::Calls;
use super::answer_stream::{AnswerStream, unreadable};
use super::ending::{self, Ending};
use super::pending::PendingCall;
use super::unanswered::UnansweredEntry;
use crate::decision_writer::{AdmittedCall, DecisionAnswer};
use crate::frame::RawId;
use crate::frame::reply::Reply;
use crate::relay::{self, CallLimit, GivenUp, OpenedStream, Over, Passing, Response, Tap, Unanswered};
use crate::upstream::cancellation::Cancellation;
use crate::upstream::{UpstreamAnswer, UpstreamError};
use admission::principal::Era;

/// The error for a call that its client cancelled before anything of it was sent.
const CANCELLED: &str = "the call was cancelled; it was not sent";

impl Calls {
    /// Forwards a call, and responds with the upstream's answer.
    pub(super) async fn forward(
        &self,
        call: PendingCall,
        decision: Box<DecisionAnswer>,
        pass: AdmittedCall,
    ) -> Response {
        let client = call.client.clone();
        match self.sent(call, decision, pass).await {
            Ok(SentCall { answer, mut outcome, limit }) => {
                outcome.passage.is_refusal = outcome.refused;
                relay::forward(answer, Box::new(outcome), (&client, limit), None).await
            }
            Err(words) => relay::json(StatusCode::OK, words),
        }
    }

    /// Forwards a call, and answers on a stream that is open already.
    pub(super) async fn forward_on(
        &self,
        opened: OpenedStream,
        call: PendingCall,
        decision: Box<DecisionAnswer>,
        pass: AdmittedCall,
    ) {
        match self.sent(call, decision, pass).await {
            Ok(SentCall { answer, outcome, limit }) => opened.carry(answer, Box::new(outcome), limit).await,
            Err(words) => {
                opened.send(&words).await;
            }
        }
    }

    /// Sends a call once. The error is the JSON-RPC error for the caller.
    async fn sent(
        &self,
        call: PendingCall,
        decision: Box<DecisionAnswer>,
        pass: AdmittedCall,
    ) -> Result<SentCall, Bytes> {
        let mut ending = Ending::of(&call, (self.route.clone(), decision), pass, self.shared.clone());
        let (id, annotated) = (call.id.clone(), ending.is_annotated());
        let passage = AnswerStream { annotated, ..self.passage(&call.caller, Some(call.id)) };
        let upstream = &call.endpoint.upstream;
        let (era, request) = (ending.era(), ending.release(call.request));
        let cancellation = (era == Era::Legacy).then(|| Cancellation::of(upstream, &request, id.text()));
        // The answer may arrive on another stream as soon as the call is sent. Listed before `unsent` ends, so that a
        // cancellation finds the call in one of the two.
        let listed = self.shared.unanswered.list(ending);
        let limit = self.limit(listed.cancelled());
        let (refused, is_unsent, spoiled, deadline) = (false, false, false, limit.deadline());
        let mut outcome =
            OutcomeTap { listed, id, refused, is_unsent, spoiled, passage, cancellation, deadline };
        if call.unsent.end() || (era == Era::Modern && call.client.is_gone()) {
            outcome.is_unsent = true;
            return Err(outcome.without_answer(CANCELLED).await);
        }
        match limit.within(relay::ask(&**upstream, request, &call.client)).await {
            Ok(Ok(answer)) => {
                outcome.refused = !answer.status.is_success();
                outcome.is_unsent = answer.is_unsent;
                Ok(SentCall { answer, outcome, limit })
            }
            Err(why) => {
                let words = outcome.over(Over::GivenUp(why)).await;
                Err(words.unwrap_or_else(|| ending::lost(&outcome.id, &why.to_string(), None)))
            }
            Ok(Err(Unanswered::Upstream(error))) => {
                tracing::warn!(%error, "a call was not answered");
                outcome.is_unsent = matches!(error, UpstreamError::NeverSent(_));
                Err(outcome.without_answer(ending::words(&error)).await)
            }
            // The client has cancelled and does not read this.
            Ok(Err(Unanswered::Cancelled)) => {
                Err(ending::lost(&outcome.id, &GivenUp::Cancelled.to_string(), None))
            }
        }
    }
}

/// A call that was sent, with the head of its answer.
struct SentCall {
    answer: UpstreamAnswer,
    outcome: OutcomeTap,
    limit: CallLimit,
}

/// A tap that waits for the answer to a call. If it is dropped before, the outcome is `unknown`.
struct OutcomeTap {
    listed: UnansweredEntry,
    id: RawId,
    /// `true` if the HTTP status is an error, so that no result follows.
    refused: bool,
    /// `true` if the call was sent to no server: an answer is the gateway's own.
    is_unsent: bool,
    /// `true` if a message was withheld that some client would have taken for the answer: mostly no other one follows it.
    spoiled: bool,
    passage: AnswerStream,
    /// The notification to a legacy server if the call takes too long.
    cancellation: Option<Cancellation>,
    /// The time until which an answer on another stream is awaited at least.
    deadline: Instant,
}

#[async_trait]
impl Tap for OutcomeTap {
    async fn message(&mut self, text: Bytes) -> Passing {
        let passing = self.inspected(&text).await;
        self.spoiled |= passing == Passing::Withheld && relay::may_be_answer(&text);
        passing
    }

    async fn over(&mut self, how: Over) -> Option<Bytes> {
        let mut owes = self.listed.owes().lock().await;
        let is_legacy = owes.as_ref()?.era() == Era::Legacy;
        // Whoever has resumed reads another stream now, and nothing that is said here.
        let is_lost = self.spoiled && !matches!(how, Over::Resumed);
        match how {
            // A legacy server may end this stream and answer on another, but nothing follows an HTTP error.
            Over::Complete { may_follow: true } | Over::Resumed if is_legacy && !is_lost && !self.refused => {
                self.passage.shared.unanswered.keep(&self.listed, self.deadline);
                None
            }
            Over::Complete { .. } | Over::Resumed => {
                let ending = owes.take()?;
                let words = ending.lost(&UpstreamError::Lost("it has no answer".into()));
                if self.is_unsent {
                    ending.never_sent().await;
                }
                Some(words)
            }
            Over::Broken(error) => Some(owes.take()?.lost(&error)),
            Over::GivenUp(why) => {
                tracing::warn!(%why, "a call was given up");
                let ending = owes.take()?;
                if let Some(cancellation) = self.cancellation.take().filter(|_| why == GivenUp::Overdue) {
                    cancellation.send();
                }
                Some(ending.given_up(why))
            }
            Over::Abandoned => None,
        }
    }
}

impl OutcomeTap {
    /// Settles a call without an answer, and returns the error with these words.
    async fn without_answer(&self, words: &str) -> Bytes {
        let Some(ending) = self.listed.owes().lock().await.take() else {
            return ending::lost(&self.id, words, None);
        };
        let error = ending.without_answer(words);
        if self.is_unsent {
            ending.never_sent().await;
        }
        error
    }

    async fn inspected(&self, text: &Bytes) -> Passing {
        let Ok(reply) = Reply::parse(text.clone()) else {
            return if self.passage.annotated { unreadable(text) } else { Passing::Untouched };
        };
        if reply.answers(&self.id) {
            let mut owes = self.listed.owes().lock().await;
            if let Some(ending) = owes.take() {
                return match self.is_unsent {
                    true => ending.refused(&reply).await,
                    false => ending.end(&reply).await,
                };
            }
        }
        self.passage.unrelated(&reply).await
    }
}
