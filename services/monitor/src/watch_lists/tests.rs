//! Alarms of the watch lists, for given entries and memory.

use audit::EntryEvidence as Row;
use merkle::{EntryDigest, LeafIndex};
use scitt::{SignedStatement, StatementBuilder};

use super::*;
use crate::alarm::FoundBy;
use crate::round::Outcome;
use crate::testing;

const ISS: &str = "did:example:issuer";

/// A statement of the issuer whose payload contains no facts: those of a row are all stored with it.
fn statement_about(sub: &str) -> SignedStatement {
    let builder = StatementBuilder::new("").content_type("text/plain").kid(testkit::KID).iss(ISS).sub(sub);
    builder.sign(&testkit::es256()).unwrap()
}

/// A row of a chain.
fn row(leaf: u64, position: u64) -> Row {
    Row {
        index: LeafIndex::new(leaf),
        digest: EntryDigest::of(&leaf.to_be_bytes()),
        statement: Some(statement_about("agent").bytes().clone()),
        policy: LeafIndex::new(0),
        rule: "r".into(),
        facts: format!("{{\"chain_position\":{position}}}"),
        at: None,
        refused_receipt: None,
    }
}

fn target() -> WatchedLog {
    let watch = Watch::of(Who::Issuer(ISS.into()));
    WatchedLog { watches: vec![watch], lag: std::time::Duration::ZERO, ..testing::target() }
}

fn lists_with(memory: WatchMemory) -> WatchLists {
    WatchLists { memory, omitted: 0, saved: None, now: 100 }
}

/// The alarms after these rows.
fn found(mut lists: WatchLists, rows: Vec<Row>, agrees: bool) -> Vec<AlarmKind> {
    let (target, mut results) = (target(), RoundResults::new("log", 100));
    lists.observe(&target, rows, |_| agrees);
    lists.record(&target, &mut results, None);
    results.alarms.iter().map(|alarm| alarm.kind).collect()
}

#[test]
fn an_entry_that_differs_from_the_log_s_description_accuses_no_issuer_of_anything() {
    let fork = || vec![row(0, 0), row(1, 0), row(2, 9)];
    let kinds = found(lists_with(WatchMemory::new(0)), fork(), true);
    assert!(kinds.contains(&AlarmKind::ChainFork) && kinds.contains(&AlarmKind::Gap), "{kinds:?}");
    assert_eq!(found(lists_with(WatchMemory::new(0)), fork(), false), []);
}

/// A watch list that starts at leaf 5.
fn added_later() -> WatchLists {
    let mut later = lists_with(WatchMemory::new(0));
    later.memory.next = 5;
    later
}

#[test]
fn a_list_that_is_added_later_accuses_nobody_of_gaps_before() {
    assert_eq!(found(added_later(), vec![row(5, 5), row(6, 6)], true), []);
    assert_eq!(
        found(added_later(), vec![row(5, 5), row(6, 7)], true),
        [AlarmKind::Gap],
        "6 is missing since"
    );
}

#[test]
fn lists_that_have_seen_less_than_the_audit_are_behind_and_nobody_s_list_is_not() {
    let mut lost = lists_with(WatchMemory::new(0));
    assert!(lost.is_behind(&target(), 7) && !lost.is_behind(&testing::target(), 7));
    lost.memory.next = 7;
    assert!(!lost.is_behind(&target(), 7));
}

#[test]
fn what_is_remembered_is_never_written_longer_than_it_is_read_and_says_what_was_left_out() {
    let mut lists = lists_with(WatchMemory::new(0));
    lists.observe(&target(), (0..40).map(|leaf| row(leaf, 0)).collect(), |_| true);
    let whole = lists.memory.encode(usize::MAX).len();
    assert!(!lists.memory.is_full());
    let less = lists.memory.encode(whole - 1);
    assert!(less.len() < whole && lists.memory.is_full());
    let again: WatchMemory = serde_json::from_slice(&less).unwrap();
    assert!(again.is_full() && !again.unreported.is_empty(), "alarms are told all the same");
}

#[test]
fn reports_whose_numbers_do_not_grow_are_refused() {
    let mut lists = lists_with(WatchMemory::new(0));
    let report = |number: u64| {
        let told = serde_json::json!({ "number": number, "rule": null,
            "registered": { "entry_id": "x", "index": 0 }, "refused": { "entry_id": "y", "statement": null } });
        serde_json::from_value::<refused_statements::RefusalReport>(told).unwrap()
    };
    let grows = |lists: &WatchLists, numbers: &[u64]| {
        lists.check_page(&numbers.iter().map(|number| report(*number)).collect::<Vec<_>>()).is_ok()
    };
    assert!(grows(&lists, &[1, 2, 9]) && !grows(&lists, &[1, 1]) && !grows(&lists, &[2, 1]));
    assert!(!grows(&lists, &(0..=crate::limits::REPORT_PAGE as u64).collect::<Vec<_>>()));
    lists.memory.report = Some(5);
    assert!(grows(&lists, &[6]) && !grows(&lists, &[5]) && !grows(&lists, &[4]));
}

/// The first receipt of a chain.
fn first(n: u64) -> SignedStatement {
    testkit::receipt(n).sign(&testkit::verifier()).unwrap()
}

/// The alarms for a log that reports the refusal of these bytes because of a first receipt of the same issuer.
async fn reported(refused: Vec<u8>) -> Vec<AlarmKind> {
    let registered = first(0);
    let text = |bytes: &[u8]| data_encoding::BASE64URL_NOPAD.encode(bytes);
    let page = serde_json::json!({ "equivocations": [{
        "number": 1, "rule": "r",
        "registered": { "entry_id": registered.digest().to_string(), "index": 0 },
        "refused": { "entry_id": EntryDigest::of(&refused).to_string(), "statement": text(&refused) },
    }] });
    let bytes = registered.bytes().clone();
    let app = axum::Router::new()
        .route("/v1/equivocations", axum::routing::get(async || axum::Json(page)))
        .route("/v1/entries/{id}/statement", axum::routing::get(async || bytes));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await });
    let client = client::Client::new(&url, client::Options::default()).unwrap();
    let iss = registered.header().iss().unwrap().to_owned();
    let watch = Watch::of(Who::Issuer(iss));
    let target = WatchedLog { watches: vec![watch], ..testing::target() };
    let mut lists = lists_with(WatchMemory::new(0));
    lists.read_refused_statements(&target, &client).await.unwrap();
    lists.into_unreported().iter().map(|alarm| alarm.kind).collect()
}

#[tokio::test]
async fn a_reported_fork_is_one_only_if_the_issuer_signed_both() {
    let signed = first(1).bytes().to_vec();
    assert_eq!(reported(signed.clone()).await, [AlarmKind::ChainFork]);
    let mut unsigned = signed;
    *unsigned.last_mut().unwrap() ^= 1;
    assert_eq!(reported(unsigned).await, []);
    assert_eq!(reported(first(0).bytes().to_vec()).await, [], "it is the one that was registered");
}

/// A record of a gateway's stream; its entry ID is that of its leaf.
fn record(leaf: u64, seq: u64, members: &str) -> Row {
    let facts = format!("{{\"seq\":{seq},{members}}}");
    let statement = Some(statement_about("session").bytes().clone());
    Row { statement, facts, at: Some(leaf), ..row(leaf, 0) }
}

fn decision(leaf: u64, seq: u64) -> Row {
    record(leaf, seq, "\"kind\":\"decision\",\"verdict\":\"served\"")
}

fn outcome(leaf: u64, seq: u64, of: u64) -> Row {
    let decision = EntryDigest::of(&of.to_be_bytes());
    record(leaf, seq, &format!("\"kind\":\"outcome\",\"decision\":\"{decision}\",\"status\":\"executed\""))
}

fn closed(leaf: u64, seq: u64) -> Row {
    record(leaf, seq, "\"kind\":\"closed\"")
}

/// The alarms of a stream at time 100, with limits of 50 seconds for outcomes and closing.
fn wrong_with(rows: Vec<Row>) -> Vec<AlarmKind> {
    let mut watch = Watch::of(Who::Issuer(ISS.into()));
    let limit = std::time::Duration::from_secs(50);
    (watch.outcome_within, watch.closed_within) = (limit, Some(limit));
    let target = WatchedLog { watches: vec![watch], ..target() };
    let (mut lists, mut results) = (lists_with(WatchMemory::new(0)), RoundResults::new("log", 100));
    lists.observe(&target, rows, |_| true);
    lists.record(&target, &mut results, None);
    results.alarms.iter().map(|alarm| alarm.kind).collect()
}

#[test]
fn a_stream_counts_from_0_and_has_an_outcome_for_each_decision_and_an_end() {
    use AlarmKind::{Gap, OpenDecision, UnclosedStream};
    assert_eq!(wrong_with(vec![decision(0, 0), outcome(1, 1, 0), closed(2, 2)]), []);
    assert_eq!(wrong_with(vec![decision(0, 0), outcome(1, 1, 0)]), [UnclosedStream]);
    assert_eq!(wrong_with(vec![decision(0, 0), closed(1, 1)]), [OpenDecision]);
    assert_eq!(wrong_with(vec![decision(60, 0), outcome(61, 1, 7)]), [], "not for so long yet");
    let denied = record(0, 0, "\"kind\":\"decision\",\"verdict\":\"denied\"");
    assert_eq!(wrong_with(vec![denied, closed(1, 1)]), [], "nothing follows a denial");
    assert_eq!(wrong_with(vec![outcome(0, 0, 1), decision(1, 1), closed(2, 2)]), [], "in another order");
    assert_eq!(wrong_with(vec![closed(0, 2)]), [Gap, Gap], "0 and 1");
}

#[test]
fn an_agents_list_asks_nothing_of_streams_of_which_it_sees_a_part() {
    let agent =
        |leaf, seq| record(leaf, seq, "\"kind\":\"decision\",\"verdict\":\"served\",\"agent_id\":\"a\"");
    let target = WatchedLog { watches: vec![Watch::of(Who::Agent("a".into()))], ..target() };
    let (mut lists, mut results) = (lists_with(WatchMemory::new(0)), RoundResults::new("log", 10_000));
    lists.now = 10_000;
    lists.observe(&target, vec![agent(0, 1), agent(1, 5)], |_| true);
    lists.record(&target, &mut results, None);
    assert_eq!(results.alarms, []);
}

#[test]
fn silence_ends_although_reports_are_unread_or_the_memory_is_full() {
    let (target, failed) = (target(), UnreadReports::Failed("busy".into()));
    for (unread, outcome) in [
        (Some(&failed), Outcome::Unanswered),
        (Some(&UnreadReports::OutOfTime), Outcome::NotChecked),
        (None, Outcome::NotChecked),
    ] {
        let (mut lists, mut results) = (lists_with(WatchMemory::new(0)), RoundResults::new("log", 100));
        lists.observe(&target, vec![row(0, 0)], |_| true);
        lists.memory.encode(0);
        assert!(lists.memory.is_full());
        lists.record(&target, &mut results, unread);
        assert_eq!((results.outcome(CheckName::WatchLists), results.alarms), (Some(outcome), vec![]));
        assert_eq!(results.made, vec![FoundBy::from(CheckName::WatchLists)]);
    }
}
