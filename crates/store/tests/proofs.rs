//! Proofs out of stored tiles, for every size that was ever committed.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use merkle::proof::NoProof;
use merkle::{LeafIndex, TreeSize};
use store::contract::{Appender, entry};
use store::proofs::{Prover, RecentTiles, TileProofError};
use store::{CommittedHead, FailingStore, LogReader, Memory, StoreMethod};

/// Sizes around the edges of tiles, in batches of different length.
async fn log() -> (FailingStore, Vec<CommittedHead>) {
    let store = FailingStore::new(Memory::new());
    let mut appender = Appender::new(Arc::new(store.clone())).await;
    for count in [1, 1, 5, 248, 1, 1, 255, 1, 300, 2] {
        appender.append(count).await;
    }
    let heads = store.heads(0, 100).await.unwrap();
    (store, heads)
}

#[tokio::test]
async fn a_proof_for_an_older_head_is_made_from_the_tiles_of_today() {
    let (store, heads) = log().await;
    let prover = Prover::new(&store);
    for head in &heads {
        for index in (0..head.size.get()).step_by(7).chain([head.size.get() - 1]) {
            prover.inclusion(entry(index).digest.leaf_hash(), LeafIndex::new(index), head).await.unwrap();
        }
    }
}

#[tokio::test]
async fn every_two_heads_are_consistent() {
    let (store, heads) = log().await;
    let prover = Prover::new(&store);
    for (n, newer) in heads.iter().enumerate() {
        for older in &heads[..=n] {
            prover.consistency(older, newer).await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_proof_that_cannot_be_made_is_said_to_be_impossible() {
    let (store, heads) = log().await;
    let prover = Prover::new(&store);
    let beyond = prover.inclusion_path(LeafIndex::new(2), TreeSize::new(2)).await;
    assert!(matches!(beyond, Err(TileProofError::NoProof(NoProof::NoLeaf { .. }))), "{beyond:?}");
    let shrunk = prover.consistency(&heads[3], &heads[2]).await;
    assert!(matches!(shrunk, Err(TileProofError::NoProof(NoProof::Shrunk { .. }))), "{shrunk:?}");
}

#[tokio::test]
async fn a_size_that_the_tiles_do_not_have_is_an_error_not_a_proof() {
    let (store, _) = log().await;
    let ahead = Prover::new(&store).inclusion_path(LeafIndex::new(0), TreeSize::new(5_000)).await;
    assert!(matches!(ahead, Err(TileProofError::Store(_))), "{ahead:?}");
}

#[tokio::test]
async fn a_path_that_does_not_lead_to_the_root_is_not_given_out() {
    let (store, heads) = log().await;
    let prover = Prover::new(&store);
    let (last, before) = (heads[9], heads[8]);
    let other_leaf = prover.inclusion(entry(1).digest.leaf_hash(), LeafIndex::new(0), &last).await;
    assert!(matches!(other_leaf, Err(TileProofError::Store(_))), "{other_leaf:?}");
    let forged = CommittedHead { root: heads[0].root, ..before };
    let other_root = prover.consistency(&forged, &last).await;
    assert!(matches!(other_root, Err(TileProofError::Store(_))), "{other_root:?}");
}

#[tokio::test]
async fn a_full_tile_is_read_once_and_a_partial_one_each_time() {
    let (store, heads) = log().await;
    let cache = RecentTiles::new(16);
    let prover = Prover::cached(&store, &cache);
    let prove = async |index: u64| {
        let before = store.calls(StoreMethod::Tiles);
        let leaf = entry(index).digest.leaf_hash();
        prover.inclusion(leaf, LeafIndex::new(index), &heads[9]).await.unwrap();
        store.calls(StoreMethod::Tiles) - before
    };
    assert_eq!((prove(3).await, prove(4).await), (1, 1), "level 1 is partial");
    let full = CommittedHead { ..heads[4] };
    assert_eq!(full.size.get(), 256);
    let before = store.calls(StoreMethod::Tiles);
    prover.inclusion(entry(9).digest.leaf_hash(), LeafIndex::new(9), &full).await.unwrap();
    assert_eq!(store.calls(StoreMethod::Tiles), before, "tile 0 of level 0 was kept");
}

#[tokio::test]
async fn a_small_cache_stays_small_and_right() {
    let (store, heads) = log().await;
    for tiles in [0, 1, 2, 3] {
        let cache = RecentTiles::new(tiles);
        let prover = Prover::cached(&store, &cache);
        for index in [0, 300, 600, 1, 301, 0] {
            let leaf = entry(index).digest.leaf_hash();
            prover.inclusion(leaf, LeafIndex::new(index), &heads[9]).await.unwrap();
        }
    }
}
