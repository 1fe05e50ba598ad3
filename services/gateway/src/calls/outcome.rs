//! The forwarding of an admitted call: it is sent once, and its answer is inspected as it passes.

use async_trait::async_trait;
use bytes::Bytes;
use http::StatusCode;

use super::Calls;
use super::answer_stream::{AnswerStream, unreadable};
use super::ending::{self, Ending};
use super::pending::PendingCall;
use super::unanswered::UnansweredEntry;
use crate::decision_writer::{AdmittedCall, DecisionAnswer};
use crate::frame::RawId;
use crate::frame::reply::Reply;
use crate::relay::Response;
use crate::relay::{self, OpenedStream, Over, Passing, Tap, Unanswered};
use crate::upstream::{UpstreamAnswer, UpstreamError};
use admission::principal::Era;

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
            Ok((answer, outcome)) => relay::forward(answer, Box::new(outcome), &client, None).await,
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
            Ok((answer, outcome)) => opened.carry(answer, Box::new(outcome)).await,
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
    ) -> Result<(UpstreamAnswer, OutcomeTap), Bytes> {
        let mut ending = Ending::of(&call, (self.route.clone(), decision), pass, self.shared.clone());
        if call.client.era() == Era::Modern && call.client.is_gone() {
            // Cancelled before anything of it was sent.
            let words = ending.lost(&UpstreamError::NeverSent("cancelled".into()));
            ending.never_sent().await;
            return Err(words);
        }
        let (id, own) = (call.id.clone(), Some(call.id));
        let (shared, route, annotated) = (self.shared.clone(), self.route.clone(), ending.is_annotated());
        let passage = AnswerStream { shared, route, caller: call.caller, own, annotated };
        let request = ending.release(call.request);
        // The answer may arrive on another stream as soon as the call is sent.
        let listed = self.shared.unanswered.list(ending);
        match relay::ask(&*call.endpoint.upstream, request, &call.client).await {
            Ok(answer) => {
                let refused = !answer.status.is_success();
                Ok((answer, OutcomeTap { listed, id, refused, spoiled: false, passage }))
            }
            Err(Unanswered::Upstream(error)) => {
                tracing::warn!(%error, "a call was not answered");
                let Some(ending) = listed.owes().lock().await.take() else {
                    return Err(ending::lost(&id, &error, None));
                };
                let words = ending.lost(&error);
                if matches!(error, UpstreamError::NeverSent(_)) {
                    ending.never_sent().await;
                }
                Err(words)
            }
            // The client has cancelled and does not read this.
            Err(Unanswered::Cancelled) => {
                Err(ending::lost(&id, &UpstreamError::Lost("cancelled".into()), None))
            }
        }
    }
}

/// A tap that waits for the answer to a call. If it is dropped before, the outcome is `unknown`.
struct OutcomeTap {
    listed: UnansweredEntry,
    id: RawId,
    /// `true` if the HTTP status is an error, so that no result follows.
    refused: bool,
    /// `true` if a message was withheld that some client would have taken for the answer: mostly no other one follows it.
    spoiled: bool,
    passage: AnswerStream,
}

#[async_trait]
impl Tap for OutcomeTap {
    async fn message(&mut self, text: Bytes) -> Passing {
        let passing = self.inspected(&text).await;
        self.spoiled |= passing == Passing::Withheld && relay::may_be_answer(&text, &self.id);
        passing
    }

    async fn over(&mut self, how: Over) -> Option<Bytes> {
        let mut owes = self.listed.owes().lock().await;
        let is_legacy = owes.as_ref()?.era() == Era::Legacy;
        // Whoever has resumed reads another stream now, and nothing that is said here.
        let is_lost = self.spoiled && !matches!(how, Over::Resumed);
        match how {
            // A legacy server may end this stream and answer on another, but nothing follows an HTTP error.
            Over::Complete | Over::Resumed if is_legacy && !is_lost && !self.refused => {
                self.passage.shared.unanswered.keep(&self.listed);
                None
            }
            Over::Complete | Over::Resumed => {
                Some(owes.take()?.lost(&UpstreamError::Lost("it has no answer".into())))
            }
            Over::Broken(error) => Some(owes.take()?.lost(&error)),
            Over::Abandoned => None,
        }
    }
}

impl OutcomeTap {
    async fn inspected(&self, text: &Bytes) -> Passing {
        let Ok(reply) = Reply::parse(text.clone()) else {
            return if self.passage.annotated { unreadable(text) } else { Passing::Untouched };
        };
        if reply.answers(&self.id) {
            let mut owes = self.listed.owes().lock().await;
            if let Some(ending) = owes.take() {
                return ending.end(&reply).await;
            }
        }
        self.passage.unrelated(&reply).await
    }
}
