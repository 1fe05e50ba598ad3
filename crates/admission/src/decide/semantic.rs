//! S2 and C5: whether the judge is asked, what it may see, and what its answer means.
//!
//! The judge reads text that an adversary wrote. It gets fields, each apart from the others and from its instructions, and
//! answers with one of four findings; only "consistent", from a judge who is sure enough, lets a call through. No answer is never
//! a yes.
//!
//! Not here: the HTTP request, and the judge's instructions (the gateway).

use serde::{Deserialize, Serialize};

use crate::cache::{VerdictKey, is_cacheable};
use crate::decimal::Decimal;
use crate::message::{AddScope, IncreaseBudget, IntentEnvelope, ScopeAmendment, Sensitivity};
use crate::reason::Reason;
use crate::risk::{Degree, Risk};
use crate::rules::JudgeRules;
use crate::session::Session;
use crate::verdict::Trigger;

use super::Scene;

/// What the judge is asked about one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Why it is asked.
    pub trigger: Trigger,
    /// All that it may see: every text is somebody's claim, and none is an instruction.
    pub fields: Vec<Field>,
}

/// One text that the judge examines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// What it is.
    pub name: &'static str,
    /// The text.
    pub text: String,
}

/// What the judge said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Semantic {
    /// Its finding.
    pub finding: Finding,
    /// How sure it is.
    pub confidence: Degree,
    /// Why it was asked.
    pub trigger: Trigger,
    /// What asking cost, on the meter `vap.judge`.
    pub cost: Decimal,
}

/// What the judge found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Finding {
    /// The message is consistent with the goal.
    Consistent,
    /// It is not.
    Inconsistent,
    /// The judge cannot tell.
    Unsure,
    /// It did not answer, or what it said made no sense.
    Unavailable,
}

/// What C5 says before the judge is asked.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Gate {
    /// The judge is not asked.
    Closed,
    /// The judge said yes to this very call not long ago, which is good until this second.
    Remembered(i64),
    /// The judge is asked, because of this.
    Open(Trigger),
    /// It would be, and cannot be paid (reading V-31).
    Unaffordable(Trigger),
}

/// What the judge's answer means.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    Consistent,
    /// A person decides.
    Unsure,
    Denied(Reason),
}

/// A call as C5 sees it.
pub(super) struct Suspect {
    pub key: VerdictKey,
    pub risk: Risk,
    pub sensitivity: Option<Sensitivity>,
}

/// Whether the judge is asked about a call. A call that chance picked is shown even where an answer is remembered.
pub(super) fn gate(scene: &Scene<'_>, session: &Session, suspect: &Suspect) -> Gate {
    let Some(judge) = &scene.rules.judge else { return Gate::Closed };
    let trigger = match (scene.dice.sample < judge.sample, suspect.risk.score >= judge.threshold) {
        (true, _) => Trigger::RandomSample,
        (false, true) => suspect.risk.loudest,
        (false, false) => return Gate::Closed,
    };
    let remembered = session.running.verdicts.until(suspect.key, scene.now);
    match remembered.filter(|_| trigger != Trigger::RandomSample && is_cacheable(suspect.sensitivity)) {
        Some(until) => Gate::Remembered(until),
        None => pay(judge, session.running.judge_used(), trigger),
    }
}

/// Whether the judge can be paid for one more answer.
pub(super) fn pay(judge: &JudgeRules, used: Decimal, trigger: Trigger) -> Gate {
    match used.checked_add(judge.reserve).is_some_and(|sum| sum <= judge.cap) {
        true => Gate::Open(trigger),
        false => Gate::Unaffordable(trigger),
    }
}

/// What an answer means. Without a judge there is nobody who could have given it.
pub(super) fn meaning(judge: Option<&JudgeRules>, said: &Semantic) -> Meaning {
    let Some(judge) = judge else { return Meaning::Denied(Reason::JudgeUnavailable) };
    match said.finding {
        Finding::Consistent if said.confidence >= judge.confidence => Meaning::Consistent,
        Finding::Consistent | Finding::Unsure => Meaning::Unsure,
        Finding::Inconsistent => Meaning::Denied(Reason::Inconsistent),
        Finding::Unavailable => Meaning::Denied(Reason::JudgeUnavailable),
    }
}

impl Question {
    /// About a call (C5).
    pub(super) fn about_call(trigger: Trigger, session: &Session, envelope: &IntentEnvelope) -> Question {
        let mut question = Question::about_session(trigger, session);
        question.add("tool", &envelope.call.tool);
        question.add("arguments", &envelope.call.arguments);
        question.add("rationale", &envelope.intent.rationale);
        question.add("expected_effect", &envelope.intent.expected_effect);
        question
    }

    /// About an amendment (S2): what it adds, and why.
    pub(super) fn about_amendment(session: &Session, amendment: &ScopeAmendment) -> Question {
        let mut question = Question::about_session(Trigger::Amendment, session);
        if let Some(AddScope { tools_allow, tools_deny }) = &amendment.add_scope {
            question.add("added_tools_allow", &patterns(tools_allow));
            question.add("added_tools_deny", &patterns(tools_deny));
        }
        if let Some(IncreaseBudget { add_calls, extend_deadline, add_limits }) = &amendment.increase_budget {
            let calls = add_calls.map(|calls| format!("{calls} calls"));
            let deadline = extend_deadline.as_ref().map(|deadline| format!("until {deadline}"));
            let limits = add_limits.iter().map(|(meter, amount)| format!("{amount} {meter}"));
            question.add("added_budget", &lines(calls.into_iter().chain(deadline).chain(limits)));
        }
        question.add("reason", &amendment.reason);
        question
    }

    /// About a commitment (S2), as it would be in force.
    pub(super) fn about_session(trigger: Trigger, session: &Session) -> Question {
        let agreed = &session.agreed;
        let mut question = Question { trigger, fields: Vec::new() };
        question.add("goal", agreed.goal());
        question.add("tools_allow", &patterns(&agreed.scope().tools_allow));
        question.add("tools_deny", &patterns(agreed.scope().tools_deny.as_deref().unwrap_or_default()));
        let budget = agreed.budget();
        let calls = budget.max_calls.map(|calls| format!("{calls} calls"));
        let deadline = budget.deadline.as_ref().map(|deadline| format!("until {deadline}"));
        let limits = budget.limits.iter().map(|(meter, amount)| format!("{amount} {meter}"));
        question.add("budget", &lines(calls.into_iter().chain(deadline).chain(limits)));
        question
    }

    fn add(&mut self, name: &'static str, text: &str) {
        self.fields.push(Field { name, text: text.to_owned() });
    }
}

fn patterns(patterns: &[crate::glob::Pattern]) -> String {
    lines(patterns.iter().map(|pattern| pattern.as_str().to_owned()))
}

fn lines(lines: impl Iterator<Item = String>) -> String {
    lines.collect::<Vec<_>>().join("\n")
}
