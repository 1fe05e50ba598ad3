//! The `requestState` that came back with a call (readings V-26, V-38).
//!
//! One that the gateway sealed says what the call is bound to. Ours is taken out before the upstream sees the call; where we
//! had wrapped the upstream's own, it gets that back. Anything else is the upstream's business and passes.

use admission::clarify::{Answer, Purpose};
use admission::principal::Era;
use serde_json::Value;

use super::ask::ANSWER;
use crate::clarify::asked;
use crate::clarify::state::{Sealed, Sealer};
use crate::desk::ShownState;
use crate::frame::Frame;
use crate::upstream::Exchange;

/// What the upstream must not see of a retry.
const STATE: &str = "requestState";
/// The answers to what was asked.
const RESPONSES: &str = "inputResponses";

/// What a call brought back.
pub struct Brought {
    /// For the decision.
    pub shown: Option<ShownState>,
    change: Change,
}

/// What is done to the message before the upstream gets it.
enum Change {
    None,
    /// Ours, and the answer to our question, go.
    WithoutOurs,
    /// The upstream gets its own back, or none if it had none.
    Unwrapped(Option<String>),
}

impl Brought {
    /// Looks at a call. There is no such thing in the legacy eras.
    pub fn read(frame: &Frame, era: Era, sealer: &Sealer) -> Self {
        let text = frame.param_string(STATE).filter(|text| era == Era::Modern && sealer.is_ours(text));
        let Some(text) = text else { return Self { shown: None, change: Change::None } };
        match sealer.open(&text) {
            Some(sealed) => Self::of(sealed, frame),
            // It looks like ours, and is not: it admits nothing, and the upstream would not know it either.
            None => {
                Self { shown: Some(ShownState { ticket: None, answer: None }), change: Change::WithoutOurs }
            }
        }
    }

    fn of(Sealed { ticket, upstream }: Sealed, frame: &Frame) -> Self {
        match ticket.purpose {
            Purpose::Question => {
                let answer = Some(answer(frame));
                Self { shown: Some(ShownState { ticket: Some(ticket), answer }), change: Change::WithoutOurs }
            }
            // The client has nothing to say to it: what an approver signed is kept here.
            Purpose::Approval => {
                let shown = Some(ShownState { ticket: Some(ticket), answer: None });
                Self { shown, change: Change::WithoutOurs }
            }
            Purpose::Upstream => {
                let shown = Some(ShownState { ticket: Some(ticket), answer: None });
                Self { shown, change: Change::Unwrapped(upstream) }
            }
        }
    }

    /// Changes what the upstream gets.
    pub fn restore(&self, exchange: &mut Exchange) {
        let theirs;
        let changes: &[(&str, Option<&str>)] = match &self.change {
            Change::None => return,
            Change::WithoutOurs => &[(STATE, None), (RESPONSES, None)],
            Change::Unwrapped(None) => &[(STATE, None)],
            Change::Unwrapped(Some(state)) => {
                theirs = Value::from(state.as_str()).to_string();
                &[(STATE, Some(&theirs))]
            }
        };
        if let Ok(frame) = Frame::parse(exchange.body.clone()) {
            exchange.body = frame.edited(changes, &[]);
        }
    }
}

/// What the person said. No answer at all is a no: the client came back without one.
fn answer(frame: &Frame) -> Answer {
    let responses = frame.param(RESPONSES).and_then(|text| jose::json::parse_text(text).ok());
    responses.as_ref().and_then(|all| all.get(ANSWER)).map_or(Answer::Declined, asked::read)
}
