//! How long a decision takes, fsync included, beside what 4 KiB and an `fdatasync` take on the same disk in the same run.
//!
//! ```text
//! cargo run --release -p gateway --example decision_latency -- /var/tmp 50 4 20
//! ```
//! A folder, sessions, calls a second and session, seconds (0: only the sessions, and what they take of memory). Open loop: a call starts when it is due, whatever the others do.
#![allow(clippy::unwrap_used)]

use std::fs::File;
use std::io::{Seek, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use admission::arguments::CallArguments;
use admission::authenticated::Authenticated;
use admission::principal::{Caller, Era};
use admission::rules::Rules;
use admission::signature::Keyring;
use client::{Client, Options};
use gateway::decision_writer::{
    CallAnswer, CallJob, CallOutcomeReport, Clock, DecisionWriter, HeldRequest, LogConnection, MessageAnswer,
    MessageJob, RulesOf, WriterKeys, WriterSettings,
};
use gateway::upstream::{ClientName, Exchange};
use serde_json::{Value, json};
use vap::audit::CallStatus;
use vap::message::slot::{self, Carrier};

const POLICY: &str = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

#[tokio::main]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().unwrap_or_else(|| "/var/tmp".into());
    let mut number = |default: u64| arguments.next().map_or(default, |text| text.parse().unwrap());
    let (sessions, rate, seconds) = (number(50), number(4), number(20));
    let folder = tempfile::tempdir_in(folder).unwrap();
    let (writer, running) = open(folder.path()).await;
    for session in 0..sessions {
        commit(&writer, session).await;
    }
    println!("{} KiB resident with {sessions} sessions", resident().unwrap_or_default());
    if rate * seconds == 0 {
        return running.stop().await;
    }
    let syncs = {
        let path = folder.path().join("sync");
        std::thread::spawn(move || fdatasyncs(&path, Duration::from_secs(seconds)))
    };
    let calls = calls(&writer, sessions, rate, seconds).await;
    report("fdatasync of 4 KiB", syncs.join().unwrap());
    report("decision", calls);
    println!("{:?}", writer.status());
    println!("{} KiB resident", resident().unwrap_or_default());
    running.stop().await;
}

async fn open(folder: &Path) -> (DecisionWriter, gateway::decision_writer::RunningWriter) {
    let store = evidence_sqlite::Settings::new(folder.join("evidence.sqlite"), "bench");
    let store = Arc::new(evidence_sqlite::Sqlite::open(store).await.unwrap());
    let keys = WriterKeys {
        evidence: Arc::new(testkit::gateway()),
        verdict: Arc::new(testkit::verifier()),
        jwk_set: testkit::jwk_set_json(),
    };
    let url = "http://127.0.0.1:9".to_owned();
    let client = Client::new(&url, Options::default()).unwrap();
    let rules: RulesOf = Arc::new(|_| Some(rules()));
    let settings = WriterSettings::of(testkit::GATEWAY);
    DecisionWriter::open(
        store,
        &keys,
        LogConnection { url, client, trust: None },
        Clock::system(),
        settings,
        rules,
    )
    .await
    .unwrap()
}

async fn calls(writer: &DecisionWriter, sessions: u64, rate: u64, seconds: u64) -> Vec<Duration> {
    let (begin, every) = (Instant::now(), Duration::from_secs(1) / u32::try_from(sessions * rate).unwrap());
    let mut running = Vec::new();
    for call in 0..sessions * rate * seconds {
        let due = begin + every * u32::try_from(call).unwrap();
        tokio::time::sleep_until(due.into()).await;
        let writer = writer.clone();
        running.push(tokio::spawn(async move { one(&writer, call % sessions, call, due).await }));
    }
    let mut took = Vec::new();
    for call in running {
        took.push(call.await.unwrap());
    }
    took
}

async fn one(writer: &DecisionWriter, session: u64, call: u64, due: Instant) -> Duration {
    let arguments = json!({ "ticket": call });
    let message = testkit::agent::intent(&name(session), "crm.read", &arguments);
    let job = CallJob {
        route: "/mcp".into(),
        caller: caller(session),
        envelope: Some(Ok(received(&message, Carrier::ToolsCall))),
        tool: "crm.read".into(),
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
    };
    let CallAnswer::Ruled(answer) = writer.call(job).await else { panic!("nobody is to be asked") };
    let took = due.elapsed();
    let mut pass = answer.pass.expect("served");
    let request = Exchange {
        method: http::Method::POST,
        headers: http::HeaderMap::new(),
        body: bytes::Bytes::new(),
        client: ClientName::default(),
        time_limit: None,
    };
    let _sent = pass.release(HeldRequest::new(request));
    pass.settle(CallOutcomeReport { status: CallStatus::Executed, cost: None, result: Some("{}".into()) })
        .await;
    took
}

async fn commit(writer: &DecisionWriter, session: u64) {
    let budget = json!({ "max_calls": 1_000_000 });
    let message = testkit::agent::commitment("did:example:agent", &name(session), &budget);
    let message = Ok(received(&message, Carrier::Initialize));
    let job = MessageJob { route: "/mcp".into(), caller: caller(session), message, invocation: None };
    assert!(
        matches!(writer.commitment(job).await, MessageAnswer::Ruled(answer) if answer.evidence.is_some())
    );
}

fn rules() -> Arc<Rules> {
    Arc::new(Rules::new("/mcp", testkit::GATEWAY, POLICY))
}

fn caller(session: u64) -> Caller {
    Caller::unknown(Era::Legacy).with_issued_session(Some(format!("mcp-{session}")))
}

fn name(session: u64) -> String {
    format!("session-{session:020}")
}

fn received(message: &Value, carrier: Carrier) -> Authenticated {
    let received = slot::read(Some(&message.to_string()), None, carrier).unwrap().unwrap();
    Authenticated::new(received, &Keyring::default())
}

/// One every 20 ms, so that they disturb little.
fn fdatasyncs(path: &Path, length: Duration) -> Vec<Duration> {
    let (begin, mut file, mut took) = (Instant::now(), File::create(path).unwrap(), Vec::new());
    while begin.elapsed() < length {
        let start = Instant::now();
        file.rewind().unwrap();
        file.write_all(&[7; 4096]).unwrap();
        file.sync_data().unwrap();
        took.push(start.elapsed());
        std::thread::sleep(Duration::from_millis(20));
    }
    took
}

fn report(what: &str, mut took: Vec<Duration>) {
    took.sort_unstable();
    let at = |part: usize| took[took.len() * part / 100];
    println!("{what}: p50 {:?}, p99 {:?}, of {}", at(50), at(99), took.len());
}

fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find(|line| line.starts_with("VmRSS"))?.split_whitespace().nth(1)?.parse().ok()
}
