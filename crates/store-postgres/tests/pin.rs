//! A pin in a database of its own, and the server's clock.
#![allow(clippy::unwrap_used)]

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use merkle::{RootHash, TreeSize};
use store::{Pin, PinError, PinStore, ServerChecks};
use store_postgres::testing::Database;
use store_postgres::{PinDatabase, Postgres};

const ORIGIN: &str = "log.example";

fn pin(size: u64, epoch: u64) -> Pin {
    let root = RootHash::from_bytes([size as u8; 32]);
    Pin { origin: ORIGIN.into(), size: TreeSize::new(size), root, epoch }
}

async fn database() -> PinDatabase {
    PinDatabase::from_url(Database::empty().await.url(), ORIGIN).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn r21_the_pin_is_what_was_raised_last_and_is_never_lowered() {
    let pins = database().await;
    assert_eq!(pins.read().await.unwrap(), None);
    assert!(matches!(pins.raise(&pin(1, 1)).await, Err(PinError::Superseded(_))), "nobody has claimed it");
    pins.claim(&pin(0, 1)).await.unwrap();
    for size in [0, 1, 5, 5] {
        pins.raise(&pin(size, 1)).await.unwrap();
        assert_eq!(pins.read().await.unwrap(), Some(pin(size, 1)));
    }
    assert!(matches!(pins.raise(&pin(4, 1)).await, Err(PinError::Ahead(_))));
    let other_root = Pin { root: pin(1, 1).root, ..pin(5, 1) };
    assert!(matches!(pins.raise(&other_root).await, Err(PinError::Disagrees(_))));
    let other_log = Pin { origin: "other.example".into(), ..pin(6, 1) };
    assert!(matches!(pins.raise(&other_log).await, Err(PinError::OtherLog(_))));
    assert_eq!(pins.read().await.unwrap(), Some(pin(5, 1)));
    assert!(pins.place().starts_with("postgres://") && !pins.place().contains('@'), "{}", pins.place());
}

#[tokio::test(flavor = "multi_thread")]
async fn r31_a_raise_that_comes_after_a_newer_claim_changes_nothing() {
    let pins = database().await;
    pins.claim(&pin(5, 1)).await.unwrap();
    pins.claim(&pin(5, 2)).await.unwrap();
    assert!(matches!(pins.raise(&pin(6, 1)).await, Err(PinError::Superseded(2))));
    for epoch in [1, 2] {
        assert!(matches!(pins.claim(&pin(6, epoch)).await, Err(PinError::Superseded(2))));
    }
    assert!(matches!(pins.claim(&pin(4, 3)).await, Err(PinError::Ahead(_))));
    assert_eq!(pins.read().await.unwrap(), Some(pin(5, 2)));
}

#[tokio::test(flavor = "multi_thread")]
async fn r23_of_many_claims_of_one_epoch_one_succeeds() {
    let pins = database().await;
    pins.read().await.unwrap();
    let claims = (0..8).map(|_| {
        let pins = pins.clone();
        tokio::spawn(async move { pins.claim(&pin(1, 7)).await.is_ok() })
    });
    let mut claimed = 0;
    for claim in claims.collect::<Vec<_>>() {
        claimed += u32::from(claim.await.unwrap());
    }
    assert_eq!(claimed, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_not_there_is_unavailable_and_not_a_missing_pin() {
    let pins = PinDatabase::from_url("postgres://127.0.0.1:1/none", ORIGIN).unwrap();
    assert!(matches!(pins.read().await, Err(PinError::Unavailable { .. })));
    assert!(matches!(pins.raise(&pin(1, 1)).await, Err(PinError::Unavailable { .. })));
}

#[tokio::test]
async fn r36_the_server_s_clock_can_be_read() {
    let database = Database::fresh().await;
    let store = Postgres::connect(&database.options()).await.unwrap();
    let here = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let there = store.clock().await.unwrap().expect("it has one");
    assert!(there.abs_diff(here) < Duration::from_secs(30), "{there:?} and {here:?}");
}
