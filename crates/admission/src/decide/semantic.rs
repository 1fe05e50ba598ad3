//! S2 and C5: the conditions for asking the judge, its question, and the effect of its answer.
//!
//! The judge reads text that an adversary may have written. It gets named fields, separate from each other and from its
//! instructions, and answers with one of four findings. Only "consistent" with sufficient confidence lets a call
//! through. A missing answer denies it.
//!
//! Not here: the HTTP request and the judge's instructions (the gateway).

use serde::{Deserialize, Serialize};

use crate::cache::{VerdictKey, is_cacheable};
use crate::risk::{self, Degree, Risk, Signals};
use crate::rules::{JudgeRules, Rules};
use crate::session::Session;
use decimal::Decimal;
use vap::message::{AddScope, IncreaseBudget, IntentEnvelope, ScopeAmendment, Sensitivity};
use vap::reason::Reason;
use vap::verdict::Trigger;

use super::DecisionContext;

/// A question to the judge about one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JudgeQuestion {
    /// The reason for asking.
    pub trigger: Trigger,
    /// All texts that the judge sees. Each is an unverified claim and none is an instruction.
    pub fields: Vec<JudgedText>,
}

/// A text for the judge to examine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JudgedText {
    /// The name of the field, such as `goal` or `rationale`.
    pub name: &'static str,
    /// The text, untrusted.
    pub text: String,
}

/// The answer of the judge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JudgeAnswer {
    /// The judge's finding.
    pub finding: JudgeFinding,
    /// The judge's confidence in its finding.
    pub confidence: Degree,
    /// The reason for asking.
    pub trigger: Trigger,
    /// The cost of the answer, on the meter `vap.judge`.
    pub cost: Decimal,
}

/// The finding of the judge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JudgeFinding {
    /// The message is consistent with the goal.
    Consistent,
    /// The message is inconsistent with the goal.
    Inconsistent,
    /// The judge is uncertain.
    Unsure,
    /// The judge did not answer, or its answer could not be parsed.
    Unavailable,
}

/// The need to ask the judge about a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum JudgeNeed {
    /// The judge need not be asked.
    NotNeeded,
    /// The cache has a "consistent" verdict for this call, which expires at this Unix time.
    Cached(i64),
    /// The judge has to be asked, for this reason.
    Needed(Trigger),
    /// The judge would have to be asked for this reason, but its budget is used up (reading V-31).
    OverBudget(Trigger),
}

/// The effect of the judge's answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum JudgeEffect {
    Consistent,
    /// A human has to answer.
    Unsure,
    Denied(Reason),
}

/// The class of a call, its signals, and the risk that they give.
#[derive(Clone, Copy, Debug)]
pub(super) struct RiskAssessment {
    pub sensitivity: Option<Sensitivity>,
    pub signals: Signals,
    pub risk: Risk,
}

impl RiskAssessment {
    /// Returns the risk of a call without a session: the operator's class of its tool is known, and no earlier call.
    pub fn of_tool(rules: &Rules, tool: &str) -> Self {
        let sensitivity = rules.sensitivities.of(tool, None);
        let signals = Signals {
            sensitivity: risk::sensitivity(sensitivity),
            novelty: Degree::ONE,
            ..Signals::default()
        };
        RiskAssessment { sensitivity, signals, risk: signals.weigh(&rules.risk) }
    }
}

/// Decides whether the judge is asked about a call. It is asked about a randomly selected call even if a verdict is
/// cached.
pub(super) fn judge_need(
    context: &DecisionContext<'_>,
    session: &Session,
    key: VerdictKey,
    assessment: &RiskAssessment,
) -> JudgeNeed {
    let Some(judge) = &context.rules.judge else { return JudgeNeed::NotNeeded };
    let trigger = match (context.random.sample < judge.sample, assessment.risk.score >= judge.threshold) {
        (true, _) => Trigger::RandomSample,
        (false, true) => assessment.risk.strongest,
        (false, false) => return JudgeNeed::NotNeeded,
    };
    let remembered = session.running.verdicts.until(key, context.now);
    match remembered.filter(|_| trigger != Trigger::RandomSample && is_cacheable(assessment.sensitivity)) {
        Some(until) => JudgeNeed::Cached(until),
        None => check_judge_budget(judge, session.running.judge_used(), trigger),
    }
}

/// Returns [`JudgeNeed::Needed`] if the judge's budget allows one more answer, otherwise [`JudgeNeed::OverBudget`].
pub(super) fn check_judge_budget(judge: &JudgeRules, used: Decimal, trigger: Trigger) -> JudgeNeed {
    match used.checked_add(judge.reserve).is_some_and(|sum| sum <= judge.cap) {
        true => JudgeNeed::Needed(trigger),
        false => JudgeNeed::OverBudget(trigger),
    }
}

/// Determines the effect of the judge's answer. It denies if no judge is configured.
pub(super) fn judge_effect(judge: Option<&JudgeRules>, answer: &JudgeAnswer) -> JudgeEffect {
    let Some(judge) = judge else { return JudgeEffect::Denied(Reason::JudgeUnavailable) };
    match answer.finding {
        JudgeFinding::Consistent if answer.confidence >= judge.confidence => JudgeEffect::Consistent,
        JudgeFinding::Consistent | JudgeFinding::Unsure => JudgeEffect::Unsure,
        JudgeFinding::Inconsistent => JudgeEffect::Denied(Reason::Inconsistent),
        JudgeFinding::Unavailable => JudgeEffect::Denied(Reason::JudgeUnavailable),
    }
}

impl JudgeQuestion {
    /// Creates the question about a call (C5).
    pub(super) fn about_call(
        trigger: Trigger,
        session: &Session,
        envelope: &IntentEnvelope,
    ) -> JudgeQuestion {
        let mut question = JudgeQuestion::about_session(trigger, session);
        question.add("tool", &envelope.call.tool);
        question.add("arguments", &envelope.call.arguments);
        question.add("rationale", &envelope.intent.rationale);
        question.add("expected_effect", &envelope.intent.expected_effect);
        question
    }

    /// Creates the question about an amendment (S2), with its additions and its reason.
    pub(super) fn about_amendment(session: &Session, amendment: &ScopeAmendment) -> JudgeQuestion {
        let mut question = JudgeQuestion::about_session(Trigger::Amendment, session);
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

    /// Creates the question about a commitment (S2), as it would be in force.
    pub(super) fn about_session(trigger: Trigger, session: &Session) -> JudgeQuestion {
        let agreed = &session.agreed;
        let mut question = JudgeQuestion { trigger, fields: Vec::new() };
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
        self.fields.push(JudgedText { name, text: text.to_owned() });
    }
}

fn patterns(patterns: &[vap::glob::Pattern]) -> String {
    lines(patterns.iter().map(|pattern| pattern.as_str().to_owned()))
}

fn lines(lines: impl Iterator<Item = String>) -> String {
    lines.collect::<Vec<_>>().join("\n")
}
