//! The inputs of a decision besides the state of its session, kept in the annex of its record so that the decision can
//! be replayed.
//!
//! The decision writer writes this type, and a replay reads it. Most members are left out if they have their default
//! value. Texts are cut like the rest of the annex (`desk::annex`).
//!
//! Not here: the session, which a replay computes from the earlier records, and the principal's account, unless the
//! decision depends on more than the session.

use admission::approval::Question;
use admission::clarify::{Answer, Ticket};
use admission::decide::{Finding, Put, Semantic};
use admission::decimal::Decimal;
use admission::principal::{Caller, Era, TokenSubject};
use admission::risk::Degree;
use admission::session::{Account, Reservation};
use admission::tool::ToolFault;
use admission::verdict::Trigger;
use serde::{Deserialize, Serialize};

/// The inputs of a decision.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DecisionInputs {
    /// The path of the route.
    pub route: String,
    /// The caller.
    pub caller: CallerInputs,
    /// Time of the decision, in milliseconds since the Unix epoch.
    pub at: i64,
    /// Time of the first pass, if a judge or a person was asked after it, in milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_at: Option<i64>,
    /// The VAP message as received; `None` if there was none that could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Text>,
    /// `true` if the VAP slot held something that could not be read.
    #[serde(default, skip_serializing_if = "is_false")]
    pub unreadable: bool,
    /// The name of the called tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<Text>,
    /// The `Mcp-Name` header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<Text>,
    /// The method of a refused request that is not a call; its refusal cannot be replayed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<Text>,
    /// The random number that determines whether the judge sees the call (V-28).
    pub sample: u32,
    /// `true` if the client could be asked a question.
    pub can_ask: bool,
    /// `true` if the call could wait for an approver.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub can_wait: bool,
    /// `true` if the call carried an AgentROA envelope.
    #[serde(default, skip_serializing_if = "is_false")]
    pub has_roa_envelope: bool,
    /// The fault of its tool or its arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_fault: Option<ToolFault>,
    /// `true` if the `jti` of the message was used before.
    #[serde(default, skip_serializing_if = "is_false")]
    pub replayed: bool,
    /// The judge's opinion, if the judge was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge: Option<JudgeOpinion>,
    /// The person's answer, if the call was held for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
    /// The sealed state that the client returned with the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<StateInputs>,
    /// The question that was put to approvers, with its answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub put: Option<PutInputs>,
    /// The reservations held for questions about other messages of the session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held_for_others: Vec<Reservation>,
    /// The principal's account before the decision, if it depends on more than the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<Account>,
}

/// A text, as far as it was kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Text {
    /// The whole text.
    Whole(String),
    /// The beginning only: the text was too long, or its caller was denied for its rate.
    Cut {
        /// The part that was kept.
        beginning: String,
    },
}

/// Error for a text that was kept only in part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotWhole;

/// The caller, without its route.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CallerInputs {
    era: Era,
    token: Option<TokenSubject>,
    certificate: Option<String>,
    mcp_session: Option<String>,
    is_given: bool,
}

/// The judge's opinion with its wording, which is kept only here: outside, a code is given (V-27).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct JudgeOpinion {
    finding: Finding,
    confidence: f64,
    trigger: Trigger,
    cost: Decimal,
    words: Text,
}

/// A sealed state that a client returned with a call.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StateInputs {
    /// The ticket; `None` if the state was not this gateway's, or was altered.
    pub ticket: Option<Ticket>,
    /// `true` if the ticket was bound to the rules in force.
    pub of_these_rules: bool,
    /// `true` if the state was used before.
    pub spent: bool,
    /// The person's answer.
    pub answer: Option<Answer>,
}

/// A question that was put to approvers, in its state at the time of the decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PutInputs {
    /// The question as it was asked.
    pub question: Question,
    /// The approver's signed answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// `true` if the answer was consumed, or the question withdrawn.
    #[serde(default, skip_serializing_if = "is_false")]
    pub spent: bool,
}

impl PutInputs {
    /// Returns the question in the form that `admission` takes.
    #[must_use]
    pub fn put(&self) -> Put<'_> {
        let Self { question, answer, spent } = self;
        Put { question, answer: answer.as_deref(), spent: *spent }
    }
}

impl DecisionInputs {
    /// The inputs for a message of this caller at this time, with defaults for everything else.
    #[must_use]
    pub fn of(route: &str, caller: &Caller, at: i64) -> Self {
        let Caller { era, token, certificate, mcp_session, is_given, route: _ } = caller.clone();
        Self {
            route: route.to_owned(),
            caller: CallerInputs { era, token, certificate, mcp_session, is_given },
            at,
            first_at: None,
            message: None,
            unreadable: false,
            tool: None,
            header: None,
            method: None,
            sample: 0,
            can_ask: true,
            can_wait: true,
            has_roa_envelope: false,
            tool_fault: None,
            replayed: false,
            judge: None,
            answer: None,
            state: None,
            put: None,
            held_for_others: Vec::new(),
            account: None,
        }
    }

    /// Returns the caller, with its route.
    #[must_use]
    pub fn caller(&self) -> Caller {
        let CallerInputs { era, token, certificate, mcp_session, is_given } = self.caller.clone();
        Caller { era, token, certificate, mcp_session, is_given, route: self.route.clone() }
    }
}

impl Text {
    /// Creates a [`Text::Whole`].
    #[must_use]
    pub fn whole(text: &str) -> Self {
        Self::Whole(text.to_owned())
    }
}

/// Returns an absent text as `None`, and a whole one as it is: no decision can be replayed from a part.
///
/// # Errors
/// [`NotWhole`] if only the beginning was kept.
pub fn whole(text: Option<&Text>) -> Result<Option<&str>, NotWhole> {
    match text {
        None => Ok(None),
        Some(Text::Whole(text)) => Ok(Some(text)),
        Some(Text::Cut { .. }) => Err(NotWhole),
    }
}

impl JudgeOpinion {
    /// The judge's conclusion and its wording.
    #[must_use]
    pub fn new(judged: &Semantic, words: &str) -> Self {
        let Semantic { finding, confidence, trigger, cost } = *judged;
        Self { finding, confidence: confidence.score().get(), trigger, cost, words: Text::whole(words) }
    }

    /// Returns the judge's conclusion, as `admission` takes it.
    #[must_use]
    pub fn semantic(&self) -> Semantic {
        let Self { finding, confidence, trigger, cost, words: _ } = *self;
        Semantic { finding, confidence: Degree::of(confidence), trigger, cost }
    }
}

fn yes() -> bool {
    true
}

fn is_true(value: &bool) -> bool {
    *value
}

fn is_false(value: &bool) -> bool {
    !value
}
