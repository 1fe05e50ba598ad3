//! S2 and C5: readings V-27 to V-31.

use admission::clarify::HumanAnswer;
use admission::decide::{
    CallDecision, CallQuestion, JudgeAnswer, JudgeFinding, JudgeQuestion, MessageRuling,
};
use admission::risk::Degree;
use admission::rules::JudgeRules;
use admission::session::ReservationId;
use decimal::Decimal;
use jiff::SignedDuration;
use serde_json::json;
use vap::glob::Pattern;
use vap::message::Sensitivity;
use vap::message::slot::Carrier;
use vap::reason::Reason;
use vap::verdict::{Trigger, VerdictKind};

use crate::world::{Try, World, alice, amendment, commitment, key, legacy, ruled, signed, world};

fn judge() -> JudgeRules {
    JudgeRules {
        model: "stub".into(),
        meter: "answers".into(),
        threshold: Degree::thousandths(500),
        sample: 0,
        commitments: false,
        cap: 100u64.into(),
        reserve: 10u64.into(),
        confidence: Degree::thousandths(600),
        cache_for: SignedDuration::from_mins(10),
    }
}

fn judged() -> World {
    let mut world = world();
    world.rules.judge = Some(judge());
    world.rules.sensitivities.tools.push((Pattern::new("pay").unwrap(), Sensitivity::WritesMoney));
    world.rules.sensitivities.tools.push((Pattern::new("crm.send").unwrap(), Sensitivity::SendsExternal));
    world.with_session(json!({ "max_calls": 100 }))
}

fn pay() -> Try {
    Try::of("pay", json!({ "amount": 5 }))
}

fn ask_judge(world: &mut World, attempt: &Try) -> (Box<JudgeQuestion>, ReservationId) {
    match world.call(attempt) {
        CallDecision::Ask { question: CallQuestion::Judge(question), held } => (question, held.unwrap()),
        other => panic!("{other:?}"),
    }
}

fn judge_says(finding: JudgeFinding) -> JudgeAnswer {
    JudgeAnswer {
        finding,
        confidence: Degree::thousandths(900),
        trigger: Trigger::Sensitivity,
        cost: Decimal::from(3),
    }
}

fn answered(world: &mut World, attempt: &Try, answer: JudgeAnswer) -> CallDecision {
    let (_, held) = ask_judge(world, attempt);
    world.call(&Try { held: Some(held), judged: Some(answer), ..attempt.clone() })
}

fn kind_and_reason(decision: CallDecision) -> (VerdictKind, Option<Reason>) {
    let ruled = ruled(decision);
    (ruled.verdict.verdict, ruled.ruling.reason)
}

#[test]
fn only_a_sure_yes_lets_a_call_through() {
    let unsure = JudgeAnswer { confidence: Degree::thousandths(599), ..judge_says(JudgeFinding::Consistent) };
    for (answer, verdict, reason) in [
        (judge_says(JudgeFinding::Consistent), VerdictKind::Served, None),
        (judge_says(JudgeFinding::Inconsistent), VerdictKind::Denied, Some(Reason::Inconsistent)),
        (judge_says(JudgeFinding::Unavailable), VerdictKind::Denied, Some(Reason::JudgeUnavailable)),
        (judge_says(JudgeFinding::Unsure), VerdictKind::Clarify, Some(Reason::ConfirmationRequired)),
        (unsure, VerdictKind::Clarify, Some(Reason::ConfirmationRequired)),
    ] {
        assert_eq!(kind_and_reason(answered(&mut judged(), &pay(), answer)), (verdict, reason), "{answer:?}");
    }
}

#[test]
fn an_answer_of_a_judge_that_is_not_there_is_no_answer() {
    let mut world = judged();
    let (_, held) = ask_judge(&mut world, &pay());
    world.rules.judge = None;
    let attempt = Try { held: Some(held), judged: Some(judge_says(JudgeFinding::Consistent)), ..pay() };
    assert_eq!(world.denied(&attempt), Reason::JudgeUnavailable);
}

#[test]
fn while_the_judge_thinks_the_place_is_held_and_afterwards_everything_is_checked_again() {
    let mut world = judged();
    world.sessions.clear();
    let mut world = world.with_session(json!({ "max_calls": 1 }));
    let (_, held) = ask_judge(&mut world, &pay());
    assert_eq!(world.denied(&Try::of("crm.read", json!({}))), Reason::BudgetExceeded);
    world
        .rules
        .policy
        .push(admission::rules::PolicyRule::new("stop", None, None, admission::rules::Then::Deny).unwrap());
    let again = Try { held: Some(held), judged: Some(judge_says(JudgeFinding::Consistent)), ..pay() };
    assert_eq!(world.denied(&again).as_str(), "policy:stop");
    assert_eq!(world.session().running.calls(), 0);
}

#[test]
fn the_judge_sees_fields_apart_from_each_other_and_nothing_else() {
    let (question, _) = ask_judge(&mut judged(), &pay());
    let names: Vec<_> = question.fields.iter().map(|field| field.name).collect();
    let expected =
        ["goal", "tools_allow", "tools_deny", "budget", "tool", "arguments", "rationale", "expected_effect"];
    assert_eq!(names, expected);
    assert_eq!(question.trigger, Trigger::Sensitivity);
}

#[test]
fn v_27_a_denial_tells_a_code_and_no_word_of_the_judge() {
    let ruling = answered(&mut judged(), &pay(), judge_says(JudgeFinding::Inconsistent));
    let ruling = ruled(ruling);
    let verification = &ruling.verdict.to_value()["verification"];
    assert_eq!(verification["reason"], "inconsistent");
    assert_eq!(verification["semantic_invoked"], true);
}

#[test]
fn v_28_without_a_judge_no_signal_changes_a_verdict_and_the_score_is_recorded() {
    let mut world = world();
    world.rules.sensitivities.tools.push((Pattern::new("pay").unwrap(), Sensitivity::GrantsAccess));
    world.sample = 0;
    let mut world = world.with_session(json!({ "max_calls": 40 }));
    for _ in 0..40 {
        let ruling = world.served(&pay());
        let verification = ruling.verdict.to_value()["verification"].clone();
        assert!(verification["risk_score"].as_f64().unwrap() > 0.5, "{verification}");
        assert_eq!(verification.get("semantic_invoked"), None);
    }
}

#[test]
fn v_28_chance_alone_brings_a_call_before_the_judge() {
    let mut world = judged();
    world.rules.judge.as_mut().unwrap().sample = 1;
    world.sample = 1;
    world.served(&Try::of("crm.read", json!({})));
    world.sample = 0;
    let (question, _) = ask_judge(&mut world, &Try::of("crm.read", json!({})));
    assert_eq!(question.trigger, Trigger::RandomSample);
}

#[test]
fn v_29_a_yes_is_used_again_for_this_very_call_until_it_expires() {
    let mut world = judged();
    let send = |body: &str| Try::of("crm.send", json!({ "body": body }));
    world.rules.judge.as_mut().unwrap().threshold = Degree::thousandths(300);
    assert_eq!(
        kind_and_reason(answered(&mut world, &send("a"), judge_says(JudgeFinding::Consistent))).0,
        VerdictKind::Served
    );
    let again = world.served(&send("a"));
    assert!(again.verdict.expires_at.is_some());
    ask_judge(&mut world, &send("b"));
    world.pass(599);
    world.served(&send("a"));
    world.pass(1);
    ask_judge(&mut world, &send("a"));
}

#[test]
fn v_29_another_commitment_or_other_rules_forget_it() {
    let send = Try::of("crm.send", json!({}));
    let mut world = judged();
    answered(&mut world, &send, judge_says(JudgeFinding::Consistent));
    world.served(&send);
    let mut elsewhere = world.rules.clone();
    elsewhere.policy_digest = vap::digest::Digest::of(b"other rules").to_string();
    let old = std::mem::replace(&mut world.rules, elsewhere);
    ask_judge(&mut world, &send);
    world.rules = old;
    let digest = world.session().agreed.digest().to_string();
    let message = amendment(&digest, json!({ "add_scope": { "tools_allow": ["x"] } }));
    world.commit(&alice(), &signed(&message, &key(1), json!({})));
    ask_judge(&mut world, &send);
}

#[test]
fn v_29_what_chance_picked_is_asked_about_whatever_is_remembered() {
    let mut world = judged();
    world.rules.judge.as_mut().unwrap().sample = 1;
    let send = Try::of("crm.send", json!({}));
    answered(&mut world, &send, judge_says(JudgeFinding::Consistent));
    world.served(&send);
    world.sample = 0;
    assert_eq!(ask_judge(&mut world, &send).0.trigger, Trigger::RandomSample);
}

#[test]
fn v_29_what_is_remembered_of_a_harmless_call_does_not_serve_a_dangerous_one() {
    let mut world = judged();
    let send = Try::of("crm.send", json!({}));
    answered(&mut world, &send, judge_says(JudgeFinding::Consistent));
    let mut message = send.envelope.clone().unwrap();
    message["intent"]["sensitivity"] = "grants_access".into();
    ask_judge(&mut world, &send.with(message));
}

#[test]
fn v_29_nothing_is_remembered_about_money() {
    let mut world = judged();
    assert_eq!(
        kind_and_reason(answered(&mut world, &pay(), judge_says(JudgeFinding::Consistent))).0,
        VerdictKind::Served
    );
    ask_judge(&mut world, &pay());
}

#[test]
fn v_30_an_agent_makes_a_call_more_sensitive_and_never_less() {
    let mut world = judged();
    let declaring = |attempt: Try, class: &str| {
        let mut envelope = attempt.envelope.clone().unwrap();
        envelope["intent"]["sensitivity"] = class.into();
        attempt.with(envelope)
    };
    ask_judge(&mut world, &declaring(pay(), "reads"));
    ask_judge(&mut world, &declaring(pay(), "sends_external"));
    ask_judge(&mut world, &declaring(Try::of("crm.read", json!({})), "grants_access"));
    world.served(&declaring(Try::of("crm.list", json!({})), "reads"));
}

#[test]
fn v_31_the_judge_is_billed_to_a_meter_of_its_own_that_is_capped() {
    let mut world = judged();
    world.rules.judge.as_mut().unwrap().cap = 12u64.into();
    answered(&mut world, &pay(), judge_says(JudgeFinding::Consistent));
    assert_eq!(world.session().running.judge_used().to_string(), "3");
    assert_eq!(world.denied(&pay()), Reason::JudgeBudget);
    assert_eq!(world.session().running.used("tokens").to_string(), "0");
    world.served(&Try::of("crm.read", json!({})));
}

#[test]
fn v_31_questions_under_way_count_against_the_cap() {
    let mut world = judged();
    world.rules.judge.as_mut().unwrap().cap = 25u64.into();
    ask_judge(&mut world, &pay());
    ask_judge(&mut world, &pay());
    assert_eq!(world.denied(&pay()), Reason::JudgeBudget);
}

#[test]
fn a_call_that_a_person_approved_is_not_brought_before_the_judge_again() {
    let mut world = judged();
    world
        .rules
        .policy
        .push(admission::rules::PolicyRule::new("ask", None, None, admission::rules::Then::Confirm).unwrap());
    let first = ruled(answered(&mut world, &pay(), judge_says(JudgeFinding::Consistent)));
    let ticket = first.ruling.pending.unwrap().ticket;
    world.served(&pay().bringing(&ticket, Some(HumanAnswer::Confirmed)));
}

#[test]
fn v_31_a_judge_who_left_it_to_a_person_is_paid_once() {
    let mut world = judged();
    world.sessions.clear();
    let caller = legacy("mcp-1");
    world.commit(&caller, &commitment(json!({ "max_calls": 5 })));
    let attempt = pay().by(caller);
    let (_, held) = ask_judge(&mut world, &attempt);
    let judged = Some(judge_says(JudgeFinding::Unsure));
    let CallDecision::Ask { question: CallQuestion::Human(_), held } =
        world.call(&Try { held: Some(held), judged, ..attempt.clone() })
    else {
        panic!()
    };
    world.served(&Try { held, judged, answer: Some(HumanAnswer::Confirmed), ..attempt });
    assert_eq!(world.session().running.judge_used().to_string(), "3");
}

#[test]
fn s_2_a_commitment_is_in_force_only_when_the_judge_has_said_yes() {
    for (finding, reason) in [
        (JudgeFinding::Consistent, None),
        (JudgeFinding::Inconsistent, Some(Reason::Inconsistent)),
        (JudgeFinding::Unsure, Some(Reason::ConfirmationRequired)),
        (JudgeFinding::Unavailable, Some(Reason::JudgeUnavailable)),
    ] {
        let mut world = world();
        world.rules.judge = Some(JudgeRules { commitments: true, ..judge() });
        let message = signed(&commitment(json!({ "max_calls": 5 })), &key(1), json!({}));
        let first = world.declare(&alice(), &message, Carrier::Initialize, Default::default());
        assert!(matches!(first, MessageRuling::Judge { .. }));
        assert_eq!(world.denied(&Try::of("crm.read", json!({}))), Reason::NoCommitment);
        let before =
            admission::decide::EarlierResults { judged: Some(judge_says(finding)), ..Default::default() };
        let second = world.declare(&alice(), &message, Carrier::Initialize, before);
        let MessageRuling::Ruled(ruling) = second else { panic!() };
        assert_eq!(ruling.reason, reason);
        assert_eq!(world.sessions.values().flatten().count(), usize::from(reason.is_none()));
    }
}

#[test]
fn s_2_an_amendment_waits_for_the_judge_with_the_old_scope() {
    let mut world = judged();
    world.rules.judge.as_mut().unwrap().commitments = true;
    let digest = world.session().agreed.digest().to_string();
    let message = amendment(&digest, json!({ "add_scope": { "tools_allow": ["shell.*"] } }));
    let message = signed(&message, &key(1), json!({}));
    let first = world.declare(&alice(), &message, Carrier::Amend, Default::default());
    let MessageRuling::Judge { question, held } = first else { panic!() };
    assert!(
        question
            .fields
            .iter()
            .any(|field| (field.name, field.text.as_str()) == ("added_tools_allow", "shell.*"))
    );
    assert_eq!(world.denied(&Try::of("shell.run", json!({}))), Reason::ScopeEscape);
    let before = admission::decide::EarlierResults {
        held,
        judged: Some(judge_says(JudgeFinding::Inconsistent)),
        ..Default::default()
    };
    world.declare(&alice(), &message, Carrier::Amend, before);
    assert_eq!(world.denied(&Try::of("shell.run", json!({}))), Reason::ScopeEscape);
    assert_eq!(world.session().running.judge_used().to_string(), "3");
}
