//! SCRAPI -11 as a client sees it: each status and each body of its tables.

#![allow(clippy::unwrap_used)]

mod common;

use common::{COSE, Gated, Place, refusal};
use reqwest::Method;
use scitt::{Algorithm, CoseKey, KeySet, SignedStatement, Signer, SigningKey, StatementBuilder};
use serde_json::json;

fn statement(n: u64) -> SignedStatement {
    testkit::opaque(&format!("thing-{n}"), &json!({ "n": n }))
}

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
async fn the_same_statement_is_one_entry_however_often_it_is_registered() {
    let site = Place::new().start().await;
    let one = statement(1);
    let first = site.registered(&one).await;
    for n in 2..5 {
        site.registered(&statement(n)).await;
    }
    let again = site.registered(&one).await;
    let index = |receipt: &scitt::Receipt| receipt.inclusion_proofs()[0].leaf_index;
    assert_eq!(index(&again), index(&first));
    assert_eq!(site.get("/v1/entries").await.json()["entries"].as_array().unwrap().len(), 5);
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
async fn a_transparent_statement_registers_as_its_statement() {
    let site = Place::new().start().await;
    let one = statement(1);
    let receipt = site.registered(&one).await;
    let transparent = scitt::transparent::attach(one.bytes(), &[receipt.bytes()]).unwrap();
    let answer = site.post(&transparent).await;
    assert_eq!((answer.status, answer.header("location")), (201, Some(site.location(&one).as_str())));
}

#[tokio::test]
async fn the_location_answers_with_a_fresh_receipt() {
    let site = Place::new().start().await;
    let one = statement(1);
    site.registered(&one).await;
    site.registered(&statement(2)).await;
    let answer = site.get(&site.location(&one)).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("location"), Some(site.location(&one).as_str()));
    assert_eq!(answer.header("content-type"), Some(COSE));
    let receipt = site.verified(&one, &answer.body).await;
    assert_eq!(receipt.inclusion_proofs()[0].tree_size.get(), 3);
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
        ("text/html", COSE),
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
async fn what_is_no_statement_is_refused_with_the_byte_that_shows_it() {
    let site = Place::new().start().await;
    let whole = statement(1).bytes().to_vec();
    let mut untagged = whole.clone();
    untagged.remove(0);
    let mut trailing = whole.clone();
    trailing.push(0);
    let deep: Vec<u8> = std::iter::repeat_n(0x81, 100_000).collect();
    let cases: [(&str, Vec<u8>, Option<u64>); 6] = [
        ("empty", vec![], None),
        ("untagged", untagged, Some(0)),
        ("trailing", trailing, Some(whole.len() as u64)),
        ("cut short", whole[..whole.len() - 1].to_vec(), None),
        ("text", b"hello".to_vec(), Some(0)),
        ("deep", deep, None),
    ];
    for (name, body, offset) in cases {
        let answer = site.post(&body).await;
        assert_eq!(answer.refusal(), refusal(400, "Malformed request", "statement-malformed"), "{name}");
        let found = answer.problem().get_offset();
        assert!(found.is_some() && (offset.is_none() || found == offset), "{name}: {found:?}");
    }
    assert_eq!(site.get("/v1/entries").await.json()["entries"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn an_algorithm_that_is_not_spoken_is_named_as_such() {
    let site = Place::new().start().await;
    // PS256 (-37) in place of ES256 in the protected header.
    let mut bytes = statement(1).bytes().to_vec();
    let at = bytes.windows(2).position(|two| two == [0x01, 0x26]).unwrap();
    bytes.splice(at..at + 2, [0x01, 0x38, 0x24]);
    bytes[3] += 1;
    let answer = site.post(&bytes).await;
    assert_eq!(answer.refusal(), refusal(400, "Bad Signature Algorithm", "signature-algorithm"));
}

#[tokio::test]
async fn a_detached_payload_that_did_not_come_along_is_missing() {
    let site = Place::new().start().await;
    let detached = StatementBuilder::new(b"{}".to_vec())
        .content_type("application/json")
        .kid(testkit::KID.as_bytes())
        .iss(testkit::ISSUER)
        .sub("thing")
        .detached()
        .sign(&testkit::es256())
        .unwrap();
    let answer = site.register(&detached).await;
    assert_eq!(answer.refusal(), refusal(400, "Payload Missing", "payload-missing"));
}

#[tokio::test]
async fn what_the_policy_refuses_is_rejected_by_the_name_of_its_rule() {
    let site = Place::new().start().await;
    let stranger =
        testkit::opaque_with(&testkit::es256(), "https://stranger.example", b"key-1", "x", &json!({}));
    let other_key = testkit::opaque_with(&testkit::es384(), testkit::ISSUER, b"key-1", "x", &json!({}));
    let image = StatementBuilder::new(b"png".to_vec())
        .content_type("image/png")
        .kid(testkit::KID.as_bytes())
        .iss(testkit::ISSUER)
        .sub("x")
        .sign(&testkit::es256())
        .unwrap();
    for (statement, rule) in
        [(stranger, "issuer-unknown"), (other_key, "signature"), (image, "content-type-not-admitted")]
    {
        let answer = site.register(&statement).await;
        let problem = answer.problem();
        assert_eq!((answer.status, problem.title.as_deref()), (400, Some("Rejected")), "{rule}");
        assert_eq!(problem.get_rule(), Some(rule));
        assert!(
            problem
                .detail
                .unwrap()
                .starts_with("Signed Statement not accepted by the current Registration Policy")
        );
        assert_eq!(site.get(&site.location(&statement)).await.status, 404, "nothing reached the log");
    }
}

#[tokio::test]
async fn a_tampered_statement_is_rejected_for_its_signature() {
    let site = Place::new().start().await;
    let mut bytes = statement(1).bytes().to_vec();
    let at = bytes.windows(3).position(|three| three == b"{\"n").unwrap();
    bytes[at + 1] ^= 1;
    let answer = site.post(&bytes).await;
    assert_eq!((answer.status, answer.problem().get_rule()), (400, Some("signature")));
}

#[tokio::test]
async fn the_twin_of_a_registered_signature_is_refused_naming_the_entry() {
    let site = Place::new().start().await;
    let one = statement(1);
    site.registered(&one).await;
    let order = p256_order();
    let mut bytes = one.bytes().to_vec();
    let at = bytes.len() - 32;
    let twin_s = subtract(&order, &bytes[at..]);
    bytes[at..].copy_from_slice(&twin_s);
    let answer = site.post(&bytes).await;
    assert_eq!(answer.refusal(), refusal(400, "Rejected", "signature-twin"));
    assert!(answer.problem().detail.unwrap().contains(&one.digest().to_string()));
}

fn p256_order() -> [u8; 32] {
    let hex = b"ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551";
    data_encoding::HEXLOWER.decode(hex).unwrap().try_into().unwrap()
}

fn subtract(from: &[u8; 32], number: &[u8]) -> [u8; 32] {
    let mut out = [0; 32];
    let mut borrow = 0i16;
    for place in (0..32).rev() {
        let digit = i16::from(from[place]) - i16::from(number[place]) - borrow;
        borrow = i16::from(digit < 0);
        out[place] = digit.rem_euclid(256) as u8;
    }
    out
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
async fn keys_are_a_set_and_each_is_one_map_under_base64url_of_its_kid() {
    let site = Place::new().start().await;
    let answer =
        site.send(Method::GET, "/.well-known/scitt-keys", &[("accept", "application/cbor")], "").await;
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/cbor")));
    assert!(answer.header("cache-control").unwrap().contains("max-age"));
    let set = KeySet::parse(&answer.body).unwrap();
    assert_eq!((set.keys().len(), set.skipped().len()), (1, 0), "the checkpoint key is no receipt key");
    let key = &set.keys()[0];
    let kid = key.kid.clone().unwrap();
    assert_eq!(kid, key.key.thumbprint());
    let segment = data_encoding::BASE64URL_NOPAD.encode(&kid);
    let one = site.get(&format!("/.well-known/scitt-keys/{segment}")).await;
    assert_eq!((one.status, one.header("content-type")), (200, Some("application/cbor")));
    assert_eq!(CoseKey::parse(&one.body).unwrap(), *key);
    let hex = data_encoding::HEXLOWER.encode(&kid);
    for wrong in [format!("{segment}="), "nothing".into(), hex, "%ff".into(), "%2e%2e".into()] {
        let answer = site.get(&format!("/.well-known/scitt-keys/{wrong}")).await;
        assert!(matches!(answer.status, 404 | 405), "{wrong}: {}", answer.status);
        if answer.status == 404 && !wrong.starts_with("%2e") {
            assert_eq!(answer.refusal(), refusal(404, "No such key", "key-unknown"), "{wrong}");
        }
    }
}

#[tokio::test]
async fn accepted_then_running_then_resolved_all_at_one_location() {
    let store = Gated::new();
    let place = Place::new();
    let wait = std::time::Duration::from_millis(50);
    let site = place.start_on(store.clone(), |config| config.limits.receipt_wait = wait).await;
    store.close();
    let one = statement(1);
    let accepted = site.register(&one).await;
    assert_eq!((accepted.status, accepted.body.len()), (202, 0));
    assert_eq!(accepted.header("location"), Some(site.location(&one).as_str()));
    assert_eq!(accepted.header("retry-after"), Some("1"));
    let running = site.get(&site.location(&one)).await;
    assert_eq!((running.status, running.body.len()), (204, 0));
    assert_eq!(running.header("retry-after"), Some("1"));
    assert_eq!(running.header("cache-control"), Some("no-store"));
    store.open();
    let answer = loop {
        let answer = site.get(&site.location(&one)).await;
        match answer.status {
            204 => tokio::time::sleep(std::time::Duration::from_millis(10)).await,
            _ => break answer,
        }
    };
    assert_eq!(answer.status, 200, "{answer:?}");
    site.verified(&one, &answer.body).await;
    let again = site.registered(&one).await;
    assert_eq!(again.inclusion_proofs()[0].leaf_index.get(), 1, "one leaf for both ways");
}

#[tokio::test]
async fn a_failed_registration_stays_failed_and_says_why() {
    use store::LogStore;
    let store = Gated::new();
    let site = Place::new().start_on(store.clone(), |_| {}).await;
    let one = statement(1);
    let item = store::InboxItem { digest: one.digest(), submission: bytes::Bytes::from_static(b"x") };
    store.memory.enqueue(&item).await.unwrap();
    store.memory.refuse(&one.digest(), "the policy changed").await.unwrap();
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
    assert_eq!(refused.problem().detail.as_deref(), Some("Only 1 requests per second are allowed."));
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
        place.key("receipt.pem", &key);
        let site = place.start_with(|config| config.receipt_algorithm = configured).await;
        let receipt = site.registered(&statement(1)).await;
        assert_eq!(receipt.header().algorithm(), Some(algorithm));
        assert_eq!(receipt.header().kid().unwrap().as_ref(), key.public_key().thumbprint());
    }
}

#[tokio::test]
async fn older_peers_find_a_configuration_that_says_it_is_deprecated() {
    let site = Place::new().start().await;
    for path in ["/.well-known/scitt-configuration", "/.well-known/transparency-configuration"] {
        let answer = site.get(path).await;
        assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/cbor")));
        assert_eq!(answer.header("deprecation"), Some("true"));
        let link = answer.header("link").unwrap();
        assert!(link.contains("/.well-known/scitt-keys>") && link.contains("successor-version"), "{link}");
        let document =
            scitt::cbor::parse(&answer.body, scitt::cbor::Limits { depth: 2, items: 16 }).unwrap().value;
        assert_eq!(document.get(&"issuer".into()).unwrap().value.as_text(), Some(testkit::LOG_ISS));
    }
}
