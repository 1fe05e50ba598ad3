//! Approvals from outside of the client: what an answer is good for, and what a client cannot say.

use admission::approval::{Approval, Decision, Question, SignedApproval};
use admission::clarify::{HumanAnswer, Purpose};
use admission::decide::{CallDecision, CallQuestion, Confirmation};
use admission::principal::{Caller, Era};
use admission::rules::{Approver, Decider, PolicyRule, Then};
use admission::signature::{AgentKey, Holder};
use scitt::Signer as _;
use serde_json::json;
use vap::glob::Pattern;
use vap::reason::Reason;
use vap::verdict::VerdictKind;

use crate::world::{Try, World, alice, key, world};

const CAROL: u8 = 21;

fn approver(name: &str, seed: u8, tools: &[&str]) -> Approver {
    let key = AgentKey::new(Holder::Approver, &key(seed).public_key().to_jwk(), None, None).unwrap();
    let tools = tools.iter().map(|tool| Pattern::new(tool).unwrap()).collect();
    Approver { name: name.into(), tools, keys: vec![key] }
}

fn waiting() -> World {
    let mut world = world();
    let when = Some("input.arguments.amount > 1000");
    let pay = Some(Pattern::new("pay").unwrap());
    world.rules.policy.push(PolicyRule::new("large", pay, when, Then::Approve).unwrap());
    world.rules.approvals.approvers.push(approver("carol", CAROL, &["pay*"]));
    world.with_session(json!({ "max_calls": 5 }))
}

fn pay() -> Try {
    Try::of("pay", json!({ "amount": 5000 }))
}

/// The question that a call of the modern era is answered with, and the call when it comes again.
fn ask_approver(world: &mut World) -> (Question, Try) {
    let ruling = world.ruled(&pay());
    assert_eq!(ruling.verdict.verdict, VerdictKind::Clarify);
    assert!(!ruling.is_admitted());
    let pending = ruling.ruling.pending.unwrap();
    assert_eq!(pending.ticket.purpose, Purpose::Approval);
    let question = *pending.approver_question.unwrap();
    assert_eq!(pending.ticket.nonce, question.id);
    (question, pay().bringing(&pending.ticket, None))
}

fn by(seed: u8, name: &str, question: &Question, decision: Decision) -> String {
    Approval::of(question, name, decision, None).sign(&key(seed)).unwrap()
}

fn carol(question: &Question) -> String {
    by(CAROL, "carol", question, Decision::Approve)
}

fn with(attempt: &Try, question: &Question, answer: Option<String>) -> Try {
    Try { approver_question: Some((question.clone(), answer, false)), ..attempt.clone() }
}

#[test]
fn a_call_is_served_with_an_approvers_answer_and_the_ruling_names_the_approver() {
    let mut world = waiting();
    let (question, retry) = ask_approver(&mut world);
    let text = carol(&question);
    let ruling = world.served(&with(&retry, &question, Some(text.clone())));
    let signed = SignedApproval::parse(&text).unwrap();
    let Some(Confirmation::Approver { approver, question: id, approval, decision, .. }) =
        ruling.ruling.confirmation
    else {
        panic!("nobody confirmed it")
    };
    assert_eq!((approver.as_str(), id, &approval), ("carol", question.id, signed.digest()));
    assert_eq!(decision, Decision::Approve);
    assert!(ruling.ruling.ticket.unwrap().approved);
}

#[test]
fn what_a_client_says_is_no_approval() {
    let mut world = waiting();
    let (_, retry) = ask_approver(&mut world);
    let Some(Some(ticket)) = retry.ticket.clone() else { panic!("no state") };
    // The state alone, with a yes of the client's.
    assert_eq!(world.denied(&pay().bringing(&ticket, Some(HumanAnswer::Confirmed))), Reason::InvalidState);
    // A yes on the open stream, to a question that was asked before approvers were demanded.
    let held = Try { caller: Caller { era: Era::Legacy, ..alice() }, ..pay() };
    let answered = Try { answer: Some(HumanAnswer::Confirmed), ..held.clone() };
    assert_eq!(world.denied(&answered), Reason::ApprovalUnavailable);
    assert!(
        matches!(world.call(&held), CallDecision::Ask { question: CallQuestion::Human(question), .. } if question.approver_question.is_some())
    );
}

#[test]
fn an_upstreams_question_carries_on_an_approval_and_makes_none() {
    let mut world = waiting();
    let (question, retry) = ask_approver(&mut world);
    let ruling = world.served(&with(&retry, &question, Some(carol(&question))));
    let approved = *ruling.ruling.ticket.unwrap();
    world.served(&pay().bringing(&approved, None));
    // The same state without the approval.
    let (question, retry) = ask_approver(&mut world);
    let ruling = world.served(&with(&retry, &question, Some(carol(&question))));
    let unapproved = admission::clarify::SealedCall { approved: false, ..*ruling.ruling.ticket.unwrap() };
    let again = world.ruled(&pay().bringing(&unapproved, None));
    assert_eq!(again.verdict.verdict, VerdictKind::Clarify);
}

#[test]
fn an_answer_counts_for_its_question_under_a_key_that_counts_now() {
    let mut world = waiting();
    let (question, retry) = ask_approver(&mut world);
    let denied = by(CAROL, "carol", &question, Decision::Deny);
    let other = Question { id: "0".repeat(32), ..question.clone() };
    let later = Question { expires: question.expires + 1, ..question.clone() };
    for (text, reason) in [
        (denied, Reason::ApprovalDenied),
        (by(1, "carol", &question, Decision::Approve), Reason::InvalidApproval),
        (by(CAROL, "mallory", &question, Decision::Approve), Reason::InvalidApproval),
        (carol(&other), Reason::InvalidApproval),
        (carol(&later), Reason::InvalidApproval),
        ("no.jws.".to_owned(), Reason::InvalidApproval),
    ] {
        assert_eq!(world.denied(&with(&retry, &question, Some(text))), reason);
    }
    let spent =
        Try { approver_question: Some((question.clone(), Some(carol(&question)), true)), ..retry.clone() };
    assert_eq!(world.denied(&spent), Reason::InvalidState);
    let dearer =
        Try { arguments: json!({ "amount": 6000 }).to_string(), ..Try::of("pay", json!({ "amount": 6000 })) };
    assert_eq!(world.denied(&with(&dearer, &question, Some(carol(&question)))), Reason::InvalidState);
    let keys = std::mem::take(&mut world.rules.approvals.approvers[0].keys);
    assert_eq!(world.denied(&with(&retry, &question, Some(carol(&question)))), Reason::InvalidApproval);
    world.rules.approvals.approvers[0].keys = keys;
    world.served(&with(&retry, &question, Some(carol(&question))));
}

#[test]
fn what_is_not_answered_in_time_is_denied_and_so_is_what_nobody_may_answer() {
    let mut world = waiting();
    let (question, retry) = ask_approver(&mut world);
    world.pass(question.expires - question.asked);
    assert_eq!(world.denied(&with(&retry, &question, None)), Reason::Unanswered);
    assert_eq!(world.denied(&with(&retry, &question, Some(carol(&question)))), Reason::InvalidApproval);
    world.rules.approvals.approvers[0].tools = vec![Pattern::new("files.*").unwrap()];
    assert_eq!(world.denied(&pay()), Reason::ApprovalUnavailable);
}

#[test]
fn an_approved_call_is_decided_again_under_all_rules() {
    let mut world = waiting();
    let (question, retry) = ask_approver(&mut world);
    let closed = PolicyRule::new("closed", None, None, Then::Deny).unwrap();
    world.rules.policy.insert(0, closed);
    let reason = world.denied(&with(&retry, &question, Some(carol(&question))));
    assert_eq!(reason.to_string(), "policy:closed");
}

#[test]
fn confirmations_by_an_approver_are_approvals() {
    let mut world = waiting();
    world.rules.policy.clear();
    world.rules.policy.push(PolicyRule::new("ask", None, None, Then::Confirm).unwrap());
    world.rules.approvals.confirmations = Decider::Approver;
    let (question, retry) = ask_approver(&mut world);
    world.served(&with(&retry, &question, Some(carol(&question))));
}

#[test]
fn patterns_overlap_where_some_name_fits_both() {
    let overlap = |one: &str, other: &str| {
        let (one, other) = (Pattern::new(one).unwrap(), Pattern::new(other).unwrap());
        assert_eq!(one.overlaps(&other), other.overlaps(&one));
        one.overlaps(&other)
    };
    for (one, other) in
        [("a", "a"), ("*", "a"), ("", "*"), ("a*c", "*b*"), ("pay*send", "*.send"), ("*a", "a*")]
    {
        assert!(overlap(one, other), "{one} {other}");
    }
    for (one, other) in
        [("a", "b"), ("a*", "b*"), ("*a", "*b"), ("", "a"), ("a*b", "a"), ("files.*", "payments.send")]
    {
        assert!(!overlap(one, other), "{one} {other}");
    }
}
