//! Denials without a record of their own: counted, and recorded together.

use evidence::{EvidenceMethod, EvidenceStore, Fault};
use gateway::decision_writer::{CallAnswer, CallJob, OutboxLimits, WriterSettings};
use serde_json::json;

use crate::agent::{SESSION, call, caller_in, commit, denied, job, job_without_vap, read};
use crate::setup::{FailingSetup, failing, offline, offline_with, settings, summaries};

/// Denials of strangers that have a record of their own within a minute.
const RECORDED: usize = 10;

#[tokio::test]
async fn denials_by_a_full_outbox_are_recorded_as_a_count() {
    let outbox = OutboxLimits { records: 2, ..OutboxLimits::default() };
    let (store, writer, running) = offline_with(WriterSettings { outbox, ..settings() }).await;
    commit(&writer, SESSION, json!({ "max_calls": 9 })).await;
    for n in 0..5 {
        let answer = read(&writer, SESSION, n).await;
        assert_eq!(denied(&answer), "evidence_backpressure");
        assert!(answer.evidence.is_none(), "it has no record of its own");
    }
    running.stop().await;
    let own = format!("unbound:{}", store.instance());
    assert_eq!(summaries(&store, &own).await, [r#"denials {"evidence_backpressure": 5}"#, "closed"]);
}

#[tokio::test]
async fn calls_over_the_limit_of_waiting_ones_are_counted_in_their_session() {
    let (store, writer, running) = offline().await;
    commit(&writer, SESSION, json!({ "limits": { "usd": 5 } })).await;
    // One of a tool of unknown cost is under way: sixteen may wait for it.
    let first = read(&writer, SESSION, 0).await;
    assert!(first.pass.is_some());
    let waiting: Vec<_> = (1..=16)
        .map(|n| {
            let (writer, job) = (writer.clone(), job(SESSION, "crm.read", &json!({ "n": n })));
            tokio::spawn(async move { writer.call(job).await })
        })
        .collect();
    crate::setup::until("sixteen wait", || async { writer.status().waiting_for_cost == 16 }).await;
    for n in 17..20 {
        let CallAnswer::Ruled(answer) = writer.call(job(SESSION, "crm.read", &json!({ "n": n }))).await
        else {
            panic!("nobody is asked")
        };
        assert_eq!(denied(&answer), "rate_limited");
    }
    drop(first);
    waiting.into_iter().for_each(|waits| waits.abort());
    running.stop().await;
    let answer = summaries(&store, SESSION).await;
    assert!(answer.contains(&r#"denials {"rate_limited": 3}"#.to_owned()), "{answer:?}");
}

#[tokio::test]
async fn a_stranger_is_denied_without_the_writer_and_the_database() {
    let FailingSetup { memory, store, writer, running } = failing().await;
    let stranger = || CallJob { caller: caller_in("mcp"), ..job_without_vap("/mcp", "t", &json!({})) };
    for _ in 0..RECORDED {
        assert!(writer.refused_at_once(&stranger()).is_none(), "a few are recorded");
        call(&writer, stranger()).await;
    }
    store.break_down(Fault::Refused);
    for _ in 0..5 {
        let answer = writer.refused_at_once(&stranger()).unwrap();
        assert_eq!(denied(&answer), "no_envelope");
        assert!(answer.evidence.is_none() && answer.text.contains("\"signature\""));
    }
    store.mend();
    let token = admission::principal::TokenSubject {
        iss: "https://as.example".into(),
        sub: "alice".into(),
        client_id: None,
    };
    let caller = admission::principal::Caller { token: Some(token), ..caller_in("mcp") };
    let known = CallJob { caller, ..stranger() };
    assert!(writer.refused_at_once(&known).is_none(), "who has a token is decided about");
    let enveloped = job(SESSION, "crm.read", &json!({}));
    assert!(writer.refused_at_once(&enveloped).is_none(), "and so is who says something");
    running.stop().await;
    let answer = summaries(&memory, &format!("unbound:{}", memory.instance())).await;
    assert_eq!(answer[RECORDED..], [r#"denials {"no_envelope": 5}"#.to_owned(), "closed".to_owned()]);
}

#[tokio::test]
async fn a_denial_that_is_only_counted_is_answered_whatever_becomes_of_the_items_before_it() {
    let FailingSetup { store, writer, running, .. } = failing().await;
    commit(&writer, SESSION, json!({ "max_calls": 9 })).await;
    let stranger = || CallJob { caller: caller_in("another"), ..job(SESSION, "crm.read", &json!({})) };
    for _ in 0..RECORDED {
        assert!(call(&writer, stranger()).await.evidence.is_some(), "a few are recorded");
    }
    store.fail(EvidenceMethod::Commit, 1, Fault::Refused);
    let (agents, strangers) = tokio::join!(biased; read(&writer, SESSION, 1), call(&writer, stranger()));
    assert_eq!(store.faults_left(), 0);
    assert_eq!(denied(&agents), "evidence_unavailable");
    assert_eq!(denied(&strangers), "wrong_principal", "the session was read as the first item changed it");
    running.stop().await;
}

#[tokio::test]
async fn denials_of_strangers_are_counted_and_those_of_known_callers_recorded() {
    let (store, writer, running) = offline().await;
    let stranger = |n: usize| CallJob {
        caller: caller_in(&format!("mcp-{n}")),
        ..job_without_vap("/mcp", "t", &json!({}))
    };
    let mut recorded = 0;
    for n in 0..RECORDED + 30 {
        let answer = call(&writer, stranger(n)).await;
        assert_eq!(denied(&answer), "no_envelope");
        assert!(answer.text.contains("\"signature\""), "it is signed all the same");
        recorded += usize::from(answer.evidence.is_some());
    }
    assert_eq!(recorded, RECORDED);
    let token = admission::principal::TokenSubject {
        iss: "https://as.example".into(),
        sub: "alice".into(),
        client_id: None,
    };
    let known = CallJob {
        caller: admission::principal::Caller { token: Some(token), ..caller_in("mcp-0") },
        ..job_without_vap("/mcp", "t", &json!({}))
    };
    assert!(call(&writer, known).await.evidence.is_some());
    running.stop().await;
    let answer = summaries(&store, &format!("unbound:{}", store.instance())).await;
    assert_eq!(answer.len(), RECORDED + 3, "{answer:?}");
    assert_eq!(answer[RECORDED + 1..], [r#"denials {"no_envelope": 30}"#.to_owned(), "closed".to_owned()]);
}
