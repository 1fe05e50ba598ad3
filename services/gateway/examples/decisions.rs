//! What a decision costs, beside what the disk costs: `cargo run -p gateway --example decisions [FOLDER] [SECONDS]`.
//!
//! Fifty sessions call four times a second each, on a schedule that waits for nobody. Each call is decided, let go, and
//! settled at once; in between 4 KiB are written and fdatasynced, so that both meet the same disk. There is no log: the
//! outbox only grows.
#![allow(clippy::unwrap_used)]

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use admission::decide::Status;
use admission::message::slot::{self, Carrier};
use admission::principal::{Caller, Era, TokenSubject};
use admission::rules::Rules;
use client::{Client, Options};
use evidence_sqlite::Sqlite;
use gateway::desk::{CallAnswer, CallJob, Came, Clock, Desk, Keys, Log, MessageAnswer, MessageJob, Settings};
use serde_json::json;
use tokio::time::Instant;

const SESSIONS: u32 = 50;
const BETWEEN: Duration = Duration::from_millis(250);
const POLICY: &str = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

#[tokio::main]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let seconds: u64 = arguments.next().map_or(10, |seconds| seconds.parse().unwrap());
    let folder = tempfile::tempdir_in(folder).unwrap();
    let store = Sqlite::open(evidence_sqlite::Settings::new(folder.path().join("evidence.db"), "measured"));
    let rules = Arc::new(Rules::new("/mcp", testkit::GATEWAY, POLICY));
    let log = Log {
        url: "http://127.0.0.1:9".into(),
        client: Client::new("http://127.0.0.1:9", Options::default()).unwrap(),
        trust: None,
    };
    let keys = Keys {
        evidence: Arc::new(testkit::gateway()),
        verdict: Arc::new(testkit::verifier()),
        jwk_set: testkit::jwk_set_json(),
    };
    let of_route = {
        let rules = rules.clone();
        Arc::new(move |_: &str| Some(rules.clone()))
    };
    let (store, settings) = (Arc::new(store.await.unwrap()), Settings::of(testkit::GATEWAY));
    let (desk, running) = Desk::open(store, &keys, log, Clock::system(), settings, of_route).await.unwrap();
    let end = Instant::now() + Duration::from_secs(seconds);
    let beside = std::thread::spawn({
        let folder = folder.path().to_owned();
        move || fsyncs(&folder, end)
    });
    let sessions = (0..SESSIONS).map(|n| tokio::spawn(session(desk.clone(), rules.clone(), n, end)));
    let mut times = Vec::new();
    for session in sessions.collect::<Vec<_>>() {
        times.extend(session.await.unwrap());
    }
    tell("fdatasync of 4 KiB", beside.join().unwrap());
    tell("decision", times);
    running.stop().await;
}

fn fsyncs(folder: &std::path::Path, end: Instant) -> Vec<Duration> {
    let mut file = OpenOptions::new().create(true).append(true).open(folder.join("beside")).unwrap();
    let mut times = Vec::new();
    while Instant::now() < end {
        let begun = Instant::now();
        file.write_all(&[7; 4096]).unwrap();
        file.sync_data().unwrap();
        times.push(begun.elapsed());
        std::thread::sleep(Duration::from_millis(50));
    }
    times
}

/// The times from when a call was due until it might have been forwarded.
async fn session(desk: Desk, rules: Arc<Rules>, n: u32, end: Instant) -> Vec<Duration> {
    let token = TokenSubject { iss: "https://as.example".into(), sub: format!("agent {n}"), client_id: None };
    let caller = Caller { token: Some(token), ..Caller::unknown(Era::Modern) };
    let id = format!("session-{n:032}");
    let commitment = json!({
        "vap": "0.1", "type": "scope_commitment", "session_id": id, "goal": "Answer ticket SUP-9931",
        "scope": { "tools_allow": ["crm.*"] }, "budget": { "max_calls": 1_000_000 },
        "principal": { "agent_id": "did:example:agent" },
    });
    let message = slot::read(Some(&commitment.to_string()), None, Carrier::ToolsList).map(Option::unwrap);
    let job = MessageJob { rules: rules.clone(), caller: caller.clone(), message, aside: None };
    assert!(
        matches!(desk.commitment(job).await, MessageAnswer::Ruled(told) if told.verdict.verdict.is_permit())
    );
    let mut times = Vec::new();
    let mut due = Instant::now() + BETWEEN * n / SESSIONS;
    for ticket in 0_u64.. {
        tokio::time::sleep_until(due).await;
        if due > end {
            break;
        }
        let arguments = json!({ "ticket": ticket, "fields": ["subject", "body", "customer"] });
        let envelope = json!({
            "vap": "0.1", "type": "intent_call", "session_id": id,
            "intent": { "rationale": "the ticket says so", "expected_effect": "one ticket is read" },
            "call": { "tool": "crm.read", "arguments": arguments },
        });
        let job = CallJob {
            rules: rules.clone(),
            caller: caller.clone(),
            envelope: slot::read(Some(&envelope.to_string()), None, Carrier::ToolsCall).transpose(),
            tool: "crm.read".into(),
            header: None,
            arguments: arguments.to_string(),
            can_ask: false,
            shown: None,
            aside: None,
        };
        let CallAnswer::Ruled(mut told) = desk.call(job).await else { panic!("somebody is to be asked") };
        times.push(due.elapsed());
        let mut pass = told.pass.take().unwrap();
        pass.forwarding();
        let result = Some("{\"content\":[{\"type\":\"text\",\"text\":\"done\"}]}".into());
        pass.settle(Came { status: Status::Executed, cost: None, result }).await;
        due += BETWEEN;
    }
    times
}

fn tell(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |percent: usize| times[(times.len() * percent / 100).min(times.len() - 1)].as_secs_f64() * 1e3;
    let (count, worst) = (times.len(), times[times.len() - 1].as_secs_f64() * 1e3);
    println!(
        "{what:20} {count:6} times   p50 {:8.3} ms   p99 {:8.3} ms   worst {worst:8.3} ms",
        at(50),
        at(99)
    );
}
