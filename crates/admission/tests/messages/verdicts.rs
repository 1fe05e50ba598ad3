//! The Verdict on the wire: the schema, and readings V-20, V-24 and V-25. Read back by the profile that the log uses.

use jose::jcs;
use jose::jws::Jws;
use scitt::{SignError, Signer};
use serde_json::{Value, json};
use vap::digest::Digest;
use vap::message::{MessageType, NO_SESSION};
use vap::reason::Reason;
use vap::verdict::{
    Binding, Clarification, Downgrade, Method, ReceivedVerdict, SIGNATURE_TYPE, Score, Trigger, Verdict,
    VerdictKind, Verification,
};

use crate::sample::{ed25519, p256};

fn denied() -> Verdict {
    let verification = Verification {
        checks: vec!["schema_ok".to_owned(), "scope_failed".to_owned()],
        method: Method::of(true, true),
        risk_score: Some(Score::clamped(0.25)),
        semantic_invoked: Some(true),
        semantic_trigger: Some(Trigger::ThresholdProximity),
        confidence: Some(Score::clamped(1.0)),
        reason: Some(Reason::ScopeEscape),
    };
    Verdict::new("s-1", Some(MessageType::IntentCall), VerdictKind::Denied, verification)
}

fn binding() -> Binding {
    Binding { iat: 1_795_338_000, jti: "v-1".to_owned(), req: Some(Digest::of(b"{}")) }
}

fn full() -> Verdict {
    Verdict {
        accepted_commitment_digest: Some(Digest::of(b"E0")),
        clarification: Some(Clarification {
            question: "Call payments.send?".to_owned(),
            schema: Some(json!({ "type": "object", "required": ["confirm"] })),
        }),
        downgrade: Some(Downgrade {
            applied_scope: Some(json!({ "max_calls": 10 })),
            note: Some("ceiling".to_owned()),
        }),
        expires_at: Some("2026-12-01T00:00:00Z".to_owned().try_into().unwrap()),
        ..denied()
    }
}

/// The same with the name of its record.
fn named() -> Verdict {
    Verdict { audit_ref: Some("https://log.example/entries/00".to_owned()), ..full() }
}

fn sign(verdict: &Verdict) -> String {
    verdict.sign(&ed25519(7), &binding()).unwrap()
}

#[test]
fn a_verdict_is_what_the_schema_says() {
    for verdict in [denied(), full(), named(), bare()] {
        let signed = sign(&verdict);
        let read = ReceivedVerdict::read(signed.as_bytes()).unwrap();
        assert!(read.signature.is_some());
        assert_eq!(json!(read.verdict), verdict.to_value());
    }
    let wire: Value = serde_json::from_str(&sign(&denied())).unwrap();
    assert_eq!(
        (&wire["vap"], &wire["type"], &wire["verdict"]),
        (&json!("0.1"), &json!("verdict"), &json!("denied"))
    );
    let verification = json!({
        "checks": ["schema_ok", "scope_failed"], "method": "static+policy+semantic", "risk_score": 0.25,
        "semantic_invoked": true, "semantic_trigger": "threshold_proximity", "confidence": 1,
        "reason": "scope_escape",
    });
    assert_eq!(wire["verification"], verification);
}

fn bare() -> Verdict {
    Verdict::new(NO_SESSION, None, VerdictKind::Served, Verification::default())
}

#[test]
fn v_24_a_verdict_has_no_room_for_the_tools_output() {
    let with_result = r#"{"vap":"0.1","type":"verdict","session_id":"s","verdict":"served","verification":{"checks":[],"method":"static"},"result":{}}"#;
    assert!(serde_json::from_str::<Verdict>(with_result).is_err());
    assert!(serde_json::from_str::<Verdict>(&with_result.replace(",\"result\":{}", "")).is_ok());
}

#[test]
fn v_20_a_verdict_is_signed_over_its_canonical_form() {
    let signed = sign(&denied());
    let mut document: Value = serde_json::from_str(&signed).unwrap();
    assert_eq!(jcs::canonical(&document), signed.as_bytes());
    let signature = document.as_object_mut().unwrap().remove("signature").unwrap();
    let jws = Jws::open(signature.as_str().unwrap(), &jcs::canonical(&document), &["req"]).unwrap();
    assert_eq!(ed25519(7).public_key().verify_jws(&jws), Ok(()));
    assert!(ed25519(8).public_key().verify_jws(&jws).is_err());
    assert_eq!(jws.algorithm().name(), "EdDSA");
    assert_eq!(
        (jws.kid(), jws.text("typ")),
        (ed25519(7).public_key().jwk_thumbprint().as_str(), Some(SIGNATURE_TYPE))
    );
    document["verdict"] = "served".into();
    let tampered = Jws::open(signature.as_str().unwrap(), &jcs::canonical(&document), &["req"]).unwrap();
    assert!(ed25519(7).public_key().verify_jws(&tampered).is_err());
}

#[test]
fn v_25_the_signature_says_when_and_in_answer_to_what() {
    let header = |signed: &str| {
        let mut document: Value = serde_json::from_str(signed).unwrap();
        let signature = document.as_object_mut().unwrap().remove("signature").unwrap();
        Jws::open(signature.as_str().unwrap(), &jcs::canonical(&document), &["req"]).unwrap()
    };
    let jws = header(&sign(&denied()));
    assert_eq!((jws.iat(), jws.text("jti")), (Some(1_795_338_000), Some("v-1")));
    assert_eq!(jws.text("req"), Some(Digest::of(b"{}").as_str()));
    let answers_no_message = Binding { req: None, ..binding() };
    assert_eq!(header(&bare().sign(&ed25519(7), &answers_no_message).unwrap()).text("req"), None);
}

#[test]
fn v_20_only_an_ed25519_key_signs_a_verdict() {
    assert!(matches!(denied().sign(&p256(), &binding()), Err(SignError::AlgorithmMismatch { .. })));
}

#[test]
fn the_record_commits_to_the_verdict_without_the_records_own_name() {
    assert_ne!(named(), full());
    assert_eq!(named().to_record(), full().to_record());
    assert_eq!(full().to_record(), jcs::canonical(&full().to_value()));
}

#[test]
fn a_score_is_never_outside_its_range() {
    for (score, kept) in [(0.5, 0.5), (-1.0, 0.0), (2.0, 1.0), (f64::INFINITY, 1.0), (f64::NAN, 1.0)] {
        assert!((Score::clamped(score).get() - kept).abs() < f64::EPSILON);
    }
    for score in [-0.1, 1.1, f64::NAN] {
        assert!(Score::try_from(score).is_err());
    }
}

#[test]
fn a_verdict_reads_back() {
    let stored = serde_json::to_string(&full()).unwrap();
    assert_eq!(serde_json::from_str::<Verdict>(&stored).unwrap(), full());
}

fn theirs() -> Value {
    let verification = json!({ "checks": [], "method": "static", "reason": "not today" });
    json!({
        "vap": "0.1", "type": "verdict", "session_id": "s", "verdict": "denied", "verification": verification,
        "result": {}, "x": 1,
    })
}

#[test]
fn a_verdict_of_another_verifier_has_its_own_reason_and_members() {
    let read = ReceivedVerdict::read(theirs().to_string().as_bytes()).unwrap();
    assert_eq!(read.verdict.verification.reason.as_deref(), Some("not today"));
    assert!(read.signature.is_none());
    assert_eq!(read.document(), &theirs());
}

#[test]
fn a_digest_and_a_time_of_a_received_verdict_are_bounded() {
    let rule = |member: &str, text: String| {
        let mut verdict = theirs();
        verdict[member] = text.into();
        ReceivedVerdict::read(verdict.to_string().as_bytes()).err().map(|broken| broken.rule)
    };
    let digest = |digits: usize| format!("sha256:{}", "0".repeat(digits));
    assert_eq!(rule("accepted_commitment_digest", digest(249)), None);
    assert_eq!(rule("accepted_commitment_digest", digest(250)), Some("vap-verdict-digest"));
    let time = |digits: usize| format!("2026-01-01T00:00:00.{}Z", "1".repeat(digits));
    assert_eq!(rule("expires_at", time(43)), None);
    assert_eq!(rule("expires_at", time(44)), Some("vap-verdict-expires-at"));
}
