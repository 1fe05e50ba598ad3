//! `aiInvocation`: readings S-1 to S-4. What only the audit annex sees is tested where it is written.

use admission::invocation::AiInvocation;
use admission::limits::MAX_TURN_ID;
use proptest::prelude::*;
use serde_json::json;

fn echo(text: &str) -> Option<String> {
    AiInvocation::read(text).echo()
}

#[test]
fn s_2_only_the_turn_is_echoed() {
    let full = json!({
        "invocationReason": { "kind": "user", "text": "the user asked" },
        "model": { "name": "m", "provider": "p", "version": "1" },
        "userIntent": { "text": "secret wish" },
        "turnId": "turn-7",
    });
    assert_eq!(echo(&full.to_string()).unwrap(), r#"{"turnId":"turn-7"}"#);
    assert_eq!(echo("{}"), None);
}

#[test]
fn s_2_a_turn_is_echoed_only_if_it_is_a_sane_text() {
    let of = |turn: serde_json::Value| echo(&json!({ "turnId": turn }).to_string());
    assert!(of(json!("x".repeat(MAX_TURN_ID))).is_some());
    for turn in [
        json!(""),
        json!(7),
        json!(null),
        json!({}),
        json!("line\nbreak"),
        json!("x".repeat(MAX_TURN_ID + 1)),
    ] {
        assert_eq!(of(turn), None);
    }
    assert_eq!(of(json!("quo\"te")).unwrap(), r#"{"turnId":"quo\"te"}"#);
}

#[test]
fn s_1_whatever_it_is_it_can_be_read() {
    for text in ["", "null", "[]", "{", r#"{"turnId":"a","turnId":"b"}"#, r#"{"model":1}"#, "\u{0}"] {
        assert_eq!(echo(text), None, "{text}");
    }
    let malformed_beside = r#"{"turnId":"t","model":"not an object"}"#;
    assert!(echo(malformed_beside).is_some());
}

#[test]
fn x_6_its_debug_form_tells_nothing() {
    let read = AiInvocation::read(r#"{"userIntent":{"text":"secret wish"},"turnId":"t"}"#);
    assert!(!format!("{read:?}").contains("secret"));
}

proptest! {
    #[test]
    fn any_text_is_read(text in ".{0,200}") {
        let _ = AiInvocation::read(&text).turn_id();
    }
}
