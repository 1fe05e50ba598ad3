//! A log of tiles over real HTTP: what is asked for, what is made of the answers, and which answers are none.
#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use client::tlog::{Options, TlogClient, TlogError};
use merkle::tile::{BundleId, TileId};
use merkle::{EntryDigest, Hash, NodeId, TreeSize, hash_children, proof, verify};

type Files = Arc<Mutex<HashMap<String, Vec<u8>>>>;

/// Serves files, and counts what was asked for by forgetting nothing.
async fn serve(files: Files) -> SocketAddr {
    async fn answer(State(files): State<Files>, uri: Uri) -> Response {
        match files.lock().unwrap().get(uri.path()) {
            Some(data) => data.clone().into_response(),
            None => StatusCode::NOT_FOUND.into_response(),
        }
    }
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let app = Router::new().fallback(answer).with_state(files);
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    address
}

/// The perfect subtrees of a tree of so many leaves.
fn levels(size: u64) -> Vec<Vec<Hash>> {
    let leaf = |n: u64| Hash::from(EntryDigest::of(&n.to_be_bytes()).leaf_hash());
    let mut levels = vec![(0..size).map(leaf).collect::<Vec<_>>()];
    while levels[levels.len() - 1].len() > 1 {
        let below = &levels[levels.len() - 1];
        levels.push(below.chunks_exact(2).map(|pair| hash_children(pair[0], pair[1])).collect());
    }
    levels
}

fn bytes(hashes: &[Hash]) -> Vec<u8> {
    hashes.iter().flat_map(|hash| *hash.as_bytes()).collect()
}

async fn log(files: &[(&str, Vec<u8>)]) -> TlogClient {
    let files = files.iter().map(|(path, data)| (format!("/log/{path}"), data.clone())).collect();
    let address = serve(Arc::new(Mutex::new(files))).await;
    TlogClient::new(&format!("http://{address}/log"), Options::default()).unwrap()
}

fn tile(number: u64, size: u64) -> TileId {
    TileId::at(0, number, TreeSize::new(size)).unwrap()
}

#[tokio::test]
async fn a_consistency_proof_is_put_together_from_a_few_tiles() {
    let levels = levels(600);
    let log = log(&[
        ("tile/0/000", bytes(&levels[0][..256])),
        ("tile/0/001", bytes(&levels[0][256..512])),
        ("tile/0/002.p/88", bytes(&levels[0][512..])),
        ("tile/1/000.p/2", bytes(&levels[8])),
    ])
    .await;
    let path = log.consistency(TreeSize::new(300), TreeSize::new(600)).await.unwrap();
    let plan = proof::consistency(TreeSize::new(300), TreeSize::new(600)).unwrap();
    let node = |node: NodeId| {
        Ok::<_, std::convert::Infallible>(levels[usize::from(node.level)][node.index as usize])
    };
    assert_eq!(path, plan.fold(node).unwrap());
    let (start, siblings) = path.split_first().unwrap();
    verify::implied_roots(TreeSize::new(300), TreeSize::new(600), *start, siblings).unwrap();
    assert!(log.spent().requests <= 4, "{:?}", log.spent());
}

#[tokio::test]
async fn a_partial_tile_that_is_gone_is_cut_out_of_the_full_one() {
    let levels = levels(256);
    let log = log(&[("tile/0/000", bytes(&levels[0]))]).await;
    assert_eq!(log.tile(tile(0, 7)).await.unwrap(), bytes(&levels[0][..7]));
    let entries: Vec<u8> = (0..=255).flat_map(|n| [0, 1, n]).collect();
    let log = self::log(&[("tile/entries/000", entries)]).await;
    let bundle = log.bundle(BundleId::at(0, TreeSize::new(3)).unwrap()).await.unwrap();
    assert_eq!(bundle, [[0].as_slice(), &[1], &[2]]);
}

#[tokio::test]
async fn what_is_missing_is_said_to_be_missing_by_its_name() {
    let log = log(&[]).await;
    let Err(TlogError::Missing { path, status }) = log.tile(tile(0, 7)).await else { panic!() };
    assert_eq!((path.as_str(), status), ("tile/0/000.p/7", StatusCode::NOT_FOUND));
    assert!(matches!(log.checkpoint().await, Err(TlogError::Missing { .. })));
}

#[tokio::test]
async fn a_tile_or_bundle_of_another_length_is_none() {
    let log = log(&[
        ("tile/0/000.p/7", vec![0; 7 * 32 - 1]),
        ("tile/0/001", vec![0; 257 * 32]),
        ("tile/entries/000.p/2", vec![0, 1, 7]),
        ("tile/entries/001", vec![0, 2, 7]),
    ])
    .await;
    for number in [0, 1] {
        let tile = tile(number, if number == 0 { 7 } else { 512 });
        assert!(matches!(log.tile(tile).await, Err(TlogError::Nonsense { .. })), "{number}");
        let size = if number == 0 { 2 } else { 512 };
        let bundle = BundleId::at(number, TreeSize::new(size)).unwrap();
        assert!(matches!(log.bundle(bundle).await, Err(TlogError::Nonsense { .. })), "{number}");
    }
}

#[tokio::test]
async fn an_answer_that_never_ends_is_not_read_to_its_end() {
    let log = log(&[("checkpoint", vec![b'a'; 1 << 20])]).await;
    let Err(TlogError::Nonsense { why, .. }) = log.checkpoint().await else { panic!() };
    assert!(why.contains("larger"), "{why}");
}

#[tokio::test]
async fn nobody_at_the_address_is_unreachable() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let log = TlogClient::new(&format!("http://{address}"), Options::default()).unwrap();
    assert!(matches!(log.checkpoint().await, Err(TlogError::Unreachable(_))));
    assert!(TlogClient::new("ftp://log.example", Options::default()).is_err());
}
