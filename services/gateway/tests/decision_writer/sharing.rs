//! Gateways that share a database share sessions and budgets, and what one leaves undone another ends: in memory, in a
//! file, and on a real server.

use std::sync::Arc;
use std::time::Duration;

use admission::approval::{Approval, Decision};
use admission::tool::{CheckedArguments, Description, Pin, ToolPins};
use evidence::{DeliveryState, EvidenceStore, RecordKind};
use gateway::decision_writer::{CallAnswer, CallJob, NotAnswered, OpenedState};
use serde_json::{Value, json};
use vap::reason::Reason;

use crate::agent::SESSION;
use crate::setup::{payload, until};
use crate::sharing_gateway::*;
use crate::site::Site;
use crate::stored_states::store_pin;
use crate::stores::{InAFile, InMemory, OnAServer, Store};

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
    a_session_of_one_gateway_is_in_use_at_every_other,
    a_message_replayed_at_another_gateway_is_denied,
    a_replay_is_denied_without_a_question_at_another_gateway,
    a_message_that_is_sent_many_times_at_once_is_served_once,
    an_amendment_at_one_gateway_counts_at_the_other,
    open_calls_of_a_dead_gateway_become_unknown_and_stay_spent,
    open_calls_of_a_living_gateway_keep_their_own_outcome,
    a_call_settled_by_another_gateway_has_one_outcome,
    every_record_of_both_gateways_is_on_the_log_once,
    a_question_of_one_gateway_is_answered_at_another_and_used_once_at_either,
    a_tool_listed_at_one_gateway_is_checked_at_the_other,
    a_caller_that_commits_at_one_gateway_needs_an_envelope_at_the_other,
}

/// V-3, V-12: two processes do not mint budget.
async fn a_budget_is_spent_once_however_many_gateways_serve_it(store: &dyn Store) {
    const BUDGET: usize = 12;
    let site = Site::start().await;
    let gateways = two_gateways(store, &site).await;
    assert!(is_accepted(&gateways[0].commit(json!({ "max_calls": BUDGET })).await));
    let mut calls = Vec::new();
    for n in 0..2 * BUDGET {
        let gateway = gateways[n % 2].clone();
        calls.push(tokio::spawn(async move {
            match gateway.run(json!({ "ticket": n })).await {
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
    let evidence = gateways[0].store.clone();
    until("every outcome is recorded", || async {
        count_of_kind(&records(&*evidence, SESSION).await, RecordKind::Outcome) == BUDGET
    })
    .await;
    let records = records(&*evidence, SESSION).await;
    assert_eq!(count_of_kind(&records, RecordKind::Decision), 2 * BUDGET);
    let instances: Vec<&str> = records.iter().map(|stored| stored.instance.as_str()).collect();
    assert!(instances.contains(&"one") && instances.contains(&"two"), "both of them served");
    stop_all(gateways).await;
}

/// V-2, V-3: the first commitment wins, wherever it was made.
async fn a_session_of_one_gateway_is_in_use_at_every_other(store: &dyn Store) {
    let site = Site::start().await;
    let gateways = two_gateways(store, &site).await;
    assert!(is_accepted(&gateways[0].commit(json!({ "max_calls": 5 })).await));
    assert_eq!(gateways[1].run(json!({})).await, Ok(()));
    let again = gateways[1].commit(json!({ "max_calls": 500 })).await;
    assert!(!is_accepted(&again), "{again:?}");
    let arguments = json!({});
    let stolen =
        gateways[1].call_with(&caller_with_token("mallory"), &envelope(&arguments), &arguments).await;
    assert_eq!(reason(&stolen), Some(Reason::WrongPrincipal));
    stop_all(gateways).await;
}

/// V-21: a `jti` counts once, wherever it is shown.
async fn a_message_replayed_at_another_gateway_is_denied(store: &dyn Store) {
    let site = Site::start().await;
    let gateways = two_gateways(store, &site).await;
    assert!(is_accepted(&gateways[0].commit(json!({ "max_calls": 5 })).await));
    let arguments = json!({ "ticket": 1 });
    let message = signed(&envelope(&arguments), json!({ "jti": "once" }));
    assert!(is_served(&gateways[0].call_with(&alice(), &message, &arguments).await));
    for gateway in &gateways {
        let response = gateway.call_with(&alice(), &message, &arguments).await;
        assert_eq!(reason(&response), Some(Reason::Replayed), "{response:?}");
    }
    stop_all(gateways).await;
}

/// V-21: a replay costs an approver no question, and its session no reservation.
async fn a_replay_is_denied_without_a_question_at_another_gateway(store: &dyn Store) {
    let site = Site::start().await;
    let gateways = two_gateways(store, &site).await;
    assert!(is_accepted(&gateways[0].commit(json!({ "max_calls": 2 })).await));
    let (harmless, asks) = (json!({ "ticket": 1 }), json!({ "approved": true }));
    let message = |arguments: &Value| signed(&envelope(arguments), json!({ "jti": "once" }));
    assert!(is_served(&gateways[0].call_with(&alice(), &message(&harmless), &harmless).await));
    for gateway in gateways.iter().rev() {
        let response = gateway.call_with(&alice(), &message(&asks), &asks).await;
        assert_eq!(reason(&response), Some(Reason::Replayed), "{response:?}");
    }
    assert_eq!(gateways[1].run(json!({ "ticket": 2 })).await, Ok(()), "nothing is held");
    stop_all(gateways).await;
}

/// V-21: also if all of them arrive before one is decided.
async fn a_message_that_is_sent_many_times_at_once_is_served_once(store: &dyn Store) {
    let site = Site::start().await;
    let gateways = two_gateways(store, &site).await;
    assert!(is_accepted(&gateways[0].commit(json!({ "max_calls": 100 })).await));
    for round in 0..4 {
        let arguments = json!({ "ticket": round });
        let message = signed(&envelope(&arguments), json!({ "jti": format!("round {round}") }));
        let calls: Vec<_> = (0..12)
            .map(|n| {
                let (gateway, message, arguments) =
                    (gateways[n % 2].clone(), message.clone(), arguments.clone());
                tokio::spawn(async move { gateway.call_with(&alice(), &message, &arguments).await })
            })
            .collect();
        let mut served = 0;
        for call in calls {
            let answer = call.await.unwrap();
            served += usize::from(is_served(&answer));
            assert!(is_served(&answer) || reason(&answer) == Some(Reason::Replayed), "{answer:?}");
        }
        assert_eq!(served, 1);
    }
    stop_all(gateways).await;
}

/// V-17, V-18: what was agreed anew is agreed everywhere at once.
async fn an_amendment_at_one_gateway_counts_at_the_other(store: &dyn Store) {
    let site = Site::start().await;
    let gateways = two_gateways(store, &site).await;
    let response = gateways[0].commit(json!({ "max_calls": 1 })).await;
    assert!(is_accepted(&response));
    assert_eq!(gateways[1].run(json!({ "ticket": 1 })).await, Ok(()));
    assert_eq!(gateways[1].run(json!({ "ticket": 2 })).await, Err(Reason::BudgetExceeded));
    let digest = response.verdict.accepted_commitment_digest.unwrap().to_string();
    let more = json!({ "increase_budget": { "add_calls": 1 } });
    let more = testkit::agent::amendment(SESSION, &digest, &more);
    let response = gateways[0].amend(&signed(&more, json!({}))).await;
    assert!(is_accepted(&response), "{response:?}");
    assert_eq!(gateways[1].run(json!({ "ticket": 3 })).await, Ok(()));
    assert_eq!(gateways[0].run(json!({ "ticket": 4 })).await, Err(Reason::BudgetExceeded));
    stop_all(gateways).await;
}

/// V-12, R-31: a process that died says nothing; what it let go may have run.
async fn open_calls_of_a_dead_gateway_become_unknown_and_stay_spent(store: &dyn Store) {
    let site = Site::start().await;
    let dying = store.instance("dying").await;
    let served = die_with_three_calls_open(dying.clone(), &site).await;
    let after = SharingGateway::open(store.instance("after").await, &site).await;
    let evidence = after.store.clone();
    until("they are settled", || async {
        // Its last task may have said once more that it lives.
        dying.renew(Duration::ZERO).await.is_ok()
            && count_of_kind(&records(&*evidence, SESSION).await, RecordKind::Outcome) == served
    })
    .await;
    let records = records(&*evidence, SESSION).await;
    let outcomes: Vec<Value> =
        records.iter().filter(|stored| stored.record.kind == RecordKind::Outcome).map(payload).collect();
    assert_eq!(outcomes.len(), served);
    assert!(outcomes.iter().all(|outcome| outcome["status"] == "unknown"), "{outcomes:?}");
    assert_eq!(after.run(json!({ "ticket": 4 })).await, Ok(()), "3 of 4 are spent");
    assert_eq!(after.run(json!({ "ticket": 5 })).await, Err(Reason::BudgetExceeded));
    after.stop().await;
}

async fn open_calls_of_a_living_gateway_keep_their_own_outcome(store: &dyn Store) {
    let site = Site::start().await;
    let dying = store.instance("dying").await;
    let lost = die_with_three_calls_open(dying.clone(), &site).await;
    let one = SharingGateway::open(store.instance("one").await, &site).await;
    let mut response = one.call(json!({ "ticket": 4 })).await;
    let mut pass = response.pass.take().unwrap();
    crate::setup::release_request(&mut pass);
    let two = SharingGateway::open(store.instance("two").await, &site).await;
    let evidence = two.store.clone();
    let outcomes = || async { count_of_kind(&records(&*evidence, SESSION).await, RecordKind::Outcome) };
    until("those of the dead one are settled", || async {
        dying.renew(Duration::ZERO).await.is_ok() && outcomes().await == lost
    })
    .await;
    pass.settle(executed()).await;
    until("its outcome is recorded", || async { outcomes().await == lost + 1 }).await;
    let outcome = records(&*evidence, SESSION).await.pop().unwrap();
    assert_eq!(payload(&outcome)["status"], "executed");
    one.stop().await;
    two.stop().await;
}

/// a process that was only paused comes too late with outcomes. The log takes one of each decision.
async fn a_call_settled_by_another_gateway_has_one_outcome(store: &dyn Store) {
    let site = Site::start().await;
    let lease = store.instance("paused").await;
    let paused = SharingGateway::open(lease.clone(), &site).await;
    let mut plain = paused.call_without_vap().await.pass.expect("the call was served");
    crate::setup::release_request(&mut plain);
    assert!(is_accepted(&paused.commit(json!({ "max_calls": 2 })).await));
    let mut in_session = paused.call(json!({ "ticket": 1 })).await.pass.expect("the call was served");
    crate::setup::release_request(&mut in_session);

    let other = SharingGateway::open(store.instance("other").await, &site).await;
    let evidence = other.store.clone();
    let outcomes =
        async |stream: &str| count_of_kind(&records(&*evidence, stream).await, RecordKind::Outcome);
    until("the other one has settled both", || async {
        // The paused one may have renewed its lease once more.
        lease.renew(Duration::ZERO).await.is_ok()
            && outcomes(SESSION).await == 1
            && outcomes("unbound:paused").await == 1
    })
    .await;

    plain.settle(executed()).await;
    in_session.settle(executed()).await;
    assert_eq!(paused.run(json!({ "ticket": 2 })).await, Ok(()));
    assert_eq!(paused.run(json!({ "ticket": 3 })).await, Err(Reason::BudgetExceeded));
    paused.stop().await;
    other.stop().await;
    assert_eq!(outcomes(SESSION).await, 2, "one of each call");
    assert_eq!(outcomes("unbound:paused").await, 1);
}

/// An approver reaches one of them, and the call comes again to any.
async fn a_question_of_one_gateway_is_answered_at_another_and_used_once_at_either(store: &dyn Store) {
    let site = Site::start().await;
    let gateways = two_gateways(store, &site).await;
    assert!(is_accepted(&gateways[0].commit(json!({ "max_calls": 20 })).await));
    let arguments = json!({ "approved": true });
    let asked = gateways[0].call(arguments.clone()).await.ruling.unwrap().pending.unwrap();
    let question = *asked.approver_question.unwrap();
    assert_eq!(gateways[1].writer.open_questions().await.unwrap(), std::slice::from_ref(&question));
    let waiting = {
        let (gateway, id) = (gateways[0].clone(), question.id.clone());
        tokio::spawn(async move { gateway.writer.wait_for_answer(&id, Duration::from_secs(60)).await })
    };
    let signed = Approval::of(&question, "carol", Decision::Approve, None).sign(&approver()).unwrap();
    gateways[1].writer.answer_question(&question.id, &signed).await.unwrap();
    assert_eq!(waiting.await.unwrap(), gateway::decision_writer::QuestionStatus::Answered);
    let second = gateways[0].writer.answer_question(&question.id, &signed).await;
    assert!(matches!(second, Err(NotAnswered::Answered)), "{second:?}");
    let mut again = Vec::new();
    for gateway in gateways.iter().cycle().take(4) {
        let (gateway, ticket, arguments) = (gateway.clone(), asked.ticket.clone(), arguments.clone());
        again.push(tokio::spawn(async move {
            let shown = Some(OpenedState { ticket: Some(ticket), answer: None });
            let mut response = gateway.call_again(&alice(), &envelope(&arguments), &arguments, shown).await;
            match response.pass.take() {
                Some(pass) => {
                    pass.settle(executed()).await;
                    true
                }
                None => {
                    assert_eq!(reason(&response), Some(Reason::InvalidState));
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
    assert_eq!(gateways[0].writer.open_questions().await.unwrap(), []);
    stop_all(gateways).await;
}

/// That nobody has listed a tool is remembered for a moment, but no call is served on it any more once somebody has.
async fn a_tool_listed_at_one_gateway_is_checked_at_the_other(store: &dyn Store) {
    let site = Site::start().await;
    let gateways = two_gateways(store, &site).await;
    assert!(is_accepted(&gateways[0].commit(json!({ "max_calls": 5 })).await));
    let checked = |ticket: u64| {
        let arguments = json!({ "ticket": ticket });
        let job = gateways[0].job(&alice(), &envelope(&arguments), &arguments);
        CallJob { checked: Some(CheckedArguments::default()), ..job }
    };
    for ticket in 0..2 {
        let mut response = crate::agent::call(&gateways[0].writer, checked(ticket)).await;
        response.pass.take().expect("nobody has listed it").settle(executed()).await;
    }
    lists(&*gateways[1].store, "crm.read").await;
    let response = gateways[0].writer.call(checked(2)).await;
    assert!(matches!(response, CallAnswer::Check(_)), "{response:?}");
    drop(response);
    stop_all(gateways).await;
}

/// V-33: whatever a gateway remembers of the caller's account, or that it has none.
async fn a_caller_that_commits_at_one_gateway_needs_an_envelope_at_the_other(store: &dyn Store) {
    let site = Site::start().await;
    let gateways = two_gateways(store, &site).await;
    for session in [SESSION, "session-fedcba9876543210"] {
        assert!(gateways[0].call_without_vap().await.pass.is_some(), "nothing is committed yet");
        assert!(is_accepted(&gateways[1].commit_in(session, json!({ "max_calls": 5 })).await));
        assert_eq!(reason(&gateways[0].call_without_vap().await), Some(Reason::NoEnvelope));
        assert!(gateways[1].writer.end_session(session).await);
    }
    stop_all(gateways).await;
}

/// A gateway on this store lists the tool for the first time.
async fn lists(store: &dyn EvidenceStore, tool: &str) {
    let (_, description) = Description::of(&json!({ "name": tool }).to_string()).unwrap();
    let pin = Pin::first("/mcp", tool, description, ToolPins::FirstUse, jiff::Timestamp::now());
    store_pin(store, None, &pin).await;
}

/// Each record is one leaf, whoever brought it.
async fn every_record_of_both_gateways_is_on_the_log_once(store: &dyn Store) {
    let site = Site::start().await;
    let gateways = two_gateways(store, &site).await;
    assert!(is_accepted(&gateways[0].commit(json!({ "max_calls": 20 })).await));
    for n in 0..10 {
        let mut response = gateways[n % 2].call(json!({ "ticket": n })).await;
        response.pass.take().unwrap().settle(executed()).await;
    }
    let evidence = gateways[0].store.clone();
    until("all is delivered", || async {
        let records = records(&*evidence, SESSION).await;
        count_of_kind(&records, RecordKind::Outcome) == 10 && evidence.backlog().await.unwrap().records == 0
    })
    .await;
    let mut leaves = Vec::new();
    for stored in records(&*evidence, SESSION).await {
        let DeliveryState::Delivered { leaf_index: Some(leaf), receipt: Some(receipt) } = stored.delivery
        else {
            panic!("{:?}", stored.delivery)
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
    stop_all(gateways).await;
}

async fn two_gateways(store: &dyn Store, site: &Site) -> Vec<Arc<SharingGateway>> {
    let mut gateways = Vec::new();
    for name in ["one", "two"] {
        gateways.push(Arc::new(SharingGateway::open(store.instance(name).await, site).await));
    }
    gateways
}

async fn stop_all(gateways: Vec<Arc<SharingGateway>>) {
    for gateway in gateways {
        match Arc::try_unwrap(gateway) {
            Ok(gateway) => gateway.stop().await,
            Err(_) => panic!("the decision writer is still in use"),
        }
    }
}

fn is_accepted(response: &gateway::decision_writer::DecisionAnswer) -> bool {
    response.verdict.verdict.is_permit()
}

/// A gateway with three calls of four under way, which stops as a process does that is killed: nothing of it runs on.
async fn die_with_three_calls_open(store: Arc<dyn EvidenceStore>, site: &Site) -> usize {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let log = site.log();
    let lives = runtime.spawn(async move {
        let gateway = SharingGateway::open_at(store, log).await;
        assert!(is_accepted(&gateway.commit(json!({ "max_calls": 4 })).await));
        for n in 0..3 {
            let mut response = gateway.call(json!({ "ticket": n })).await;
            let mut pass = response.pass.take().unwrap();
            crate::setup::release_request(&mut pass);
            std::mem::forget(pass);
        }
        std::mem::forget(gateway);
        3
    });
    let served = lives.await.unwrap();
    runtime.shutdown_background();
    served
}
