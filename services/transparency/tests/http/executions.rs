//! Execution receipts over HTTP: what a gateway permitted and denied, and what is not believed.

use crate::common::{Place, refused_by};
use registration::aer::{AerRecord, VerifyingKeys, inner_signature};
use scitt::{SignedStatement, Signer, StatementBuilder};
use serde_json::{Value, json};
use testkit::{
    GATEWAY, KID, aer, aer_json, aer_statement, denied_aer_json, ed25519, gateway, rootless_aer_json,
};

fn signed(receipt: Value) -> SignedStatement {
    aer_statement(receipt).sign(&gateway()).unwrap()
}

/// A statement whose payload no builder of ours would sign.
fn forged(receipt: &Value) -> SignedStatement {
    let canonical = aer_statement(receipt.clone()).receipt(&gateway()).unwrap();
    StatementBuilder::new(canonical)
        .content_type("application/aer+json")
        .kid(KID)
        .iss(GATEWAY)
        .sub(receipt["aer_id"].as_str().unwrap())
        .sign(&gateway())
        .unwrap()
}

fn degraded(n: u64) -> SignedStatement {
    let mut receipt = aer_json(n);
    receipt["enforcement_mode"] = json!("degraded");
    receipt["degraded_reason"] = json!("registry_unreachable");
    signed(receipt)
}

#[tokio::test]
async fn a_permit_and_a_denial_are_registered_and_say_what_was_decided() {
    let site = Place::new().start().await;
    let permit = aer(1);
    let denial = signed(denied_aer_json(2, "capability_not_in_scope"));
    let nobody = signed(rootless_aer_json(3));
    for statement in [&permit, &denial, &nobody] {
        site.registered(statement).await;
    }
    let response = site.facts(permit.digest()).await;
    assert_eq!(
        (
            &response["decision"],
            &response["tool"],
            &response["enforcement_mode"],
            &response["session"],
            &response["denial_reason"]
        ),
        (
            &json!("permit"),
            &json!("get_pull_request"),
            &json!("normal"),
            &json!("sess:8b3d0e7f2a1c9b4e"),
            &Value::Null
        )
    );
    let response = site.facts(denial.digest()).await;
    assert_eq!(
        (&response["decision"], &response["denial_reason"]),
        (&json!("deny"), &json!("capability_not_in_scope"))
    );
    let response = site.facts(nobody.digest()).await;
    assert_eq!((&response["denial_code"], &response["root_envelope"]), (&json!("no_envelope"), &Value::Null));
}

#[tokio::test]
async fn a_receipt_that_the_gateway_did_not_sign_is_refused() {
    let site = Place::new().start().await;
    let mut receipt = aer_json(1);
    receipt["signatures"] = json!([inner_signature(&receipt, &ed25519([7; 32])).unwrap()]);
    refused_by(&site.register(&forged(&receipt)).await, "policy", "aer-signature");
    receipt["signatures"] = json!([inner_signature(&aer_json(2), &gateway()).unwrap()]);
    refused_by(&site.register(&forged(&receipt)).await, "policy", "aer-signature");
    receipt["signatures"][0]["signer"] = json!("gateway:test-2");
    refused_by(&site.register(&forged(&receipt)).await, "policy", "aer-signer");
    receipt["signatures"] = json!([]);
    refused_by(&site.register(&forged(&receipt)).await, "policy", "aer-signatures");
    refused_by(
        &site.register(&aer_statement(aer_json(1)).iss(did()).sign(&ed25519([7; 32])).unwrap()).await,
        "policy",
        "aer-gateway",
    );
}

fn did() -> String {
    ed25519([7; 32]).public_key().did_key()
}

#[tokio::test]
async fn an_aer_id_is_used_once() {
    let site = Place::new().start().await;
    let permit = aer(1);
    site.registered(&permit).await;
    let answer = site.register(&signed(denied_aer_json(1, "replay_detected"))).await;
    refused_by(&answer, "policy", "aer-id-unique");
    assert!(answer.problem().detail.unwrap().contains("leaf 1"), "{answer:?}");
    site.registered(&permit).await;
    site.registered(&signed(denied_aer_json(2, "replay_detected"))).await;
}

#[tokio::test]
async fn a_degraded_decision_is_registered_where_the_policy_says_so() {
    let strict = Place::new().start().await;
    refused_by(&strict.register(&degraded(1)).await, "policy", "aer-degraded");
    let place = Place::new();
    let gateways = "[[type.aer.gateway]]";
    let lenient =
        testkit::policy_toml().replace(gateways, &format!("[type.aer]\nallow_degraded = true\n{gateways}"));
    place.write_policy(&lenient);
    let site = place.start().await;
    site.registered(&degraded(1)).await;
    let response = site.facts(degraded(1).digest()).await;
    assert_eq!(
        (&response["enforcement_mode"], &response["degraded_reason"]),
        (&json!("degraded"), &json!("registry_unreachable"))
    );
}

#[tokio::test]
async fn a_degraded_denial_without_a_reason_is_registered_with_a_warning() {
    let site = Place::new().start().await;
    let mut receipt = denied_aer_json(1, "invalid_signature");
    receipt["enforcement_mode"] = json!("degraded");
    let denial = signed(receipt);
    site.registered(&denial).await;
    assert_eq!(
        site.facts(denial.digest()).await["warnings"],
        json!(["degraded-without-reason at /degraded_reason"])
    );
}

#[tokio::test]
async fn a_receipt_registered_by_its_hash_is_shown_on_audit() {
    let site = Place::new().start().await;
    let receipt = aer_statement(aer_json(1)).receipt(&gateway()).unwrap();
    let statement = aer_statement(aer_json(1)).redacted().sign(&gateway()).unwrap();
    site.registered(&statement).await;
    let response = site.facts(statement.digest()).await;
    assert_eq!((&response["hash_envelope"], &response["tool"]), (&json!(true), &Value::Null));
    let key = gateway().public_key().clone();
    let keys = VerifyingKeys { gateway: std::slice::from_ref(&key), issuer: &key };
    assert_eq!(
        AerRecord::verify(&statement, Some(&receipt), keys).unwrap().receipt().action.tool,
        "get_pull_request"
    );
    let another = aer_statement(aer_json(2)).receipt(&gateway()).unwrap();
    assert_eq!(
        AerRecord::verify(&statement, Some(&another), keys).unwrap_err().rule.as_str(),
        "payload-digest-mismatch"
    );
}

#[tokio::test]
async fn an_aer_id_leads_to_its_entry_whether_the_receipt_can_be_seen_or_not() {
    let site = Place::new().start().await;
    let (clear, redacted) = (aer(1), aer_statement(aer_json(2)).redacted().sign(&gateway()).unwrap());
    for statement in [&clear, &redacted] {
        site.registered(statement).await;
    }
    for (n, statement) in [(1, &clear), (2, &redacted)] {
        let aer_id = aer_json(n)["aer_id"].as_str().unwrap().to_owned();
        let answer = site.get(&format!("/entries/{aer_id}")).await;
        assert_eq!(answer.status, 307, "{answer:?}");
        let entry = format!("/entries/{}", statement.digest());
        assert!(answer.headers["location"].to_str().unwrap().ends_with(&entry), "{answer:?}");
    }
    assert_eq!(site.get("/entries/aer:2f5a8c1d4e7b0f3a").await.status, 404);
    let answer = site.register(&signed(denied_aer_json(2, "replay_detected"))).await;
    refused_by(&answer, "policy", "aer-id-unique");
}
