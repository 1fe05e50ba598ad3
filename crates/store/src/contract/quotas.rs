//! Contract tests of `Quotas`: counters shared by all processes of a log.

use super::LogDatabase;
use crate::StoreError;
use crate::quota::BUCKET_BYTES;

/// Takes from one bucket with several handles at once and checks the sum.
pub async fn a_quota_is_shared_and_never_exceeded(database: &impl LogDatabase) {
    let mut calls = Vec::new();
    for _ in 0..8 {
        let store = database.handle().await;
        calls.push(tokio::spawn(async move {
            let mut taken = 0;
            for _ in 0..5 {
                taken += store.take_quota("issuer", 60, 30, 1).await.unwrap();
            }
            taken
        }));
    }
    let mut taken = 0;
    for call in calls {
        taken += call.await.unwrap();
    }
    assert_eq!(taken, 30);
}

/// Checks that the last grant may be smaller than the amount asked for.
pub async fn a_quota_grants_what_is_left(database: &impl LogDatabase) {
    let store = database.handle().await;
    let take = async |want| store.take_quota("issuer", 60, 10, want).await.unwrap();
    assert_eq!([take(4).await, take(0).await, take(4).await, take(4).await, take(4).await], [4, 0, 4, 2, 0]);
    assert_eq!(store.take_quota("issuer", 60, 12, 5).await.unwrap(), 2, "the limit was raised");
    assert_eq!(store.take_quota("issuer", 60, 3, 5).await.unwrap(), 0, "the limit was lowered");
    assert_eq!(store.take_quota("other", 60, 10, 10).await.unwrap(), 10);
    assert_eq!(store.take_quota("none", 60, 0, 10).await.unwrap(), 0);
    let huge = i64::MAX as u64;
    assert_eq!(store.take_quota("huge", 60, huge, huge).await.unwrap(), huge);
}

/// Checks that a process with a slow clock gains no quota from an earlier window.
pub async fn a_later_window_starts_at_nothing(database: &impl LogDatabase) {
    let store = database.handle().await;
    let take = async |window, want| store.take_quota("issuer", window, 10, want).await.unwrap();
    assert_eq!(take(60, 10).await, 10);
    assert_eq!(take(120, 7).await, 7);
    assert_eq!(take(60, 10).await, 3, "from the later window");
    assert_eq!(take(120, 1).await, 0);
}

/// Checks that `trim_quotas` removes the buckets of issuers that are no longer active, and those that a clock left in
/// the future.
pub async fn old_quotas_are_forgotten(database: &impl LogDatabase) {
    let store = database.handle().await;
    for (bucket, window) in [("a", 60), ("b", 120), ("c", 180), ("d", 240), ("e", i64::MAX as u64)] {
        store.take_quota(bucket, window, 1, 1).await.unwrap();
    }
    assert_eq!(store.trim_quotas(180..240).await.unwrap(), 4);
    assert_eq!(store.trim_quotas(180..240).await.unwrap(), 0);
    assert_eq!(store.take_quota("d", 180, 1, 1).await.unwrap(), 1, "it begins again at an earlier window");
    assert_eq!(store.take_quota("c", 180, 1, 1).await.unwrap(), 0, "this one is still counted");
    let long = "x".repeat(BUCKET_BYTES + 1);
    let refused = store.take_quota(&long, 1, 1, 1).await;
    assert!(matches!(refused, Err(StoreError::Refused(_))), "{refused:?}");
}
