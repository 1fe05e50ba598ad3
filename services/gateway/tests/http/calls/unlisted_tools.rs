//! A tool that nobody has listed: its calls are decided without a query, until it is listed.

use std::sync::Arc;

use admission::tool::{Pin, ToolPins};
use evidence::{EvidenceMethod, FailingEvidence, Memory};
use jiff::Timestamp;
use serde_json::json;

use super::changed_tools::description;
use crate::stored_states::store_pin;
use crate::world::World;

/// Allowed by the commitment, and in no list of the server.
const UNLISTED: &str = "crm.find";

/// The pin of the tool as another process first lists it, with this argument as a required one.
fn first_listed(argument: &str) -> Pin {
    let described = description(UNLISTED, argument);
    Pin::first("/mcp", UNLISTED, described, ToolPins::FirstUse, Timestamp::now())
}

#[tokio::test]
async fn calls_of_an_unlisted_tool_read_nothing_from_the_database() {
    let store = Arc::new(FailingEvidence::new(Memory::new("only")));
    let world = World::with(|wishes| wishes.store = store.clone()).await;
    let agent = world.modern("alice");
    agent.commit().await;
    let reads = || store.calls(EvidenceMethod::Streams) + store.calls(EvidenceMethod::Claimed);
    // What was read is remembered for a second only, which a call on a busy machine may take.
    for _ in 0..20 {
        let before = reads();
        agent.call(UNLISTED, json!({})).await.served();
        if reads() == before {
            return;
        }
    }
    panic!("each of 20 calls read from the database");
}

#[tokio::test]
async fn a_tool_counts_as_listed_once_another_process_lists_it() {
    let world = World::new().await;
    let agent = world.modern("alice");
    agent.commit().await;
    agent.call(UNLISTED, json!({})).await.served();
    store_pin(&*world.store, None, &first_listed("ticket")).await;
    agent.call(UNLISTED, json!({})).await.denied("arguments_invalid");
    agent.call(UNLISTED, json!({ "ticket": 1 })).await.served();
    assert_eq!(world.server.calls(), 2);
}

#[tokio::test]
async fn calls_decided_together_are_each_checked_against_the_tool_listed_meanwhile() {
    let world = World::new().await;
    let agent = world.modern("alice");
    agent.commit().await;
    agent.call(UNLISTED, json!({})).await.served();
    store_pin(&*world.store, None, &first_listed("ticket")).await;
    let (fits, misfits, other) = tokio::join!(
        agent.call(UNLISTED, json!({ "ticket": 1 })),
        agent.call(UNLISTED, json!({ "number": 1 })),
        agent.call("pay", json!({})),
    );
    fits.served();
    misfits.denied("arguments_invalid");
    other.served();
}

#[tokio::test]
async fn a_tool_is_served_at_once_when_an_operator_approves_it() {
    let world = World::with(|wishes| wishes.rules.tools.pins = ToolPins::Approved).await;
    let agent = world.modern("alice");
    agent.commit().await;
    agent.call(UNLISTED, json!({ "ticket": 1 })).await.denied("tool_not_approved");
    let mut pin = first_listed("ticket");
    pin.approve(Timestamp::now());
    pin.approval_unrecorded = false;
    store_pin(&*world.store, None, &pin).await;
    agent.call(UNLISTED, json!({ "ticket": 2 })).await.served();
}
