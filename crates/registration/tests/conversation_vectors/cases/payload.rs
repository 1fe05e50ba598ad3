//! The payload: JSON or CBOR, read strictly (step 5).

use registration::conversation::ConversationRule as Rule;
use serde_json::{Value, json};
use testkit::{conversation_json, json_as_cbor};

use super::{breaks, keeps};
use crate::Case;
use crate::draft::{Draft, record, text_of, with_entries};

const JSON: &str = "application/json";

pub fn forms() -> Vec<Case> {
    let (cbor, text) = (json_as_cbor(&record()).encode(), text_of(&record()));
    let tagged = [&[0xd9, 0x10, 0x35][..], &cbor].concat();
    let indefinite = [&[0xbf][..], &cbor[1..], &[0xff]].concat();
    let as_json = json!({ "accept_application_json": true });
    vec![
        keeps(Rule::Form, "json", "a record in JSON begins with a brace", Draft::json(&conversation_json(1))),
        keeps(Rule::Form, "cbor", "a record in CBOR begins with a map", Draft::cbor(&conversation_json(1))),
        keeps(
            Rule::Form,
            "cbor-indefinite",
            "the CDDL does not ask for definite lengths",
            Draft::of(indefinite),
        ),
        keeps(
            Rule::Form,
            "application-json",
            "the policy takes records under this name",
            Draft::json(&record()).content_type(JSON),
        )
        .under(as_json.clone()),
        breaks(
            Rule::Form,
            "leading-blank",
            "the first byte decides, and a blank is neither form",
            Draft::of(format!(" {text}")),
        ),
        breaks(
            Rule::Form,
            "byte-order-mark",
            "JSON begins with no byte order mark",
            Draft::of(format!("\u{feff}{text}")),
        ),
        breaks(Rule::Form, "empty", "nothing is neither form", Draft::of("")),
        breaks(
            Rule::Form,
            "native-jsonl",
            "lines of a native log are no record",
            Draft::of("[{\"type\":\"user\"}]\n[]\n"),
        ),
        breaks(
            Rule::Form,
            "cbor-byte-string",
            "a byte string is not unwrapped",
            Draft::of([&[0x58, cbor.len() as u8][..], &cbor].concat()),
        ),
        breaks(Rule::Form, "cbor-as-application-json", "CBOR is no JSON", Draft::of(cbor).content_type(JSON))
            .under(as_json),
        keeps(Rule::Tag, "policy-takes-it", "the tag, where the policy takes it", Draft::of(tagged.clone()))
            .under(json!({ "allow_cbor_tag_4149": true })),
        breaks(
            Rule::Tag,
            "tagged",
            "the document's CDDL has no rule with the tag it asks for",
            Draft::of(tagged),
        ),
    ]
}

pub fn strictness() -> Vec<Case> {
    let name = |n: u8| [0x60 | n].into_iter().chain(vec![b'x'; usize::from(n)]);
    let text = |bytes: &[u8]| name(1).chain(bytes.iter().copied()).collect::<Vec<u8>>();
    let cbor = json_as_cbor(&record()).encode();
    let json = text_of(&record());
    vec![
        keeps(
            Rule::Json,
            "blanks-within",
            "the signed bytes need not be canonical",
            Draft::of(json.replace(",", ",\n\t ")),
        ),
        breaks(
            Rule::Json,
            "cut-short",
            "the text ends within the object",
            Draft::of(json.trim_end_matches('}')),
        ),
        breaks(
            Rule::Json,
            "trailing-object",
            "something follows the record",
            Draft::of(format!("{json}{{}}")),
        ),
        breaks(Rule::Json, "comment", "JSON has no comments", Draft::text("{", "{/**/")),
        keeps(
            Rule::Cbor,
            "long-heads",
            "a length may be written longer than it need be",
            Draft::cbor_with(&[0x61, b'x', 0x1b, 0, 0, 0, 0, 0, 0, 0, 1]),
        ),
        keeps(
            Rule::Cbor,
            "string-in-chunks",
            "a string may come in chunks",
            Draft::cbor_with(&[0x61, b'x', 0x7f, 0x61, b'a', 0x61, b'b', 0xff]),
        ),
        breaks(
            Rule::Cbor,
            "trailing-byte",
            "something follows the record",
            Draft::of([&cbor[..], &[0]].concat()),
        ),
        breaks(
            Rule::Cbor,
            "cut-short",
            "the map promises more than there is",
            Draft::of(&cbor[..cbor.len() - 1]),
        ),
        breaks(
            Rule::Cbor,
            "enormous-array",
            "a length of 2^36 that the payload cannot hold",
            Draft::cbor_with(&text(&[0x9b, 0, 0, 0, 0x10, 0, 0, 0, 0])),
        ),
        breaks(
            Rule::Cbor,
            "enormous-byte-string",
            "a length of 2^36 that the payload cannot hold",
            Draft::cbor_with(&text(&[0x5b, 0, 0, 0, 0x10, 0, 0, 0, 0])),
        ),
        breaks(Rule::Cbor, "reserved-head", "28 to 30 are no lengths", Draft::cbor_with(&text(&[0x1c]))),
        breaks(Rule::Cbor, "stray-break", "a break ends nothing here", Draft::cbor_with(&text(&[0xff]))),
        breaks(
            Rule::Cbor,
            "chunk-of-another-type",
            "a text in chunks of bytes",
            Draft::cbor_with(&text(&[0x7f, 0x41, b'a', 0xff])),
        ),
        keeps(Rule::Utf8, "other-scripts", "strings may hold any text", Draft::text("hi", "naïve 測試 🦀")),
        breaks(Rule::Utf8, "json", "a byte that no UTF-8 has", Draft::of(broken_utf8())),
        breaks(Rule::Utf8, "cbor", "a byte that no UTF-8 has", Draft::cbor_with(&text(&[0x61, 0xff]))),
        keeps(
            Rule::LoneSurrogate,
            "whole-pair",
            "two halves are one character",
            Draft::text("hi", "\\ud83e\\udd80"),
        ),
        breaks(
            Rule::LoneSurrogate,
            "half-pair",
            "half a surrogate pair has no UTF-8",
            Draft::text("hi", "\\ud83e"),
        ),
        keeps(
            Rule::DuplicateMember,
            "same-name-elsewhere",
            "two objects may use one name",
            Draft::text("\"id\":\"r\"", "\"id\":\"r\",\"x\":{\"id\":\"r\"}"),
        ),
        breaks(
            Rule::DuplicateMember,
            "two-sessions",
            "one reader would see the first, the next the last",
            Draft::text("\"id\":\"r\"", "\"id\":\"q\",\"id\":\"r\""),
        ),
        breaks(
            Rule::DuplicateMember,
            "escaped-twin",
            "the same name, once spelled with an escape",
            Draft::text("\"id\":\"r\"", "\"\\u0069d\":\"q\",\"id\":\"r\""),
        ),
        breaks(
            Rule::DuplicateMember,
            "deep-inside",
            "in what no rule reads, too",
            Draft::text("\"hi\"", "[{\"a\":1,\"a\":2}]"),
        ),
        breaks(
            Rule::DuplicateMember,
            "cbor",
            "the same name twice",
            Draft::cbor_with(&[0x62, b'i', b'd', 0x61, b'q']),
        ),
        breaks(
            Rule::DuplicateMember,
            "cbor-in-chunks",
            "the same name, once in chunks",
            Draft::cbor_with(&[0x7f, 0x61, b'i', 0x61, b'd', 0xff, 0x61, b'q']),
        ),
        breaks(
            Rule::DuplicateMember,
            "cbor-integer-keys",
            "one integer, written twice in two lengths",
            Draft::cbor_with(&text(&[0xa2, 0x01, 0x00, 0x18, 0x01, 0x00])),
        ),
    ]
}

fn broken_utf8() -> Vec<u8> {
    let mut bytes = text_of(&record()).into_bytes();
    let at = bytes.windows(2).position(|pair| pair == b"hi").unwrap();
    bytes[at] = 0xff;
    bytes
}

pub fn numbers() -> Vec<Case> {
    let with = |number: &str| Draft::text("\"hi\"", number);
    let member = |bytes: &[u8]| Draft::cbor_with(&[&[0x61, b'x'][..], bytes].concat());
    vec![
        keeps(Rule::Number, "largest-double", "the largest number there is", with("1.7976931348623157e308")),
        breaks(Rule::Number, "beyond-any-double", "no double is so large", with("1e400")),
        breaks(Rule::Number, "cbor-nan", "NaN is no number", member(&[0xf9, 0x7e, 0x00])),
        breaks(Rule::Number, "cbor-infinity", "infinity is no number", member(&[0xfa, 0x7f, 0x80, 0, 0])),
        keeps(Rule::Integer, "largest", "2^64 - 1", with("18446744073709551615")),
        keeps(Rule::Integer, "least", "-2^63", with("-9223372036854775808")),
        breaks(
            Rule::Integer,
            "too-large",
            "2^64 is no integer that readers agree about",
            with("18446744073709551616"),
        ),
        breaks(Rule::Integer, "too-small", "-2^63 - 1", with("-9223372036854775809")),
        breaks(
            Rule::Integer,
            "cbor-too-small",
            "-2^64 fits CBOR's head and no signed integer",
            member(&[0x3b, 255, 255, 255, 255, 255, 255, 255, 255]),
        ),
        breaks(Rule::Integer, "cbor-bignum", "a bignum", member(&[0xc2, 0x49, 1, 0, 0, 0, 0, 0, 0, 0, 0])),
        keeps(Rule::Items, "two-values", "a record of few values", Draft::json(&record())),
    ]
}

/// Text in this many arrays.
fn nested(arrays: usize) -> Value {
    (0..arrays).fold(json!("hi"), |inner, _| json!([inner]))
}

/// An entry below this many levels of `children`.
fn below(levels: usize, leaf: Value) -> Value {
    (0..levels).fold(leaf, |child, _| json!({ "type": "user", "children": [child] }))
}

pub fn bounds() -> Vec<Case> {
    // Around an entry's content stand the record, the session, the entries and the entry.
    let content = |arrays| with_entries(json!([{ "type": "user", "content": nested(arrays) }]));
    let leaf = json!({ "type": "user", "content": "hi" });
    let children = |levels| with_entries(json!([below(levels, leaf.clone())]));
    vec![
        keeps(Rule::Nesting, "json-64", "64 arrays and objects may be open", Draft::json(&content(60))),
        keeps(Rule::Nesting, "cbor-64", "64 arrays and maps may be open", Draft::cbor(&content(60))),
        keeps(
            Rule::Nesting,
            "within-children",
            "levels of children are not counted",
            Draft::json(&with_entries(json!([below(10, json!({ "type": "user", "content": nested(60) }))]))),
        ),
        breaks(Rule::Nesting, "json-65", "one array more", Draft::json(&content(61))),
        breaks(Rule::Nesting, "cbor-65", "one array more", Draft::cbor(&content(61))),
        breaks(
            Rule::Nesting,
            "json-1000",
            "far too deep",
            Draft::of(format!("{{\"a\":{}{}}}", "[".repeat(1000), "]".repeat(1000))),
        ),
        breaks(
            Rule::Nesting,
            "cbor-1000",
            "far too deep",
            Draft::of([&[0xa1, 0x61, b'a'][..], &[0x81; 1000], &[0]].concat()),
        ),
        breaks(
            Rule::Nesting,
            "tags",
            "tags nest, too",
            Draft::cbor_with(&[&[0x61, b'x'][..], &[0xd8, 0x20].repeat(64), &[0x60]].concat()),
        ),
        keeps(Rule::ChildrenDepth, "json-32", "32 levels of children", Draft::json(&children(32))),
        keeps(Rule::ChildrenDepth, "cbor-32", "32 levels of children", Draft::cbor(&children(32))),
        breaks(Rule::ChildrenDepth, "json-33", "one level more", Draft::json(&children(33))),
        breaks(Rule::ChildrenDepth, "cbor-33", "one level more", Draft::cbor(&children(33))),
        breaks(
            Rule::ChildrenDepth,
            "bad-leaf-below-40",
            "what takes a choice-by-choice reader longer than there is time",
            Draft::json(&with_entries(json!([below(40, json!({ "type": "nothing" }))]))),
        ),
    ]
}
