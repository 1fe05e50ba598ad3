//! What a decision was made from, besides the state of its session: kept in the annex of its record, so that the decision can
//! be made again.
//!
//! One type, which the desk writes and a replay reads. A member that is absent was not kept by the build that wrote it. Texts
//! are cut where the annex is (`desk::annex`).
//!
//! Not here: the session and what its principal holds, which a replay computes from the records before.

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

/// What a decision was made from.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DecisionInputs {
    /// The path of the route.
    pub route: String,
    /// Who called.
    pub caller: CallerInputs,
    /// When it was made, in milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<i64>,
    /// When the message was looked at first, if somebody was asked about it in between.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_at: Option<i64>,
    /// The VAP message as it came; none if there was none, or it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Text>,
    /// Whether something stood in the VAP slot that could not be read.
    #[serde(default, skip_serializing_if = "is_false")]
    pub unreadable: bool,
    /// The tool that was called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<Text>,
    /// `Mcp-Name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<Text>,
    /// The method, of a request beside any call that was refused: no rules were asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<Text>,
    /// The random number that says whether the judge sees the call.
    #[serde(default)]
    pub sample: u32,
    /// Whether the client could be asked something.
    #[serde(default = "yes")]
    pub can_ask: bool,
    /// Whether the call could wait for an approver.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub can_wait: bool,
    /// Whether the call carried an AgentROA envelope.
    #[serde(default, skip_serializing_if = "is_false")]
    pub has_roa_envelope: bool,
    /// What was wrong with its tool or its arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_fault: Option<ToolFault>,
    /// Whether the `jti` of the message was seen before.
    #[serde(default, skip_serializing_if = "is_false")]
    pub replayed: bool,
    /// What the judge said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge: Option<JudgeOpinion>,
    /// What a person said, where the call was held meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
    /// The sealed state that came back with the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<StateInputs>,
    /// The question that was put to approvers, and what came of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub put: Option<PutInputs>,
    /// What other calls of the session held while somebody was asked about them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held_for_others: Vec<Reservation>,
    /// What the principal held, where it depends on more than this session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<Account>,
}

/// A text, as far as it was kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Text {
    /// All of it.
    Whole(String),
    /// Its beginning: it was too long, or its caller denied too often.
    Cut {
        /// As much as there is.
        beginning: String,
    },
}

/// Not all of a text was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotWhole;

/// Who called, but for the route.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CallerInputs {
    era: Era,
    token: Option<TokenSubject>,
    certificate: Option<String>,
    mcp_session: Option<String>,
    #[serde(default)]
    is_given: bool,
}

/// What the judge said, with its own words: nobody else is told more than a code (V-27).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct JudgeOpinion {
    finding: Finding,
    confidence: f64,
    trigger: Trigger,
    cost: Decimal,
    words: Text,
}

/// A sealed state that came back with a call.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StateInputs {
    /// What it is bound to; none if it was not ours, or was altered.
    pub ticket: Option<Ticket>,
    /// Whether it was bound to the rules in force.
    pub of_these_rules: bool,
    /// Whether it was used before.
    pub spent: bool,
    /// What the person answered.
    pub answer: Option<Answer>,
}

/// A question that was put to approvers, as it was when the decision was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PutInputs {
    /// The question.
    pub question: Question,
    /// The answer, as it was signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// Whether it was used before.
    #[serde(default, skip_serializing_if = "is_false")]
    pub spent: bool,
}

impl PutInputs {
    /// The same, for a decision.
    #[must_use]
    pub fn put(&self) -> Put<'_> {
        let Self { question, answer, spent } = self;
        Put { question, answer: answer.as_deref(), spent: *spent }
    }
}

impl DecisionInputs {
    /// Those of a message of this caller; the rest is to be set.
    #[must_use]
    pub fn of(route: &str, caller: &Caller) -> Self {
        let Caller { era, token, certificate, mcp_session, is_given, route: _ } = caller.clone();
        Self {
            route: route.to_owned(),
            caller: CallerInputs { era, token, certificate, mcp_session, is_given },
            at: None,
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

    /// Who called.
    #[must_use]
    pub fn caller(&self) -> Caller {
        let CallerInputs { era, token, certificate, mcp_session, is_given } = self.caller.clone();
        Caller { era, token, certificate, mcp_session, is_given, route: self.route.clone() }
    }
}

impl Text {
    /// A whole text.
    #[must_use]
    pub fn whole(text: &str) -> Self {
        Self::Whole(text.to_owned())
    }
}

/// A text that is not there, or whole; otherwise nothing can be decided about it again.
///
/// # Errors
/// If only its beginning was kept.
pub fn whole(text: Option<&Text>) -> Result<Option<&str>, NotWhole> {
    match text {
        None => Ok(None),
        Some(Text::Whole(text)) => Ok(Some(text)),
        Some(Text::Cut { .. }) => Err(NotWhole),
    }
}

impl JudgeOpinion {
    /// What was made of the judge's answer, and the answer.
    #[must_use]
    pub fn new(judged: &Semantic, words: &str) -> Self {
        let Semantic { finding, confidence, trigger, cost } = *judged;
        Self { finding, confidence: confidence.score().get(), trigger, cost, words: Text::whole(words) }
    }

    /// What was made of it.
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
