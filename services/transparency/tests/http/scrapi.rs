//! SCRAPI -11 as a client sees it: each status and each body of its tables.

use crate::common::{COSE, Place, refusal, statement};
use reqwest::Method;
use scitt::{Algorithm, Signer, SigningKey};
use serde_json::json;
use store::{FailingStore, Memory};

#[tokio::test]
async fn a_statement_goes_in_and_a_receipt_comes_out_that_anyone_can_check() {
    let site = Place::new().start().await;
    let receipt = site.registered(&statement(1)).await;
    let claims = receipt.header().claims().unwrap();
    assert_eq!((claims.iss(), claims.sub()), (Some(testkit::LOG_ISS), Some(testkit::ORIGIN)));
    assert!(claims.iat().is_some());
    assert_eq!(receipt.header().algorithm(), Some(Algorithm::Es256));
    let proof = &receipt.inclusion_proofs()[0];
    assert_eq!((proof.leaf_index.get(), proof.tree_size.get()), (1, 2), "entry 0 is the policy");
    assert_eq!(receipt.signed_tree_size(), Some(proof.tree_size));
    assert!(!proof.path.is_empty());
}

#[tokio::test]
async fn a_hundred_clients_with_the_same_statement_share_one_leaf() {
    let place = Place::new();
    let site = std::sync::Arc::new(place.start().await);
    let one = statement(1);
    let clients = (0..100).map(|_| {
        let (site, one) = (site.clone(), one.clone());
        tokio::spawn(async move { site.registered(&one).await.inclusion_proofs()[0].leaf_index.get() })
    });
    for index in futures::future::join_all(clients).await {
        assert_eq!(index.unwrap(), 1);
    }
    assert_eq!(site.get("/v1/entries").await.json()["entries"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn receipts_are_labelled_as_the_client_asks() {
    let site = Place::new().start().await;
    let one = statement(1);
    let wanted = "application/scitt-receipt+cose";
    let headers = [("content-type", "application/scitt-statement+cose"), ("accept", wanted)];
    let answer = site.send(Method::POST, "/entries", &headers, one.bytes().clone()).await;
    assert_eq!((answer.status, answer.header("content-type")), (201, Some(wanted)));
    let path = site.location(&one);
    for (accept, label) in [
        (wanted, wanted),
        ("application/cose", COSE),
        ("application/cbor, application/cose", COSE),
        ("*/*", COSE),
    ] {
        let answer = site.send(Method::GET, &path, &[("accept", accept)], "").await;
        assert_eq!((answer.status, answer.header("content-type")), (200, Some(label)), "{accept}");
    }
}

#[tokio::test]
async fn statements_come_in_four_content_types_and_no_other() {
    let site = Place::new().start().await;
    let mut n = 0;
    for taken in [
        &[("content-type", "application/cose")][..],
        &[("content-type", "application/cose; cose-type=\"cose-sign1\"")],
        &[("content-type", "application/scitt-statement+cose")],
        &[("content-type", "application/cbor")],
        &[],
    ] {
        n += 1;
        let answer = site.send(Method::POST, "/entries", taken, statement(n).bytes().clone()).await;
        assert_eq!(answer.status, 201, "{taken:?}");
    }
    for refused in
        ["application/json", "text/plain", "multipart/related", "application/cose; cose-type=cose-mac"]
    {
        let headers = [("content-type", refused)];
        let answer = site.send(Method::POST, "/entries", &headers, statement(1).bytes().clone()).await;
        assert_eq!(answer.refusal(), refusal(415, "Unsupported Media Type", "media-type"), "{refused}");
    }
}

#[tokio::test]
async fn a_vrf_receipt_id_is_taken_once_and_the_refusal_names_the_entry() {
    let site = Place::new().start().await;
    let first = testkit::vrf(1);
    site.registered(&first).await;
    let mut json = testkit::receipt_json(1);
    json["metadata"]["note"] = "another receipt under the same id".into();
    let second = registration::vrf::VrfStatement::new(json, testkit::AGENT).unchained();
    let second = second.sign(&testkit::verifier()).unwrap();
    let answer = site.register(&second).await;
    let problem = answer.problem();
    assert_eq!((answer.status, problem.title.as_deref()), (400, Some("Rejected")));
    assert!(problem.get_rule().unwrap().contains("receipt-id"), "{:?}", problem.get_rule());
    let entry =
        problem.get(scitt::problem::TABELLION, &"entry".into()).unwrap().as_text().unwrap().to_owned();
    assert_eq!(entry, first.digest().to_string());
}

#[tokio::test]
async fn unknown_entries_and_locators_that_are_none_are_told_apart() {
    let site = Place::new().start().await;
    let unknown = site.get(&format!("/entries/{}", "0".repeat(64))).await;
    assert_eq!(unknown.refusal(), refusal(404, "Not Found", "entry-unknown"));
    let upper = "A".repeat(64);
    for wrong in ["0", "1", &"0".repeat(63), &"0".repeat(65), &upper, "%00", "%ff", "..%2f"] {
        let answer = site.get(&format!("/entries/{wrong}")).await;
        assert_eq!(answer.refusal(), refusal(400, "Invalid locator", "locator-invalid"), "{wrong}");
    }
    assert_eq!(site.get("/entries/").await.status, 404);
    assert_eq!(site.get("/entries").await.refusal().0, 405);
}

#[tokio::test]
async fn a_failed_registration_stays_failed_and_says_why() {
    use store::Inbox;
    let store = FailingStore::new(Memory::new());
    let site = Place::new().start_on(store.clone(), |_| {}).await;
    let one = statement(1);
    let item = store::InboxItem { digest: one.digest(), submission: bytes::Bytes::from_static(b"x") };
    store.enqueue(&item).await.unwrap();
    store.refuse(&one.digest(), "the policy changed").await.unwrap();
    for _ in 0..2 {
        let answer = site.get(&site.location(&one)).await;
        assert_eq!(answer.refusal(), refusal(404, "Registration Failed", "registration-failed"));
        assert_eq!(answer.problem().detail.as_deref(), Some("the policy changed"));
    }
    site.registered(&one).await;
    assert_eq!(site.get(&site.location(&one)).await.status, 200, "until it is registered after all");
}

#[tokio::test]
async fn beyond_the_rate_429_says_when_to_come_back() {
    let place = Place::new();
    let rate = transparency::Rate::per_second(1, 2);
    let site = place.start_with(|config| config.limits.writes = rate).await;
    site.registered(&statement(1)).await;
    site.registered(&statement(2)).await;
    let refused = site.register(&statement(3)).await;
    assert_eq!(refused.refusal(), refusal(429, "Too Many Requests", "rate-limited"));
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(refused.problem().detail.as_deref(), Some("Only 1 request per second is allowed."));
}

#[tokio::test]
async fn an_issuer_has_a_quota_of_its_own_that_forgeries_do_not_use_up() {
    let place = Place::new();
    let quota = Some(transparency::Rate::per_second(1, 1));
    let site = place.start_with(|config| config.limits.issuer = quota).await;
    for n in 0..5 {
        let forged =
            testkit::opaque_with(&testkit::es384(), testkit::ISSUER, b"key-1", "x", &json!({ "n": n }));
        assert_eq!(site.register(&forged).await.status, 400);
    }
    site.registered(&statement(1)).await;
    assert_eq!(site.register(&statement(2)).await.status, 429);
    site.registered(&testkit::vrf(1)).await;
}

#[tokio::test]
async fn receipts_can_be_signed_with_eddsa_and_es384() {
    use transparency::ReceiptAlgorithm;
    let cases = [(ReceiptAlgorithm::EdDsa, Algorithm::EdDsa), (ReceiptAlgorithm::Es384, Algorithm::Es384)];
    for (configured, algorithm) in cases {
        let place = Place::new();
        let key = SigningKey::generate(algorithm).unwrap();
        place.write_key("receipt.pem", &key);
        let site = place.start_with(|config| config.receipt_algorithm = configured).await;
        let receipt = site.registered(&statement(1)).await;
        assert_eq!(receipt.header().algorithm(), Some(algorithm));
        assert_eq!(receipt.header().kid().unwrap().as_ref(), key.public_key().thumbprint());
    }
}
