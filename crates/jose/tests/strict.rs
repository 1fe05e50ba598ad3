//! The strict reader: what it lets through, and that it survives whatever it is given.

use jose::{
    jcs,
    json::{JsonErrorKind, Limits, MAX_DEPTH, check, parse_strict, read_strict},
    jwk::{Curve, JwkError, PublicJwk},
};
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Map, Value, json};

#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Record {
    id: String,
    steps: Vec<Step>,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Step {
    at: u64,
}

#[test]
fn a_misfit_is_named_by_its_pointer() {
    let text = b"{\"id\":\"x\",\n \"steps\":[{\"at\":1},\n {\"at\":-1}]}";
    let error = read_strict::<Record>(text, Limits::default()).expect_err("a negative time");
    assert_eq!(error.pointer, "/steps/1/at");
    assert!(matches!(error.kind, JsonErrorKind::Shape(_)));
    let near = text.len() - 4..text.len() - 1;
    assert!(near.contains(&error.offset), "{error}");
    let unknown = read_strict::<Record>(br#"{"id":"x","steps":[],"more":1}"#, Limits::default());
    assert!(unknown.is_err());
}

#[test]
fn a_type_never_sees_a_duplicate_that_it_would_not_notice() {
    let text = br#"{"id":"x","steps":[],"id":"y"}"#;
    let error = read_strict::<Value>(text, Limits::default()).expect_err("a duplicate");
    assert_eq!(error.kind, JsonErrorKind::Duplicate("id".to_owned()));
    assert_eq!(error.to_string(), r#"at byte 21, top level: a second member named "id""#);
}

#[test]
fn the_value_still_tells_how_a_number_was_written() {
    let text = b"[1, 1.0, -0, 1e0, 18446744073709551615, 18446744073709551616]";
    let values = parse_strict(text, Limits::default()).expect("numbers");
    let values = values.as_array().expect("an array");
    let integers: Vec<bool> = values.iter().map(|n| n.is_u64() || n.is_i64()).collect();
    assert_eq!(integers, [true, false, false, false, true, false]);
}

#[test]
fn limits_are_the_callers() {
    let depth = |depth| Limits { depth, ..Limits::default() };
    assert!(parse_strict(b"5", depth(0)).is_ok());
    assert!(parse_strict(b"[5]", depth(0)).is_err());
    let deep = format!("{}{}", "[".repeat(MAX_DEPTH), "]".repeat(MAX_DEPTH));
    assert!(parse_strict(deep.as_bytes(), depth(usize::MAX)).is_ok());
    let deeper = format!("[{deep}]");
    let error = parse_strict(deeper.as_bytes(), depth(usize::MAX)).expect_err("too deep");
    assert_eq!(error.kind, JsonErrorKind::TooDeep(MAX_DEPTH));
    let limits = Limits { bytes: 3, depth: 3 };
    assert!(parse_strict(b"[1]", limits).is_ok());
    let error = parse_strict(b"[1] ", limits).expect_err("too long");
    assert_eq!(error.kind, JsonErrorKind::TooLong(3));
}

#[test]
fn only_the_canonical_form_is_canonical() {
    assert!(jcs::is_canonical(br#"{"a":1,"b":[true,null,"x"]}"#));
    for text in [
        r#"{"b":1,"a":2}"#,
        r#"{"a": 1}"#,
        r#"{"a":1.0}"#,
        r#"{"a":-0}"#,
        r#"{"a":"\u0041"}"#,
        r#"{"a":"\/"}"#,
        r#"{"a":9007199254740993}"#,
        r#"{"a":1,"a":1}"#,
        "{}\n",
        "",
        "\u{feff}{}",
    ] {
        assert!(!jcs::is_canonical(text.as_bytes()), "{text}");
    }
}

#[test]
fn keys_are_made_with_coordinates_of_the_right_length_only() {
    assert!(PublicJwk::ec(Curve::P256, &[1; 32], &[2; 32]).is_some());
    assert!(PublicJwk::ec(Curve::P256, &[1; 31], &[2; 32]).is_none());
    assert!(PublicJwk::ec(Curve::P521, &[1; 66], &[2; 65]).is_none());
    assert!(PublicJwk::ec(Curve::Ed25519, &[1; 32], &[2; 32]).is_none());
    let key = PublicJwk::ed25519([7; 32]);
    assert_eq!(PublicJwk::from_value(&key.to_value()), Ok(key));
}

#[test]
fn a_key_may_say_what_it_is_for() {
    let key = json!({"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "kid": "k1",
        "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"});
    let read = PublicJwk::from_value(&key).expect("a key");
    assert_eq!((read.alg(), read.kid()), (Some("EdDSA"), Some("k1")));
    assert_eq!(read.to_value(), key);
    let private = json!({"kty": "OKP", "d": null});
    assert_eq!(PublicJwk::from_value(&private), Err(JwkError::Private));
}

fn any_json() -> impl Strategy<Value = Value> {
    let number = |f| serde_json::Number::from_f64(f).map_or(Value::Null, Value::from);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(number),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::vec((any::<String>(), inner), 0..6)
                .prop_map(|members| Value::from(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// Bytes that look like JSON until they do not.
fn nearly_json() -> impl Strategy<Value = Vec<u8>> {
    let edits = proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0u8..3), 0..4);
    (any_json(), edits).prop_map(|(value, edits)| {
        let mut bytes = value.to_string().into_bytes();
        for (at, byte, edit) in edits {
            let at = at.index(bytes.len() + 1);
            match edit {
                0 => bytes.insert(at, byte),
                1 if at < bytes.len() => bytes[at] = byte,
                _ => bytes.truncate(at),
            }
        }
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn what_serde_json_writes_reads_back(value in any_json()) {
        let text = value.to_string();
        let limits = Limits { bytes: usize::MAX, depth: MAX_DEPTH };
        prop_assert_eq!(parse_strict(text.as_bytes(), limits), Ok(value));
    }

    #[test]
    fn damaged_json_is_refused_or_read_as_serde_json_reads_it(bytes in nearly_json()) {
        match check(&bytes, Limits::default()) {
            Ok(checked) => {
                let theirs: Value = serde_json::from_slice(&bytes).expect("both accept");
                prop_assert_eq!(checked.value(), Ok(theirs));
            }
            Err(error) => prop_assert!(error.offset <= bytes.len(), "{}", error),
        }
    }

    /// The other way round: what only we refuse is refused for a reason of ours.
    #[test]
    fn nothing_is_refused_without_a_reason(bytes in nearly_json()) {
        let theirs = serde_json::from_slice::<Value>(&bytes);
        if let (Err(error), Ok(_)) = (check(&bytes, Limits::default()), theirs) {
            prop_assert!(matches!(error.kind, JsonErrorKind::Duplicate(_)), "{}", error);
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        let _ = check(&bytes, Limits::default());
        let _ = jcs::is_canonical(&bytes);
        let _ = PublicJwk::parse(&bytes);
    }

    #[test]
    fn two_implementations_of_jcs_agree(value in any_json()) {
        let ours = jcs::canonical(&value);
        prop_assert_eq!(&ours, &serde_jcs::to_vec(&value).expect("serde_jcs"));
        prop_assert!(jcs::is_canonical(&ours));
    }

    #[test]
    fn a_damaged_key_is_read_or_refused(at in 0usize..110, byte: u8) {
        let mut text = PublicJwk::ed25519([9; 32]).to_value().to_string().into_bytes();
        let at = at % text.len();
        text[at] = byte;
        let _ = PublicJwk::parse(&text);
    }
}
