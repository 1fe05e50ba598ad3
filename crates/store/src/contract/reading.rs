//! Contract tests of reading entries, tiles and look-up keys.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use merkle::{EntryDigest, LeafIndex};

use super::{Appender, LogDatabase, entry};
use crate::{Collateral, Entry, Found, GuardKey, NewEntry, TileAddress};

/// Covers arbitrary bytes and text, the order of members in JSON, and empty and large values.
pub async fn every_field_of_an_entry_comes_back_as_it_went_in(database: &impl LogDatabase) {
    let store = database.handle().await;
    let mut appender = Appender::with(Arc::clone(&store), 2).await;
    let all_bytes: Vec<u8> = (0..=255).collect();
    let statements = [Bytes::from(all_bytes), Bytes::from(vec![0; 1 << 20]), Bytes::new()];
    let facts = [r#"{"aa":1,"b":[1.5,null,"ä\u0001"]}"#, "{}", r#"{"n":1e+30}"#];
    let rules = ["a rule", "règle 規則 🦀", ""];
    let sent: Vec<NewEntry> = (0..3)
        .map(|n| NewEntry {
            digest: EntryDigest::of(&statements[n]),
            statement: statements[n].clone(),
            policy: LeafIndex::new(n as u64 % 2),
            rule: rules[n].into(),
            facts: facts[n].into(),
            ..entry(0)
        })
        .collect();
    appender.append_entries(sent.clone()).await.unwrap();
    for (sent, index) in sent.into_iter().zip(2..) {
        let index = LeafIndex::new(index);
        let NewEntry { digest, statement, policy, rule, facts, .. } = sent;
        let expected = Entry { index, digest, statement: Some(statement), policy, rule, facts };
        assert_eq!(store.entry(index).await.unwrap().unwrap().verified().unwrap(), expected);
        assert_eq!(store.entries(index, 1).await.unwrap(), [expected]);
    }
}

/// Checks that the pages of `entries` join without gap or overlap.
pub async fn entries_come_in_order_and_end_at_the_size(database: &impl LogDatabase) {
    let store = database.handle().await;
    Appender::with(Arc::clone(&store), 10).await;
    let page = async |from, limit| {
        let entries = store.entries(LeafIndex::new(from), limit).await.unwrap();
        entries.iter().map(|entry| entry.index.get()).collect::<Vec<_>>()
    };
    assert_eq!(page(0, 4).await, [0, 1, 2, 3]);
    assert_eq!(page(4, 4).await, [4, 5, 6, 7]);
    assert_eq!(page(8, 4).await, [8, 9]);
    assert_eq!(page(10, 4).await, [0; 0]);
    assert_eq!(page(0, 0).await, [0; 0]);
    assert_eq!(page(i64::MAX as u64, 1).await, [0; 0]);
    assert_eq!(store.entry(LeafIndex::new(10)).await.unwrap(), None);
    let at = async |leaves: &[u64]| {
        let leaves: Vec<LeafIndex> = leaves.iter().copied().map(LeafIndex::new).collect();
        let entries = store.entries_at(&leaves).await.unwrap();
        entries.iter().map(|entry| entry.index.get()).collect::<Vec<_>>()
    };
    assert_eq!(at(&[9, 2, 3, 7]).await, [9, 2, 3, 7]);
    assert_eq!(at(&[10, 5, i64::MAX as u64]).await, [5], "what is not committed is left out");
    assert_eq!(at(&[]).await, [0; 0]);
    assert_eq!(
        store.entries_at(&[LeafIndex::new(4)]).await.unwrap(),
        store.entries(LeafIndex::new(4), 1).await.unwrap()
    );
    let digests = async |from, limit| store.digests(LeafIndex::new(from), limit).await.unwrap();
    let expected = |range: std::ops::Range<u64>| range.map(|n| entry(n).digest).collect::<Vec<_>>();
    assert_eq!(digests(0, 4).await, expected(0..4));
    assert_eq!(digests(8, 4).await, expected(8..10));
    assert_eq!(digests(10, 4).await, []);
    assert_eq!(digests(0, 0).await, []);
}

/// Looks up a large list of digests with hits, misses and one duplicate.
pub async fn find_answers_each_digest_in_order(database: &impl LogDatabase) {
    let store = database.handle().await;
    Appender::with(Arc::clone(&store), 2000).await;
    let asked: Vec<u64> = (0..4096).map(|n| n * 7919 % 4096).chain([5, 5]).collect();
    let digests: Vec<EntryDigest> = asked.iter().map(|n| entry(*n).digest).collect();
    let expected: Vec<Option<Found>> = asked
        .iter()
        .map(|n| (*n < 2000).then(|| Found { index: LeafIndex::new(*n), digest: entry(*n).digest }))
        .collect();
    assert_eq!(store.find(&digests).await.unwrap(), expected);
    assert_eq!(store.find(&[]).await.unwrap(), []);
}

/// Covers `GuardKey` bytes of any length.
pub async fn guards_answer_each_key_in_order(database: &impl LogDatabase) {
    let store = database.handle().await;
    let mut appender = Appender::with(Arc::clone(&store), 1).await;
    let [empty, zeros, long] = [vec![], vec![0, 0], vec![255; 1000]].map(GuardKey);
    let guards = vec![empty.clone(), long.clone()];
    let entries = vec![NewEntry { guards, ..entry(1) }, NewEntry { guards: vec![zeros.clone()], ..entry(2) }];
    appender.append_entries(entries).await.unwrap();
    let asked = [zeros, GuardKey(vec![0]), long, empty];
    let expected = [Some(2), None, Some(1), Some(1)].map(|index| index.map(LeafIndex::new));
    assert_eq!(store.guards(&asked).await.unwrap(), expected);
    assert_eq!(store.guards(&[]).await.unwrap(), []);
}

/// Checks `collateral` of an entry that has several kinds.
pub async fn collateral_comes_in_order_of_kind(database: &impl LogDatabase) {
    let store = database.handle().await;
    let mut appender = Appender::with(Arc::clone(&store), 1).await;
    let item = |kind, bytes: &'static [u8]| Collateral { kind, bytes: Bytes::from_static(bytes) };
    let collateral = vec![item(200, b"last"), item(1, b""), item(7, b"middle")];
    appender.append_entries(vec![NewEntry { collateral, ..entry(1) }]).await.unwrap();
    let expected = [item(1, b""), item(7, b"middle"), item(200, b"last")];
    assert_eq!(store.collateral(LeafIndex::new(1)).await.unwrap(), expected);
    assert_eq!(store.collateral(LeafIndex::new(0)).await.unwrap(), []);
    assert_eq!(store.collateral(LeafIndex::new(9)).await.unwrap(), []);
}

/// Reads a list of tiles in which some addresses do not exist.
pub async fn tiles_answer_each_address_in_order(database: &impl LogDatabase) {
    let store = database.handle().await;
    Appender::with(Arc::clone(&store), 600).await;
    let asked = [(0, 2), (5, 0), (1, 0), (0, 99), (0, 0), (0, 2)];
    let asked = asked.map(|(level, number)| TileAddress { level, number });
    let tiles = store.tiles(&asked).await.unwrap();
    let widths: Vec<Option<usize>> =
        tiles.iter().map(|tile| tile.as_ref().map(|tile| tile.len() / 32)).collect();
    assert_eq!(widths, [Some(88), None, Some(2), None, Some(256), Some(88)]);
    assert_eq!(store.tiles(&[]).await.unwrap(), Vec::<Option<Bytes>>::new());
}

/// Checks that a reader that sees a head finds all entries and tiles that the head covers.
pub async fn readers_never_see_half_a_batch(database: &impl LogDatabase) {
    let mut appender = Appender::new(database.handle().await).await;
    let done = Arc::new(AtomicBool::new(false));
    let mut readers = Vec::new();
    for _ in 0..2 {
        let (store, done) = (database.handle().await, Arc::clone(&done));
        readers.push(tokio::spawn(async move {
            while !done.load(Ordering::Relaxed) {
                let head = store.head().await.unwrap();
                let Some(last) = head.size().last_leaf() else { continue };
                assert!(store.entry(last).await.unwrap().is_some(), "entry {last} is missing");
                assert!(store.head_of_size(head.size()).await.unwrap().is_some());
                let address = TileAddress { level: 0, number: last.get() / 256 };
                let tile = store.tiles(&[address]).await.unwrap().remove(0).expect("the last tile is there");
                assert!(tile.len() as u64 / 32 > last.get() % 256);
            }
        }));
    }
    for _ in 0..20 {
        appender.append(37).await;
    }
    done.store(true, Ordering::Relaxed);
    for reader in readers {
        reader.await.unwrap();
    }
}
