//! What waits for a person, the judge or another call is decided under the rules in force when it goes on, and not under
//! those that it came in with.

use std::sync::{Arc, Mutex};

use admission::clarify::Answer;
use admission::decide::Status;
use admission::glob::Pattern;
use admission::message::slot::Carrier;
use admission::rules::{PolicyRule, Rules, Then};
use admission::signature::{AgentKey, Holder, Keyring};
use evidence::Memory;
use gateway::desk::{CallAnswer, CallJob, Came, Desk, HeldCall, RulesOf, Running};
use jose::{jcs, jws};
use scitt::Signer;
use serde_json::{Value, json};

use crate::agent::{POLICY, call, commit, denied, envelope, job, received, run};
use crate::desk::{open_under, settings};
use crate::site::{Site, policy};

const SESSION: &str = "session-0123456789abcdef";

/// A desk whose rules a test changes.
struct Changing {
    rules: Arc<Mutex<Option<Arc<Rules>>>>,
    desk: Desk,
    running: Running,
}

impl Changing {
    async fn new(rules: Rules) -> Self {
        let rules = Arc::new(Mutex::new(Some(Arc::new(rules))));
        let now = rules.clone();
        let in_force: RulesOf = Arc::new(move |_| now.lock().unwrap().clone());
        let site = Site::stopped(&policy());
        let (desk, running) = open_under(&Memory::new("one"), &site, settings(), in_force).await;
        commit(&desk, SESSION, json!({ "max_calls": 9, "limits": { "usd": 10 } })).await;
        Self { rules, desk, running }
    }

    fn change(&self, rules: Option<Rules>) {
        *self.rules.lock().unwrap() = rules.map(Arc::new);
    }

    /// A call that a person is asked about.
    async fn asked(&self, message: &Value) -> HeldCall {
        let asks = CallJob {
            envelope: Some(Ok(received(message, Carrier::ToolsCall))),
            can_ask: true,
            ..job(SESSION, "pay", &json!({}))
        };
        match self.desk.call(asks).await {
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

async fn answered(held: HeldCall) -> String {
    match held.answered(Answer::Confirmed).await {
        CallAnswer::Ruled(told) => denied(&told),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn d_1_a_yes_to_a_held_call_does_not_outlive_a_rule_that_denies_it_by_then() {
    let world = Changing::new(pay("ask", Then::Confirm)).await;
    let message = envelope(SESSION, "pay", &json!({}));
    let held = world.asked(&message).await;
    world.change(Some(pay("closed", Then::Deny)));
    assert_eq!(answered(held).await, "policy:closed");
    world.change(Some(pay("ask", Then::Confirm)));
    let held = world.asked(&message).await;
    world.change(None);
    assert_eq!(answered(held).await, "signature_required", "the route is gone");
    world.change(Some(pay("ask", Then::Confirm)));
    let held = world.asked(&message).await;
    match held.answered(Answer::Confirmed).await {
        CallAnswer::Ruled(told) => run(*told, None).await,
        other => panic!("{other:?}"),
    };
    world.running.stop().await;
}

#[tokio::test]
async fn d_1_a_yes_to_a_held_call_does_not_outlive_the_key_that_signed_it() {
    let holder = Holder::Agent("did:example:agent".into());
    let key = AgentKey::new(holder, &testkit::operator().public_key().to_jwk(), None, None).unwrap();
    let known = Rules { keyring: Keyring::new(vec![key]).unwrap(), ..pay("ask", Then::Confirm) };
    let world = Changing::new(plain()).await;
    world.change(Some(known));
    let key = testkit::operator();
    let header = json!({ "alg": "EdDSA", "kid": key.public_key().jwk_thumbprint() });
    let mut message = envelope(SESSION, "pay", &json!({}));
    let input = jws::signing_input(&header, &jcs::canonical(&message));
    message["signature"] = jws::detached(&input, &key.sign(&input).unwrap()).into();
    let held = world.asked(&message).await;
    world.change(Some(pay("ask", Then::Confirm)));
    assert_eq!(answered(held).await, "unknown_key");
    world.running.stop().await;
}

#[tokio::test]
async fn i_11_a_call_that_waits_for_what_another_costs_is_decided_under_the_rules_in_force_when_it_goes_on() {
    let world = Changing::new(plain()).await;
    let pays = |n: u64| job(SESSION, "pay", &json!({ "n": n }));
    let first = call(&world.desk, pays(1)).await;
    let mut pass = first.pass.expect("the first call of a tool of unknown cost goes on");
    pass.forwarding();
    let desk = world.desk.clone();
    let second = tokio::spawn(async move { call(&desk, pays(2)).await });
    // Its job is handed in by now, and what is handed in later is decided later.
    tokio::task::yield_now().await;
    let other = call(&world.desk, job(SESSION, "delete_all", &json!({}))).await;
    assert_eq!(denied(&other), "scope_escape");
    assert!(!second.is_finished(), "it waits");
    world.change(Some(pay("closed", Then::Deny)));
    let came = Came { status: Status::Executed, cost: Some(r#"{"usd":1}"#.into()), result: None };
    pass.settle(came).await;
    assert_eq!(denied(&second.await.unwrap()), "policy:closed");
    world.running.stop().await;
}
