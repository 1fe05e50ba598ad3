//! An agent: what it commits to, and what it calls.

use std::sync::Arc;

use admission::arguments::CallArguments;
use admission::authenticated::Authenticated;
use admission::principal::{Caller, Era};
use admission::rules::{Posture, Rules};
use admission::signature::Keyring;
use gateway::decision_writer::{
    CallAnswer, CallJob, CallOutcomeReport, DecisionAnswer, DecisionWriter, MessageAnswer, MessageJob,
};
use serde_json::{Value, json};
use testkit::agent::intent;
use vap::audit::CallStatus;
use vap::message::slot::{self, Carrier};
use vap::verdict::VerdictKind;

pub const SESSION: &str = "session-0123456789abcdef";
pub const POLICY: &str = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

/// Rules that take whoever has committed.
fn rules() -> Arc<Rules> {
    Arc::new(Rules::new("/mcp", testkit::GATEWAY, POLICY))
}

/// A route that lets callers without VAP through.
pub const ADVISORY: &str = "/advisory";

/// The rules of every route.
pub fn rules_of(route: &str) -> Option<Arc<Rules>> {
    Some(if route == ADVISORY { advisory() } else { rules() })
}

fn advisory() -> Arc<Rules> {
    Arc::new(Rules { posture: Posture::Advisory, ..Rules::new("/mcp", testkit::GATEWAY, POLICY) })
}

pub fn caller() -> Caller {
    caller_in("mcp-session-1")
}

pub fn caller_in(mcp_session: &str) -> Caller {
    let caller = Caller { route: "/mcp".into(), ..Caller::unknown(Era::Legacy) };
    caller.with_issued_session(Some(mcp_session.into()))
}

pub fn commitment(session: &str, budget: &Value) -> Value {
    testkit::agent::commitment("did:example:agent", session, budget)
}

pub fn received(message: &Value, carrier: Carrier) -> Authenticated {
    let received = slot::read(Some(&message.to_string()), None, carrier).unwrap().unwrap();
    Authenticated::new(received, &Keyring::default())
}

/// A call with an envelope.
pub fn job(session: &str, tool: &str, arguments: &Value) -> CallJob {
    let message = received(&intent(session, tool, arguments), Carrier::ToolsCall);
    CallJob { envelope: Some(Ok(message)), ..job_without_vap("/mcp", tool, arguments) }
}

/// A call without one, of somebody who is in no MCP session.
pub fn job_without_session(route: &str, tool: &str, arguments: &Value) -> CallJob {
    let caller = Caller { route: "/mcp".into(), ..Caller::unknown(Era::Modern) };
    CallJob { caller, ..job_without_vap(route, tool, arguments) }
}

/// A call without one.
pub fn job_without_vap(route: &str, tool: &str, arguments: &Value) -> CallJob {
    CallJob {
        route: route.into(),
        caller: caller(),
        envelope: None,
        tool: tool.into(),
        header: None,
        arguments: CallArguments::new(arguments.to_string()),
        can_wait: true,
        can_ask: false,
        has_roa_envelope: false,
        chain: None,
        checked: None,
        asserted_client: None,
        state: None,
        invocation: None,
    }
}

/// Commits to this budget, and is accepted.
pub async fn commit(writer: &DecisionWriter, session: &str, budget: Value) -> DecisionAnswer {
    let answer = try_commit(writer, session, budget).await;
    assert!(answer.verdict.verdict.is_permit(), "{}", answer.text);
    answer
}

pub async fn try_commit(writer: &DecisionWriter, session: &str, budget: Value) -> DecisionAnswer {
    let message = Ok(received(&commitment(session, &budget), Carrier::Initialize));
    let job = MessageJob { route: "/mcp".into(), caller: caller(), message, invocation: None };
    match writer.commitment(job).await {
        MessageAnswer::Ruled(answer) => *answer,
        MessageAnswer::Judge(..) => panic!("there is no judge"),
    }
}

/// Calls; whatever the answer.
pub async fn call(writer: &DecisionWriter, job: CallJob) -> DecisionAnswer {
    match writer.call(job).await {
        CallAnswer::Ruled(answer) => *answer,
        other => panic!("nobody is to be asked: {other:?}"),
    }
}

/// Reads a ticket in a session.
pub async fn read(writer: &DecisionWriter, session: &str, ticket: u64) -> DecisionAnswer {
    call(writer, job(session, "crm.read", &json!({ "ticket": ticket }))).await
}

/// Lets a call run, and settles it with this cost.
pub async fn run(answer: DecisionAnswer, cost: Option<&str>) -> admission::decide::Settled {
    let mut pass = answer.pass.expect("the call was served");
    crate::setup::release_request(&mut pass);
    let outcome = CallOutcomeReport {
        status: CallStatus::Executed,
        cost: cost.map(str::to_owned),
        result: Some(r#"{"content":[{"type":"text","text":"done"}]}"#.into()),
    };
    pass.settle(outcome).await
}

/// Why it was denied.
pub fn denied(answer: &DecisionAnswer) -> String {
    assert_eq!(answer.verdict.verdict, VerdictKind::Denied, "{}", answer.text);
    assert!(answer.pass.is_none(), "nothing may be forwarded");
    answer.verdict.verification.reason.as_ref().map(ToString::to_string).unwrap_or_default()
}
