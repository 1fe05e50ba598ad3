//! A person is asked (V-26): on the stream that the call opened, or with a result that the client brings back answered.

use std::sync::Arc;

use admission::clarify::{Answer, Asked};
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};
use tokio_util::sync::CancellationToken;

use super::Calls;
use super::call::{Call, Heard};
use super::refused::additions;
use crate::clarify::asked::{self, Waiting};
use crate::clarify::state::Sealed;
use crate::desk::{HeldCall, Told};
use crate::frame::{Frame, RawId, reply};
use crate::front::{Inbound, Response};
use crate::limits::QUESTION_KEEP_ALIVE;
use crate::relay::{self, Opened};

/// The name of our question among a result's `inputRequests`.
pub const ANSWER: &str = "dev.tabellion/confirm";

impl Calls {
    /// Asks on a stream of our own, and goes on with what was answered (legacy).
    pub(super) fn ask(&self, call: Call, asked: Asked, held: HeldCall) -> Response {
        let (opened, response) = relay::open(&call.client);
        let calls = self.clone();
        call.client.clone().spawn(async move { calls.ask_on(opened, call, asked, held).await });
        response
    }

    async fn ask_on(self, opened: Opened, call: Call, asked: Asked, held: HeldCall) {
        let answer = self.question(&opened, &call, &asked.question).await;
        match self.heard(held.answered(answer).await).await {
            Heard::Told(told) => self.answer_on(opened, call, told).await,
            // One call is asked about once: what would be asked again is dropped, and given back.
            Heard::Ask(..) => {
                opened.send(&reply::error(Some(&call.id), -32603, "internal error", None)).await;
            }
        }
    }

    /// Asks, and waits: for the answer, for the client to take its call back or to go away, and not for ever.
    async fn question(&self, opened: &Opened, call: &Call, words: &str) -> Answer {
        let session = call.caller.mcp_session.as_deref();
        let Some(mut waiting) = self.shared.asked.open(session) else { return Answer::Unanswered };
        let withdrawn = self.shared.asked.withdrawable(&self.route, session, &call.id);
        let question = waiting.request(words).to_string();
        if !opened.send(question.as_bytes()).await {
            return Answer::Unanswered;
        }
        let answered = answered(&mut waiting, opened, withdrawn.token());
        timeout(self.shared.patience.question, answered).await.unwrap_or(Answer::Unanswered)
    }

    /// A result that asks (modern), if the call has to be asked about and the client can be.
    pub(super) fn input_required(&self, call: &Call, told: &Told) -> Option<Bytes> {
        let asked = told.ruling.as_ref()?.pending.as_ref()?;
        let sealed = Sealed { ticket: asked.ticket.clone(), upstream: None };
        let state = Value::from(self.shared.sealer.seal(&sealed).ok()?);
        let requests = match asked.approval {
            // Nothing that the client could say is an answer: it comes again until there is one.
            Some(_) => String::new(),
            None => input_requests(&asked.question),
        };
        let meta = additions(call, told).object();
        let result =
            format!(r#"{{"resultType":"input_required",{requests}"requestState":{state},"_meta":{meta}}}"#);
        Some(reply::result(&call.id, &result))
    }

    /// Whether a notification takes back a call that is being asked about: nothing of it went to the upstream.
    pub(super) fn withdrawn(&self, inbound: &Inbound) -> bool {
        cancelled(&inbound.frame).is_some_and(|id| {
            self.shared.asked.withdraw(&self.route, inbound.caller.mcp_session.as_deref(), &id)
        })
    }
}

/// The question for the client's user, as a member of the result.
fn input_requests(words: &str) -> String {
    let question = json!({
        "method": "elicitation/create",
        "params": { "mode": "form", "message": words, "requestedSchema": asked::schema() },
    });
    let name = Value::from(ANSWER);
    format!(r#""inputRequests":{{{name}:{question}}},"#)
}

/// The answer, while the stream shows signs of life.
async fn answered(waiting: &mut Waiting, opened: &Opened, withdrawn: Arc<CancellationToken>) -> Answer {
    let mut alive = interval_at(Instant::now() + QUESTION_KEEP_ALIVE, QUESTION_KEEP_ALIVE);
    alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            answer = waiting.answer() => return answer,
            () = opened.gone() => return Answer::Unanswered,
            () = withdrawn.cancelled() => return Answer::Declined,
            _ = alive.tick() => {
                opened.keep_alive().await;
            }
        }
    }
}

/// The id of the request that a `notifications/cancelled` takes back.
fn cancelled(notification: &Frame) -> Option<RawId> {
    let is_one = notification.method() == Some("notifications/cancelled");
    notification.param("requestId").filter(|_| is_one).and_then(RawId::read)
}
