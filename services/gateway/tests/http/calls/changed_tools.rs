//! A tool that another process changes, while calls of it are decided on what was read of it lately.

use admission::tool::{Description, Pin, ToolPins};
use jiff::Timestamp;
use serde_json::json;

use crate::stored_states::{store_pin, stream_of};
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
