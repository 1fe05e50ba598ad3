//! The `requestState` that a client returns with a call (readings V-26, V-38).
//!
//! A state sealed by this gateway contains a ticket for the call. It is removed before the upstream sees the call; if
//! it wraps the upstream's own state, the upstream gets that back. Any other state belongs to the upstream and is
//! passed on.

use admission::clarify::{Answer, Purpose};
use admission::principal::Era;
use serde_json::Value;

use super::ask::ANSWER;
use crate::clarify::asked;
use crate::clarify::state::{Sealed, Sealer};
use crate::desk::ShownState;
use crate::frame::Frame;
use crate::upstream::Exchange;

/// The parameter with the returned state.
const STATE: &str = "requestState";
/// The parameter with the answers to `inputRequests`.
const RESPONSES: &str = "inputResponses";

/// The state that a call brought back.
pub struct Brought {
    /// The opened state, for the decision.
    pub shown: Option<ShownState>,
    change: Change,
}

/// The change to the message before the upstream gets it.
enum Change {
    None,
    /// Remove the gateway's state, and the answer to its question.
    WithoutOurs,
    /// Replace the state by the upstream's own, or remove it if the upstream had none.
    Unwrapped(Option<String>),
}

impl Brought {
    /// Reads the state of a call. Only the modern era has one.
    pub fn read(frame: &Frame, era: Era, sealer: &Sealer) -> Self {
        let text = frame.param_string(STATE).filter(|text| era == Era::Modern && sealer.is_ours(text));
        let Some(text) = text else { return Self { shown: None, change: Change::None } };
        match sealer.open(&text) {
            Some(sealed) => Self::of(sealed, frame),
            // The text has the gateway's prefix and cannot be opened: it admits nothing, and the upstream would not
            // know it either.
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
            // The client cannot answer: the approver's signed answer is in the store.
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

    /// Applies the change to the message for the upstream.
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

/// Reads the person's answer. A client that returns without one declines ([`Answer::Declined`]).
fn answer(frame: &Frame) -> Answer {
    let responses = frame.param(RESPONSES).and_then(|text| jose::json::parse_text(text).ok());
    responses.as_ref().and_then(|all| all.get(ANSWER)).map_or(Answer::Declined, asked::read)
}
