//! Evidence: what an outside monitor decides an admission again with.

use crate::common::{Place, Site, erasure, refusal, statement};
use data_encoding::BASE64URL_NOPAD;
use merkle::LeafIndex;
use registration::{Answers, Policy, PolicyInForce, Record, SideData};
use scitt::{SignedStatement, StatementBuilder};
use serde_json::{Value, json};

fn bytes(value: &Value) -> Vec<u8> {
    BASE64URL_NOPAD.decode(value.as_str().unwrap().as_bytes()).unwrap()
}

/// Decides an admission again from its evidence and the evidence of its policy, and nothing else.
fn decides_again(evidence: &Value, policy: &Value) {
    let statement = SignedStatement::parse(bytes(&evidence["statement"])).unwrap();
    assert_eq!(statement.digest().to_string(), evidence["entry_id"]);
    let policy_statement = SignedStatement::parse(bytes(&policy["statement"])).unwrap();
    let in_force = Policy::from_payload(policy_statement.payload().unwrap()).unwrap();
    assert_eq!(in_force.digest().to_string(), evidence["policy"]["digest"]);
    let in_force =
        PolicyInForce::new(in_force, LeafIndex::new(evidence["policy"]["index"].as_u64().unwrap()));
    let payload = evidence.get("payload").map(bytes);
    let beside = SideData { payload: payload.as_deref(), x5chain: None };
    let authenticated = in_force.authenticate(&statement, beside).unwrap();
    let record = Record::read(&authenticated).unwrap();
    let permit = in_force.decide(&authenticated, &record, &Answers::none()).into_permit().unwrap();
    assert_eq!(permit.rule().as_str(), evidence["rule"]);
    assert_eq!(serde_json::from_str::<Value>(permit.facts()).unwrap(), evidence["facts"]);
    assert!(permit.valid().contains(evidence["at"].as_u64().unwrap()));
}

async fn evidence_of(site: &Site, statement: &SignedStatement) -> Value {
    let answer = site.get(&format!("/v1/entries/{}/evidence", statement.digest())).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let cached = answer.header("cache-control").unwrap();
    assert!(cached.contains("max-age=60") && !cached.contains("immutable"), "{cached}");
    answer.json()
}

#[tokio::test]
async fn an_admission_is_decided_again_by_its_evidence_alone() {
    let site = Place::new().start().await;
    let one = statement(1);
    site.registered(&one).await;
    let detached = StatementBuilder::new("{}")
        .content_type("application/json")
        .kid(testkit::KID.as_bytes())
        .iss(testkit::ISSUER)
        .sub("beside")
        .detached()
        .sign(&testkit::es256())
        .unwrap();
    assert_eq!(site.post_form(detached.bytes(), b"{}").await.status, 201);
    let page = site.get("/v1/evidence").await.json();
    let policy = &page["evidence"][0];
    assert_eq!((&policy["index"], &policy["policy"]["index"]), (&json!(0), &json!(0)));
    for (index, statement) in [(1, &one), (2, &detached)] {
        let evidence = evidence_of(&site, statement).await;
        assert_eq!(evidence["index"], index);
        assert_eq!(evidence["tree_size_committed"], index + 1);
        assert_eq!(evidence["policy"]["entry_id"], policy["entry_id"]);
        assert_eq!(evidence, page["evidence"][index], "a page says what the single answer says");
        decides_again(&evidence, policy);
    }
    assert_eq!(bytes(&evidence_of(&site, &detached).await["payload"]), b"{}");
}

#[tokio::test]
async fn evidence_comes_in_pages_that_meet() {
    let site = Place::new().start().await;
    for n in 0..9 {
        site.registered(&statement(n)).await;
    }
    let (mut seen, mut from) = (Vec::new(), Some(0));
    while let Some(next) = from {
        let answer = site.get(&format!("/v1/evidence?from={next}&limit=4")).await;
        let page = answer.json();
        from = page["next"].as_u64();
        assert_eq!(answer.header("link").is_some(), from.is_some());
        seen.extend(page["evidence"].as_array().unwrap().iter().map(|one| one["index"].as_u64().unwrap()));
    }
    assert_eq!(seen, (0..10).collect::<Vec<_>>());
    let beyond = site.get("/v1/evidence?from=10").await.json();
    assert_eq!(beyond, json!({ "evidence": [], "next": null }));
}

#[tokio::test]
async fn a_page_of_evidence_is_bounded_in_entries_and_in_bytes() {
    let site = Place::new().start().await;
    for n in 0..6 {
        site.registered(&testkit::opaque(&format!("{n}"), &json!({ "x": "y".repeat(1_000_000) }))).await;
    }
    let answer = site.get("/v1/evidence?from=1").await;
    assert!(answer.body.len() < 8 << 20, "{}", answer.body.len());
    let page = answer.json();
    assert_eq!((page["evidence"].as_array().unwrap().len(), &page["next"]), (4, &json!(5)));
    for wrong in ["limit=0", "limit=257", "limit=x", "from=-1", "after=1", "from=18446744073709551616"] {
        let answer = site.get(&format!("/v1/evidence?{wrong}")).await;
        assert_eq!(answer.refusal(), refusal(400, "Malformed request", "page"), "{wrong}");
    }
    assert_eq!(site.get("/v1/evidence?from=18446744073709551615").await.json()["next"], Value::Null);
    let unknown = site.get(&format!("/v1/entries/{}/evidence", "0".repeat(64))).await;
    assert_eq!(unknown.refusal(), refusal(404, "Not Found", "entry-unknown"));
}

#[tokio::test]
async fn erased_evidence_names_the_entry_that_explains_it() {
    let site = Place::new().start().await;
    let detached = StatementBuilder::new("{}")
        .content_type("application/json")
        .kid(testkit::KID.as_bytes())
        .iss(testkit::ISSUER)
        .sub("gone")
        .detached()
        .sign(&testkit::es256())
        .unwrap();
    assert_eq!(site.post_form(detached.bytes(), b"{}").await.status, 201);
    let erasure = erasure(&[detached.digest()]);
    site.registered(&erasure).await;
    let explained = loop {
        let evidence = evidence_of(&site, &detached).await;
        if evidence.get("erased_by").is_some() {
            break evidence;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    };
    assert_eq!((&explained["statement"], &explained["erased"]), (&Value::Null, &json!(true)));
    assert!(explained.get("payload").is_none(), "what came beside it is gone too");
    let expected = json!({ "index": 2, "entry_id": erasure.digest().to_string() });
    assert_eq!(explained["erased_by"], expected);
    let payload = site.get(&format!("/v1/entries/{}/payload", detached.digest())).await;
    assert_eq!(payload.refusal(), refusal(410, "Gone", "erased"));
    // Handing it in again gets a receipt and restores nothing.
    assert_eq!(site.post_form(detached.bytes(), b"{}").await.status, 201);
    let payload = site.get(&format!("/v1/entries/{}/payload", detached.digest())).await;
    assert_eq!(payload.status, 410);
}
