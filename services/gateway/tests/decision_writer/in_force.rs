//! What waits for a person, the judge or another call is decided under the rules in force when it goes on, and not under
//! those that it came in with.

use std::sync::{Arc, Mutex};

use admission::approval::{Approval, Decision};
use admission::clarify::HumanAnswer;
use admission::rules::{Approver, PolicyRule, Posture, Rules, Then};
use admission::signature::{AgentKey, Holder, Keyring};
use admission::tool::{CheckedArguments, Description, ToolPins, ToolRules};
use evidence::{EvidenceStore, Memory};
use gateway::decision_writer::{
    CallAnswer, CallJob, CallOutcomeReport, DecisionWriter, RulesOf, RunningWriter, UndecidedCall,
};
use gateway::replay::{ReplayedSession, replay};
use scitt::Signer;
use serde_json::{Value, json};
use testkit::agent::intent;
use vap::audit::CallStatus;
use vap::glob::Pattern;
use vap::message::slot::Carrier;

use crate::agent::{POLICY, SESSION, call, caller_in, commit, denied, job, job_without_vap, received, run};
use crate::setup::{open_under, records, settings};
use crate::site::Site;

/// A writer whose rules a test changes.
struct World {
    rules: Arc<Mutex<Option<Arc<Rules>>>>,
    store: Memory,
    writer: DecisionWriter,
    running: RunningWriter,
}

impl World {
    async fn new(rules: Rules) -> Self {
        let rules = Arc::new(Mutex::new(Some(Arc::new(rules))));
        let now = rules.clone();
        let in_force: RulesOf = Arc::new(move |_| now.lock().unwrap().clone());
        let (site, store) = (Site::stopped(), Memory::new("one"));
        let (writer, running) = open_under(&store, &site, settings(), in_force).await;
        commit(&writer, SESSION, json!({ "max_calls": 9, "limits": { "usd": 10 } })).await;
        Self { rules, store, writer, running }
    }

    fn change(&self, rules: Option<Rules>) {
        *self.rules.lock().unwrap() = rules.map(Arc::new);
    }

    /// A call that a person is asked about.
    async fn call_with_question(&self, message: &Value) -> UndecidedCall {
        let envelope = Some(Ok(received(message, Carrier::ToolsCall)));
        self.call_with_question_about(CallJob { envelope, ..job(SESSION, "pay", &json!({})) }).await
    }

    async fn call_with_question_about(&self, job: CallJob) -> UndecidedCall {
        match self.writer.call(CallJob { can_ask: true, ..job }).await {
            CallAnswer::Ask(_, held) => held,
            other => panic!("nobody is asked: {other:?}"),
        }
    }
}

fn plain() -> Rules {
    Rules::new("/mcp", testkit::GATEWAY, POLICY)
}

/// Payments are subject to this.
fn pay(name: &str, then: Then) -> Rules {
    let rule = PolicyRule::new(name, Some(Pattern::new("pay").unwrap()), None, then).unwrap();
    Rules { policy: vec![rule], ..plain() }
}

/// The reason for which a call is denied although a person confirms it.
async fn denied_after_confirmation(held: UndecidedCall) -> String {
    match held.answered(HumanAnswer::Confirmed).await {
        CallAnswer::Ruled(response) => denied(&response),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn d_1_a_confirmed_call_is_decided_under_the_rules_then_in_force() {
    let world = World::new(pay("ask", Then::Confirm)).await;
    let message = intent(SESSION, "pay", &json!({}));
    let held = world.call_with_question(&message).await;
    world.change(Some(pay("closed", Then::Deny)));
    assert_eq!(denied_after_confirmation(held).await, "policy:closed");
    world.change(Some(pay("ask", Then::Confirm)));
    let held = world.call_with_question(&message).await;
    world.change(None);
    assert_eq!(denied_after_confirmation(held).await, "signature_required", "the route is gone");
    let written = records(&world.store, "unbound:one").await;
    assert_eq!(written.len(), 1, "the log can read the record of a denial on a route that is gone");
    world.change(Some(pay("ask", Then::Confirm)));
    let held = world.call_with_question(&message).await;
    match held.answered(HumanAnswer::Confirmed).await {
        CallAnswer::Ruled(response) => run(*response, None).await,
        other => panic!("{other:?}"),
    };
    world.running.stop().await;
}

#[tokio::test]
async fn d_1_a_confirmed_call_is_denied_once_its_key_is_removed() {
    let holder = Holder::Agent("did:example:agent".into());
    let key = AgentKey::new(holder, &testkit::operator().public_key().to_jwk(), None, None).unwrap();
    let known = Rules { keyring: Keyring::new(vec![key]).unwrap(), ..pay("ask", Then::Confirm) };
    let world = World::new(plain()).await;
    world.change(Some(known));
    let message =
        testkit::agent::signed(&intent(SESSION, "pay", &json!({})), &testkit::operator(), &json!({}));
    let held = world.call_with_question(&message).await;
    world.change(Some(pay("ask", Then::Confirm)));
    assert_eq!(denied_after_confirmation(held).await, "unknown_key");
    world.running.stop().await;
}

/// A call whose arguments were checked against a description that is not the tool's any more.
fn outdated() -> CallJob {
    let (_, description) = Description::of(r#"{"name":"pay"}"#).unwrap();
    let checked = CheckedArguments { against: Some(description.digest), fault: None };
    CallJob { checked: Some(checked), ..job(SESSION, "pay", &json!({})) }
}

/// The same rules, under which no arguments are checked.
fn unchecked(rules: Rules) -> Rules {
    Rules { tools: ToolRules { pins: ToolPins::Off, check_arguments: false }, ..rules }
}

#[tokio::test]
async fn a_confirmed_call_is_denied_once_its_tool_has_changed() {
    let world = World::new(unchecked(pay("ask", Then::Confirm))).await;
    let held = world.call_with_question_about(outdated()).await;
    world.change(Some(pay("ask", Then::Confirm)));
    assert_eq!(denied_after_confirmation(held).await, "tool_changed");
    world.running.stop().await;
}

#[tokio::test]
async fn arguments_are_checked_again_before_anybody_is_asked_about_them() {
    let world = World::new(pay("ask", Then::Confirm)).await;
    let answer = world.writer.call(CallJob { can_ask: true, ..outdated() }).await;
    assert!(matches!(answer, CallAnswer::Check(_)), "{answer:?}");
    world.running.stop().await;
}

#[tokio::test]
async fn i_11_a_call_that_waited_for_a_cost_is_decided_under_the_rules_then_in_force() {
    let world = World::new(plain()).await;
    let pays = |n: u64| job(SESSION, "pay", &json!({ "n": n }));
    let first = call(&world.writer, pays(1)).await;
    let mut pass = first.pass.expect("the first call of a tool of unknown cost goes on");
    crate::setup::release_request(&mut pass);
    let writer = world.writer.clone();
    let second = tokio::spawn(async move { call(&writer, pays(2)).await });
    // Its work item is submitted by now, and later items are decided later.
    tokio::task::yield_now().await;
    let other = call(&world.writer, job(SESSION, "delete_all", &json!({}))).await;
    assert_eq!(denied(&other), "scope_escape");
    assert!(!second.is_finished(), "it waits");
    world.change(Some(pay("closed", Then::Deny)));
    let outcome =
        CallOutcomeReport { status: CallStatus::Executed, cost: Some(r#"{"usd":1}"#.into()), result: None };
    pass.settle(outcome).await;
    assert_eq!(denied(&second.await.unwrap()), "policy:closed");
    world.running.stop().await;
}

#[tokio::test]
async fn a_call_without_a_session_needs_its_answer_though_no_rule_requires_one_any_more() {
    let restricted = |mut rules: Rules| {
        rules.posture = Posture::Restricted;
        rules.restricted.push(Pattern::new("pay").unwrap());
        rules
    };
    let world = World::new(restricted(pay("ask", Then::Confirm))).await;
    let job = CallJob { caller: caller_in("another"), ..job_without_vap("/mcp", "pay", &json!({})) };
    let held = world.call_with_question_about(job).await;
    world.change(Some(restricted(plain())));
    match held.answered(HumanAnswer::Unanswered).await {
        CallAnswer::Ruled(response) => assert_eq!(denied(&response), "unanswered"),
        other => panic!("{other:?}"),
    }
    world.running.stop().await;
}

#[tokio::test]
async fn a_call_is_held_for_its_approver_whatever_else_waits_by_then() {
    let approver = testkit::ed25519([2; 32]);
    let mut rules = pay("approved", Then::Approve);
    let key = AgentKey::new(Holder::Approver, &approver.public_key().to_jwk(), None, None).unwrap();
    rules.approvals.approvers.push(Approver { name: "carol".into(), tools: Vec::new(), keys: vec![key] });
    let world = World::new(rules.clone()).await;
    let session = "session-of-many-questions";
    commit(&world.writer, session, json!({ "max_calls": 50 })).await;
    let pays = |n: usize| world.call_with_question_about(job(session, "pay", &json!({ "n": n })));
    let first = pays(0).await;
    let question = world.writer.open_questions().await.unwrap().pop().unwrap();
    let yes = Approval::of(&question, "carol", Decision::Approve, None).sign(&approver).unwrap();
    world.writer.answer_question(&question.id, &yes).await.unwrap();
    let mut others = Vec::new();
    for n in 1..=gateway::limits::PRINCIPAL_QUESTIONS {
        others.push(pays(n).await);
    }
    match first.approved().await {
        CallAnswer::Ruled(response) => run(*response, None).await,
        other => panic!("{other:?}"),
    };
    // Its own question is among those that are open.
    let left = others.pop().unwrap();
    match left.answered(HumanAnswer::Unanswered).await {
        CallAnswer::Ruled(response) => assert_eq!(denied(&response), "unanswered"),
        other => panic!("{other:?}"),
    }
    let stored = world.store.records(session, 0, 100).await.unwrap();
    let again = &mut ReplayedSession::under_rules([("/mcp".to_owned(), Arc::new(rules))].into());
    let compared = replay(again, &stored).unwrap();
    assert!(compared.iter().all(|decision| decision.now.as_ref() == Some(&decision.then)), "{compared:?}");
    drop(others);
    world.running.stop().await;
}
