//! Calls that wait for an approver outside of the client (V-26): on an open stream, or by being sent again.
//!
//! In the modern era, a result with only `requestState` asks the client to send the call again; each time the call is
//! held for a while, so that the answer can arrive meanwhile. Nothing that the client sends is an answer. A call whose
//! client leaves or cancels it is decided without one, which withdraws the question; it is not sent, even if the rules
//! then in force admit it.

use admission::approval::Question;
use admission::clarify::{HumanAnswer, Purpose, SealedCall};
use bytes::Bytes;
use http::StatusCode;
use serde_json::Value;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::pending::{NextStep, PendingCall};
use super::unsent::UnsentCall;
use super::{Calls, ending};
use crate::clarify::state::Sealed;
use crate::decision_writer::{CallJob, DecisionAnswer, QuestionStatus, UndecidedCall};
use crate::frame::error_code::INTERNAL_ERROR;
use crate::frame::reply;
use crate::limits::{APPROVAL_HOLD, MAX_APPROVAL_TIME, QUESTION_KEEP_ALIVE};
use crate::relay::Response;
use crate::relay::{self, OpenedStream};

impl Calls {
    /// Handles a call that is sent again while its question is open (modern era): holds it for up to [`APPROVAL_HOLD`],
    /// and asks the client to send it again. This is not recorded. `None` if the call is to be decided.
    pub(super) async fn still_waits(&self, call: &PendingCall, job: &CallJob) -> Option<Response> {
        let ticket = job.state.as_ref()?.ticket.as_ref()?;
        if ticket.purpose != Purpose::Approval {
            return None;
        }
        match self.shared.writer.wait_for_answer(&ticket.nonce, APPROVAL_HOLD).await {
            QuestionStatus::Open => Some(relay::json(StatusCode::OK, self.come_again(call, ticket)?)),
            QuestionStatus::Answered | QuestionStatus::Over => None,
        }
    }

    /// Waits for the approver's answer, and decides the call with it (legacy era).
    pub(super) async fn wait_for_approver(
        &self,
        call: PendingCall,
        question: &Question,
        held: UndecidedCall,
    ) -> Response {
        if !call.client.reads_events() {
            return self.wait_in_silence(call, question, held).await;
        }
        let (opened, response) = relay::open(&call.client);
        let (calls, id, in_use) = (self.clone(), question.id.clone(), call.holds_session());
        call.client.clone().spawn(async move {
            calls.wait_on(opened, call, &id, held).await;
            drop(in_use);
        });
        response
    }

    /// Waits for the answer without a stream, for a client that reads no events.
    async fn wait_in_silence(&self, call: PendingCall, question: &Question, held: UndecidedCall) -> Response {
        let _in_use = call.holds_session();
        let waited = tokio::select! {
            _ = self.shared.writer.wait_for_answer(&question.id, MAX_APPROVAL_TIME) => ApprovalWait::Over,
            () = call.unsent.cancelled() => ApprovalWait::TakenBack,
            _ = call.client.gone() => ApprovalWait::TakenBack,
        };
        match self.decided_after(waited, held).await {
            None => relay::cancelled(),
            Some(NextStep::Answer(decision)) => self.answer(call, decision).await,
            Some(NextStep::Ask(..)) => {
                relay::error(StatusCode::INTERNAL_SERVER_ERROR, INTERNAL_ERROR, "internal error")
            }
        }
    }

    async fn wait_on(self, opened: OpenedStream, call: PendingCall, id: &str, held: UndecidedCall) {
        let waited = self.waited(&opened, id, &call.unsent).await;
        match self.decided_after(waited, held).await {
            None => {}
            Some(NextStep::Answer(decision)) => self.answer_on(opened, call, decision).await,
            // Only one question is asked about a call.
            Some(NextStep::Ask(..)) => {
                opened.send(&reply::error(Some(&call.id), INTERNAL_ERROR, "internal error", None)).await;
            }
        }
    }

    /// Decides a call after the wait. `None` if its client has left or cancelled it and it is admitted all the same: then it is
    /// settled as not sent, which releases the reservation.
    async fn decided_after(&self, waited: ApprovalWait, held: UndecidedCall) -> Option<NextStep> {
        if waited == ApprovalWait::Over {
            return Some(self.next_step(held.approved().await).await);
        }
        let mut next = self.next_step(held.answered(HumanAnswer::Unanswered).await).await;
        let NextStep::Answer(decision) = &mut next else { return Some(next) };
        let Some(pass) = decision.pass.take() else { return Some(next) };
        self.count(decision);
        pass.settle(ending::unsent()).await;
        None
    }

    /// Waits for the answer, and sends a keep-alive event every [`QUESTION_KEEP_ALIVE`].
    async fn waited(&self, opened: &OpenedStream, id: &str, unsent: &UnsentCall) -> ApprovalWait {
        let mut alive = interval_at(Instant::now() + QUESTION_KEEP_ALIVE, QUESTION_KEEP_ALIVE);
        alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let answer = self.shared.writer.wait_for_answer(id, MAX_APPROVAL_TIME);
        tokio::pin!(answer);
        loop {
            tokio::select! {
                _ = &mut answer => return ApprovalWait::Over,
                () = opened.gone() => return ApprovalWait::TakenBack,
                () = unsent.cancelled() => return ApprovalWait::TakenBack,
                _ = alive.tick() => {
                    opened.keep_alive().await;
                }
            }
        }
    }

    /// Answers a decided call on an open stream.
    pub(super) async fn answer_on(
        self,
        opened: OpenedStream,
        call: PendingCall,
        mut decision: Box<DecisionAnswer>,
    ) {
        self.count(&decision);
        match decision.pass.take() {
            Some(pass) => self.forward_on(opened, call, decision, pass).await,
            None => {
                opened.send(&self.refusal(&call, &decision)).await;
            }
        }
    }

    /// Builds the result that asks the client to send the call again, with the state that names the question.
    fn come_again(&self, call: &PendingCall, ticket: &SealedCall) -> Option<Bytes> {
        let sealed = Sealed { ticket: ticket.clone(), upstream: None };
        let state = Value::from(self.shared.sealer.seal(&sealed).ok()?);
        let meta = call.echo.object();
        let result = format!(r#"{{"resultType":"input_required","requestState":{state},"_meta":{meta}}}"#);
        Some(reply::result(&call.id, &result))
    }
}

/// Result of waiting for an approver.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ApprovalWait {
    /// The question is answered or over, or [`MAX_APPROVAL_TIME`] has passed.
    Over,
    /// The client cancelled its call, or has disconnected. Neither is an answer to a question that it cannot answer.
    TakenBack,
}
