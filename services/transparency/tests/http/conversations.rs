//! Conversation records over HTTP: attached, detached and by their hash, and what nobody signed beside them.

use crate::common::{Place, refused_by};
use registration::conversation::Form;
use scitt::header::HashEnvelope;
use scitt::problem::TABELLION;
use scitt::{Signer, StatementBuilder};
use serde_json::json;
use sha2::{Digest, Sha256};
use testkit::{
    conversation, conversation_builder, conversation_json, conversation_of, json_as_cbor, recorder,
};

/// What is sent when trace-metadata stands beside the record, as if it were of this session.
fn with_trace(n: u64, session: &str) -> Vec<u8> {
    let metadata = json!({
        "session-id": session,
        "agent-vendor": "provider",
        "trace-format": "ietf-vac-v3.0",
        "timestamp-start": "2026-02-01T12:00:00Z",
    });
    conversation_builder(n, Form::Json).unprotected(100, json_as_cbor(&metadata)).encode(&recorder()).unwrap()
}

#[tokio::test]
async fn a_record_in_json_or_cbor_is_registered_and_says_what_it_holds() {
    let site = Place::new().start().await;
    for (n, form) in [(1, Form::Json), (2, Form::Cbor)] {
        let statement = conversation(n, form);
        site.registered(&statement).await;
        let response = site.facts(statement.digest()).await;
        assert_eq!(
            (&response["form"], &response["session"]),
            (&json!(form.name()), &json!(format!("session-{n}")))
        );
        assert_eq!((&response["tools"], &response["entries"]["total"]), (&json!(["Bash"]), &json!(7)));
    }
}

#[tokio::test]
async fn trace_metadata_that_says_something_else_is_refused_and_other_is_not_stored() {
    let open = |config: &mut transparency::Config| {
        config.access.closed_types = transparency::ClosedTypes(Vec::new())
    };
    let site = Place::new().start_with(open).await;
    refused_by(&site.post(&with_trace(1, "session-2")).await, "policy", "conversation-trace-session-id");
    assert_eq!(site.post(&with_trace(1, "session-1")).await.status, 201);
    let statement = conversation(1, Form::Json);
    let kept = site.get(&format!("/v1/entries/{}/statement", statement.digest())).await;
    assert_eq!(kept.body, statement.bytes()[..], "{kept:?}");
}

#[tokio::test]
async fn a_record_that_breaks_a_rule_is_refused_with_the_rule_and_the_place() {
    let site = Place::new().start().await;
    let mut record = conversation_json(1);
    record["session"]["entries"][1]["children"][1]["type"] = json!("toolcall");
    let statement = conversation_of(record.to_string().into_bytes(), "session-1").sign(&recorder()).unwrap();
    let answer = site.register(&statement).await;
    refused_by(&answer, "policy", "conversation-entry-type");
    let problem = answer.problem();
    let place = problem.get(TABELLION, &"place".into()).and_then(|place| place.as_text());
    assert_eq!(place, Some("payload/session/entries/1/children/1/type"), "{answer:?}");
}

#[tokio::test]
async fn what_is_odd_is_admitted_with_a_warning() {
    let site = Place::new().start().await;
    let record = conversation_json(1).to_string().into_bytes();
    let statement = conversation_of(record, "another-session").sign(&recorder()).unwrap();
    site.registered(&statement).await;
    let response = site.facts(statement.digest()).await;
    assert_eq!(response["warnings"], json!(["subject-is-not-session at /session/session-id"]));
}

#[tokio::test]
async fn a_record_may_come_beside_its_statement_or_stay_at_home() {
    let site = Place::new().start().await;
    let payload = conversation_json(1).to_string().into_bytes();
    let detached = conversation_builder(1, Form::Json).detached().sign(&recorder()).unwrap();
    assert_eq!(site.register(&detached).await.refusal().1, "Payload Missing");
    let answer = site.post_form(detached.bytes(), &payload).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    assert_eq!(site.facts(detached.digest()).await["session"], "session-1");
    let iss = recorder().public_key().did_key();
    let by_hash = StatementBuilder::new(Sha256::digest(&payload).to_vec())
        .hash_envelope(&HashEnvelope {
            algorithm: -16,
            preimage_content_type: Some("application/agent-conversation".into()),
            location: None,
        })
        .kid(iss.as_bytes())
        .iss(&iss)
        .sub("session-1")
        .sign(&recorder())
        .unwrap();
    site.registered(&by_hash).await;
    assert_eq!(site.facts(by_hash.digest()).await["hash_envelope"], true);
}
