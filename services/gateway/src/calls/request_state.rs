//! The `requestState` that a client returns with a call (readings V-26, V-38).
//!
//! A state sealed by this gateway contains a ticket for the call. It is removed before the upstream sees the call; if
//! it wraps the upstream's own state, the upstream gets that back. Any other state belongs to the upstream and is
//! passed on.

use admission::clarify::{HumanAnswer, Purpose};
use admission::principal::Era;
use serde_json::Value;

use super::ask::ANSWER;
use crate::clarify::asked;
use crate::clarify::state::{Sealed, Sealer};
use crate::decision_writer::OpenedState;
use crate::frame::Frame;
use crate::upstream::Exchange;

/// The parameter with the returned state.
const STATE: &str = "requestState";
/// The parameter with the answers to `inputRequests`.
const RESPONSES: &str = "inputResponses";

/// The state that a call brought back.
pub struct RequestState {
    /// The opened state, for the decision.
    pub opened: Option<OpenedState>,
    change: StateChange,
}

/// The change to the message before the upstream gets it.
enum StateChange {
    None,
    /// Remove the gateway's state, and the answer to its question.
    WithoutOurs,
    /// Replace the state by the upstream's own, or remove it if the upstream had none.
    Unwrapped(Option<String>),
}

impl RequestState {
    /// Reads the state of a call. Only the modern era has one.
    pub fn read(frame: &Frame, era: Era, sealer: &Sealer) -> Self {
        let text = frame.param_string(STATE).filter(|text| era == Era::Modern && sealer.is_ours(text));
        let Some(text) = text else { return Self { opened: None, change: StateChange::None } };
        match sealer.open(&text) {
            Some(sealed) => Self::of(sealed, frame),
            // The text has the gateway's prefix and cannot be opened: it admits nothing, and the upstream would not
            // know it either.
            None => Self {
                opened: Some(OpenedState { ticket: None, answer: None }),
                change: StateChange::WithoutOurs,
            },
        }
    }

    fn of(Sealed { ticket, upstream }: Sealed, frame: &Frame) -> Self {
        match ticket.purpose {
            Purpose::Question => {
                let answer = Some(answer(frame));
                Self {
                    opened: Some(OpenedState { ticket: Some(ticket), answer }),
                    change: StateChange::WithoutOurs,
                }
            }
            // The client cannot answer: the approver's signed answer is in the store.
            Purpose::Approval => {
                let opened = Some(OpenedState { ticket: Some(ticket), answer: None });
                Self { opened, change: StateChange::WithoutOurs }
            }
            Purpose::Upstream => {
                let opened = Some(OpenedState { ticket: Some(ticket), answer: None });
                Self { opened, change: StateChange::Unwrapped(upstream) }
            }
        }
    }

    /// Returns whether the state has the gateway's prefix and cannot be opened: it was altered, or sealed under another key.
    pub fn is_altered(&self) -> bool {
        self.opened.as_ref().is_some_and(|opened| opened.ticket.is_none())
    }

    /// Applies the change to the message for the upstream.
    pub fn restore(&self, exchange: &mut Exchange) {
        let theirs;
        let changes: &[(&str, Option<&str>)] = match &self.change {
            StateChange::None => return,
            StateChange::WithoutOurs => &[(STATE, None), (RESPONSES, None)],
            StateChange::Unwrapped(None) => &[(STATE, None)],
            StateChange::Unwrapped(Some(state)) => {
                theirs = Value::from(state.as_str()).to_string();
                &[(STATE, Some(&theirs))]
            }
        };
        if let Ok(frame) = Frame::parse(exchange.body.clone()) {
            exchange.body = frame.edited(changes, &[]);
        }
    }
}

/// Reads the person's answer. A client that returns without one declines ([`HumanAnswer::Declined`]).
fn answer(frame: &Frame) -> HumanAnswer {
    let responses = frame.param(RESPONSES).and_then(|text| jose::json::parse_text(text).ok());
    responses.as_ref().and_then(|all| all.get(ANSWER)).map_or(HumanAnswer::Declined, asked::read)
}
