//! The payload: how it is framed, and the JSON in it (readings 1 and 2).

use registration::vrf::{Form, VRF_JSON, VrfRule};
use serde_json::json;

use super::{breaks, canonical, keeps, plain, set, set_in};
use crate::Case;
use crate::draft::{Draft, text_with};

pub fn forms() -> Vec<Case> {
    use VrfRule::{ByteString, Form as FormRule, FormMap};
    let json = canonical();
    let indefinite = [&[0x5f][..], &Form::B.wrap(&json), &[0xff]].concat();
    let long_head = [&[0x5a, 0, 0, 0x01, 0x4d][..], &json].concat();
    let trailing = [Form::B.wrap(&json), vec![0]].concat();
    let nested = Form::B.wrap(&Form::B.wrap(&json));
    let map =
        [0xa1, 0x6b].into_iter().chain(*b"vrf_version").chain([0x63]).chain(*b"1.0").collect::<Vec<u8>>();
    vec![
        keeps(
            FormRule,
            "json-alone",
            "form A: bare JSON is what application/vrf+json holds",
            Draft::of_payload(json.clone()).content_type(VRF_JSON),
        ),
        breaks(
            FormRule,
            "json-as-cbor",
            "bare JSON is no CBOR, so application/vrf+cbor cannot hold it",
            Draft::of_payload(json.clone()),
        ),
        breaks(FormRule, "cbor-as-json", "a byte string is no JSON", plain().content_type(VRF_JSON)),
        breaks(FormRule, "empty-payload", "nothing is neither form", Draft::of_payload(Vec::new())),
        keeps(FormMap, "byte-string", "form B: a byte string that holds the canonical JSON", plain()),
        breaks(
            FormMap,
            "map",
            "form C, a CBOR map, has more than one encoding and is not admitted",
            Draft::of_payload(map.clone()),
        ),
        breaks(
            FormMap,
            "map-as-json",
            "the first byte decides, whatever the content type",
            Draft::of_payload(map).content_type(VRF_JSON),
        ),
        keeps(ByteString, "shortest-head", "333 bytes take a head of three: 59 01 4d", plain()),
        breaks(ByteString, "longer-head", "the same length in a head of five", Draft::of_payload(long_head)),
        breaks(ByteString, "indefinite", "a byte string in chunks", Draft::of_payload(indefinite)),
        breaks(ByteString, "trailing-byte", "something follows the byte string", Draft::of_payload(trailing)),
        breaks(
            ByteString,
            "cut-short",
            "the head promises more than there is",
            Draft::of_payload(vec![0x59, 0x01, 0x4d, b'{']),
        ),
        breaks(
            VrfRule::Json,
            "wrapped-twice",
            "a byte string within the byte string is no JSON",
            Draft::of_payload(nested),
        ),
    ]
}

pub fn json() -> Vec<Case> {
    use VrfRule::{Canonical, DuplicateMember, Integer, Json, LoneSurrogate, MemberName};
    let deep = format!("{}{}", "[".repeat(70), "]".repeat(70));
    vec![
        keeps(Json, "other-scripts", "strings may hold any text", set("note", json!("naïve 測試 🦀"))),
        breaks(Json, "cut-short", "the text ends within the object", Draft::of_json(&canonical()[..332])),
        breaks(
            Json,
            "byte-order-mark",
            "JSON begins with no byte order mark",
            Draft::of_json(&[b"\xef\xbb\xbf", &canonical()[..]].concat()),
        ),
        breaks(Json, "not-utf-8", "a string holds a byte that is not UTF-8", Draft::of_json(&broken_utf8())),
        breaks(
            Json,
            "too-deep",
            "arrays nested beyond the bound",
            Draft::of_json(&text_with("{\"hashes\"", &format!("{{\"a\":{deep},\"hashes\""))),
        ),
        keeps(
            DuplicateMember,
            "same-name-elsewhere",
            "two objects may use one name",
            set_in("metadata", "total", json!(1)),
        ),
        breaks(
            DuplicateMember,
            "two-verdicts",
            "one reader would see pass, the next fail",
            Draft::of_json(&text_with("\"verdict\":\"pass\"", "\"verdict\":\"fail\",\"verdict\":\"pass\"")),
        ),
        breaks(
            DuplicateMember,
            "escaped-twin",
            "the same name, once spelled with an escape",
            Draft::of_json(&text_with("\"tier\":0", "\"tier\":3,\"\\u0074ier\":0")),
        ),
        keeps(
            LoneSurrogate,
            "whole-pair",
            "a character outside the basic plane, in UTF-8",
            set("note", json!("𝄞")),
        ),
        breaks(
            LoneSurrogate,
            "half-pair",
            "half a surrogate pair has no UTF-8",
            Draft::of_json(&text_with("v/1", "\\ud834")),
        ),
        keeps(
            Integer,
            "largest",
            "2^53 - 1 is exact for every reader",
            set("n", json!(9_007_199_254_740_991_i64)),
        ),
        breaks(
            Integer,
            "too-large",
            "2^53 is not told from 2^53 + 1 by every reader",
            Draft::of_json(&number("9007199254740992")),
        ),
        breaks(Integer, "fraction", "floats print differently", Draft::of_json(&number("0.5"))),
        breaks(Integer, "one-point-zero", "an integer in a float's clothes", Draft::of_json(&number("1.0"))),
        breaks(Integer, "exponent", "an integer with an exponent", Draft::of_json(&number("1e3"))),
        breaks(Integer, "minus-zero", "zero has one spelling", Draft::of_json(&number("-0"))),
        keeps(
            MemberName,
            "last-of-the-range",
            "U+D7FF is the last character that every order puts in one place",
            set("\u{d7ff}", json!(1)),
        ),
        breaks(
            MemberName,
            "private-use",
            "from U+E000 on, UTF-16 and code points sort differently",
            set("\u{e000}", json!(1)),
        ),
        breaks(
            MemberName,
            "emoji",
            "surrogate pairs sort before U+E000 in UTF-16 and after it elsewhere",
            set("🦀", json!(1)),
        ),
        breaks(MemberName, "control-character", "a name nobody can read", set("\u{1}", json!(1))),
        keeps(
            Canonical,
            "escapes",
            "control characters have one escape each",
            set("note", json!("a\n\u{1}\"\\")),
        ),
        breaks(
            Canonical,
            "white-space",
            "a blank between tokens",
            Draft::of_json(&text_with("\"tier\":0", "\"tier\": 0")),
        ),
        breaks(
            Canonical,
            "unsorted",
            "the members are not in order",
            Draft::of_json(&text_with("\"tier\":0,\"verdict\":\"pass\"", "\"verdict\":\"pass\",\"tier\":0")),
        ),
        breaks(
            Canonical,
            "needless-escape",
            "a slash needs no escape",
            Draft::of_json(&text_with("v/1", "v\\/1")),
        ),
        breaks(
            Canonical,
            "trailing-newline",
            "section 5.3: no trailing newline",
            Draft::of_json(&[&canonical()[..], b"\n"].concat()),
        ),
    ]
}

fn number(text: &str) -> Vec<u8> {
    text_with("\"receipt_id\"", &format!("\"n\":{text},\"receipt_id\""))
}

fn broken_utf8() -> Vec<u8> {
    let text = text_with("v/1", "v?1");
    text.iter().map(|byte| if *byte == b'?' { 0xff } else { *byte }).collect()
}
