//! Gateways that share a database share sessions and budgets, and what one leaves undone another ends: in memory, in a
//! file, and on a real server.
#![allow(clippy::unwrap_used)]

mod office;
#[path = "../desk/site.rs"]
#[allow(dead_code)]
mod site;
mod stores;

use std::sync::Arc;
use std::time::Duration;

use admission::approval::{Approval, Decision};
use admission::reason::Reason;
use evidence::{Call, EvidenceStore, Failing, Fault, Memory, RecordKind, Standing};
use gateway::desk::{NotAnswered, ShownState};
use office::*;
use serde_json::{Value, json};
use site::Site;
use stores::{InAFile, InMemory, OnAServer, Store};

/// Each promise over each database.
macro_rules! over_each_store {
    ($($promise:ident),+ $(,)?) => {
        mod in_memory {$(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $promise() { super::$promise(&super::InMemory::fresh().await).await; }
        )+}
        mod sqlite {$(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $promise() { super::$promise(&super::InAFile::fresh().await).await; }
        )+}
        mod postgres {$(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $promise() { super::$promise(&super::OnAServer::fresh().await).await; }
        )+}
    };
}

over_each_store! {
    a_budget_is_spent_once_however_many_gateways_serve_it,
    a_session_that_one_gateway_accepted_another_one_serves_and_refuses_anew,
    a_message_replayed_at_another_gateway_is_denied,
    an_amendment_at_one_gateway_counts_at_the_other,
    what_a_dead_gateway_left_open_becomes_unknown_and_stays_spent,
    a_living_gateways_calls_are_not_called_unknown,
    every_record_of_both_gateways_is_on_the_log_once,
    a_question_of_one_gateway_is_answered_at_another_and_used_once_at_either,
}

/// V-3, V-12: two processes do not mint budget.
async fn a_budget_is_spent_once_however_many_gateways_serve_it(store: &dyn Store) {
    const BUDGET: usize = 12;
    let site = Site::start().await;
    let offices = two(store, &site).await;
    assert!(is_accepted(&offices[0].commit(json!({ "max_calls": BUDGET })).await));
    let mut calls = Vec::new();
    for n in 0..2 * BUDGET {
        let office = offices[n % 2].clone();
        calls.push(tokio::spawn(async move {
            match office.run(json!({ "ticket": n })).await {
                Ok(()) => true,
                Err(why) => {
                    assert_eq!(why, Reason::BudgetExceeded);
                    false
                }
            }
        }));
    }
    let mut served = 0;
    for call in calls {
        served += usize::from(call.await.unwrap());
    }
    assert_eq!(served, BUDGET);
    let evidence = offices[0].store.clone();
    until("every outcome is recorded", || async {
        of_kind(&records(&*evidence, SESSION).await, RecordKind::Outcome) == BUDGET
    })
    .await;
    let records = records(&*evidence, SESSION).await;
    assert_eq!(of_kind(&records, RecordKind::Decision), 2 * BUDGET);
    let instances: Vec<&str> = records.iter().map(|stored| stored.instance.as_str()).collect();
    assert!(instances.contains(&"one") && instances.contains(&"two"), "both of them served");
    close(offices).await;
}

/// V-2, V-3: the first commitment wins, wherever it was made.
async fn a_session_that_one_gateway_accepted_another_one_serves_and_refuses_anew(store: &dyn Store) {
    let site = Site::start().await;
    let offices = two(store, &site).await;
    assert!(is_accepted(&offices[0].commit(json!({ "max_calls": 5 })).await));
    assert_eq!(offices[1].run(json!({})).await, Ok(()));
    let again = offices[1].commit(json!({ "max_calls": 500 })).await;
    assert!(!is_accepted(&again), "{again:?}");
    let arguments = json!({});
    let stolen = offices[1].call_with(&by_token("mallory"), &envelope(&arguments), &arguments).await;
    assert_eq!(reason(&stolen), Some(Reason::WrongPrincipal));
    close(offices).await;
}

/// V-21: a `jti` counts once, wherever it is shown.
async fn a_message_replayed_at_another_gateway_is_denied(store: &dyn Store) {
    let site = Site::start().await;
    let offices = two(store, &site).await;
    assert!(is_accepted(&offices[0].commit(json!({ "max_calls": 5 })).await));
    let arguments = json!({ "ticket": 1 });
    let message = signed(&envelope(&arguments), json!({ "jti": "once" }));
    assert!(is_served(&offices[0].call_with(&alice(), &message, &arguments).await));
    for office in &offices {
        let told = office.call_with(&alice(), &message, &arguments).await;
        assert_eq!(reason(&told), Some(Reason::Replayed), "{told:?}");
    }
    close(offices).await;
}

/// V-17, V-18: what was agreed anew is agreed everywhere at once.
async fn an_amendment_at_one_gateway_counts_at_the_other(store: &dyn Store) {
    let site = Site::start().await;
    let offices = two(store, &site).await;
    let told = offices[0].commit(json!({ "max_calls": 1 })).await;
    assert!(is_accepted(&told));
    assert_eq!(offices[1].run(json!({ "ticket": 1 })).await, Ok(()));
    assert_eq!(offices[1].run(json!({ "ticket": 2 })).await, Err(Reason::BudgetExceeded));
    let digest = told.verdict.accepted_commitment_digest.unwrap().to_string();
    let more = json!({
        "vap": "0.1", "type": "scope_amendment", "session_id": SESSION, "reason": "there is more to do",
        "prev_commitment_digest": digest, "increase_budget": { "add_calls": 1 },
    });
    let told = offices[0].amend(&signed(&more, json!({}))).await;
    assert!(is_accepted(&told), "{told:?}");
    assert_eq!(offices[1].run(json!({ "ticket": 3 })).await, Ok(()));
    assert_eq!(offices[0].run(json!({ "ticket": 4 })).await, Err(Reason::BudgetExceeded));
    close(offices).await;
}

/// V-12, R-31: a process that died says nothing; what it let go may have run.
async fn what_a_dead_gateway_left_open_becomes_unknown_and_stays_spent(store: &dyn Store) {
    let site = Site::start().await;
    let dying = store.instance("dying").await;
    let served = die_with_three_calls_open(dying.clone(), &site).await;
    let after = Office::open(store.instance("after").await, &site).await;
    let evidence = after.store.clone();
    until("they are settled", || async {
        // Its last task may have said once more that it lives.
        dying.renew(Duration::ZERO).await.unwrap();
        of_kind(&records(&*evidence, SESSION).await, RecordKind::Outcome) == served
    })
    .await;
    let records = records(&*evidence, SESSION).await;
    let outcomes: Vec<Value> = records
        .iter()
        .filter(|stored| stored.record.kind == RecordKind::Outcome)
        .map(|stored| payload(&stored.record.statement))
        .collect();
    assert_eq!(outcomes.len(), served);
    assert!(outcomes.iter().all(|outcome| outcome["status"] == "unknown"), "{outcomes:?}");
    assert_eq!(after.run(json!({ "ticket": 4 })).await, Ok(()), "3 of 4 are spent");
    assert_eq!(after.run(json!({ "ticket": 5 })).await, Err(Reason::BudgetExceeded));
    after.stop().await;
}

async fn a_living_gateways_calls_are_not_called_unknown(store: &dyn Store) {
    let site = Site::start().await;
    let dying = store.instance("dying").await;
    let lost = die_with_three_calls_open(dying.clone(), &site).await;
    let one = Office::open(store.instance("one").await, &site).await;
    let mut told = one.call(json!({ "ticket": 4 })).await;
    let mut pass = told.pass.take().unwrap();
    pass.forwarding();
    let two = Office::open(store.instance("two").await, &site).await;
    let evidence = two.store.clone();
    let outcomes = || async { of_kind(&records(&*evidence, SESSION).await, RecordKind::Outcome) };
    until("those of the dead one are settled", || async {
        dying.renew(Duration::ZERO).await.unwrap();
        outcomes().await == lost
    })
    .await;
    pass.settle(ran(None)).await;
    until("its outcome is recorded", || async { outcomes().await == lost + 1 }).await;
    let outcome = records(&*evidence, SESSION).await.pop().unwrap();
    assert_eq!(payload(&outcome.record.statement)["status"], "executed");
    one.stop().await;
    two.stop().await;
}

/// An approver reaches one of them, and the call comes again to any.
async fn a_question_of_one_gateway_is_answered_at_another_and_used_once_at_either(store: &dyn Store) {
    let site = Site::start().await;
    let offices = two(store, &site).await;
    assert!(is_accepted(&offices[0].commit(json!({ "max_calls": 20 })).await));
    let arguments = json!({ "approved": true });
    let asked = offices[0].call(arguments.clone()).await.ruling.unwrap().pending.unwrap();
    let question = *asked.approval.unwrap();
    assert_eq!(offices[1].desk.open_questions().await.unwrap(), std::slice::from_ref(&question));
    let waiting = {
        let (office, id) = (offices[0].clone(), question.id.clone());
        tokio::spawn(async move { office.desk.wait_for_answer(&id, Duration::from_secs(60)).await })
    };
    let signed = Approval::of(&question, "carol", Decision::Approve, None).sign(&approver()).unwrap();
    offices[1].desk.answer_question(&question.id, &signed).await.unwrap();
    assert_eq!(waiting.await.unwrap(), gateway::desk::Standing::Answered);
    let second = offices[0].desk.answer_question(&question.id, &signed).await;
    assert!(matches!(second, Err(NotAnswered::Answered)), "{second:?}");
    let mut again = Vec::new();
    for office in offices.iter().cycle().take(4) {
        let (office, ticket, arguments) = (office.clone(), asked.ticket.clone(), arguments.clone());
        again.push(tokio::spawn(async move {
            let shown = Some(ShownState { ticket: Some(ticket), answer: None });
            let mut told = office.call_again(&alice(), &envelope(&arguments), &arguments, shown).await;
            match told.pass.take() {
                Some(pass) => {
                    pass.settle(ran(None)).await;
                    true
                }
                None => {
                    assert_eq!(reason(&told), Some(Reason::InvalidState));
                    false
                }
            }
        }));
    }
    let mut served = 0;
    for call in again {
        served += usize::from(call.await.unwrap());
    }
    assert_eq!(served, 1);
    assert_eq!(offices[0].desk.open_questions().await.unwrap(), []);
    close(offices).await;
}

/// Each record is one leaf, whoever brought it.
async fn every_record_of_both_gateways_is_on_the_log_once(store: &dyn Store) {
    let site = Site::start().await;
    let offices = two(store, &site).await;
    assert!(is_accepted(&offices[0].commit(json!({ "max_calls": 20 })).await));
    for n in 0..10 {
        let mut told = offices[n % 2].call(json!({ "ticket": n })).await;
        told.pass.take().unwrap().settle(ran(None)).await;
    }
    let evidence = offices[0].store.clone();
    until("all is delivered", || async {
        let records = records(&*evidence, SESSION).await;
        of_kind(&records, RecordKind::Outcome) == 10 && evidence.backlog().await.unwrap().records == 0
    })
    .await;
    let mut leaves = Vec::new();
    for stored in records(&*evidence, SESSION).await {
        let Standing::Delivered { leaf_index: Some(leaf), receipt: Some(receipt) } = stored.standing else {
            panic!("{:?}", stored.standing)
        };
        let statement = site.client().statement(&stored.record.id).await.unwrap();
        assert_eq!(statement.bytes(), &stored.record.statement);
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
        assert!(verifier::verify_receipt(&statement, &receipt, &site.trust(), now).is_verified());
        leaves.push(leaf);
    }
    let count = leaves.len();
    leaves.sort_unstable();
    leaves.dedup();
    assert_eq!(leaves.len(), count, "no two records are one leaf");
    close(offices).await;
}

/// nobody knows whether the commit happened; the desk looks, and the call is decided once.
#[tokio::test]
async fn a_commit_in_doubt_serves_a_call_once_or_decides_it_again() {
    for fault in [Fault::NotApplied, Fault::AppliedButUnheard] {
        let site = Site::start().await;
        let store = Failing::new(Memory::new("one"));
        let office = Office::open(Arc::new(store.clone()), &site).await;
        assert!(is_accepted(&office.commit(json!({ "max_calls": 1 })).await));
        store.fail(Call::Commit, 1, fault);
        assert_eq!(office.run(json!({})).await, Ok(()), "{fault:?}");
        assert_eq!(office.run(json!({})).await, Err(Reason::BudgetExceeded), "{fault:?}");
        assert_eq!(of_kind(&records(&store, SESSION).await, RecordKind::Decision), 2, "{fault:?}");
        office.stop().await;
    }
}

/// R47: without a record there is no call.
#[tokio::test]
async fn a_full_disk_denies_in_words_and_the_session_lives_on() {
    let site = Site::start().await;
    let store = Failing::new(Memory::new("one"));
    let office = Office::open(Arc::new(store.clone()), &site).await;
    assert!(is_accepted(&office.commit(json!({ "max_calls": 2 })).await));
    store.break_down(Fault::Full);
    for _ in 0..5 {
        let told = office.call(json!({})).await;
        assert_eq!(reason(&told), Some(Reason::EvidenceBackpressure), "{told:?}");
        assert!(told.pass.is_none() && told.evidence.is_none());
    }
    store.mend();
    for _ in 0..2 {
        assert_eq!(office.run(json!({})).await, Ok(()), "nothing was spent while the disk was full");
    }
    assert_eq!(office.run(json!({})).await, Err(Reason::BudgetExceeded));
    office.stop().await;
}

/// What is owed for a call that ran is written as soon as it can be.
#[tokio::test]
async fn an_outcome_that_met_a_full_disk_is_recorded_when_there_is_space() {
    let site = Site::start().await;
    let store = Failing::new(Memory::new("one"));
    let office = Office::open(Arc::new(store.clone()), &site).await;
    assert!(is_accepted(&office.commit(json!({ "max_calls": 2 })).await));
    let mut told = office.call(json!({})).await;
    let mut pass = told.pass.take().unwrap();
    pass.forwarding();
    store.break_down(Fault::Full);
    pass.settle(ran(None)).await;
    until("it met the full disk", || async { office.desk.status().store_failing.is_some() }).await;
    assert_eq!(of_kind(&records(&store, SESSION).await, RecordKind::Outcome), 0);
    store.mend();
    until("it is recorded", || async { of_kind(&records(&store, SESSION).await, RecordKind::Outcome) == 1 })
        .await;
    office.stop().await;
}

async fn two(store: &dyn Store, site: &Site) -> Vec<Arc<Office>> {
    let mut offices = Vec::new();
    for name in ["one", "two"] {
        offices.push(Arc::new(Office::open(store.instance(name).await, site).await));
    }
    offices
}

async fn close(offices: Vec<Arc<Office>>) {
    for office in offices {
        match Arc::try_unwrap(office) {
            Ok(office) => office.stop().await,
            Err(_) => panic!("somebody still uses the desk"),
        }
    }
}

fn is_accepted(told: &gateway::desk::Told) -> bool {
    told.verdict.verdict.is_permit()
}

/// A gateway with three calls of four under way, which stops as a process does that is killed: nothing of it runs on.
async fn die_with_three_calls_open(store: Arc<dyn EvidenceStore>, site: &Site) -> usize {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let log = site.log();
    let lives = runtime.spawn(async move {
        let office = Office::open_at(store, log).await;
        assert!(is_accepted(&office.commit(json!({ "max_calls": 4 })).await));
        for n in 0..3 {
            let mut told = office.call(json!({ "ticket": n })).await;
            let mut pass = told.pass.take().unwrap();
            pass.forwarding();
            std::mem::forget(pass);
        }
        std::mem::forget(office);
        3
    });
    let served = lives.await.unwrap();
    runtime.shutdown_background();
    served
}

/// What a statement says.
fn payload(statement: &bytes::Bytes) -> Value {
    let statement = scitt::SignedStatement::parse(statement.clone()).unwrap();
    serde_json::from_slice(statement.payload().unwrap()).unwrap()
}
