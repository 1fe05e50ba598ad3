//! Calls that wait for an approver outside of the client (V-26).

use std::sync::Arc;
use std::time::Duration;

use admission::rules::{Approver, Then};
use admission::signature::{AgentKey, Holder};
use gateway::upstream::stdio::Stdio;
use scitt::Signer;
use serde_json::json;

use crate::client::{PATIENCE, initialize};
use crate::scripted::program;
use crate::world::{World, rule};

/// A gateway before a started server that has room for one session, where an approver decides about `pay`.
async fn world(server: &Arc<Stdio>) -> World {
    World::with(|wishes| {
        let key = testkit::ed25519([2; 32]).public_key().to_jwk();
        let keys = vec![AgentKey::new(Holder::Approver, &key, None, None).unwrap()];
        let approver = Approver { name: "carol".into(), tools: Vec::new(), keys };
        wishes.rules.approvals.approvers.push(approver);
        wishes.rules.policy.push(rule("approved", "pay", None, Then::Approve));
        wishes.upstream = Some(server.clone());
    })
    .await
}

#[tokio::test]
async fn a_call_that_waits_for_an_approver_keeps_its_session_busy() {
    let mut program = program("old");
    program.children = 1;
    // A session that is idle, if only for a moment, makes room for another one.
    let server = Arc::new(Stdio::new(program, "old").sparing(Duration::ZERO));
    let world = world(&server).await;
    let agent = world.legacy().await;
    agent.commit().await;
    let opened = async || world.nobody().ask("initialize", initialize(&json!({}))).await.status;
    let call = agent.message("tools/call", &agent.call_params("pay", &json!({})));
    let waiting = agent.stream(&call).await;
    assert_eq!(waiting.header("content-type"), Some("text/event-stream"));
    assert_eq!(opened().await, 503);
    drop(waiting);
    let let_go = async { while opened().await != 200 {} };
    tokio::time::timeout(PATIENCE, let_go).await.expect("the call is taken back with its client");
    server.stop().await;
}
