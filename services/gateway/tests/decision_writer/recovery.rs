//! What a process that died left behind.

use evidence::{EvidenceMethod, EvidenceStore, FailingEvidence, Instances, Memory};
use serde_json::json;

use crate::agent::{self, SESSION, call, commit, denied, job_without_session, read, run};
use crate::setup::{assert_on_log_once, open, open_under, settings, summaries, until};
use crate::site::Site;

/// The process dies: what it held in memory is gone, and its lease is over.
async fn dies(store: &Memory, left: impl Sized, running: gateway::decision_writer::RunningWriter) {
    std::mem::forget(left);
    std::mem::forget(running);
    store.leave().await.unwrap();
}

#[tokio::test]
async fn a_served_decision_without_an_outcome_becomes_unknown_and_stays_spent() {
    let site = Site::start().await;
    let first = Memory::new("one");
    let (writer, running) = open(&first, &site, settings()).await;
    commit(&writer, SESSION, json!({ "max_calls": 3, "limits": { "usd": 10 } })).await;
    run(read(&writer, SESSION, 0).await, Some(r#"{"usd":2}"#)).await;
    until("it is settled", || async { summaries(&first, SESSION).await.len() == 3 }).await;
    let left = [read(&writer, SESSION, 1).await, read(&writer, SESSION, 2).await];
    assert!(left.iter().all(|answer| answer.pass.is_some()));
    dies(&first, left, running).await;
    let second = first.another("two");
    let (writer, running) = open(&second, &site, settings()).await;
    assert_eq!(denied(&read(&writer, SESSION, 3).await), "budget_exceeded");
    let summaries = summaries(&second, SESSION).await;
    assert_eq!(summaries.iter().filter(|summary| *summary == "outcome unknown").count(), 2, "{summaries:?}");
    let last = second.records(SESSION, 5, 1).await.unwrap().remove(0);
    assert_eq!(crate::setup::payload(&last)["settled"], json!({ "usd": "2" }), "the reservation is spent");
    assert_on_log_once(&second, &site).await;
    running.stop().await;
}

#[tokio::test]
async fn the_stream_of_an_earlier_run_is_ended_by_the_next_one() {
    let site = Site::stopped();
    let first = Memory::new("one");
    let (writer, running) = open(&first, &site, settings()).await;
    let left = call(&writer, job_without_session(agent::ADVISORY, "crm.read", &json!({}))).await;
    assert!(left.pass.is_some());
    dies(&first, left, running).await;
    let second = first.another("two");
    let (_, running) = open(&second, &site, settings()).await;
    until("it is ended", || async {
        summaries(&second, "unbound:one").await == ["decision served", "outcome unknown", "closed"]
    })
    .await;
    running.stop().await;
}

/// A recovery that lasts long is repeated, and both come to an end.
#[tokio::test]
async fn a_call_that_is_settled_as_unknown_twice_has_one_outcome() {
    let site = Site::stopped();
    let first = Memory::new("one");
    let (writer, running) = open(&first, &site, settings()).await;
    let left = call(&writer, job_without_session(agent::ADVISORY, "crm.read", &json!({}))).await;
    dies(&first, left, running).await;
    let slow = FailingEvidence::new(first.another("two"));
    slow.hold_calls(EvidenceMethod::Commit);
    let settled = ["decision served", "outcome unknown", "closed"];
    let again = async {
        until("the slow one has begun", || async { slow.calls(EvidenceMethod::Orphans) > 0 }).await;
        let (_, again) = open(&first.another("three"), &site, settings()).await;
        until("it is settled", || async { summaries(&first, "unbound:one").await == settled }).await;
        slow.release_calls(EvidenceMethod::Commit);
        again
    };
    let ((_, running), again) = tokio::join!(open(&slow, &site, settings()), again);
    running.stop().await;
    again.stop().await;
    assert_eq!(summaries(&first, "unbound:one").await, settled);
}

#[tokio::test]
async fn the_next_process_delivers_what_a_dead_one_left() {
    let mut site = Site::stopped();
    let first = Memory::new("one");
    let (writer, running) = open(&first, &site, settings()).await;
    commit(&writer, SESSION, json!({ "max_calls": 3 })).await;
    run(read(&writer, SESSION, 1).await, None).await;
    until("it is settled", || async { summaries(&first, SESSION).await.len() == 3 }).await;
    dies(&first, (), running).await;
    site.go_on().await;
    let second = first.another("two");
    let (writer, running) = open(&second, &site, settings()).await;
    assert_on_log_once(&second, &site).await;
    run(read(&writer, SESSION, 2).await, None).await;
    running.stop().await;
}

#[tokio::test]
async fn a_dead_processs_question_gives_its_reservation_back() {
    use admission::rules::{PolicyRule, Rules, Then};
    let asks =
        PolicyRule::new("ask", Some(vap::glob::Pattern::new("pay").unwrap()), None, Then::Confirm).unwrap();
    let rules = std::sync::Arc::new(Rules {
        policy: vec![asks],
        ..Rules::new("/mcp", testkit::GATEWAY, agent::POLICY)
    });
    let in_force: gateway::decision_writer::RulesOf = std::sync::Arc::new(move |_| Some(rules.clone()));
    let site = Site::stopped();
    let first = Memory::new("one");
    let (writer, running) = open_under(&first, &site, settings(), in_force.clone()).await;
    commit(&writer, SESSION, json!({ "max_calls": 1 })).await;
    let pays =
        || gateway::decision_writer::CallJob { can_ask: true, ..agent::job(SESSION, "pay", &json!({})) };
    let gateway::decision_writer::CallAnswer::Ask(_, held) = writer.call(pays()).await else {
        panic!("nobody is asked")
    };
    assert_eq!(denied(&read(&writer, SESSION, 1).await), "budget_exceeded", "its place is held");
    dies(&first, held, running).await;
    let second = first.another("two");
    let (writer, running) = open_under(&second, &site, settings(), in_force).await;
    let gateway::decision_writer::CallAnswer::Ask(_, held) = writer.call(pays()).await else {
        panic!("nobody is asked")
    };
    drop(held);
    let gateway::decision_writer::CallAnswer::Ask(_, held) = writer.call(pays()).await else {
        panic!("nobody is asked")
    };
    let gateway::decision_writer::CallAnswer::Ruled(answer) =
        held.answered(admission::clarify::HumanAnswer::Confirmed).await
    else {
        panic!("somebody is asked again")
    };
    run(*answer, None).await;
    running.stop().await;
    assert_eq!(
        summaries(&second, SESSION).await,
        ["commitment served", "decision denied", "decision served", "outcome executed"]
    );
}
