//! Contract tests of `LookupIndex`, through the index that is built on it.

use std::sync::Arc;

use async_trait::async_trait;
use lookup_tree::limits::LEVEL_0_LEAVES;
use lookup_tree::{
    BlindCode, IndexHead, IndexQuestion, InnerNode, LeafRange, Posting, PostingPrefix, RunId, RunProofs,
    RunSource, RunSummary, RunTree, TermKey,
};
use merkle::{EntryDigest, Hash, LeafIndex, RootHash, TreeSize};

use super::indexer::one;
use super::{Appender, Indexer, LogDatabase};
use crate::fsck::{Defect, Fsck, FsckFacts};
use crate::lookup::{
    Build, EntryTerms, FinishedRun, HeadRuns, ProveError, RunCatalog, SearchIndex, TERMS, VALUES_PER_TERM,
};
use crate::{
    CommittedHead, Entry, HeadSignature, Indexed, LogKey, LogReader, LogStore, Order, Page, Query,
    StoreError, Term,
};

/// Size of the log in most of these tests: a full run and some leaves.
const SIZE: u64 = LEVEL_0_LEAVES + 8;

/// Checks that a search finds nothing before anything was indexed.
pub async fn a_new_index_is_empty(database: &impl LogDatabase) {
    let store = database.handle().await;
    Appender::with(Arc::clone(&store), 3).await;
    let mut index = Indexer::of(Arc::clone(&store)).await;
    assert!(!index.step().await, "there is nothing to write");
    let indexed = Indexed { form: 0, to: TreeSize::new(0) };
    let page = index.search(&query(vec![])).await;
    assert_eq!(page, Page { entries: vec![], more_after: None, indexed });
    assert_eq!(index.values("", None, 10).await, [""; 0]);
}

/// Checks that a run is found by another process as well, which does not have its leaves in memory.
pub async fn what_is_indexed_is_found(database: &impl LogDatabase) {
    let store = database.handle().await;
    let index = filled(&store).await;
    let mut other = Indexer::of(database.handle().await).await;
    assert_eq!(other.search(&query(vec![])).await.indexed.to.get(), LEVEL_0_LEAVES);
    assert_eq!(index.search(&query(vec![])).await.indexed.to.get(), SIZE);
    other.add_up_to(SIZE, parity);
    for index in [index, other] {
        assert_eq!(index.found("even").await, (0..SIZE).step_by(2).collect::<Vec<_>>());
        assert_eq!(index.found("odd").await, (1..SIZE).step_by(2).collect::<Vec<_>>());
        assert_eq!(index.found("eve").await, [0; 0], "a beginning is not the value");
        assert_eq!(index.found("Even").await, [0; 0]);
    }
}

/// Reads pages in both orders, bounded by the range and by the limit of the query.
pub async fn pages_join_without_gap_or_overlap(database: &impl LogDatabase) {
    let store = database.handle().await;
    let index = filled(&store).await;
    let all = LEVEL_0_LEAVES - 5..LEVEL_0_LEAVES + 4;
    for order in [Order::OldestFirst, Order::NewestFirst] {
        for limit in [1, 2, 3, 5, 7] {
            for term in [
                Term::exactly(1, "even"),
                Term { kind: 1, values: ["odd", "even"].map(str::to_owned).into() },
            ] {
                let mut found = Vec::new();
                let mut within = all.clone();
                loop {
                    let wanted = Query { within: within.clone(), order, limit, ..query(vec![term.clone()]) };
                    let page = index.search(&wanted).await;
                    assert!(page.entries.len() <= limit);
                    found.extend(numbers(&page));
                    let Some(last) = page.more_after else { break };
                    assert_eq!(Some(&last.get()), found.last());
                    within = match order {
                        Order::OldestFirst => last.get() + 1..within.end,
                        Order::NewestFirst => within.start..last.get(),
                    };
                }
                let expected = all.clone().filter(|n| term.values.len() == 2 || n % 2 == 0).collect();
                assert_eq!(found, in_order(expected, order), "{order:?} by {limit}");
            }
        }
    }
}

/// Searches for as many values as a term may have: in one block and in many, in two runs and in memory, and nowhere.
pub async fn each_of_many_values_is_found(database: &impl LogDatabase) {
    let store = database.handle().await;
    let size = LEVEL_0_LEAVES + SIZE;
    Appender::with(Arc::clone(&store), size).await;
    let mut index = Indexer::of(Arc::clone(&store)).await;
    index.add_up_to(size, |leaf| {
        let mut terms = numbered(leaf);
        terms.add(2, if leaf < size / 2 { "long" } else { "longer" });
        terms
    });
    index.settle().await;
    let rare: Vec<u64> = (0..VALUES_PER_TERM as u64 - 2).map(|n| n * size / VALUES_PER_TERM as u64).collect();
    let mut values: Vec<String> = rare.iter().map(u64::to_string).chain(["nowhere".to_owned()]).collect();
    let search = async |values: &[String], within, order| {
        let term = Term { kind: 2, values: values.to_vec() };
        numbers(&index.search(&Query { within, order, limit: usize::MAX, ..query(vec![term]) }).await)
    };
    for order in [Order::OldestFirst, Order::NewestFirst] {
        let within = rare[1] + 1..rare[50];
        let expected: Vec<u64> = rare.iter().copied().filter(|leaf| within.contains(leaf)).collect();
        assert_eq!(search(&values, within, order).await, in_order(expected, order));
        assert_eq!(search(&values, 0..u64::MAX, order).await, in_order(rare.clone(), order));
    }
    values.push("long".to_owned());
    for order in [Order::OldestFirst, Order::NewestFirst] {
        let later = rare.iter().copied().filter(|leaf| *leaf >= size / 2);
        let expected: Vec<u64> = (0..size / 2).chain(later).collect();
        assert_eq!(search(&values, 0..u64::MAX, order).await, in_order(expected, order));
    }
}

fn in_order(mut leaves: Vec<u64>, order: Order) -> Vec<u64> {
    if order == Order::NewestFirst {
        leaves.reverse();
    }
    leaves
}

/// Checks that a search returns only entries that match all of its terms.
pub async fn every_term_of_a_search_must_hold(database: &impl LogDatabase) {
    let store = database.handle().await;
    let index = filled(&store).await;
    let search = async |terms: Vec<Term>| numbers(&index.search(&query(terms)).await);
    let four = || Term::exactly(2, "four");
    assert_eq!(search(vec![Term::exactly(1, "even"), four()]).await, [4, LEVEL_0_LEAVES + 4]);
    assert_eq!(search(vec![four(), Term::exactly(1, "even")]).await, [4, LEVEL_0_LEAVES + 4]);
    assert_eq!(search(vec![Term::exactly(1, "odd"), four()]).await, [0; 0]);
    assert_eq!(search(vec![Term::exactly(2, "even")]).await, [0; 0], "kinds are apart");
    assert_eq!(search(vec![Term { kind: 1, values: vec![] }]).await, [0; 0]);
    assert_eq!(search(vec![]).await, (0..100).collect::<Vec<_>>(), "no term is true of every entry indexed");
    let both = vec![Term::exactly(1, "even"), Term::exactly(1, "odd")];
    assert_eq!(search(both).await, [0; 0]);
}

/// Checks that one search does bounded work and returns `more_after` when it stops early.
pub async fn a_search_that_looks_at_much_stops_and_says_where(database: &impl LogDatabase) {
    let store = database.handle().await;
    let count = 9000;
    Appender::with(Arc::clone(&store), count).await;
    let mut index = Indexer::of(Arc::clone(&store)).await;
    index.add_up_to(count, |leaf| {
        let mut terms = one("all");
        match leaf < count - 1 {
            true => terms.add(2, "all but the last"),
            false => terms.add(3, "here"),
        }
        terms
    });
    index.settle().await;
    let rare = query(vec![Term::exactly(1, "all"), Term::exactly(3, "here")]);
    let page = index.search(&rare).await;
    assert_eq!((numbers(&page), page.more_after), (vec![count - 1], None), "the rarest term is followed");
    let first = query(vec![Term::exactly(1, "all"), Term::exactly(2, "all but the last")]);
    let page = index.search(&Query { limit: 9000, ..first.clone() }).await;
    let last = page.more_after.expect("it looked at many entries and stopped before the limit");
    assert_eq!(page.entries.last(), Some(&last));
    let rest = Query { within: last.get() + 1..u64::MAX, limit: 9000, ..first };
    let rest = index.search(&rest).await;
    assert_eq!(rest.more_after, None);
    assert_eq!(page.entries.len() + rest.entries.len(), 8999);
}

/// Lets two processes write the same run at once: the index has it once, and whole.
pub async fn a_run_that_two_processes_write_is_complete_once(database: &impl LogDatabase) {
    let store = database.handle().await;
    Appender::with(Arc::clone(&store), SIZE).await;
    let (mut one, mut other) = (Indexer::of(store).await, Indexer::of(database.handle().await).await);
    for index in [&mut one, &mut other] {
        index.add_up_to(SIZE, parity);
    }
    tokio::join!(one.step(), other.step());
    one.settle().await;
    other.settle().await;
    let catalog = database.handle().await.catalog().await.unwrap();
    assert_eq!(catalog.runs.len(), 1);
    assert_eq!(catalog.runs[0].summary, summary(&postings(parity, 0..LEVEL_0_LEAVES)));
    for index in [one, other] {
        assert_eq!(index.found("even").await, (0..SIZE).step_by(2).collect::<Vec<_>>());
    }
}

/// Expects `StoreError::Refused` for a run beyond the head.
pub async fn a_run_of_entries_that_were_never_committed_is_refused(database: &impl LogDatabase) {
    let store = database.handle().await;
    Appender::with(Arc::clone(&store), LEVEL_0_LEAVES - 1).await;
    let run = empty_run(store.begin_run().await.unwrap());
    let refused = store.finish_run(&run).await;
    assert!(matches!(refused, Err(StoreError::Refused(_))), "{refused:?}");
    assert_eq!(store.catalog().await.unwrap().runs, []);
}

/// Ends a process between the blocks of a run and its completion, and continues with another one.
pub async fn a_run_that_is_not_finished_is_not_seen_and_goes(database: &impl LogDatabase) {
    let store = database.handle().await;
    Appender::with(Arc::clone(&store), SIZE).await;
    let abandoned = store.begin_run().await.unwrap();
    let block = lookup_tree::PostingBlock { first: postings(parity, 0..1)[0], bytes: vec![7] };
    let tree = RunTree::new(postings(parity, 0..LEVEL_0_LEAVES)).unwrap();
    let node = tree.node_at(&PostingPrefix::ROOT).unwrap().unwrap();
    store.add_blocks(abandoned, std::slice::from_ref(&block), &[node]).await.unwrap();
    assert_eq!(store.nodes(abandoned, &[PostingPrefix::ROOT]).await.unwrap(), [Some(node)]);
    assert_eq!(store.catalog().await.unwrap().runs, []);
    let mut index = Indexer::of(database.handle().await).await;
    index.add_up_to(SIZE, parity);
    index.settle().await;
    assert_eq!(index.found("odd").await.len() as u64, SIZE / 2);
    assert_eq!(store.blocks_with(abandoned, &[block.first]).await.unwrap(), []);
    assert_eq!(store.nodes(abandoned, &[PostingPrefix::ROOT]).await.unwrap(), [None]);
    assert!(!store.finish_run(&empty_run(abandoned)).await.unwrap(), "it was begun too long ago");
}

/// Checks that a rebuilt index has the terms of the new reading and none of the old one.
pub async fn a_dropped_index_starts_again_and_forgets(database: &impl LogDatabase) {
    let store = database.handle().await;
    let before = filled(&store).await;
    let begun = store.begin_run().await.unwrap();
    database.handle().await.drop_index(7).await.unwrap();
    assert!(!store.finish_run(&empty_run(begun)).await.unwrap(), "it was begun before the drop");
    assert_eq!(before.found("even").await, [0; 0], "the other form is not known to it");
    let mut index = Indexer::of(Arc::clone(&store)).await;
    let page = index.search(&query(vec![])).await;
    assert_eq!(page.indexed, Indexed { form: 7, to: TreeSize::new(0) });
    assert_eq!(index.values("", None, 10).await, [""; 0]);
    index.add(&[(0, "even"), (4, "new")]);
    assert_eq!(index.found("even").await, [0], "beyond what was read again nothing is found");
    index.add_up_to(SIZE, |_| one("newer"));
    index.settle().await;
    assert_eq!(index.found("even").await, [0]);
    assert_eq!(index.found("new").await, [4]);
    assert_eq!(index.values("", None, 10).await, ["even", "new", "newer"]);
    let kept = SearchIndex::new(7);
    kept.align(&store.catalog().await.unwrap());
    assert_eq!(kept.size().get(), LEVEL_0_LEAVES);
    store.drop_index(7).await.unwrap();
    kept.align(&store.catalog().await.unwrap());
    assert_eq!(kept.size().get(), 0, "a drop is noticed although the form is the same");
}

/// Erases entries of a complete run and of the tail: they are not found at once, and their postings go later.
pub async fn an_erased_entry_leaves_its_runs_and_the_list_of_values(database: &impl LogDatabase) {
    let store = database.handle().await;
    Appender::with(Arc::clone(&store), 2 * LEVEL_0_LEAVES).await;
    let mut index = Indexer::of(Arc::clone(&store)).await;
    let newest = LEVEL_0_LEAVES + 1;
    let terms = |leaf: u64| match leaf {
        7 => one("secret"),
        8 => one("shared"),
        leaf if leaf == newest => one("newest"),
        leaf if leaf == newest + 1 => one("shared"),
        _ => one("any"),
    };
    index.add_up_to(newest + 2, terms);
    index.settle().await;
    let erase = [7, 8, newest].map(LeafIndex::new);
    assert_eq!(store.erase(&erase).await.unwrap().erased, erase);
    for value in ["secret", "newest"] {
        assert_eq!(index.found(value).await, [0; 0], "{value}");
    }
    assert_eq!(index.found("shared").await, [newest + 1]);
    index.settle().await;
    let catalog = store.catalog().await.unwrap();
    assert_eq!(catalog.erased.keys().copied().collect::<Vec<_>>(), [LeafIndex::new(newest)]);
    let mut left: Vec<Posting> = (0..LEVEL_0_LEAVES).filter(|leaf| ![7, 8].contains(leaf)).map(any).collect();
    left.extend([7, 8].map(|leaf| Posting::blind(BlindCode::Erased, LeafIndex::new(leaf))));
    left.sort();
    assert_eq!(catalog.runs.iter().map(|run| run.summary).collect::<Vec<_>>(), [summary(&left)]);
    assert_eq!(index.values("", None, 10).await, ["any", "shared"], "what nobody has is not listed");
    index.add_up_to(2 * LEVEL_0_LEAVES, terms);
    index.settle().await;
    let catalog = store.catalog().await.unwrap();
    assert!(catalog.erased.is_empty());
    assert_eq!(catalog.runs.iter().map(|run| run.summary.blind).collect::<Vec<_>>(), [2, 1]);
    assert_eq!(index.values("", None, 10).await, ["any", "shared"]);
}

/// Lists the entries of a page that may have any term: erased ones, before and after their run is written anew, and those that
/// cannot be read, in a run and in the tail.
pub async fn a_search_lists_the_entries_that_may_match(database: &impl LogDatabase) {
    let store = database.handle().await;
    Appender::with(Arc::clone(&store), SIZE).await;
    let mut index = Indexer::of(Arc::clone(&store)).await;
    index.add_up_to(SIZE, |leaf| match leaf {
        5 => EntryTerms::blind(BlindCode::Unreadable),
        leaf if leaf == SIZE - 1 => EntryTerms::blind(BlindCode::TooManyTerms),
        _ => parity(leaf),
    });
    index.settle().await;
    store.erase(&[3, SIZE - 2].map(LeafIndex::new)).await.unwrap();
    let blind = async |index: &Indexer, query: &Query, most: usize| {
        let (page, blind) = index.index.search_and_list_blind(&*store, query, most).await.unwrap();
        assert!(!numbers(&page).contains(&3));
        blind.iter().map(|(leaf, code)| (leaf.get(), *code)).collect::<Vec<_>>()
    };
    let all = [
        (3, BlindCode::Erased),
        (5, BlindCode::Unreadable),
        (SIZE - 2, BlindCode::Erased),
        (SIZE - 1, BlindCode::TooManyTerms),
    ];
    let even = Query { limit: usize::MAX, ..query(vec![Term::exactly(1, "even")]) };
    for _ in 0..2 {
        assert_eq!(blind(&index, &even, 10).await, all);
        assert_eq!(blind(&index, &even, 2).await, all[..2]);
        assert_eq!(
            blind(&index, &Query { limit: 3, ..even.clone() }, 10).await,
            all[..1],
            "the page ends at leaf 4"
        );
        let newest = Query { order: Order::NewestFirst, limit: 2, ..even.clone() };
        assert_eq!(blind(&index, &newest, 10).await, [all[3], all[2]]);
        assert_eq!(blind(&index, &Query { within: 4..6, ..even.clone() }, 10).await, all[1..2]);
        index.settle().await;
    }
}

/// Merges runs with a crash in between, and takes the merged ones out once they are old.
pub async fn eight_runs_merge_into_one(database: &impl LogDatabase) {
    const MERGED: u64 = 8 * LEVEL_0_LEAVES;
    let store = database.handle().await;
    let mut appender = Appender::new(Arc::clone(&store)).await;
    let mut index = Indexer::of(Arc::clone(&store)).await;
    while index.index.size().get() < MERGED {
        appender.append(LEVEL_0_LEAVES).await;
        index.add_up_to(index.index.size().get() + LEVEL_0_LEAVES, numbered);
        assert!(index.step().await, "a full run is written");
    }
    assert!(index.step().await, "the merge is begun");
    let evens: Vec<u64> = (0..MERGED).step_by(2).collect();
    assert_eq!(index.found("even").await, evens);
    drop(index);
    let mut index = Indexer::of(database.handle().await).await;
    index.settle().await;
    let ids = async |store: &dyn LogStore| {
        let catalog = store.catalog().await.unwrap();
        let mut ids: Vec<_> = catalog.runs.iter().map(|run| (run.id.level, run.id.number)).collect();
        ids.sort_unstable();
        ids
    };
    let mut expected: Vec<(u8, u64)> = (0..8).map(|number| (0, number)).chain([(1, 0)]).collect();
    assert_eq!(ids(&*store).await, expected);
    let catalog = store.catalog().await.unwrap();
    let merged = catalog.run(RunId { level: 1, number: 0 }).unwrap();
    assert_eq!(merged.summary, summary(&postings(numbered, 0..MERGED)));
    assert_eq!(index.found("even").await, evens);
    store.erase(&[LeafIndex::new(5)]).await.unwrap();
    for _ in 0..2 {
        appender.append(LEVEL_0_LEAVES).await;
        index.add_up_to(index.index.size().get() + LEVEL_0_LEAVES, numbered);
        index.settle().await;
    }
    let catalog = store.catalog().await.unwrap();
    assert!(catalog.erased.is_empty());
    assert_eq!(catalog.run(RunId { level: 1, number: 0 }).unwrap().summary.blind, 1);
    expected = vec![(0, 8), (0, 9), (1, 0)];
    assert_eq!(ids(&*store).await, expected);
    assert_eq!(index.found("even").await.len() as u64, 5 * LEVEL_0_LEAVES);
}

/// Reads nodes of a run by places: at its root, at a node, below one, and where there is none.
pub async fn a_node_is_found_by_the_place_that_it_is_in(database: &impl LogDatabase) {
    let store = database.handle().await;
    Appender::with(Arc::clone(&store), SIZE).await;
    let mut index = Indexer::of(Arc::clone(&store)).await;
    index.add_up_to(SIZE, numbered);
    index.settle().await;
    let run = store.catalog().await.unwrap().runs[0];
    let tree = RunTree::new(postings(numbered, 0..LEVEL_0_LEAVES)).unwrap();
    let root = tree.node_at(&PostingPrefix::ROOT).unwrap().unwrap();
    let (left, right) = root.prefix.children().unwrap();
    let nowhere = PostingPrefix::of(Posting::FIRST, 100);
    let places = [nowhere, right, PostingPrefix::ROOT, left, root.prefix, right];
    let expected: Vec<_> = places.iter().map(|place| tree.node_at(place).unwrap()).collect();
    assert!(expected[0].is_none() && expected[1..].iter().all(Option::is_some));
    assert_eq!(store.nodes(run.build, &places).await.unwrap(), expected);
    assert_eq!(store.nodes(run.build, &[]).await.unwrap(), []);
}

/// Proves answers under a head of runs and tail, reads few postings for it, and proves nothing of a run after an erasure.
pub async fn answers_are_proven_until_an_erasure_changes_their_run(database: &impl LogDatabase) {
    let store = database.handle().await;
    const LEAVES: u64 = 2 * LEVEL_0_LEAVES + 100;
    Appender::with(Arc::clone(&store), LEAVES).await;
    let mut index = Indexer::of(Arc::clone(&store)).await;
    index.add_up_to(LEAVES, numbered);
    assert_eq!(
        index.index.snapshot(&store.catalog().await.unwrap()),
        None,
        "full runs are to be written first"
    );
    index.settle().await;
    let catalog = store.catalog().await.unwrap();
    let snapshot = index.index.snapshot(&catalog).unwrap();
    assert_eq!(snapshot.size().get(), LEAVES);
    let runs = snapshot.hash().unwrap();
    let head = head_of(LEAVES, &runs);
    assert_eq!(head.runs[1].summary, summary(&postings(numbered, LEVEL_0_LEAVES..2 * LEVEL_0_LEAVES)));
    assert_eq!(head.runs[2].summary, summary(&postings(numbered, 2 * LEVEL_0_LEAVES..LEAVES)));

    let even = TermKey::of(1, b"even");
    let within = LeafRange::new(LEVEL_0_LEAVES - 10, LEAVES - 5);
    for order in [Order::OldestFirst, Order::NewestFirst] {
        let mut expected: Vec<u64> =
            (within.start.get()..within.end.get()).filter(|leaf| leaf.is_multiple_of(2)).collect();
        if order == Order::NewestFirst {
            expected.reverse();
        }
        for limit in [3, 2_000, 10_000] {
            let found = runs.leaves(&*store, &catalog, even, within, order, limit).await.unwrap();
            let found: Vec<u64> = found.iter().map(|leaf| leaf.get()).collect();
            assert_eq!(found, expected[..limit.min(expected.len())], "{order:?} by {limit}");
        }
    }
    for keys in [vec![even], vec![TermKey::of(2, b"4711"), TermKey::of(3, b"none")]] {
        let question = IndexQuestion::new(keys, within).unwrap();
        let proofs = prove(&*store, &catalog, &runs, &question).await.unwrap();
        assert_eq!(proofs.len(), 3);
        head.verify(question, &proofs).unwrap();
    }

    assert_eq!(HeadRuns::of(&head, vec![any(0)]).unwrap().map(|runs| runs.in_head()), None, "another tail");
    store.erase(&[LeafIndex::new(7)]).await.unwrap();
    for _ in 0..2 {
        let catalog = store.catalog().await.unwrap();
        let first = IndexQuestion::new([even], LeafRange::new(0, LEAVES)).unwrap();
        let refused = prove(&*store, &catalog, &runs, &first).await;
        assert!(matches!(refused, Err(ProveError::RunChanged(RunId { level: 0, number: 0 }))), "{refused:?}");
        let others = IndexQuestion::new([even], LeafRange::new(LEVEL_0_LEAVES, LEAVES)).unwrap();
        head.verify(others.clone(), &prove(&*store, &catalog, &runs, &others).await.unwrap()).unwrap();
        index.settle().await;
    }
    let catalog = store.catalog().await.unwrap();
    let next = index.index.snapshot(&catalog).unwrap().hash().unwrap();
    let question = IndexQuestion::new([even], LeafRange::new(0, LEAVES)).unwrap();
    let proofs = prove(&*store, &catalog, &next, &question).await.unwrap();
    let proven = head_of(LEAVES, &next).verify(question, &proofs).unwrap();
    assert_eq!(proven.blind().collect::<Vec<_>>(), [(LeafIndex::new(7), BlindCode::Erased)]);
}

/// Keeps the runs of the newest head although longer ones hold their leaves.
pub async fn the_runs_of_the_newest_head_stay(database: &impl LogDatabase) {
    let store = database.handle().await;
    const LEAVES: u64 = 10 * LEVEL_0_LEAVES;
    let mut appender = Appender::new(Arc::clone(&store)).await;
    let mut index = Indexer::of(Arc::clone(&store)).await;
    index.head = Some(TreeSize::new(8 * LEVEL_0_LEAVES));
    while index.index.size().get() < LEAVES {
        appender.append(LEVEL_0_LEAVES).await;
        index.add_up_to(index.index.size().get() + LEVEL_0_LEAVES, parity);
        index.settle().await;
    }
    assert_eq!(store.catalog().await.unwrap().runs.len(), 11, "all runs are there");
    index.head = Some(TreeSize::new(LEAVES));
    index.settle().await;
    assert_eq!(store.catalog().await.unwrap().runs.len(), 3);
}

fn head_of(size: u64, runs: &HeadRuns) -> IndexHead {
    IndexHead {
        series: Hash::from_bytes([1; 32]),
        size: TreeSize::new(size),
        log_root: RootHash::from_bytes([2; 32]),
        horizon: LeafIndex::new(0),
        runs: runs.in_head(),
    }
}

async fn prove(
    store: &dyn LogStore,
    catalog: &RunCatalog,
    runs: &HeadRuns,
    question: &IndexQuestion,
) -> Result<RunProofs, ProveError> {
    let parts = runs.read(store, catalog, question).await?;
    parts.iter().map(|part| part.prove().map_err(ProveError::from)).collect()
}

/// Damages a block of a run, and then a node: the check names the entry that lost its posting, and the run.
pub async fn a_check_names_entries_and_runs_that_are_damaged(database: &impl LogDatabase) {
    let store = database.handle().await;
    Appender::with(Arc::clone(&store), SIZE).await;
    let mut index = Indexer::of(Arc::clone(&store)).await;
    index.add_up_to(SIZE, numbered);
    index.settle().await;
    let checked = async || Fsck::new(&*store, &MadeUpFacts(numbered)).deep().await.unwrap().findings;
    assert_eq!(checked().await, []);
    let run = store.catalog().await.unwrap().runs[0];
    let blocks = store.blocks(run.build, Posting::FIRST, Posting::LAST, Order::NewestFirst, 1).await.unwrap();
    let start = LeafIndex::new(0);
    let mut left = lookup_tree::read_block(&blocks[0].bytes, start).unwrap();
    let lost = left.pop().unwrap();
    let mut writer = lookup_tree::BlockWriter::new(start);
    for posting in left {
        assert_eq!(writer.push(posting).unwrap(), None);
    }
    store.add_blocks(run.build, &[writer.finish().unwrap()], &[]).await.unwrap();
    let found = checked().await;
    assert!(matches!(found[0], Defect::LookupWrong { index } if index == lost.leaf), "{found:?}");
    assert!(matches!(found[1], Defect::RunWrong { run: RunId { level: 0, number: 0 }, .. }), "{found:?}");
    assert_eq!(found.len(), 2);
    let node = store.nodes(run.build, &[PostingPrefix::ROOT]).await.unwrap()[0].unwrap();
    let node = InnerNode { left: node.right, ..node };
    store.add_blocks(run.build, &[blocks[0].clone()], &[node]).await.unwrap();
    let found = checked().await;
    assert!(matches!(&found[..], [Defect::RunWrong { why, .. }] if why.contains("nodes")), "{found:?}");
}

/// What an index must have whose terms a function makes up.
struct MadeUpFacts(fn(u64) -> EntryTerms);

#[async_trait]
impl FsckFacts for MadeUpFacts {
    fn twin(&self, _: &Entry) -> Option<EntryDigest> {
        None
    }

    fn lookup_form(&self) -> Option<u32> {
        Some(0)
    }

    async fn terms(&self, _: &dyn LogReader, entry: &Entry) -> Result<Option<EntryTerms>, StoreError> {
        Ok(Some(self.0(entry.index.get())))
    }

    fn may_be_erased(&self, _: LeafIndex) -> bool {
        false
    }

    fn check_signature(&self, _: &CommittedHead, _: &HeadSignature, _: &[LogKey]) -> Result<(), String> {
        Ok(())
    }
}

/// Indexes NUL, long, empty and non-Latin text, and checks that no value is confused with another.
pub async fn any_value_can_be_indexed_and_found(database: &impl LogDatabase) {
    let store = database.handle().await;
    let long = "x".repeat(513);
    let longer = "x".repeat(100_000);
    let values = ["", "a\0b", "a", "規則 🦀", "\u{1}sha256:", &long, &longer, "a%_'\"\\", "\u{10FFFF}"];
    Appender::with(Arc::clone(&store), SIZE).await;
    let mut index = Indexer::of(Arc::clone(&store)).await;
    index.add_up_to(SIZE, |leaf| {
        values.get(leaf as usize).map_or_else(EntryTerms::default, |value| one(value))
    });
    index.settle().await;
    for (n, value) in (0..).zip(values) {
        assert_eq!(index.found(value).await, [n], "{:?}", value.get(..20).unwrap_or(value));
    }
    let listed = ["", "\u{1}sha256:", "a", "a%_'\"\\", "規則 🦀", "\u{10FFFF}"];
    assert_eq!(index.values("", None, 10).await, listed, "what is long or has U+0000 is not listed");
}

/// Checks that `values` returns values with a prefix once each, in byte order, from runs and from memory.
pub async fn values_are_found_by_their_beginning(database: &impl LogDatabase) {
    let store = database.handle().await;
    Appender::with(Arc::clone(&store), SIZE).await;
    let mut index = Indexer::of(Arc::clone(&store)).await;
    let last = SIZE - 1;
    index.add(&[(0, "ab"), (1, "aB"), (2, "a_b"), (4, "b"), (last - 1, "abc"), (last, "ab"), (last, "ä")]);
    index.settle().await;
    let values = async |prefix, limit| index.values(prefix, None, limit).await;
    assert_eq!(values("", 10).await, ["aB", "a_b", "ab", "abc", "b", "ä"]);
    assert_eq!(values("ab", 10).await, ["ab", "abc"]);
    assert_eq!(values("a", 2).await, ["aB", "a_b"]);
    assert_eq!(values("a%", 2).await, Vec::<String>::new());
    assert_eq!(values("c", 2).await, Vec::<String>::new());
    let after = async |after, prefix, limit| index.values(prefix, Some(after), limit).await;
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
    Appender::with(Arc::clone(&store), 1).await;
    let index = Indexer::of(Arc::clone(&store)).await;
    let many = vec![Term::exactly(1, "even"); TERMS + 1];
    let wide = vec![Term { kind: 1, values: vec!["even".into(); VALUES_PER_TERM + 1] }];
    for terms in [many, wide] {
        let refused = index.index.search(&*store, &query(terms)).await;
        assert!(matches!(refused, Err(StoreError::Refused(_))), "{refused:?}");
    }
}

/// Indexes a full run and some leaves: each as "even" or "odd", and leaf 4 of both with a second term of kind 2.
async fn filled(store: &Arc<dyn LogStore>) -> Indexer {
    Appender::with(Arc::clone(store), SIZE).await;
    let mut index = Indexer::of(Arc::clone(store)).await;
    index.add_up_to(SIZE, |leaf| {
        let mut terms = parity(leaf);
        if leaf % LEVEL_0_LEAVES == 4 {
            terms.add(2, "four");
        }
        terms
    });
    index.settle().await;
    index
}

fn parity(leaf: u64) -> EntryTerms {
    one(if leaf.is_multiple_of(2) { "even" } else { "odd" })
}

/// [`parity`], and terms that no other leaf has: a run has more blocks than are read at once.
fn numbered(leaf: u64) -> EntryTerms {
    let mut terms = parity(leaf);
    (2..4).for_each(|kind| terms.add(kind, &leaf.to_string()));
    terms
}

/// The postings of leaves with these terms.
fn postings(terms: fn(u64) -> EntryTerms, leaves: std::ops::Range<u64>) -> Vec<Posting> {
    let of = |leaf| terms(leaf).keys.into_iter().map(move |key| Posting { key, leaf: LeafIndex::new(leaf) });
    let mut postings: Vec<Posting> = leaves.flat_map(of).collect();
    postings.sort();
    postings
}

fn any(leaf: u64) -> Posting {
    Posting { key: TermKey::of(1, b"any"), leaf: LeafIndex::new(leaf) }
}

fn summary(postings: &[Posting]) -> RunSummary {
    RunSummary::of(postings).unwrap()
}

fn empty_run(build: Build) -> FinishedRun {
    FinishedRun {
        build,
        dropped: Build::new(0),
        id: RunId { level: 0, number: 0 },
        summary: RunSummary { postings: 0, blind: 0, root: Hash::from_bytes([7; 32]) },
        without: Vec::new(),
    }
}

fn query(terms: Vec<Term>) -> Query {
    Query { terms, within: 0..u64::MAX, order: Order::OldestFirst, limit: 100 }
}

fn numbers(page: &Page) -> Vec<u64> {
    page.entries.iter().map(|entry| entry.get()).collect()
}
