//! Contract tests of `Reports`: reports of equivocation.

use std::sync::Arc;

use merkle::LeafIndex;

use super::{Appender, LogDatabase, entry, statement};
use crate::{GuardKey, KeptReport, REPORTS_PER_GUARD, Report};

/// Checks that `reports` returns reports unchanged, in order of arrival.
pub async fn reports_come_back_in_order(database: &impl LogDatabase) {
    let store = database.handle().await;
    Appender::with(Arc::clone(&store), 3).await;
    let sent = [report("a", 1, 100), report("b", 2, 101), report("a", 1, 102)];
    for report in &sent {
        assert!(store.keep_report(report).await.unwrap());
    }
    let other = database.handle().await;
    let kept = other.reports(None, 10).await.unwrap();
    assert_eq!(kept.iter().map(|kept| kept.report.clone()).collect::<Vec<_>>(), sent);
    assert!(kept.is_sorted_by_key(|kept| kept.number));
    assert_eq!(other.reports(None, 2).await.unwrap(), kept[..2]);
    assert_eq!(other.reports(Some(kept[1].number), 2).await.unwrap(), kept[2..]);
    let about = async |entries: &[u64]| {
        let entries: Vec<LeafIndex> = entries.iter().copied().map(LeafIndex::new).collect();
        other.reports_about(&entries).await.unwrap()
    };
    assert_eq!(about(&[1]).await, [kept[0].clone(), kept[2].clone()]);
    assert_eq!(about(&[2, 0, 1]).await, kept);
    assert_eq!(about(&[0]).await, []);
    assert_eq!(about(&[]).await, []);
}

/// Checks that a contradiction that is reported twice is stored once, with the first report's fields.
pub async fn a_report_is_kept_once(database: &impl LogDatabase) {
    let store = database.handle().await;
    Appender::with(Arc::clone(&store), 3).await;
    assert!(store.keep_report(&report("a", 1, 100)).await.unwrap());
    let later = Report { at: 999, ..report("a", 1, 100) };
    assert!(database.handle().await.keep_report(&later).await.unwrap());
    let elsewhere = report("b", 1, 100);
    assert!(store.keep_report(&elsewhere).await.unwrap(), "the same statement may break two guards");
    let kept: Vec<Report> =
        store.reports(None, 10).await.unwrap().into_iter().map(|kept| kept.report).collect();
    assert_eq!(kept, [report("a", 1, 100), elsewhere]);
}

/// Checks `REPORTS_PER_GUARD`, also for reports that arrive at once.
pub async fn a_guard_has_a_bounded_number_of_reports(database: &impl LogDatabase) {
    let store = database.handle().await;
    Appender::with(Arc::clone(&store), 2).await;
    let mut calls = Vec::new();
    for n in 0..2 * REPORTS_PER_GUARD as u64 {
        let store = database.handle().await;
        calls.push(tokio::spawn(async move { store.keep_report(&report("a", 1, 100 + n)).await }));
    }
    let mut kept = 0;
    for call in calls {
        kept += usize::from(call.await.unwrap().unwrap());
    }
    assert_eq!((kept, store.reports(None, 100).await.unwrap().len()), (REPORTS_PER_GUARD, REPORTS_PER_GUARD));
    assert!(store.keep_report(&report("b", 1, 100)).await.unwrap(), "another guard has room");
}

/// Checks that `erase` also removes the refused statement, which may hold the same text as the erased one.
pub async fn erasing_an_entry_empties_the_reports_about_it(database: &impl LogDatabase) {
    let store = database.handle().await;
    Appender::with(Arc::clone(&store), 3).await;
    for report in [report("a", 1, 100), report("b", 2, 101)] {
        store.keep_report(&report).await.unwrap();
    }
    store.erase(&[LeafIndex::new(1)]).await.unwrap();
    let kept: Vec<KeptReport> = store.reports(None, 10).await.unwrap();
    assert_eq!(kept[0].report, Report { statement: None, ..report("a", 1, 100) });
    assert_eq!(kept[1].report, report("b", 2, 101));
}

/// Covers a report that reaches the store after the erasure: later no call would erase its statement.
pub async fn a_report_about_an_erased_entry_is_kept_without_its_statement(database: &impl LogDatabase) {
    let store = database.handle().await;
    Appender::with(Arc::clone(&store), 3).await;
    store.erase(&[LeafIndex::new(1)]).await.unwrap();
    for report in [report("a", 1, 100), report("b", 2, 101)] {
        assert!(database.handle().await.keep_report(&report).await.unwrap());
    }
    let kept: Vec<KeptReport> = store.reports(None, 10).await.unwrap();
    assert_eq!(kept[0].report, Report { statement: None, ..report("a", 1, 100) });
    assert_eq!(kept[1].report, report("b", 2, 101));
}

fn report(guard: &str, registered: u64, refused: u64) -> Report {
    Report {
        guard: GuardKey(guard.as_bytes().to_vec()),
        registered: (LeafIndex::new(registered), entry(registered).digest),
        refused: entry(refused).digest,
        statement: Some(statement(refused)),
        at: 1000 + refused,
    }
}
