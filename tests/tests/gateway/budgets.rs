//! Budgets under people who try to get more out of them: the readings V-12, V-13 and V-15.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use black_box::{Agent, Guarded, McpClient};
use serde_json::{Value, json};
use testkit::McpServer;

/// A server whose tools say what they cost: the argument `cost`, as it was written.
fn priced() -> McpServer {
    McpServer::scripted(|seen, wire| {
        let cost = seen.json()["params"]["arguments"]["cost"].clone();
        let asked = seen.rpc() == "tools/call";
        if asked {
            let meta = if cost.is_null() { json!({}) } else { json!({ "vap": { "cost": cost } }) };
            let kind = if seen.is_modern() { json!("complete") } else { Value::Null };
            wire.result(seen, &json!({ "content": [], "resultType": kind, "_meta": meta }).to_string());
        }
        asked
    })
}

/// A commitment that spends at most so much.
fn spending(usd: Value) -> Value {
    json!({ "budget": { "limits": { "usd": usd } } })
}

fn pay(agent: &Agent, client: &mut McpClient, cost: Value) -> Value {
    let answer = agent.call(client, "echo", json!({ "cost": cost }));
    answer.message["result"].clone()
}

fn word(result: &Value) -> &str {
    result["_meta"]["vap"]["verdict"].as_str().unwrap_or_default()
}

#[test]
fn a_reported_cost_counts_up_to_the_operators_cap() {
    let guarded = Guarded::built(priced(), |gateway| gateway.route("cost = { cap = { usd = \"2\" } }"));
    guarded.in_both_eras(|agent, client| {
        agent.commit_to(client, spending(json!(3)));
        assert_eq!(word(&pay(agent, client, json!({ "usd": 1e300 }))), "served", "it ran");
        let digest = {
            let answer = agent.call(client, "echo", json!({ "cost": { "usd": 1 } }));
            assert_eq!(
                answer.verdict().word(),
                "denied",
                "the highest cost of the tool so far is reserved: {answer:?}"
            );
            black_box::vap::digest(&agent.commitment_with(spending(json!(3))))
        };
        let more = json!({ "increase_budget": { "add_limits": { "usd": 1 } } });
        assert_eq!(agent.amend(client, &digest, more).verdict().word(), "served");
        assert_eq!(
            word(&pay(agent, client, json!({ "usd": 1 }))),
            "served",
            "2 of the 4 were taken, not 1e300"
        );
    });
}

#[test]
fn a_call_of_unknown_cost_runs_alone() {
    let (go, going) = mpsc::channel::<()>();
    let going = Mutex::new(going);
    let running = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let (now, peak) = (Arc::clone(&running), Arc::clone(&most));
    let upstream = McpServer::scripted(move |seen, wire| {
        let asked = seen.rpc() == "tools/call";
        if asked {
            peak.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            let _ = going.lock().unwrap().recv_timeout(Duration::from_secs(20));
            now.fetch_sub(1, Ordering::SeqCst);
            let meta = json!({ "vap": { "cost": { "usd": 1 } } });
            wire.result(seen, &json!({ "content": [], "resultType": "complete", "_meta": meta }).to_string());
        }
        asked
    });
    let guarded = Guarded::built(upstream, |gateway| gateway);
    let agent = &guarded.agent;
    agent.commit_to(&mut guarded.running.modern(), spending(json!(2)));
    let served = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let answer = agent.call(&mut guarded.running.modern(), "echo", json!({}));
                served.fetch_add(usize::from(answer.verdict().word() == "served"), Ordering::SeqCst);
            });
        }
        guarded.upstream.wait_for("tools/call", 1);
        guarded.running.wait_for_metric("gateway_calls_waiting_for_cost", |waiting| waiting == 3.0);
        assert_eq!(most.load(Ordering::SeqCst), 1, "nobody knows yet what the first one costs");
        for _ in 0..4 {
            let _ = go.send(());
        }
    });
    assert_eq!((served.into_inner(), guarded.upstream.calls()), (2, 2));
}

#[test]
fn a_deadline_that_has_come_ends_the_session() {
    let guarded = Guarded::new();
    guarded.in_both_eras(|agent, client| {
        for past in ["2001-01-01T00:00:00Z", "1999-12-31T23:59:59+14:00"] {
            let agent = agent.also_in(&format!("{}-{past}", agent.session));
            let answer = agent.commit_to(client, json!({ "budget": { "deadline": past } }));
            if answer.verdict().word() != "denied" {
                agent.call(client, "echo", json!({})).must_be_denied("deadline_passed");
            }
            let answer = agent.call(client, "echo", json!({}));
            assert_eq!(answer.verdict().word(), "denied", "{answer:?}");
        }
        // After a commitment and a call, also on a busy machine.
        let soon = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(8);
        agent.commit_to(client, json!({ "budget": { "deadline": soon.to_string() } }));
        agent.call(client, "echo", json!({})).must_be_served();
        while jiff::Timestamp::now() < soon {
            std::thread::sleep(Duration::from_millis(50));
        }
        assert_eq!(agent.call(client, "echo", json!({})).verdict().word(), "denied");
    });
    assert_eq!(guarded.upstream.calls(), 2);
}
