//! Whose account a message is decided with (V-2, V-3, V-33): what anybody can write into a request makes nobody.

use std::sync::Arc;

use admission::clarify::HumanAnswer;
use admission::principal::account_key;
use admission::principal::{Caller, Era};
use admission::rules::{PolicyRule, PrincipalCeiling, Rules, Then};
use admission::signature::{AgentKey, Holder, Keyring};
use evidence::{EvidenceStore, Memory};
use gateway::decision_writer::{
    CallAnswer, CallJob, DecisionAnswer, DecisionWriter, MessageAnswer, MessageJob, OpenedState,
};
use scitt::Signer;
use serde_json::{Value, json};
use testkit::agent::intent;
use vap::glob::Pattern;
use vap::message::slot::Carrier;

use crate::agent::{
    ADVISORY, POLICY, SESSION, call, caller_in, commit, commitment, denied, job, job_without_vap, received,
    run,
};
use crate::setup::{offline, open, open_under, settings};
use crate::site::Site;

/// A caller whose MCP session no server was seen to give out.
fn unseen(mcp_session: &str) -> Caller {
    Caller { is_session_issued: false, ..caller_in(mcp_session) }
}

async fn has_account(store: &Memory, caller: &Caller) -> bool {
    let stream = format!("unbound:.principal:{}", account_key(caller, None).unwrap());
    store.streams(&[&stream]).await.unwrap().remove(0).is_some()
}

async fn declare(writer: &DecisionWriter, caller: Caller, message: &Value) -> DecisionAnswer {
    let message = Ok(received(message, Carrier::ToolsList));
    match writer.commitment(MessageJob { route: "/mcp".into(), caller, message, invocation: None }).await {
        MessageAnswer::Ruled(response) => *response,
        MessageAnswer::Judge(..) => panic!("there is no judge"),
    }
}

#[tokio::test]
async fn v_2_an_invented_mcp_session_gets_neither_principal_nor_account() {
    let (store, writer, running) = offline().await;
    for n in 0..5 {
        let caller = unseen(&format!("invented-{n}"));
        let attempt = CallJob { caller: caller.clone(), ..job(SESSION, "crm.read", &json!({})) };
        assert_eq!(denied(&call(&writer, attempt).await), "no_commitment");
        let response =
            declare(&writer, caller.clone(), &commitment(SESSION, &json!({ "max_calls": 1 }))).await;
        assert_eq!(denied(&response), "no_principal");
        assert!(!has_account(&store, &caller.presumed().unwrap()).await);
    }
    running.stop().await;
}

#[tokio::test]
async fn v_33_a_commitment_binds_its_mcp_session_after_a_restart() {
    let site = Site::stopped();
    let store = Memory::new("one");
    let (writer, running) = open(&store, &site, settings()).await;
    commit(&writer, SESSION, json!({ "max_calls": 9 })).await;
    running.stop().await;
    let (writer, running) = open(&store.another("two"), &site, settings()).await;
    let by = |caller: Caller, job: CallJob| CallJob { caller, ..job };
    let plain = || job_without_vap(ADVISORY, "crm.read", &json!({}));
    assert_eq!(denied(&call(&writer, by(unseen("mcp-session-1"), plain())).await), "no_envelope");
    let stranger = call(&writer, by(unseen("invented"), plain())).await;
    assert!(stranger.pass.is_some(), "nothing is known of it, and that is what the posture is for");
    drop(stranger);
    let own = call(&writer, by(unseen("mcp-session-1"), job(SESSION, "crm.read", &json!({})))).await;
    run(own, None).await;
    let other = commitment("session-fedcba9876543210", &json!({ "max_calls": 1 }));
    let response = declare(&writer, unseen("mcp-session-1"), &other).await;
    assert!(response.verdict.verdict.is_permit(), "{}", response.text);
    running.stop().await;
}

/// Large sums are asked about, and one call is all that a principal has.
fn ceiling() -> Arc<Rules> {
    let key = AgentKey::new(
        Holder::Agent("did:example:agent".into()),
        &testkit::operator().public_key().to_jwk(),
        None,
        None,
    );
    let asks = PolicyRule::new("ask", Some(Pattern::new("pay").unwrap()), None, Then::Confirm).unwrap();
    Arc::new(Rules {
        keyring: Keyring::new(vec![key.unwrap()]).unwrap(),
        policy: vec![asks],
        principal_ceiling: Some(PrincipalCeiling {
            max_calls: Some(1),
            limits: admission::session::Meters::default(),
            window: None,
        }),
        ..Rules::new("/mcp", testkit::GATEWAY, POLICY)
    })
}

fn signed(message: &Value, iat: i64) -> Value {
    testkit::agent::signed(message, &testkit::operator(), &json!({ "iat": iat }))
}

#[tokio::test]
async fn v_3_a_late_confirmation_is_bound_by_the_principals_ceiling() {
    let site = Site::stopped();
    let store = Memory::new("one");
    let (writer, running) = open_under(&store, &site, settings(), Arc::new(|_| Some(ceiling()))).await;
    let nobody = || Caller::unknown(Era::Modern);
    let now = jiff::Timestamp::now().as_second();
    let message = signed(&commitment(SESSION, &json!({ "max_calls": 9 })), now);
    let response = declare(&writer, nobody(), &message).await;
    assert!(response.verdict.verdict.is_permit(), "{}", response.text);
    let pay = |iat: i64| {
        let message = signed(&intent(SESSION, "pay", &json!({})), iat);
        CallJob {
            envelope: Some(Ok(received(&message, Carrier::ToolsCall))),
            caller: nobody(),
            can_ask: true,
            ..job_without_vap("/mcp", "pay", &json!({}))
        }
    };
    let pending = async || match writer.call(pay(now)).await {
        CallAnswer::Ruled(response) => response.ruling.unwrap().pending.unwrap().ticket,
        other => panic!("a modern client is asked by a result: {other:?}"),
    };
    // The person took more than a minute: the question, and the signature, are as old as that.
    let asked = now - 100;
    let mut tickets = [pending().await, pending().await];
    for ticket in &mut tickets {
        ticket.issued = asked;
    }
    let retry = |ticket: &admission::clarify::SealedCall| CallJob {
        state: Some(OpenedState { ticket: Some(ticket.clone()), answer: Some(HumanAnswer::Confirmed) }),
        ..pay(asked)
    };
    run(call(&writer, retry(&tickets[0])).await, None).await;
    assert_eq!(denied(&call(&writer, retry(&tickets[1])).await), "principal_ceiling");
    running.stop().await;
}

#[tokio::test]
async fn v_3_a_keys_ceiling_holds_across_mcp_sessions() {
    let site = Site::stopped();
    let store = Memory::new("one");
    let (writer, running) = open_under(&store, &site, settings(), Arc::new(|_| Some(ceiling()))).await;
    let now = jiff::Timestamp::now().as_second();
    let sessions = ["the-first-of-its-sessions", "the-second-of-its-sessions"];
    for (session, mcp_session) in sessions.into_iter().zip(["mcp-1", "mcp-2"]) {
        let message = signed(&commitment(session, &json!({ "max_calls": 9 })), now);
        let response = declare(&writer, caller_in(mcp_session), &message).await;
        assert!(response.verdict.verdict.is_permit(), "{}", response.text);
    }
    let read = |session: &str, mcp_session: &str| CallJob {
        caller: caller_in(mcp_session),
        ..job(session, "crm.read", &json!({}))
    };
    run(call(&writer, read(sessions[0], "mcp-1")).await, None).await;
    assert_eq!(denied(&call(&writer, read(sessions[1], "mcp-2")).await), "principal_ceiling");
    // What else an account says is still of the MCP session: its caller has committed.
    let without = CallJob { caller: caller_in("mcp-2"), ..job_without_vap("/mcp", "crm.read", &json!({})) };
    assert_eq!(denied(&call(&writer, without).await), "no_envelope");
    running.stop().await;
}
