//! Questions to a person (V-26): on a stream opened for the call, or in a result that the client answers by a retry.

use admission::clarify::{HumanAnswer, HumanQuestion};
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};

use super::Calls;
use super::pending::{NextStep, PendingCall};
use super::refused::additions;
use super::unsent::UnsentCall;
use crate::clarify::asked::{self, WaitingQuestion};
use crate::clarify::state::Sealed;
use crate::decision_writer::{DecisionAnswer, UndecidedCall};
use crate::frame::error_code::INTERNAL_ERROR;
use crate::frame::reply;
use crate::limits::QUESTION_KEEP_ALIVE;
use crate::relay::Response;
use crate::relay::{self, OpenedStream};

/// The name of the gateway's question in a result's `inputRequests`.
pub const ANSWER: &str = "dev.tabellion/confirm";

impl Calls {
    /// Asks on a stream of the gateway's own, and decides the call with the answer (legacy era).
    pub(super) fn ask(&self, call: PendingCall, asked: HumanQuestion, held: UndecidedCall) -> Response {
        let (opened, response) = relay::open(&call.client);
        let calls = self.clone();
        call.client.clone().spawn(async move { calls.ask_on(opened, call, asked, held).await });
        response
    }

    async fn ask_on(
        self,
        opened: OpenedStream,
        call: PendingCall,
        asked: HumanQuestion,
        held: UndecidedCall,
    ) {
        let answer = self.question(&opened, &call, &asked.question).await;
        match self.next_step(held.answered(answer).await).await {
            NextStep::Answer(decision) => self.answer_on(opened, call, decision).await,
            // Only one question is asked about a call: a second one is dropped, which releases the reservation.
            NextStep::Ask(..) => {
                opened.send(&reply::error(Some(&call.id), INTERNAL_ERROR, "internal error", None)).await;
            }
        }
    }

    /// Asks, and waits until the client answers, cancels its call or disconnects, but not longer than
    /// `Patience::question`.
    async fn question(&self, opened: &OpenedStream, call: &PendingCall, words: &str) -> HumanAnswer {
        if call.unsent.is_cancelled() {
            return HumanAnswer::Declined;
        }
        let session = call.caller.mcp_session.as_deref();
        let Some(mut waiting) = self.shared.asked.open(session) else { return HumanAnswer::Unanswered };
        let question = waiting.request(words).to_string();
        if !opened.send(question.as_bytes()).await {
            return HumanAnswer::Unanswered;
        }
        let answered = answered(&mut waiting, opened, &call.unsent);
        timeout(self.shared.patience.question, answered).await.unwrap_or(HumanAnswer::Unanswered)
    }

    /// Builds the result that asks the client (modern era). `None` if the ruling has no question, or its state cannot
    /// be sealed.
    pub(super) fn input_required(&self, call: &PendingCall, decision: &DecisionAnswer) -> Option<Bytes> {
        let asked = decision.ruling.as_ref()?.pending.as_ref()?;
        let sealed = Sealed { ticket: asked.ticket.clone(), upstream: None };
        let state = Value::from(self.shared.sealer.seal(&sealed).ok()?);
        let requests = match asked.approver_question {
            // The client cannot answer this question: it sends the call again until an approver has answered.
            Some(_) => String::new(),
            None => input_requests(&asked.question),
        };
        let meta = additions(call, decision).object();
        let result =
            format!(r#"{{"resultType":"input_required",{requests}"requestState":{state},"_meta":{meta}}}"#);
        Some(reply::result(&call.id, &result))
    }
}

/// Builds the result's member `inputRequests`, with the question for the client's user.
fn input_requests(words: &str) -> String {
    let question = json!({
        "method": "elicitation/create",
        "params": { "mode": "form", "message": words, "requestedSchema": asked::schema() },
    });
    let name = Value::from(ANSWER);
    format!(r#""inputRequests":{{{name}:{question}}},"#)
}

/// Waits for the answer, and sends a keep-alive event every [`QUESTION_KEEP_ALIVE`].
async fn answered(waiting: &mut WaitingQuestion, opened: &OpenedStream, unsent: &UnsentCall) -> HumanAnswer {
    let mut alive = interval_at(Instant::now() + QUESTION_KEEP_ALIVE, QUESTION_KEEP_ALIVE);
    alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            answer = waiting.answer() => return answer,
            () = opened.gone() => return HumanAnswer::Unanswered,
            () = unsent.cancelled() => return HumanAnswer::Declined,
            _ = alive.tick() => {
                opened.keep_alive().await;
            }
        }
    }
}
