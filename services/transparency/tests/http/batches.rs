//! Batches: many statements in one request, each registered or refused by itself.

use std::time::Duration;

use crate::common::forms::{BOUNDARY, closed, cose, field, form_type, mixed_type, part};
use crate::common::{Answer, Place, Site, refusal, statement};
use data_encoding::BASE64URL_NOPAD;
use serde_json::{Value, json};
use store::{FailingStore, Memory};
use transparency::{AccessConfig, ClientToken, Rate};

async fn send(site: &Site, parts: &[Vec<u8>]) -> Answer {
    site.post_multipart("/v1/entries/batch", &mixed_type(), closed(parts)).await
}

fn results(answer: &Answer) -> Vec<Value> {
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["results"].as_array().unwrap().clone()
}

async fn entries(site: &Site) -> usize {
    site.get("/v1/entries").await.json()["entries"].as_array().unwrap().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_statement_of_a_batch_gets_its_receipt_in_its_place_and_the_leaf_after_the_one_before() {
    let site = Place::new().start().await;
    let statements: Vec<_> = (0..256).map(statement).collect();
    let parts: Vec<_> = statements.iter().map(|statement| cose(statement.bytes())).collect();
    let results = results(&send(&site, &parts).await);
    assert_eq!(results.len(), 256);
    let mut leaves = Vec::new();
    for (statement, result) in statements.iter().zip(&results) {
        assert_eq!(result["status"], 201, "{result}");
        assert_eq!(result["entry_id"], statement.digest().to_string());
        assert_eq!(result["location"], site.location(statement));
        let receipt = BASE64URL_NOPAD.decode(result["receipt"].as_str().unwrap().as_bytes()).unwrap();
        let receipt = site.verified(statement, &receipt).await;
        assert_eq!(result["leaf_index"], receipt.inclusion_proofs()[0].leaf_index.get());
        leaves.push(result["leaf_index"].as_u64().unwrap());
    }
    assert_eq!(leaves, (1..=256).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_batch_is_registered_part_by_part_and_never_all_or_nothing() {
    let site = Place::new().start().await;
    let known = statement(1);
    site.registered(&known).await;
    let stranger =
        testkit::opaque_with(&testkit::es256(), "https://stranger.example", b"key-1", "x", &json!({}));
    let (second, third) = (statement(2), statement(3));
    let parts = [
        cose(second.bytes()),
        cose(b"no statement"),
        cose(known.bytes()),
        cose(stranger.bytes()),
        part("Content-Type: application/scitt-statement+cose", third.bytes()),
        cose(second.bytes()),
        part("Content-Type: application/json", b"{}"),
        part("Content-Disposition: attachment", statement(4).bytes()),
        part(&format!("Content-Type: multipart/form-data; boundary={BOUNDARY}x"), b""),
    ];
    let results = results(&send(&site, &parts).await);
    let statuses: Vec<_> = results.iter().map(|result| result["status"].as_u64().unwrap()).collect();
    assert_eq!(statuses, [201, 400, 201, 400, 201, 201, 415, 415, 415]);
    assert_eq!(results[1]["problem"]["code"], "statement-malformed");
    assert_eq!(results[1]["problem"]["offset"], 0);
    assert!(results[1].get("entry_id").is_none());
    assert_eq!(results[2]["leaf_index"], 1);
    assert_eq!(results[3]["problem"]["rule"], "issuer-unknown");
    assert_eq!(results[3]["entry_id"], stranger.digest().to_string());
    assert_eq!(results[5]["leaf_index"], results[0]["leaf_index"], "the same statement is one leaf");
    assert_eq!(results[6]["problem"]["code"], "media-type");
    assert_eq!(entries(&site).await, 4);
}

#[tokio::test]
async fn a_batch_that_cannot_be_taken_apart_registers_nothing() {
    let site = Place::new().start().await;
    let good = cose(statement(1).bytes());
    let many: Vec<_> = (0..257).map(|_| good.clone()).collect();
    assert_eq!(send(&site, &many).await.refusal(), refusal(400, "Malformed request", "parts-too-many"));
    let whole = closed(&[good.clone(), cose(statement(2).bytes())]);
    let cut = &whole[..whole.len() - 12];
    let cases: [(&str, String, Vec<u8>, u16, &str); 7] = [
        ("cut short", mixed_type(), cut.to_vec(), 400, "multipart-malformed"),
        (
            "a bad part at its end",
            mixed_type(),
            closed(&[good.clone(), part("bad header", b"")]),
            400,
            "multipart-malformed",
        ),
        (
            "a part header twice",
            mixed_type(),
            closed(&[part("a: b\r\nA: c", b""), good.clone()]),
            400,
            "multipart-malformed",
        ),
        ("no boundary", "multipart/mixed".into(), whole.clone(), 400, "multipart-malformed"),
        ("no parts", mixed_type(), format!("--{BOUNDARY}--").into_bytes(), 400, "multipart-malformed"),
        ("a form", form_type(), closed(&[field("statement", statement(1).bytes())]), 415, "media-type"),
        ("a statement", "application/cose".into(), statement(1).bytes().to_vec(), 415, "media-type"),
    ];
    for (name, content_type, body, status, code) in cases {
        let answer = site.post_multipart("/v1/entries/batch", &content_type, body).await;
        assert_eq!((answer.status, answer.refusal().2.as_str()), (status, code), "{name}: {answer:?}");
    }
    assert_eq!(entries(&site).await, 1);
}

#[tokio::test]
async fn a_batch_and_its_parts_are_bounded() {
    let place = Place::new();
    let site = place
        .start_with(|config| {
            config.limits.statement_bytes = 600;
            config.limits.batch_bytes = 4096;
        })
        .await;
    let large = testkit::opaque("large", &json!({ "x": "y".repeat(800) }));
    let results = results(&send(&site, &[cose(large.bytes()), cose(statement(1).bytes())]).await);
    assert_eq!((&results[0]["status"], &results[1]["status"]), (&json!(413), &json!(201)));
    let parts: Vec<_> = (0..20).map(|n| cose(statement(n).bytes())).collect();
    assert_eq!(send(&site, &parts).await.refusal(), refusal(413, "Content Too Large", "body-too-large"));
    let limits = site.get("/v1/limits").await.json();
    assert_eq!((&limits["batch_bytes"], &limits["batch_statements"]), (&json!(4096), &json!(256)));
}

#[tokio::test]
async fn each_part_counts_as_one_registration() {
    let place = Place::new();
    let site = place.start_with(|config| config.limits.writes = Rate::per_second(1, 4)).await;
    let parts: Vec<_> = (0..6).map(|n| cose(statement(n).bytes())).collect();
    let results = results(&send(&site, &parts).await);
    let statuses: Vec<_> = results.iter().map(|result| result["status"].as_u64().unwrap()).collect();
    assert_eq!(statuses[..4], [201; 4]);
    assert_eq!(statuses[5], 429);
    assert!(results[5]["retry_after"].as_u64().unwrap() >= 1, "{}", results[5]);
    assert_eq!(results[5]["problem"]["code"], "rate-limited");
    assert_eq!(send(&site, &parts).await.refusal(), refusal(429, "Too Many Requests", "rate-limited"));
}

#[tokio::test]
async fn a_batch_needs_the_token_that_a_registration_needs() {
    let place = Place::new();
    let token = ClientToken::new("ci", "a secret of the tests");
    let site = place
        .start_with(|config| {
            config.access =
                AccessConfig { tokens: vec![token], token_required: true, ..AccessConfig::default() }
        })
        .await;
    assert_eq!(send(&site, &[cose(statement(1).bytes())]).await.status, 401);
}

#[tokio::test]
async fn what_is_not_sequenced_in_time_is_accepted_part_by_part() {
    let place = Place::new();
    let store = FailingStore::new(Memory::new());
    let site =
        place.start_on(store.clone(), |config| config.limits.receipt_wait = Duration::from_millis(50)).await;
    store.hold_commits();
    let statements: Vec<_> = (0..3).map(statement).collect();
    let parts: Vec<_> = statements.iter().map(|statement| cose(statement.bytes())).collect();
    let results = results(&send(&site, &parts).await);
    store.release_commits();
    for (statement, result) in statements.iter().zip(&results) {
        assert_eq!(result["status"], 202, "{result}");
        assert!(result.get("receipt").is_none() && result["retry_after"].as_u64().unwrap() >= 1);
        let location = result["location"].as_str().unwrap();
        loop {
            let answer = site.get(location).await;
            if answer.status == 200 {
                site.verified(statement, &answer.body).await;
                break;
            }
            assert_eq!(answer.status, 204, "{answer:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

#[tokio::test]
async fn a_batch_is_never_larger_than_what_all_bodies_may_take_and_gives_its_share_back() {
    let place = Place::new();
    let site = place
        .start_with(|config| {
            config.limits.statement_bytes = 16 << 10;
            config.limits.bodies_in_flight_bytes = 32 << 10;
        })
        .await;
    let large = |n: u64| testkit::opaque(&format!("large-{n}"), &json!({ "x": "y".repeat(12 << 10) }));
    let (one, two, three) = (large(1), large(2), large(3));
    let parts = [cose(one.bytes()), cose(two.bytes()), cose(three.bytes())];
    assert_eq!(send(&site, &parts).await.refusal(), refusal(413, "Content Too Large", "body-too-large"));
    for _ in 0..4 {
        let results = results(&send(&site, &parts[..2]).await);
        assert!(results.iter().all(|result| result["status"] == 201), "{results:?}");
    }
}
