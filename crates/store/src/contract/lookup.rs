//! Contract tests of `LookupIndex`.

use std::sync::Arc;

use merkle::{LeafIndex, TreeSize};

use super::{Appender, LogDatabase};
use crate::lookup::{TERMS, VALUE_BYTES, VALUES_PER_TERM};
use crate::{Indexed, LogStore, Lookup, Order, Page, Query, StoreError, Term};

/// Makes [`Lookup`] rows of kind 1 from pairs of entry and value.
pub(super) fn rows(said: &[(u64, &str)]) -> Vec<Lookup> {
    said.iter().map(|(entry, value)| row(1, value, *entry)).collect()
}

/// Searches the index for one value of kind 1 and returns the entries found.
pub(super) async fn said(store: &dyn LogStore, value: &str) -> Vec<u64> {
    let page = store.search(&query(vec![Term::exactly(1, value)])).await.unwrap();
    assert_eq!(page.more_after, None);
    numbers(&page)
}

/// Checks that a search finds nothing before `index` was called.
pub async fn a_new_index_is_empty(database: &impl LogDatabase) {
    let store = database.handle().await;
    Appender::with(Arc::clone(&store), 3).await;
    assert_eq!(store.indexed().await.unwrap(), Indexed::default());
    let page = store.search(&query(vec![])).await.unwrap();
    assert_eq!(page, Page { entries: vec![], more_after: None, indexed: Indexed::default() });
    assert_eq!(store.values(1, "", None, 10).await.unwrap(), Vec::<String>::new());
    assert_eq!(store.lookups(&[LeafIndex::new(0)]).await.unwrap(), []);
}

/// Checks that another handle sees new rows and the new `Indexed` together.
pub async fn what_is_indexed_is_found(database: &impl LogDatabase) {
    let store = database.handle().await;
    let indexed = filled(&store).await;
    let other = database.handle().await;
    assert_eq!(other.indexed().await.unwrap(), indexed);
    assert_eq!(said(&*other, "even").await, [0, 2, 4, 6, 8]);
    assert_eq!(said(&*other, "odd").await, [1, 3, 5, 7, 9]);
    assert_eq!(said(&*other, "eve").await, [0; 0], "a beginning is not the value");
    assert_eq!(said(&*other, "Even").await, [0; 0]);
    let expected = [row(1, "even", 4), row(2, "four", 4), row(1, "odd", 5)];
    let asked = [5, 4, 11].map(LeafIndex::new);
    assert_eq!(other.lookups(&asked).await.unwrap(), expected);
}

/// Reads pages in both orders, bounded by the range and by the limit of the query.
pub async fn pages_join_without_gap_or_overlap(database: &impl LogDatabase) {
    let store = database.handle().await;
    filled(&store).await;
    for order in [Order::OldestFirst, Order::NewestFirst] {
        for limit in [1, 2, 3, 5, 7] {
            for term in [
                Term::exactly(1, "even"),
                Term { kind: 1, values: ["odd", "even"].map(str::to_owned).into() },
            ] {
                let mut all = Vec::new();
                let mut within = 1..9;
                loop {
                    let asked = Query { within: within.clone(), order, limit, ..query(vec![term.clone()]) };
                    let page = store.search(&asked).await.unwrap();
                    assert!(page.entries.len() <= limit);
                    all.extend(numbers(&page));
                    let Some(last) = page.more_after else { break };
                    assert_eq!(Some(&last.get()), all.last());
                    within = match order {
                        Order::OldestFirst => last.get() + 1..within.end,
                        Order::NewestFirst => within.start..last.get(),
                    };
                }
                let mut expected: Vec<u64> =
                    (1..9).filter(|n| term.values.len() == 2 || n % 2 == 0).collect();
                if order == Order::NewestFirst {
                    expected.reverse();
                }
                assert_eq!(all, expected, "{order:?} by {limit}");
            }
        }
    }
}

/// Checks that a search returns only entries that match all of its terms.
pub async fn every_term_of_a_search_must_hold(database: &impl LogDatabase) {
    let store = database.handle().await;
    filled(&store).await;
    let search = async |terms: Vec<Term>| numbers(&store.search(&query(terms)).await.unwrap());
    assert_eq!(search(vec![Term::exactly(1, "even"), Term::exactly(2, "four")]).await, [4]);
    assert_eq!(search(vec![Term::exactly(2, "four"), Term::exactly(1, "even")]).await, [4]);
    assert_eq!(search(vec![Term::exactly(1, "odd"), Term::exactly(2, "four")]).await, [0; 0]);
    assert_eq!(search(vec![Term::exactly(2, "even")]).await, [0; 0], "kinds are apart");
    assert_eq!(search(vec![Term { kind: 1, values: vec![] }]).await, [0; 0]);
    assert_eq!(search(vec![]).await, (0..10).collect::<Vec<_>>(), "no term is true of every entry indexed");
    let both = vec![Term::exactly(1, "even"), Term::exactly(1, "odd")];
    assert_eq!(search(both).await, [0; 0]);
}

/// Checks that one search does bounded work and returns `more_after` when it stops early.
pub async fn a_search_that_looks_at_much_stops_and_says_where(database: &impl LogDatabase) {
    let store = database.handle().await;
    let count = 9000;
    let appender = Appender::with(Arc::clone(&store), count).await;
    let mut said: Vec<Lookup> = (0..count).map(|n| row(1, "all", n)).collect();
    said.extend((0..count - 1).map(|n| row(2, "all but the last", n)));
    said.push(row(3, "here", count - 1));
    assert!(store.index(Indexed::default(), appender.head().size(), &said).await.unwrap());
    let rare = query(vec![Term::exactly(1, "all"), Term::exactly(3, "here")]);
    let page = store.search(&rare).await.unwrap();
    assert_eq!((numbers(&page), page.more_after), (vec![count - 1], None), "the rarest term is followed");
    let first = query(vec![Term::exactly(1, "all"), Term::exactly(2, "all but the last")]);
    let page = store.search(&Query { limit: 9000, ..first.clone() }).await.unwrap();
    let last = page.more_after.expect("it looked at many entries and stopped before the limit");
    assert_eq!(page.entries.last(), Some(&last));
    let rest = Query { within: last.get() + 1..u64::MAX, limit: 9000, ..first };
    let rest = store.search(&rest).await.unwrap();
    assert_eq!(rest.more_after, None);
    assert_eq!(page.entries.len() + rest.entries.len(), 8999);
}

/// Checks that of two processes that index the same entries one succeeds, and that no row is stored twice.
pub async fn an_index_moves_by_compare_and_swap(database: &impl LogDatabase) {
    let store = database.handle().await;
    Appender::with(Arc::clone(&store), 10).await;
    let mut calls = Vec::new();
    for _ in 0..4 {
        let store = database.handle().await;
        calls.push(tokio::spawn(async move {
            store.index(Indexed::default(), TreeSize::new(4), &rows(&[(0, "x"), (3, "x")])).await
        }));
    }
    let mut moved = 0;
    for call in calls {
        moved += u32::from(call.await.unwrap().unwrap());
    }
    assert_eq!(moved, 1);
    assert_eq!(said(&*store, "x").await, [0, 3]);
    let stale = Indexed { form: 1, to: TreeSize::new(4) };
    assert!(!store.index(stale, TreeSize::new(5), &rows(&[(4, "x")])).await.unwrap(), "another form");
    let now = store.indexed().await.unwrap();
    assert!(store.index(now, TreeSize::new(6), &rows(&[(5, "x"), (5, "x")])).await.unwrap());
    assert_eq!(said(&*store, "x").await, [0, 3, 5]);
}

/// Expects `StoreError::Refused` for rows outside `from.to..to`, as they would make `Indexed` wrong.
pub async fn an_index_takes_only_rows_of_committed_entries_in_turn(database: &impl LogDatabase) {
    let store = database.handle().await;
    Appender::with(Arc::clone(&store), 4).await;
    store.index(Indexed::default(), TreeSize::new(2), &[]).await.unwrap();
    let from = store.indexed().await.unwrap();
    for (to, entry) in [(4, 1), (4, 4), (5, 3), (1, 1)] {
        let refused = store.index(from, TreeSize::new(to), &rows(&[(entry, "x")])).await;
        assert!(matches!(refused, Err(StoreError::Refused(_))), "{to} {entry}: {refused:?}");
    }
    assert_eq!(store.indexed().await.unwrap(), from);
    assert_eq!(said(&*store, "x").await, [0; 0]);
}

/// Checks that a rebuilt index has the rows of the new reading and none of the old one.
pub async fn a_dropped_index_starts_again_and_forgets(database: &impl LogDatabase) {
    let store = database.handle().await;
    let before = filled(&store).await;
    database.handle().await.drop_index(7).await.unwrap();
    let dropped = Indexed { form: 7, to: TreeSize::new(0) };
    assert_eq!(store.indexed().await.unwrap(), dropped);
    assert_eq!(said(&*store, "even").await, [0; 0]);
    assert_eq!(store.lookups(&[LeafIndex::new(4)]).await.unwrap(), []);
    assert!(!store.index(before, TreeSize::new(10), &[]).await.unwrap());
    assert!(store.index(dropped, TreeSize::new(5), &rows(&[(0, "even"), (4, "new")])).await.unwrap());
    assert_eq!(said(&*store, "even").await, [0], "beyond what was read again nothing is found");
    let now = store.indexed().await.unwrap();
    assert!(store.index(now, TreeSize::new(10), &rows(&[(9, "even")])).await.unwrap());
    assert_eq!(said(&*store, "even").await, [0, 9]);
    assert_eq!(said(&*store, "new").await, [4]);
    assert_eq!(store.values(2, "", None, 10).await.unwrap(), Vec::<String>::new());
}

/// Indexes NUL, long, empty and non-Latin text, and checks that no value is confused with another.
pub async fn any_value_can_be_indexed_and_found(database: &impl LogDatabase) {
    let store = database.handle().await;
    let long = "x".repeat(VALUE_BYTES + 1);
    let longer = "x".repeat(100_000);
    let values = ["", "a\0b", "a", "規則 🦀", "\u{1}sha256:", &long, &longer, "a%_'\"\\", "\u{10FFFF}"];
    let appender = Appender::with(Arc::clone(&store), values.len() as u64).await;
    let said_by: Vec<Lookup> = (0..).zip(values).map(|(n, value)| row(1, value, n)).collect();
    assert!(store.index(Indexed::default(), appender.head().size(), &said_by).await.unwrap());
    for (n, value) in (0..).zip(values) {
        assert_eq!(said(&*store, value).await, [n], "{:?}", value.get(..20).unwrap_or(value));
    }
    let hash = crate::lookup::stored_value(&longer).into_owned();
    assert_eq!(said(&*store, &hash).await, [0; 0], "a hash is not the value");
}

/// Checks that `values` returns values with a prefix once each, in byte order.
pub async fn values_are_found_by_their_beginning(database: &impl LogDatabase) {
    let store = database.handle().await;
    let appender = Appender::with(Arc::clone(&store), 6).await;
    let said = rows(&[(0, "ab"), (1, "aB"), (2, "a_b"), (3, "abc"), (4, "b"), (5, "ab"), (5, "ä")]);
    let said = [said, vec![row(2, "ab", 0), row(0, "ab", 0), row(255, "ab", 0)]].concat();
    assert!(store.index(Indexed::default(), appender.head().size(), &said).await.unwrap());
    let values = async |prefix, limit| store.values(1, prefix, None, limit).await.unwrap();
    assert_eq!(values("", 10).await, ["aB", "a_b", "ab", "abc", "b", "ä"]);
    assert_eq!(values("ab", 10).await, ["ab", "abc"]);
    assert_eq!(values("a", 2).await, ["aB", "a_b"]);
    assert_eq!(values("a%", 2).await, Vec::<String>::new());
    assert_eq!(values("c", 2).await, Vec::<String>::new());
    assert_eq!(store.values(9, "", None, 2).await.unwrap(), Vec::<String>::new());
    let after = async |after, prefix, limit| store.values(1, prefix, Some(after), limit).await.unwrap();
    assert_eq!(after("aB", "a", 2).await, ["a_b", "ab"]);
    assert_eq!(after("aC", "a", 2).await, ["a_b", "ab"], "nothing says aC");
    assert_eq!(after("a\0b", "a", 2).await, ["aB", "a_b"]);
    assert_eq!(after("", "ab", 10).await, ["ab", "abc"]);
    assert_eq!(after("abc", "ab", 10).await, Vec::<String>::new());
    assert_eq!(after("b", "a", 10).await, Vec::<String>::new());
}

/// Expects `StoreError::Refused` above `TERMS` terms or `VALUES_PER_TERM` values.
pub async fn a_search_with_too_many_terms_is_refused(database: &impl LogDatabase) {
    let store = database.handle().await;
    filled(&store).await;
    let many = vec![Term::exactly(1, "even"); TERMS + 1];
    let wide = vec![Term { kind: 1, values: vec!["even".into(); VALUES_PER_TERM + 1] }];
    for terms in [many, wide] {
        let refused = store.search(&query(terms)).await;
        assert!(matches!(refused, Err(StoreError::Refused(_))), "{refused:?}");
    }
}

/// Indexes entries 0 to 9 of 12: each as "even" or "odd", and entry 4 with a second row of kind 2.
async fn filled(store: &Arc<dyn LogStore>) -> Indexed {
    Appender::with(Arc::clone(store), 12).await;
    let mut said: Vec<Lookup> = (0..10).map(|n| row(1, if n % 2 == 0 { "even" } else { "odd" }, n)).collect();
    said.push(row(2, "four", 4));
    assert!(store.index(Indexed::default(), TreeSize::new(10), &said).await.unwrap());
    Indexed { form: 0, to: TreeSize::new(10) }
}

fn row(kind: u8, value: &str, entry: u64) -> Lookup {
    Lookup { kind, value: value.to_owned(), entry: LeafIndex::new(entry) }
}

fn query(terms: Vec<Term>) -> Query {
    Query { terms, within: 0..u64::MAX, order: Order::OldestFirst, limit: 100 }
}

fn numbers(page: &Page) -> Vec<u64> {
    page.entries.iter().map(|entry| entry.get()).collect()
}
