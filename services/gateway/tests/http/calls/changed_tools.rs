//! A tool that another process changes, while calls of it are decided on what was read of it lately.

use admission::tool::{Description, Pin, ToolPins};
use data_encoding::HEXLOWER;
use gateway::limits::{FOR_EVER, PINNED_TOOLS};
use jiff::Timestamp;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::stored_states::{store_pin, store_state, stream_of};
use crate::world::World;

/// Another process lists the tool with this argument as a required one, and an operator approves it.
async fn requires(world: &World, name: &str, argument: &str) {
    let kept = world.store.streams(&[&stream_of(name)]).await.unwrap().remove(0).expect("a listed tool");
    let mut pin: Pin = serde_json::from_slice(&kept.running).unwrap();
    pin.listed(description(name, argument), ToolPins::FirstUse, Timestamp::now());
    pin.approve(Timestamp::now());
    // Otherwise the gateway writes it again to record the approval.
    pin.approval_unrecorded = false;
    store_pin(&*world.store, Some(kept.version), &pin).await;
}

/// The description of a tool that requires this argument.
pub fn description(name: &str, argument: &str) -> Description {
    let schema = json!({ "type": "object", "required": [argument] });
    Description::of(&json!({ "name": name, "inputSchema": schema }).to_string()).unwrap().1
}

#[tokio::test]
async fn a_call_is_checked_against_the_tool_that_another_process_approved() {
    let world = World::new().await;
    let agent = world.modern("alice");
    agent.commit().await;
    agent.ask("tools/list", json!({})).await;
    agent.call("crm.read", json!({})).await.served();
    requires(&world, "crm.read", "ticket").await;
    agent.call("crm.read", json!({ "ticket": 1 })).await.served();
    requires(&world, "crm.read", "reason").await;
    agent.call("crm.read", json!({ "ticket": 1 })).await.denied("arguments_invalid");
    agent.call("crm.read", json!({ "reason": "asked" })).await.served();
    assert_eq!(world.server.calls(), 3);
}

#[tokio::test]
async fn calls_decided_together_are_each_checked_against_the_current_tool() {
    let world = World::new().await;
    let agent = world.modern("alice");
    agent.commit().await;
    agent.ask("tools/list", json!({})).await;
    agent.call("crm.read", json!({})).await.served();
    requires(&world, "crm.read", "ticket").await;
    let (fits, misfits, other) = tokio::join!(
        agent.call("crm.read", json!({ "ticket": 1 })),
        agent.call("crm.read", json!({ "number": 1 })),
        agent.call("pay", json!({})),
    );
    fits.served();
    misfits.denied("arguments_invalid");
    other.served();
}

/// Stores that the servers of the route have listed as many tools as are pinned.
async fn fill_catalogue(world: &World) {
    let stream = format!("unbound:.tools:{}", HEXLOWER.encode(&Sha256::digest("/mcp")));
    let count = json!({ "tools": PINNED_TOOLS }).to_string();
    store_state(&*world.store, stream, None, count.into(), FOR_EVER).await;
}

#[tokio::test]
async fn a_list_with_a_tool_more_than_are_pinned_is_an_error_of_its_server() {
    let world = World::new().await;
    fill_catalogue(&world).await;
    for agent in [world.modern("alice"), world.legacy().await] {
        let listed = agent.ask("tools/list", json!({})).await;
        let error = listed.reply()["error"].clone();
        assert_eq!((listed.status, &error["code"]), (200, &json!(-31001)), "{listed:?}");
        let words = error["message"].as_str().unwrap();
        assert!(words.starts_with("the servers behind /mcp have listed more than 4096 tools"), "{words}");
    }
}
