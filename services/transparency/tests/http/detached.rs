//! Detached payloads: a form with the statement and what its signature covers.

use std::time::Duration;

use crate::common::forms::{self, BOUNDARY, closed, field, form, form_type, part};
use crate::common::{COSE, Place, Site, refusal};
use merkle::EntryDigest;
use registration::{Policy, policy_statement};
use reqwest::Method;
use scitt::{SignedStatement, StatementBuilder};
use serde_json::json;
use store::{FailingStore, Inbox, Lifecycle, Memory, StoreMethod};

const PAYLOAD: &[u8] = br#"{"action":"deploy"}"#;

fn detached(sub: &str, payload: &[u8]) -> SignedStatement {
    StatementBuilder::new(payload.to_vec())
        .content_type("application/json")
        .kid(testkit::KID.as_bytes())
        .iss(testkit::ISSUER)
        .sub(sub)
        .detached()
        .sign(&testkit::es256())
        .unwrap()
}

/// The policy of the test kit, but payloads of JSON are dropped.
fn dropping() -> String {
    testkit::policy_toml().replace("detached = true", "detached = true\nkeep_payload = false")
}

async fn entries(site: &Site) -> usize {
    site.get("/v1/entries").await.json()["entries"].as_array().unwrap().len()
}

#[tokio::test]
async fn a_detached_statement_is_registered_with_its_payload_beside_it() {
    let site = Place::new().start().await;
    let one = detached("one", PAYLOAD);
    let answer = site.post_form(one.bytes(), PAYLOAD).await;
    assert_eq!((answer.status, answer.header("content-type")), (201, Some(COSE)), "{answer:?}");
    assert_eq!(answer.header("location"), Some(site.location(&one).as_str()));
    site.verified(&one, &answer.body).await;
    let stored = site.get(&format!("/v1/entries/{}/statement", one.digest())).await;
    assert_eq!(&stored.body, one.bytes(), "the entry keeps nil for its payload");
    let payload = site.get(&format!("/v1/entries/{}/payload", one.digest())).await;
    assert_eq!((payload.status, payload.body.as_slice()), (200, PAYLOAD));
    assert_eq!(payload.header("content-type"), Some("application/octet-stream"));
    let cached = payload.header("cache-control").unwrap();
    assert!(cached.contains("max-age=60") && !cached.contains("immutable"), "it may be erased: {cached}");
}

#[tokio::test]
async fn the_parts_come_in_any_order_and_labelled_as_clients_label_files() {
    let site = Place::new().start().await;
    let with_type = |name: &str, media: &str, body: &[u8]| {
        let disposition =
            format!("Content-Disposition: form-data; name={name}; filename=\"é \\\"x\\\".bin\"");
        part(&format!("{disposition}\r\nContent-Type: {media}"), body)
    };
    for (n, media) in
        [COSE, "application/octet-stream", "application/scitt-statement+cose", "application/cbor"]
            .iter()
            .enumerate()
    {
        let one = detached(&format!("labelled-{n}"), PAYLOAD);
        let parts = [
            with_type("payload", "text/plain; charset=utf-16", PAYLOAD),
            with_type("statement", media, one.bytes()),
        ];
        let answer = site.post_multipart("/entries", &form_type(), closed(&parts)).await;
        assert_eq!(answer.status, 201, "{media}: {answer:?}");
    }
}

#[tokio::test]
async fn a_payload_that_the_signature_does_not_cover_is_refused() {
    let site = Place::new().start().await;
    let one = detached("one", PAYLOAD);
    for wrong in [&b""[..], b"{}", &PAYLOAD[..PAYLOAD.len() - 1], &[PAYLOAD, b"\n"].concat()] {
        let answer = site.post_form(one.bytes(), wrong).await;
        assert_eq!(answer.refusal(), refusal(400, "Rejected", "not-authenticated"));
        assert_eq!(answer.problem().get_rule(), Some("signature"));
    }
    assert_eq!(entries(&site).await, 1);
}

#[tokio::test]
async fn a_statement_that_holds_its_payload_takes_none_beside_it() {
    let site = Place::new().start().await;
    let attached = testkit::opaque("one", &json!({}));
    let answer = site.post_form(attached.bytes(), b"{}").await;
    assert_eq!(answer.refusal(), refusal(400, "Rejected", "payload-twice"));
    assert_eq!(entries(&site).await, 1);
}

#[tokio::test]
async fn a_known_statement_is_answered_with_its_payload_or_none_and_not_with_another() {
    let site = Place::new().start().await;
    let one = detached("one", PAYLOAD);
    assert_eq!(site.post_form(one.bytes(), PAYLOAD).await.status, 201);
    let mixed_up = site.post_form(one.bytes(), b"something else").await;
    assert_eq!(mixed_up.refusal(), refusal(400, "Rejected", "not-authenticated"));
    let mixed = form(one.bytes(), b"something else");
    let response = site.post_multipart("/v1/policy/evaluate", &form_type(), mixed).await.json();
    assert_eq!(
        (&response["would_admit"], &response["violation"]["rule"]),
        (&json!(false), &json!("signature"))
    );
    for again in [site.register(&one).await, site.post_form(one.bytes(), PAYLOAD).await] {
        assert_eq!((again.status, again.header("location")), (201, Some(site.location(&one).as_str())));
    }
    assert_eq!(entries(&site).await, 2);
    assert_eq!(site.get(&format!("/v1/entries/{}/payload", one.digest())).await.body, PAYLOAD);
}

#[tokio::test]
async fn a_payload_is_dropped_when_the_policy_says_so_and_the_answer_names_that_policy() {
    let place = Place::new();
    place.write_policy(&dropping());
    let site = place.start().await;
    let one = detached("one", PAYLOAD);
    assert_eq!(site.post_form(one.bytes(), PAYLOAD).await.status, 201);
    let answer = site.get(&format!("/v1/entries/{}/payload", one.digest())).await;
    assert_eq!(answer.refusal(), refusal(404, "Not Found", "payload-not-kept"));
    let problem = answer.problem();
    assert!(problem.detail.as_deref().unwrap().contains("leaf 0"), "{problem:?}");
    assert_eq!(problem.get_rule(), Some("application/json"));
    let evidence = site.get(&format!("/v1/entries/{}/evidence", one.digest())).await.json();
    assert!(evidence.get("payload").is_none() && evidence["erased"] == false, "{evidence}");
}

/// The successor of the test kit's policy that drops payloads of JSON.
fn from_now_on_dropping() -> SignedStatement {
    let next = Policy::from_toml(&dropping().replace("revision = 0", "revision = 1")).unwrap();
    policy_statement::sign(&next, &testkit::policy(), &testkit::operator()).unwrap()
}

async fn until_waiting(store: &Memory, rows: u64) {
    let waiting = async {
        while store.inbox_use().await.unwrap().rows < rows {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), waiting).await.unwrap();
}

#[tokio::test]
async fn an_entry_is_found_by_what_the_log_keeps_of_it_and_not_by_an_older_decision() {
    let (place, store) = (Place::new(), Memory::new());
    place.start_on(store.clone(), |_| {}).await.service.stop().await;
    let lease = store.lease("the test").await.unwrap().unwrap();
    let never_leads = FailingStore::new(store.clone());
    never_leads.fail_every(StoreMethod::Lease);
    let patient = |config: &mut transparency::Config| config.limits.receipt_wait = Duration::from_secs(20);
    let asked = place.start_on(never_leads, patient).await;
    let other = place.start_on(store.clone(), |_| {}).await;
    let (policy, one) = (from_now_on_dropping(), detached("one", PAYLOAD));
    // Decided under the first policy, and placed under the second one by the other process.
    let after_the_policy = async {
        until_waiting(&store, 1).await;
        asked.post_form(one.bytes(), PAYLOAD).await
    };
    let then_lead = async {
        until_waiting(&store, 2).await;
        drop(lease);
    };
    let (policy, answer, ()) = tokio::join!(asked.register(&policy), after_the_policy, then_lead);
    assert_eq!((policy.status, answer.status), (201, 201), "{answer:?}");
    let digest = EntryDigest::of(PAYLOAD);
    for site in [&asked, &other] {
        let payload = site.get(&format!("/v1/entries/{}/payload", one.digest())).await;
        assert_eq!(payload.refusal(), refusal(404, "Not Found", "payload-not-kept"));
        let found = async |query: &str| {
            let answer = site.get(&format!("/v1/entries?{query}")).await.json();
            answer["entries"].as_array().unwrap().len()
        };
        let numbers = [found("subject=one").await, found(&format!("payload_digest=sha256:{digest}")).await];
        assert_eq!(numbers, [1, 0], "found by its subject, and by no payload");
    }
}

#[tokio::test]
async fn an_attached_payload_can_be_had_by_itself() {
    let site = Place::new().start().await;
    let one = testkit::opaque("one", &json!({ "n": 1 }));
    site.registered(&one).await;
    let answer = site.get(&format!("/v1/entries/{}/payload", one.digest())).await;
    assert_eq!((answer.status, answer.body.as_slice()), (200, one.payload().unwrap()));
    let unknown = site.get(&format!("/v1/entries/{}/payload", "0".repeat(64))).await;
    assert_eq!(unknown.refusal(), refusal(404, "Not Found", "entry-unknown"));
}

#[tokio::test]
async fn policies_and_erasures_hold_their_own_payload() {
    let site = Place::new().start().await;
    let next = testkit::policy_toml().replace("revision = 0", "revision = 1");
    let next = Policy::from_toml(&next).unwrap();
    let erasure = registration::erasure::NewErasure {
        sequence: 0,
        entries: vec![EntryDigest::of(b"anything")],
        reason: "somebody asked".into(),
        rule: "gdpr-17".into(),
        at: None,
        authorized_by: None,
    };
    for (content_type, payload) in [
        (registration::POLICY_CONTENT_TYPE, next.payload().to_vec()),
        (registration::ERASURE_CONTENT_TYPE, erasure.payload()),
    ] {
        let statement = StatementBuilder::new(payload.clone())
            .content_type(content_type)
            .kid(scitt::Signer::public_key(&testkit::operator()).thumbprint())
            .iss(testkit::LOG_ISS)
            .sub(testkit::ORIGIN)
            .detached()
            .sign(&testkit::operator())
            .unwrap();
        let answer = site.post_form(statement.bytes(), &payload).await;
        assert_eq!(answer.problem().get_rule(), Some("detached-payload-not-admitted"), "{answer:?}");
    }
    assert_eq!(entries(&site).await, 1);
}

#[tokio::test]
async fn a_payload_waits_with_its_statement_and_is_asked_about_again_when_the_policy_moves() {
    for keeps in [true, false] {
        let place = Place::new();
        if !keeps {
            place.write_policy(&dropping());
        }
        let store = FailingStore::new(Memory::new());
        let site = place
            .start_on(store.clone(), |config| config.limits.receipt_wait = Duration::from_millis(50))
            .await;
        store.hold_commits();
        let one = detached("one", PAYLOAD);
        let answer = site.post_form(one.bytes(), PAYLOAD).await;
        assert_eq!((answer.status, answer.body.len()), (202, 0), "{answer:?}");
        assert_eq!(site.get(&site.location(&one)).await.status, 204);
        store.release_commits();
        let receipt = loop {
            let answer = site.get(&site.location(&one)).await;
            if answer.status == 200 {
                break answer.body;
            }
            assert_eq!(answer.status, 204, "{answer:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        site.verified(&one, &receipt).await;
        let payload = site.get(&format!("/v1/entries/{}/payload", one.digest())).await;
        assert_eq!(payload.status, if keeps { 200 } else { 404 });
    }
}

#[tokio::test]
async fn a_form_has_one_statement_and_one_payload_and_nothing_else() {
    let site = Place::new().start().await;
    let one = detached("one", PAYLOAD);
    let (statement, payload) = (field("statement", one.bytes()), field("payload", PAYLOAD));
    let cases: [(&str, Vec<Vec<u8>>, &str); 9] = [
        ("no payload", vec![statement.clone()], "payload-missing"),
        ("no statement", vec![payload.clone()], "multipart-malformed"),
        ("nothing", vec![field("x", b"")], "multipart-malformed"),
        ("two statements", vec![statement.clone(), statement.clone()], "multipart-malformed"),
        ("two payloads", vec![payload.clone(), payload.clone()], "multipart-malformed"),
        ("three parts", vec![statement.clone(), payload.clone(), field("x", b"")], "parts-too-many"),
        ("another name", vec![statement.clone(), field("Payload", PAYLOAD)], "multipart-malformed"),
        ("_charset_", vec![field("_charset_", b"utf-7"), statement.clone()], "multipart-malformed"),
        (
            "no name",
            vec![statement.clone(), part("Content-Type: application/json", PAYLOAD)],
            "multipart-malformed",
        ),
    ];
    for (name, parts, code) in cases {
        let answer = site.post_multipart("/entries", &form_type(), closed(&parts)).await;
        assert_eq!((answer.status, answer.refusal().2.as_str()), (400, code), "{name}: {answer:?}");
    }
    let not_cose =
        part("Content-Disposition: form-data; name=statement\r\nContent-Type: text/html", one.bytes());
    let answer = site.post_multipart("/entries", &form_type(), closed(&[not_cose, payload])).await;
    assert_eq!(answer.refusal(), refusal(415, "Unsupported Media Type", "media-type"));
    assert_eq!(entries(&site).await, 1);
}

#[tokio::test]
async fn what_is_no_multipart_body_is_refused_by_the_byte_and_gives_its_memory_back() {
    let place = Place::new();
    // Room for one body at a time: whatever leaks shows.
    let one_body = |config: &mut transparency::Config| {
        config.limits.statement_bytes = 1 << 20;
        config.limits.bodies_in_flight_bytes = 1 << 20;
    };
    let site = place.start_with(one_body).await;
    let one = detached("one", PAYLOAD);
    let whole = form(one.bytes(), PAYLOAD);
    let big_head =
        part(&format!("Content-Disposition: form-data; name=statement\r\nx: {}", "y".repeat(100_000)), b"");
    let many: Vec<u8> = (0..10_000).flat_map(|_| part("x: y", b"")).collect();
    let nested = part(
        "Content-Disposition: form-data; name=statement\r\nContent-Type: multipart/mixed; boundary=inner",
        b"--inner\r\n\r\nx\r\n--inner--",
    );
    let encoded =
        part("Content-Disposition: form-data; name=statement\r\nContent-Transfer-Encoding: base64", b"eA==");
    let cases: [(&str, String, Vec<u8>, &str); 12] = [
        ("no boundary", "multipart/form-data".into(), whole.clone(), "multipart-malformed"),
        ("two boundaries", format!("{}; boundary=x", form_type()), whole.clone(), "multipart-malformed"),
        (
            "huge boundary",
            format!("multipart/form-data; boundary={}", "b".repeat(8000)),
            whole.clone(),
            "multipart-malformed",
        ),
        (
            "another boundary",
            "multipart/form-data; boundary=other".into(),
            whole.clone(),
            "multipart-malformed",
        ),
        ("empty", form_type(), vec![], "multipart-malformed"),
        ("truncated", form_type(), whole[..whole.len() - 20].to_vec(), "multipart-malformed"),
        ("preamble", form_type(), [b"hello\r\n", &whole[..]].concat(), "multipart-malformed"),
        ("epilogue", form_type(), [&whole[..], b"bye"].concat(), "multipart-malformed"),
        ("long headers", form_type(), closed(&[big_head]), "multipart-malformed"),
        ("10,000 parts", form_type(), many, "parts-too-many"),
        ("nested", form_type(), closed(&[nested, field("payload", PAYLOAD)]), "media-type"),
        ("encoded", form_type(), closed(&[encoded]), "multipart-malformed"),
    ];
    for (name, content_type, body, code) in cases {
        let answer = site.post_multipart("/entries", &content_type, body).await;
        assert_eq!(answer.refusal().2, code, "{name}: {answer:?}");
    }
    let large = vec![b'x'; (1 << 20) - 600];
    let one = detached("large", &large);
    for _ in 0..3 {
        assert_eq!(site.post_form(one.bytes(), &large).await.status, 201, "the whole budget is free");
    }
}

#[tokio::test]
async fn statement_and_payload_are_each_as_large_as_one_statement_may_be() {
    let place = Place::new();
    let site = place.start_with(|config| config.limits.statement_bytes = 4096).await;
    let fits = vec![b'x'; 4096];
    let one = detached("fits", &fits);
    assert_eq!(site.post_form(one.bytes(), &fits).await.status, 201);
    let too_large = vec![b'x'; 4097];
    let two = detached("too large", &too_large);
    let answer = site.post_form(two.bytes(), &too_large).await;
    assert_eq!(answer.refusal(), refusal(413, "Content Too Large", "body-too-large"));
    let answer = site.post_form(two.bytes(), &vec![b'x'; 100_000]).await;
    assert_eq!(answer.refusal(), refusal(413, "Content Too Large", "body-too-large"));
}

#[tokio::test]
async fn a_form_that_trickles_is_not_waited_for() {
    let place = Place::new();
    let site = place.start_with(|config| config.limits.body_time = Duration::from_millis(300)).await;
    let whole = form(detached("one", PAYLOAD).bytes(), PAYLOAD);
    let trickle = futures::stream::unfold((0, whole), |(at, whole)| async move {
        tokio::time::sleep(Duration::from_millis(20)).await;
        let byte = bytes::Bytes::copy_from_slice(whole.get(at..at + 1)?);
        Some((Ok::<_, std::io::Error>(byte), (at + 1, whole)))
    });
    let request = site.client.request(Method::POST, format!("{}/entries", site.url));
    let request = request.header("content-type", form_type()).body(reqwest::Body::wrap_stream(trickle));
    // The answer is 408; a client that still sends may see the connection close instead.
    if let Ok(answer) = request.send().await {
        assert_eq!(answer.status().as_u16(), 408);
    }
    assert_eq!(site.post_form(detached("two", PAYLOAD).bytes(), PAYLOAD).await.status, 201);
}

#[tokio::test]
async fn forms_of_other_types_and_paths_are_not_taken() {
    let site = Place::new().start().await;
    let body = form(detached("one", PAYLOAD).bytes(), PAYLOAD);
    for wrong in [forms::mixed_type(), format!("multipart/related; boundary={BOUNDARY}")] {
        let answer = site.post_multipart("/entries", &wrong, body.clone()).await;
        assert_eq!(answer.refusal(), refusal(415, "Unsupported Media Type", "media-type"), "{wrong}");
    }
}
