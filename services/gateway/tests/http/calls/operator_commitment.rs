//! Clients without VAP under the operator's commitment: each MCP session has goal, scope and budget, and a record stream.

use admission::rules::{OperatorCommitment, Posture, Then};
use admission::session::Meters;
use jiff::SignedDuration;
use serde_json::{Value, json};
use vap::glob::Pattern;
use vap::message::Scope;

use crate::client::Agent;
use crate::world::{Wishes, World, rule};

fn commitment() -> OperatorCommitment {
    OperatorCommitment {
        goal: "the work of the desk".into(),
        agent: "desktop".into(),
        scope: Scope { tools_allow: vec![Pattern::new("crm.*").unwrap()], tools_deny: None },
        max_calls: Some(2),
        limits: Meters::default(),
        lasts: SignedDuration::from_hours(24 * 365),
    }
}

fn under(commitment: OperatorCommitment) -> impl FnOnce(&mut Wishes) {
    move |wishes| {
        wishes.rules.posture = Posture::Commitment;
        wishes.rules.operator_commitment = Some(commitment);
    }
}

/// The names of the operator's sessions.
async fn sessions(world: &World) -> Vec<String> {
    let listed = world.store.list(Some("operator:"), 100).await.unwrap();
    let names = listed.into_iter().map(|listed| listed.stream);
    names.filter(|name| name.starts_with("operator:")).collect()
}

async fn only_session(world: &World) -> String {
    let sessions = sessions(world).await;
    assert_eq!(sessions.len(), 1, "{sessions:?}");
    sessions.into_iter().next().unwrap()
}

#[tokio::test]
async fn a_client_that_knows_no_vap_gets_a_session_with_scope_and_budget() {
    let world = World::with(under(commitment())).await;
    let client = world.legacy().await;
    assert_eq!(client.plain("mail.send", json!({})).await.reason(), "scope_escape");
    for _ in 0..2 {
        assert_eq!(client.plain("crm.read", json!({})).await.verdict(), "served");
    }
    assert_eq!(client.plain("crm.read", json!({})).await.reason(), "budget_exceeded");
    assert_eq!(world.server.calls(), 2);
    let session = only_session(&world).await;
    assert_eq!(world.outcomes(&session, 2).await.len(), 2);
    let records = world.records(&session).await;
    assert_eq!(records[0].kind, "commitment");
    for record in records.iter().filter(|record| record.kind != "outcome") {
        let payload = &record.payload;
        assert_eq!(payload["verification"]["checks"][0], "operator_commitment", "{record:?}");
        assert_eq!(payload["agent_id"], "desktop", "{record:?}");
        assert_eq!(payload["agent_proven_by"], "operator", "{record:?}");
    }
}

#[tokio::test]
async fn each_mcp_session_has_its_own_operator_session_and_strangers_share_one() {
    let world = World::with(under(commitment())).await;
    let (first, second) = (world.legacy().await, world.legacy().await);
    first.plain("crm.read", json!({})).await;
    second.plain("crm.read", json!({})).await;
    assert_eq!(sessions(&world).await.len(), 2);
    let invented = Agent { mcp: Some("invented".into()), ..world.nobody() };
    for stranger in [world.nobody(), Agent { modern: true, ..world.nobody() }] {
        stranger.plain("crm.read", json!({})).await;
    }
    // An MCP session that no server issued gives no budget of its own.
    assert_eq!(invented.plain("crm.read", json!({})).await.reason(), "budget_exceeded");
    assert_eq!(sessions(&world).await.len(), 3);
    world.modern("alice").plain("crm.read", json!({})).await;
    assert_eq!(sessions(&world).await.len(), 4);
}

#[tokio::test]
async fn first_calls_at_the_same_time_open_one_session() {
    let world = World::with(under(OperatorCommitment { max_calls: Some(10), ..commitment() })).await;
    let client = world.legacy().await;
    let calls = (0..10).map(|_| client.plain("crm.read", json!({})));
    let answers = futures::future::join_all(calls).await;
    assert!(answers.iter().all(|answer| answer.verdict() == "served"));
    let session = only_session(&world).await;
    let commitments = world.records(&session).await.into_iter().filter(|record| record.kind == "commitment");
    assert_eq!(commitments.count(), 1);
}

#[tokio::test]
async fn rules_and_confirmations_apply_under_the_operators_commitment() {
    let world = World::with(|wishes| {
        under(commitment())(wishes);
        wishes.rules.policy.push(rule("no", "crm.delete", None, Then::Deny));
        wishes.rules.policy.push(rule(
            "ask",
            "crm.read",
            Some("input.principal.agent_id == \"desktop\""),
            Then::Confirm,
        ));
    })
    .await;
    let client = world.modern("alice");
    assert_eq!(client.plain("crm.delete", json!({})).await.reason(), "policy:no");
    let asked = client.plain("crm.read", json!({ "n": 1 })).await;
    assert_eq!(asked.verdict(), "clarify");
    let mut params = json!({ "name": "crm.read", "arguments": { "n": 1 } });
    params["requestState"] = asked.reply()["result"]["requestState"].clone();
    params["inputResponses"] =
        json!({ "dev.tabellion/confirm": { "action": "accept", "content": { "confirm": true } } });
    assert_eq!(client.ask("tools/call", params).await.verdict(), "served");
}

#[tokio::test]
async fn a_message_in_the_operators_session_is_denied() {
    let world = World::with(under(commitment())).await;
    let client = world.legacy().await;
    client.plain("crm.read", json!({})).await;
    let session = only_session(&world).await;
    let own = client.in_session(&session);
    own.call("crm.read", json!({})).await.denied("reserved_session_id");
    own.carry("tools/list", &own.commitment()).await.denied("reserved_session_id");
    let amendment = testkit::agent::amendment(
        &session,
        &format!("sha256:{}", "0".repeat(64)),
        &json!({ "increase_budget": { "add_calls": 50 } }),
    );
    client.carry("tools/list", &amendment).await.denied("reserved_session_id");
    let other = own.in_session("operator:mine");
    other.carry("tools/list", &other.commitment()).await.denied("reserved_session_id");
}

#[tokio::test]
async fn a_client_with_its_own_commitment_needs_an_envelope() {
    let world = World::with(under(commitment())).await;
    let client = world.modern("alice");
    client.plain("crm.read", json!({})).await;
    client.commit().await;
    client.call("crm.read", json!({})).await.served();
    client.plain("crm.read", json!({})).await.denied("no_envelope");
    let fresh = world.modern("bob").in_session("session-of-bob-0123456789");
    fresh.commit().await;
    fresh.plain("crm.read", json!({})).await.denied("no_envelope");
}

#[tokio::test]
async fn the_operators_session_ends_with_the_mcp_session() {
    let world = World::with(under(commitment())).await;
    let client = world.legacy().await;
    client.plain("crm.read", json!({})).await;
    let session = only_session(&world).await;
    world.outcomes(&session, 1).await;
    client.end_mcp_session().await;
    world.until_closed(&session).await;
    let late = client.plain("crm.read", json!({})).await;
    assert_eq!((late.status, &late.reply()["error"]["code"]), (404, &json!(-32001)), "{late:?}");
    assert_eq!(world.server.calls(), 1);
    let again = world.legacy().await;
    assert_eq!(again.plain("crm.read", json!({})).await.verdict(), "served");
}

#[tokio::test]
async fn a_filtered_list_shows_what_the_operators_commitment_allows() {
    let world = World::with(|wishes| {
        under(commitment())(wishes);
        wishes.filter_tools = true;
    })
    .await;
    let listed = world.legacy().await.ask("tools/list", json!({})).await;
    let names: Vec<Value> = listed.reply()["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].clone())
        .collect();
    assert_eq!(names, ["crm.read", "crm.delete"]);
}
