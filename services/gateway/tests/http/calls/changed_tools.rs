//! A tool that another process changes, while calls of it are decided on what was read of it lately.

use admission::tool::{Description, Pin, ToolPins};
use evidence::{Change, StoredStream};
use jiff::Timestamp;
use serde_json::json;

use crate::world::World;

/// Another process lists the tool with this argument as a required one, and an operator approves it.
async fn requires(world: &World, name: &str, argument: &str) {
    let (stream, kept, mut pin) = pinned(world, name).await;
    pin.listed(description(name, argument), ToolPins::FirstUse, Timestamp::now());
    pin.approve(Timestamp::now());
    // Otherwise the gateway writes it again to record the approval.
    pin.approval_unrecorded = false;
    world.store.commit(&[stored(&stream, Some(kept.version), &pin)]).await.unwrap();
}

/// The description of a tool that requires this argument.
pub fn description(name: &str, argument: &str) -> Description {
    let schema = json!({ "type": "object", "required": [argument] });
    Description::of(&json!({ "name": name, "inputSchema": schema }).to_string()).unwrap().1
}

/// The change with which a process stores the pin of a tool.
pub fn stored(stream: &str, from: Option<u64>, pin: &Pin) -> Change {
    Change {
        stream: stream.to_owned(),
        from,
        first: 1,
        agreed: None,
        running: serde_json::to_vec(pin).unwrap().into(),
        closed: false,
        keep_until: Some(gateway::limits::FOR_EVER),
        records: Vec::new(),
        claims: Vec::new(),
        opened: Vec::new(),
        settled: Vec::new(),
        relies_on: Vec::new(),
    }
}

/// The stream of a listed tool, as it is stored, and its pin.
async fn pinned(world: &World, name: &str) -> (String, StoredStream, Pin) {
    for listed in world.store.list(Some("unbound:.tool:"), 10).await.unwrap() {
        let kept = world.store.streams(&[&listed.stream]).await.unwrap().remove(0).unwrap();
        let pin: Pin = serde_json::from_slice(&kept.running).unwrap();
        if pin.tool == name {
            return (listed.stream, kept, pin);
        }
    }
    panic!("nobody has listed {name}");
}

#[tokio::test]
async fn a_call_is_checked_against_what_another_process_has_approved_by_then() {
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
async fn calls_that_are_decided_together_are_each_checked_against_the_tool_as_it_is() {
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
