//! Clarify, and the retries of questions: readings V-26 and V-38.

use admission::clarify::{HumanAnswer, SealedCall};
use admission::decide::{CallDecision, CallQuestion, Stream};
use admission::principal::Caller;
use admission::rules::{PolicyRule, Then};
use admission::session::ReservationId;
use serde_json::json;
use vap::glob::Pattern;
use vap::reason::Reason;
use vap::verdict::VerdictKind;

use crate::world::{Try, World, alice, amendment, commitment, envelope, key, legacy, mallory, signed, world};

fn confirming() -> World {
    let mut world = world();
    let when = Some("input.arguments.amount > 1000");
    let pay = Some(Pattern::new("pay").unwrap());
    world.rules.policy.push(PolicyRule::new("large", pay, when, Then::Confirm).unwrap());
    world
}

fn modern(max_calls: u64) -> World {
    confirming().with_session(json!({ "max_calls": max_calls }))
}

fn pay() -> Try {
    Try::of("pay", json!({ "amount": 5000 }))
}

fn pending(world: &mut World, attempt: &Try) -> SealedCall {
    let ruling = world.ruled(attempt);
    assert_eq!(ruling.verdict.verdict, VerdictKind::Clarify);
    assert!(!ruling.is_admitted());
    ruling.ruling.pending.unwrap().ticket.clone()
}

#[test]
fn v_26_a_call_is_asked_about_once_and_served_once() {
    let mut world = modern(5);
    let ticket = pending(&mut world, &pay());
    assert_eq!(world.session().running.calls(), 0, "a pending question is not a call");
    let ruling = world.served(&pay().bringing(&ticket, Some(HumanAnswer::Confirmed)));
    assert!(ruling.verdict.verification.checks.contains(&"confirmed".to_owned()));
    assert_eq!(world.session().running.calls(), 1);
    assert_eq!(world.denied(&pay().bringing(&ticket, Some(HumanAnswer::Confirmed))), Reason::InvalidState);
}

#[test]
fn v_26_only_a_yes_is_a_yes_and_a_no_is_final() {
    for (answer, reason) in [
        (Some(HumanAnswer::Declined), Reason::Declined),
        (Some(HumanAnswer::Unanswered), Reason::Unanswered),
        (None, Reason::Declined),
    ] {
        let mut world = modern(5);
        let ticket = pending(&mut world, &pay());
        assert_eq!(world.denied(&pay().bringing(&ticket, answer)), reason);
        assert_eq!(
            world.denied(&pay().bringing(&ticket, Some(HumanAnswer::Confirmed))),
            Reason::InvalidState
        );
    }
}

#[test]
fn v_26_a_state_is_good_for_its_own_call_only_and_failing_consumes_nothing() {
    let mut world = modern(5);
    let ticket = pending(&mut world, &pay());
    let other = Try::of("pay", json!({ "amount": 9_000_000 }));
    let yes = Some(HumanAnswer::Confirmed);
    assert_eq!(world.denied(&other.bringing(&ticket, yes)), Reason::InvalidState);
    let tool = Try::of("crm.pay", json!({ "amount": 5000 }));
    assert_eq!(world.denied(&tool.bringing(&ticket, yes)), Reason::InvalidState);
    assert_eq!(world.denied(&Try { ticket: Some(None), ..pay() }), Reason::InvalidState);
    world.rules.policy_digest = vap::digest::Digest::of(b"reloaded").to_string();
    assert_eq!(world.denied(&pay().bringing(&ticket, yes)), Reason::InvalidState);
    world.rules.policy_digest = crate::world::POLICY.into();
    world.served(&pay().bringing(&ticket, yes));
}

#[test]
fn v_26_a_state_of_another_session_or_principal_is_none() {
    let mut world = modern(5);
    let ticket = pending(&mut world, &pay());
    let mut other = commitment(json!({ "max_calls": 5 }));
    other["session_id"] = "mallorys-own-session".into();
    world.commit(&mallory(), &other);
    let mut message = envelope("pay", json!({ "amount": 5000 }));
    message["session_id"] = "mallorys-own-session".into();
    let stolen = pay().by(mallory()).with(message).bringing(&ticket, Some(HumanAnswer::Confirmed));
    assert_eq!(world.denied(&stolen), Reason::InvalidState);
}

#[test]
fn v_26_a_state_expires() {
    let mut world = modern(5);
    let ticket = pending(&mut world, &pay());
    world.pass(300);
    assert_eq!(world.denied(&pay().bringing(&ticket, Some(HumanAnswer::Confirmed))), Reason::InvalidState);
}

#[test]
fn v_26_an_approval_overrules_neither_scope_nor_budget_nor_policy() {
    let mut world = modern(1);
    let ticket = pending(&mut world, &pay());
    world.served(&Try::of("crm.read", json!({})));
    let retry = pay().bringing(&ticket, Some(HumanAnswer::Confirmed));
    assert_eq!(world.denied(&retry), Reason::BudgetExceeded);
    let digest = world.session().agreed.digest().to_string();
    let message = amendment(&digest, json!({ "increase_budget": { "add_calls": 1 } }));
    world.commit(&alice(), &signed(&message, &key(1), json!({})));
    world.served(&retry);
}

#[test]
fn v_26_a_retry_brings_its_envelope_again_with_the_same_jti_and_an_older_iat() {
    let mut world = modern(5);
    let header = json!({ "jti": "once", "iat": world.now.as_second() });
    let attempt = pay().with(signed(&envelope("pay", json!({ "amount": 5000 })), &key(1), header));
    let ticket = pending(&mut world, &attempt);
    world.pass(200);
    assert_eq!(world.denied(&attempt), Reason::Stale);
    world.served(&attempt.clone().bringing(&ticket, Some(HumanAnswer::Confirmed)));
    assert_eq!(world.denied(&attempt.bringing(&ticket, Some(HumanAnswer::Confirmed))), Reason::Stale);
}

#[test]
fn v_26_who_cannot_be_asked_gets_a_clarify_that_is_no_success() {
    let mut world = modern(5);
    let ruling = world.ruled(&Try { can_ask: false, ..pay() });
    assert_eq!(ruling.verdict.verdict, VerdictKind::Clarify);
    assert_eq!(ruling.reason, Some(Reason::ConfirmationRequired));
    assert!(ruling.pending.is_none() && !ruling.is_admitted());
    assert!(ruling.verdict.clarification.is_some());
}

#[test]
fn v_26_the_question_is_made_of_the_call_and_not_of_what_the_agent_says() {
    let mut world = modern(5);
    let mut message = envelope("pay", json!({ "amount": 5000 }));
    message["intent"]["rationale"] = "PLEASE ALLOW, the manager said so".into();
    let ruling = world.ruled(&pay().with(message));
    let question = ruling.ruling.verdict.clarification.unwrap().question;
    assert_eq!(question, r#"Allow this call? Tool: pay. Arguments: {"amount":5000}"#);
}

fn old(max_calls: u64) -> (World, Caller) {
    let mut world = confirming();
    let caller = legacy("mcp-1");
    world.commit(&caller, &commitment(json!({ "max_calls": max_calls })));
    (world, caller)
}

fn reservation_of_question(world: &mut World, attempt: &Try) -> ReservationId {
    match world.call(attempt) {
        CallDecision::Ask { question: CallQuestion::Human(_), held } => held.unwrap(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn v_26_legacy_the_place_is_held_while_the_question_is_open() {
    let (mut world, caller) = old(1);
    let attempt = pay().by(caller.clone());
    let held = reservation_of_question(&mut world, &attempt);
    assert_eq!(world.denied(&Try::of("crm.read", json!({})).by(caller)), Reason::BudgetExceeded);
    world.served(&Try { held: Some(held), answer: Some(HumanAnswer::Confirmed), ..attempt });
    assert_eq!((world.session().running.calls(), world.session().running.in_flight().len()), (1, 1));
}

#[test]
fn v_26_legacy_a_no_gives_the_place_back() {
    for (answer, reason) in
        [(HumanAnswer::Declined, Reason::Declined), (HumanAnswer::Unanswered, Reason::Unanswered)]
    {
        let (mut world, caller) = old(1);
        let attempt = pay().by(caller.clone());
        let held = reservation_of_question(&mut world, &attempt);
        assert_eq!(world.denied(&Try { held: Some(held), answer: Some(answer), ..attempt }), reason);
        world.served(&Try::of("crm.read", json!({})).by(caller));
    }
}

#[test]
fn v_26_legacy_a_signed_call_does_not_grow_stale_over_its_question() {
    let (mut world, caller) = old(1);
    let header = json!({ "iat": world.now.as_second(), "jti": "once" });
    let attempt = pay().by(caller).with(signed(&envelope("pay", json!({ "amount": 5000 })), &key(1), header));
    let held = reservation_of_question(&mut world, &attempt);
    world.pass(250);
    world.served(&Try { held: Some(held), answer: Some(HumanAnswer::Confirmed), ..attempt });
}

#[test]
fn after_a_crash_open_questions_are_given_back_and_calls_are_not() {
    let (mut world, caller) = old(2);
    world.served(&Try::of("crm.read", json!({})).by(caller.clone()));
    reservation_of_question(&mut world, &pay().by(caller));
    let mut session = world.session().clone();
    admission::decide::refund_questions(&mut session, &mut Default::default());
    assert_eq!((session.running.calls(), session.running.in_flight().len()), (1, 1));
}

#[test]
fn v_38_the_retry_of_the_upstreams_own_question_is_neither_counted_nor_asked_about_again() {
    let mut world = modern(1);
    let question = pending(&mut world, &pay());
    let first = world.served(&pay().bringing(&question, Some(HumanAnswer::Confirmed)));
    let state = *first.ticket.clone().unwrap();
    let tool = "pay";
    world.settle(first.reservation(), vap::audit::CallStatus::Executed, tool, None);
    world.served(&pay().bringing(&state, None));
    assert_eq!(world.session().running.calls(), 1);
    let ruling = world.ruled(&pay().bringing(&state, None));
    assert_eq!(ruling.reason, Some(Reason::BudgetExceeded), "twice is a new call");
}

#[test]
fn v_38_a_retry_needs_an_envelope_and_stays_within_the_meters() {
    let mut world = world().with_session(json!({ "limits": { "usd": 1 } }));
    let first = world.served(&pay());
    let state = *first.ticket.clone().unwrap();
    let cost = Some(r#"{"usd":2}"#);
    world.settle(first.reservation(), vap::audit::CallStatus::Executed, "pay", cost);
    assert_eq!(world.denied(&pay().bringing(&state, None).without_vap()), Reason::NoEnvelope);
    assert_eq!(world.denied(&pay().bringing(&state, None)), Reason::MeterOverrun);
}

#[test]
fn v_38_an_upstreams_question_may_take_longer_than_ours() {
    let mut world = modern(1);
    let question = pending(&mut world, &pay());
    let first = world.served(&pay().bringing(&question, Some(HumanAnswer::Confirmed)));
    world.pass(3_600);
    world.served(&pay().bringing(first.ticket.as_ref().unwrap(), None));
    let mut world = modern(1);
    let first = world.served(&Try::of("crm.read", json!({})));
    world.pass(86_400);
    let late = Try::of("crm.read", json!({})).bringing(first.ticket.as_ref().unwrap(), None);
    assert_eq!(world.denied(&late), Reason::InvalidState);
}

#[test]
fn v_38_a_state_that_was_used_does_not_let_a_jti_through_again() {
    let mut world = modern(5);
    let message = signed(&envelope("crm.read", json!({})), &key(1), json!({ "jti": "once" }));
    let attempt = Try::of("crm.read", json!({})).with(message);
    let retry = {
        let first = world.served(&attempt);
        attempt.clone().bringing(first.ticket.as_ref().unwrap(), None)
    };
    world.served(&retry);
    assert_eq!(world.denied(&retry), Reason::Replayed);
}

#[test]
fn v_14_a_call_that_is_still_asked_about_has_no_outcome() {
    let (mut world, caller) = old(1);
    let held = reservation_of_question(&mut world, &pay().by(caller));
    let mut session = world.session().clone();
    let outcome =
        admission::decide::CallOutcome { status: vap::audit::CallStatus::Executed, tool: "pay", cost: None };
    let settled =
        admission::decide::settle(&world.rules, &mut session, &mut Default::default(), held, outcome);
    assert_eq!((settled, &session), (None, world.session()));
}

#[test]
fn v_38_an_upstreams_state_is_good_for_its_own_arguments() {
    let mut world = modern(5);
    let first = world.served(&Try::of("crm.read", json!({})));
    let other = Try::of("crm.read", json!({ "all": true }));
    assert_eq!(world.denied(&other.bringing(first.ticket.as_ref().unwrap(), None)), Reason::InvalidState);
}

#[test]
fn a_pending_question_is_recorded_in_the_sessions_stream() {
    let mut world = modern(5);
    let ruling = world.ruled(&pay());
    assert!(matches!(ruling.stream, Stream::Session(_)));
    assert_eq!(ruling.ruling.reason.unwrap().as_str(), "policy:large");
}
