//! Quotas of issuers over HTTP: one counter for all who share a store, and what happens without it.

use crate::common::forms::{closed, cose, mixed_type};
use crate::common::{Place, Site, refusal, statement};
use store::{FailingStore, Memory, StoreMethod};
use transparency::{Config, Rate};

/// Three an hour, three at once: a window in which no test ends.
fn three_an_hour(config: &mut Config) {
    let rate = Rate { period: std::time::Duration::from_secs(3_600), ..Rate::per_second(3, 3) };
    config.limits.issuer = Some(rate);
}

async fn statuses(site: &Site, notes: std::ops::Range<u64>) -> Vec<u16> {
    let mut statuses = Vec::new();
    for n in notes {
        statuses.push(site.register(&statement(n)).await.status);
    }
    statuses
}

#[tokio::test]
async fn an_issuer_beyond_its_quota_is_told_when_to_come_back_and_others_are_not_touched() {
    let site = Place::new().start_with(three_an_hour).await;
    assert_eq!(statuses(&site, 0..3).await, [201, 201, 201]);
    let answer = site.register(&statement(3)).await;
    assert_eq!(answer.refusal(), refusal(429, "Too Many Requests", "rate-limited"));
    let wait: u64 = answer.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=3_600).contains(&wait), "{wait}");
    site.registered(&testkit::vrf(1)).await;
}

#[tokio::test]
async fn what_is_refused_unsigned_costs_its_alleged_issuer_nothing() {
    let site = Place::new().start_with(three_an_hour).await;
    for n in 0..5 {
        let mut forged = statement(n).bytes().to_vec();
        *forged.last_mut().unwrap() ^= 1;
        assert_eq!(site.post(&forged).await.status, 400);
    }
    assert_eq!(statuses(&site, 0..3).await, [201, 201, 201]);
}

#[tokio::test]
async fn without_the_counters_a_process_keeps_the_rate_by_itself_and_goes_on() {
    let store = FailingStore::new(Memory::new());
    store.fail_every(StoreMethod::TakeQuota);
    let site = Place::new().start_on(store.clone(), three_an_hour).await;
    assert_eq!(statuses(&site, 0..5).await, [201, 201, 201, 429, 429]);
    site.registered(&testkit::vrf(1)).await;
}

#[tokio::test]
async fn whoever_replays_what_is_public_uses_up_nobodys_quota() {
    let site = Place::new().start_with(three_an_hour).await;
    let public = [statement(0), statement(1)];
    for statement in &public {
        site.registered(statement).await;
    }
    for _ in 0..5 {
        for statement in &public {
            site.registered(statement).await;
        }
    }
    let parts: Vec<_> = (0..64).map(|n| cose(public[n % 2].bytes())).collect();
    let answer = site.post_multipart("/v1/entries/batch", &mixed_type(), closed(&parts)).await.json();
    assert!(answer["results"].as_array().unwrap().iter().all(|result| result["status"] == 201), "{answer}");
    assert_eq!(statuses(&site, 2..4).await, [201, 429], "the third is left, and no fourth");
    site.registered(&public[0]).await;
}

#[tokio::test]
async fn a_contradiction_counts_once_however_often_it_is_handed_in() {
    let site = Place::new().start_with(three_an_hour).await;
    let sign = |n: u64| testkit::receipt(n).sign(&testkit::verifier()).unwrap();
    site.registered(&sign(1)).await;
    let fork = sign(2);
    for _ in 0..5 {
        assert_eq!(site.register(&fork).await.refusal(), refusal(400, "Rejected", "chain_fork"));
    }
    assert_eq!(site.register(&sign(3)).await.status, 400, "another contradiction is the third");
    assert_eq!(site.register(&sign(4)).await.status, 429);
}
