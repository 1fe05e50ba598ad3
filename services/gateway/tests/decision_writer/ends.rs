//! The ends of streams: a missing tail shows.

use std::sync::atomic::Ordering;
use std::time::Duration;

use evidence::{EvidenceMethod, EvidenceStore, FailingEvidence, Fault, Instances, Memory, Outbox};
use gateway::decision_writer::{CallJob, Clock, WriterSettings};
use serde_json::json;

use crate::agent::{self, SESSION, caller, caller_in, commit, denied, read, run, try_commit};
use crate::setup::{assert_on_log_once, offline, open, open_ahead, settings, summaries, until};
use crate::site::Site;
use crate::stored_states::store_state;

#[tokio::test]
async fn a_session_ends_after_its_open_calls_and_its_name_stays_closed() {
    let (store, writer, running) = offline().await;
    commit(&writer, SESSION, json!({ "max_calls": 3 })).await;
    let answer = read(&writer, SESSION, 1).await;
    assert!(!writer.end_session(SESSION).await, "a call is under way");
    run(answer, None).await;
    until("it ends", || async { summaries(&store, SESSION).await.last().unwrap() == "closed" }).await;
    assert_eq!(denied(&read(&writer, SESSION, 2).await), "session_closed");
    assert_eq!(denied(&try_commit(&writer, SESSION, json!({ "max_calls": 3 })).await), "session_closed");
    assert_eq!(
        summaries(&store, SESSION).await,
        ["commitment served", "decision served", "outcome executed", "closed"],
        "nothing comes after the end"
    );
    running.stop().await;
}

#[tokio::test]
async fn a_stop_delivers_the_last_records() {
    let (site, store) = (Site::start().await, Memory::new("one"));
    let (writer, running) = open(&store, &site, settings()).await;
    commit(&writer, SESSION, json!({ "max_calls": 1 })).await;
    run(read(&writer, SESSION, 1).await, None).await;
    running.stop().await;
    assert_eq!(store.backlog().await.unwrap().records, 0);
    assert_on_log_once(&store, &site).await;
}

#[tokio::test]
async fn a_stop_delivers_an_outcome_whose_first_commit_failed() {
    let (site, memory) = (Site::start().await, Memory::new("one"));
    let store = FailingEvidence::new(memory.clone());
    let (writer, running) = open(&store, &site, settings()).await;
    commit(&writer, SESSION, json!({ "max_calls": 1 })).await;
    let answer = read(&writer, SESSION, 1).await;
    store.fail(EvidenceMethod::Commit, 1, Fault::Full);
    run(answer, None).await;
    until("it was tried", || async { store.faults_left() == 0 }).await;
    running.stop().await;
    assert_eq!(summaries(&memory, SESSION).await.last().unwrap(), "outcome executed");
    assert_eq!(memory.backlog().await.unwrap().records, 0);
    assert_on_log_once(&memory, &site).await;
}

#[tokio::test]
async fn the_end_of_an_mcp_session_ends_its_callers_sessions_only() {
    let (store, writer, running) = offline().await;
    commit(&writer, SESSION, json!({ "max_calls": 3 })).await;
    writer.end_sessions_of(&caller_in("another")).await;
    assert!(read(&writer, SESSION, 1).await.pass.is_some());
    writer.end_sessions_of(&caller()).await;
    until("it ends", || async { summaries(&store, SESSION).await.last().unwrap() == "closed" }).await;
    running.stop().await;
}

#[tokio::test]
async fn a_session_that_was_idle_for_long_is_ended() {
    let store = Memory::new("one");
    let settings = WriterSettings { session_idle: Duration::from_secs(600), ..settings() };
    let (ahead, writer, running) = open_ahead(&store, settings).await;
    commit(&writer, SESSION, json!({ "max_calls": 3 })).await;
    ahead.store(601_000, Ordering::Relaxed);
    until("it ends", || async { summaries(&store, SESSION).await.last().unwrap() == "closed" }).await;
    running.stop().await;
    assert!(store.due(u64::from(u32::MAX), 10).await.unwrap().iter().all(|due| due.stream != SESSION));
}

#[tokio::test]
async fn an_idle_session_with_an_open_task_goes_on() {
    let store = Memory::new("one");
    let settings = WriterSettings { session_idle: Duration::from_secs(600), ..settings() };
    let (ahead, writer, running) = open_ahead(&store, settings).await;
    commit(&writer, SESSION, json!({ "max_calls": 3 })).await;
    let task = read(&writer, SESSION, 1).await;
    ahead.store(601_000, Ordering::Relaxed);
    // It is found due, and put off.
    until("it is looked at", || async { due_within(&store, 120).await && !due_within(&store, 0).await })
        .await;
    run(task, None).await;
    let again = read(&writer, SESSION, 2).await;
    assert!(again.pass.is_some(), "{:?}", again.verdict);
    run(again, None).await;
    let settled = || async { summaries(&store, SESSION).await.last().unwrap() == "outcome executed" };
    until("it is settled and goes on", settled).await;
    ahead.store(1_300_000, Ordering::Relaxed);
    until("it ends", || async { summaries(&store, SESSION).await.last().unwrap() == "closed" }).await;
    running.stop().await;
}

/// Whether the session is due within so many seconds from when it was found idle.
async fn due_within(store: &Memory, seconds: u64) -> bool {
    let found = Clock::system().milliseconds() / 1000 + 601 + seconds;
    store.due(found, 10).await.unwrap().iter().any(|due| due.stream == SESSION)
}

#[tokio::test]
async fn a_strangers_call_leaves_the_named_session_unchanged() {
    let (store, writer, running) = offline().await;
    commit(&writer, SESSION, json!({ "max_calls": 3 })).await;
    let before = store.streams(&[SESSION]).await.unwrap();
    let stranger = CallJob { caller: caller_in("another"), ..agent::job(SESSION, "crm.read", &json!({})) };
    assert_eq!(denied(&agent::call(&writer, stranger).await), "wrong_principal");
    assert_eq!(store.streams(&[SESSION]).await.unwrap(), before);
    assert_eq!(summaries(&store, "unbound:one").await, ["decision denied"]);
    running.stop().await;
}

#[tokio::test]
async fn a_gateway_taken_for_dead_goes_on_in_a_new_stream() {
    let site = Site::stopped();
    let first = Memory::new("one");
    let second = first.another("two");
    let shared = || WriterSettings { shared: true, ..settings() };
    let (writer, running) = open(&first, &site, shared()).await;
    let call = || agent::call(&writer, agent::job_without_session(agent::ADVISORY, "crm.read", &json!({})));
    let called = ["decision served", "outcome executed"];
    run(call().await, None).await;
    until("it is settled", || async { summaries(&first, "unbound:one").await == called }).await;

    let (ahead, _, second_running) = open_ahead(&second, shared()).await;
    ahead.store(3_700_000, Ordering::Relaxed);
    let ended = ["decision served", "outcome executed", "closed"];
    until("it is ended", || async { summaries(&first, "unbound:one").await == ended }).await;
    ahead.store(0, Ordering::Relaxed);

    for _ in 0..2 {
        run(call().await, None).await;
    }
    until("the others are settled", || async { summaries(&first, "unbound:one.1").await.len() == 4 }).await;
    assert_eq!(summaries(&first, "unbound:one").await, ended);
    running.stop().await;
    assert_eq!(summaries(&first, "unbound:one.1").await.last().unwrap(), "closed");
    second_running.stop().await;
}

#[tokio::test]
async fn a_call_beside_the_last_outcome_of_an_ending_stream_begins_a_new_one() {
    let memory = Memory::new("one");
    let store = FailingEvidence::new(memory.clone());
    let shared = || WriterSettings { shared: true, ..settings() };
    let (writer, running) = open(&store, &Site::stopped(), shared()).await;
    let call = || agent::call(&writer, agent::job_without_session(agent::ADVISORY, "crm.read", &json!({})));
    let under_way = call().await;
    let state = async || memory.streams(&["unbound:one"]).await.unwrap()[0].clone().unwrap().running;
    let begun = state().await;
    let (ahead, _, second_running) = open_ahead(&memory.another("two"), shared()).await;
    ahead.store(3_700_000, Ordering::Relaxed);
    until("it is to end", || async { state().await != begun }).await;
    ahead.store(0, Ordering::Relaxed);

    // While another commit lasts, the outcome and the call queue for one batch.
    store.hold_calls(EvidenceMethod::Commit);
    let queued = async {
        let_others_go_on().await;
        run(under_way, None).await;
        let release = async {
            let_others_go_on().await;
            store.release_calls(EvidenceMethod::Commit);
        };
        tokio::join!(call(), release).0
    };
    let (_, arrived) = tokio::join!(commit(&writer, SESSION, json!({ "max_calls": 1 })), queued);
    assert_eq!(summaries(&memory, "unbound:one").await, ["decision served", "outcome executed", "closed"]);
    assert_eq!(summaries(&memory, "unbound:one.1").await, ["decision served"]);
    run(arrived, None).await;
    running.stop().await;
    second_running.stop().await;
}

async fn let_others_go_on() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn the_stream_of_a_dead_gateway_is_ended_by_another() {
    let site = Site::stopped();
    let first = Memory::new("one");
    let second = first.another("two");
    let shared = || WriterSettings { shared: true, ..settings() };
    let (writer, running) = open(&first, &site, shared()).await;
    let left =
        agent::call(&writer, agent::job_without_session(agent::ADVISORY, "crm.read", &json!({}))).await;
    std::mem::forget((left, running));
    let (ahead, _, second_running) = open_ahead(&second, shared()).await;
    assert_eq!(summaries(&first, "unbound:one").await, ["decision served"], "it may still be alive");
    first.leave().await.unwrap();
    ahead.store(3_700_000, Ordering::Relaxed);
    until("it is ended", || async {
        summaries(&first, "unbound:one").await == ["decision served", "outcome unknown", "closed"]
    })
    .await;
    second_running.stop().await;
}

#[tokio::test]
async fn a_session_ends_when_another_gateway_made_it_due() {
    let store = Memory::new("one");
    let shared = WriterSettings { shared: true, ..settings() };
    let (writer, running) = open(&store, &Site::stopped(), shared).await;
    commit(&writer, SESSION, json!({ "max_calls": 3 })).await;
    make_due(&store.another("two"), SESSION).await;
    until("it ends", || async { summaries(&store, SESSION).await.last().unwrap() == "closed" }).await;
    running.stop().await;
}

/// Makes a stream due at once, as another gateway does that marks it as ending, and then dies.
async fn make_due(store: &Memory, stream: &str) {
    let stored = store.streams(&[stream]).await.unwrap().remove(0).unwrap();
    store_state(store, stream.to_owned(), Some(stored.version), stored.running, 1).await;
}

#[tokio::test]
async fn calls_without_vap_have_a_stream_that_ends_with_their_mcp_session() {
    let (store, writer, running) = offline().await;
    let plain = |session: &str, route: &str| {
        let caller = caller_in(session);
        CallJob {
            caller,
            asserted_client: Some("editor".into()),
            ..agent::job_without_vap(route, "t", &json!({}))
        }
    };
    assert_eq!(denied(&agent::call(&writer, plain("a", "/mcp")).await), "no_envelope");
    for session in ["a", "b", "a"] {
        run(agent::call(&writer, plain(session, agent::ADVISORY)).await, None).await;
    }
    assert_eq!(denied(&agent::call(&writer, plain("a", "/mcp")).await), "no_envelope");
    writer.end_sessions_of(&caller_in("a")).await;
    let streams = async || {
        let listed = store.list(Some("unbound:one:"), 10).await.unwrap();
        let mut all = Vec::new();
        for listed in listed.iter().filter(|listed| listed.stream.starts_with("unbound:one:")) {
            all.push(summaries(&store, &listed.stream).await);
        }
        all.sort_by_key(Vec::len);
        all
    };
    let served = ["decision served", "outcome executed"];
    let ended = [&served[..], &served, &["decision denied", "closed"]].concat();
    until("the session's stream has ended", || async { streams().await[1].len() == ended.len() }).await;
    assert_eq!(streams().await, [served.to_vec(), ended.clone()]);
    running.stop().await;
    let over = [&served[..], &["closed"]].concat();
    assert_eq!(streams().await, [over, ended]);
    assert_eq!(
        summaries(&store, "unbound:one").await,
        ["decision denied", "closed"],
        "nothing began a stream"
    );
    let records = store.records("unbound:one", 0, 1).await.unwrap();
    assert_eq!(crate::setup::payload(&records[0])["asserted_client"], "editor");
}
