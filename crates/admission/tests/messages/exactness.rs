//! Reading V-7: the arguments that were declared are those that would be forwarded, compared without any double.

use proptest::prelude::*;
use serde_json::Value;
use vap::exact::equal;

#[test]
fn v_7_the_same_said_differently_is_the_same() {
    for (a, b) in [
        (r#"{"a":1,"b":[true,null]}"#, " { \"b\" : [ true ,\tnull ] , \"a\" : 1.0 } "),
        (r#"{"a":"\u00e9\/\n"}"#, "{\"a\":\"é/\\u000a\"}"),
        (r#"{"\u0061":{}}"#, r#"{"a":{}}"#),
        ("[1e2,0.1,-0]", "[100,1e-1,0]"),
        (r#""\ud83d\ude00""#, "\"😀\""),
        ("9007199254740993", "9.007199254740993e15"),
        ("[]", "[ ]"),
        ("{}", "{\n}"),
    ] {
        assert!(equal(a, b) && equal(b, a), "{a} {b}");
    }
}

#[test]
fn v_7_numbers_that_one_double_holds_are_two() {
    for (a, b) in [
        ("9007199254740993", "9007199254740992"),
        (r#"{"to":12345678901234567890}"#, r#"{"to":12345678901234567891}"#),
        ("[0.1]", "[0.1000000000000000055511151231257827]"),
        ("1e-400", "0"),
        ("1e-400", "1e-401"),
    ] {
        assert!(!equal(a, b), "{a} {b}");
    }
}

#[test]
fn v_7_what_differs_differs() {
    for (a, b) in [
        (r#"{"a":1}"#, r#"{"a":1,"b":null}"#),
        (r#"{"a":null}"#, "{}"),
        ("[1,2]", "[2,1]"),
        ("[1]", "[1,1]"),
        ("1", "\"1\""),
        ("true", "\"true\""),
        ("null", "false"),
        ("[]", "{}"),
        ("\"caf\u{e9}\"", "\"cafe\u{301}\""),
        ("\"a\"", "\"A\""),
        (r#"{"a":"\u0000"}"#, r#"{"a":""}"#),
    ] {
        assert!(!equal(a, b) && !equal(b, a), "{a} {b}");
    }
}

#[test]
fn v_7_what_two_readers_read_differently_equals_nothing() {
    for text in [r#"{"a":1,"a":2}"#, r#"{"a":1,"\u0061":1}"#, r#""\ud800""#, "[1,]", "{} {}", "[", ""] {
        assert!(!equal(text, r#"{"a":2}"#) && !equal(&format!(" {text}"), text), "{text}");
    }
    assert!(equal("[1e400]", "[10e399]") && !equal("[1e400]", "[1e401]"));
    let deep = "[".repeat(4000) + &"]".repeat(4000);
    assert!(!equal(&deep, &format!(" {deep}")));
}

/// Values whose numbers every double holds.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-1000..1000i64).prop_map(Value::from),
        (-8000..8000i32).prop_map(|eighths| Value::from(f64::from(eighths) / 8.0)),
        "[a\"\\\\é😀\u{0}-\u{1f}]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[ab\"é]{0,2}", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn where_numbers_are_safe_exact_means_the_same_canonical_form(a in value(), b in value()) {
        let pretty = |value: &Value| serde_json::to_string_pretty(value).unwrap();
        let canonical = |value: &Value| String::from_utf8(jose::jcs::canonical(value)).unwrap();
        prop_assert!(equal(&pretty(&a), &canonical(&a)));
        prop_assert_eq!(equal(&pretty(&a), &pretty(&b)), canonical(&a) == canonical(&b));
    }

    #[test]
    fn integers_are_equal_only_to_themselves(a in any::<u64>(), off in 1u64..9) {
        let (number, other) = (format!("[{a}]"), format!("[{}]", a.wrapping_add(off)));
        let spelt = format!("[{a}.0]");
        prop_assert!(!equal(&number, &other) && equal(&number, &spelt));
    }

    #[test]
    fn any_text_is_compared(a in ".{0,40}", b in "[\\[\\]{}\",:0-9eE.\\\\u+-]{0,40}") {
        let _ = (equal(&a, &b), equal(&b, &format!("{b} ")));
    }
}
