//! Payloads that readers could understand differently, or not at all: the entry is blind.

use super::{Case, Cases};

pub fn cases() -> Cases {
    let mut cases = texts();
    cases.extend(binaries());
    cases
}

fn texts() -> Cases {
    let json = |why, payload: &str| Case::of(why, "application/vap-verdict+json", payload);
    let nested = |levels: usize| {
        format!(r#"{{"verdict":"v","a":{}{}}}"#, "[".repeat(levels - 1), "]".repeat(levels - 1))
    };
    Cases::from([
        ("empty", json("no payload at all", "")),
        ("text", json("no JSON", "verdict")),
        ("cut-short", json("the end is missing", r#"{"verdict":"v""#)),
        ("trailing", json("something follows", r#"{"verdict":"v"} {}"#)),
        ("byte-order-mark", json("a byte order mark", "\u{feff}{\"verdict\":\"v\"}")),
        ("duplicate", json("two members of one name", r#"{"verdict":"v","verdict":"w"}"#)),
        (
            "duplicate-escaped",
            json("the same, written differently", r#"{"verdict":"v","a":{"b":1,"\u0062":2}}"#),
        ),
        ("lone-surrogate", json("half of a character", r#"{"verdict":"v","a":"\ud800"}"#)),
        ("control-character", json("a control character in a text", "{\"verdict\":\"v\",\"a\":\"\u{1}\"}")),
        ("not-a-number", json("NaN is no JSON", r#"{"verdict":"v","a":NaN}"#)),
        ("number-range", json("a number too large for a double", r#"{"verdict":"v","a":1e400}"#)),
        ("long-number", json("the same in digits", &format!(r#"{{"verdict":"v","a":{}}}"#, "9".repeat(310)))),
        (
            "reserved-name",
            json(
                "a name that one reader takes for a command",
                r#"{"verdict":"v","$serde_json::private::RawValue":"1"}"#,
            ),
        ),
        ("too-deep", json("128 levels", &nested(128))),
        ("deep", json("127 levels can be read", &nested(127))),
        ("array", json("an array has no members, and can be read", r#"["verdict"]"#)),
        (
            "other-types",
            json("members of other types are no terms", r#"{"session_id":{"verdict":"v"},"verdict":["v"]}"#),
        ),
        ("blanks", json("blanks do not matter", " \t\r\n{ \"verdict\" :\n\"v\" } ")),
        ("not-utf-8", Case::of("not UTF-8", "application/vap-verdict+json", *b"{\"verdict\":\"\xff\"}")),
    ])
}

fn binaries() -> Cases {
    let conversation = |why, hex: &str| Case::of(why, "application/agent-conversation", bytes(hex));
    let vrf = |why, hex: &str| Case::of(why, "application/vrf+cbor", bytes(hex));
    let deep = |levels: usize| format!("{}01", "81".repeat(levels));
    Cases::from([
        (
            "vrf-bare-json",
            Case::of("JSON outside of a byte string", "application/vrf+cbor", r#"{"verdict":"v"}"#),
        ),
        ("vrf-map", vrf("a map instead of a byte string", "a16776657264696374 6176")),
        ("vrf-no-json", vrf("a byte string without JSON", "4101")),
        ("vrf-long-head", vrf("a long head and chunks can be read", "5f 5802 7b7d ff")),
        ("cbor-cut-short", conversation("the end is missing", "a1")),
        ("cbor-trailing", conversation("something follows", "a0a0")),
        ("cbor-duplicate", conversation("two keys that are equal", "a2 01f6 1801f6")),
        ("cbor-duplicate-chunks", conversation("a text in chunks is the same key", "a2 6161f6 7f6161fff6")),
        ("cbor-not-utf-8", conversation("text that is not UTF-8", "a1 61fff6")),
        ("cbor-reserved", conversation("a reserved head", "a1 61611c")),
        ("cbor-break", conversation("a break without a beginning", "a1 6161ff")),
        ("cbor-too-deep", conversation("128 levels", &deep(128))),
        ("cbor-deep", conversation("127 levels can be read", &deep(127))),
        (
            "cbor-lengths",
            conversation(
                "lengths without a number can be read",
                "bf 6773657373696f6e bf 6a73657373696f6e2d6964 7f 6173 6131 ff ff ff",
            ),
        ),
        (
            "cbor-integer-keys",
            conversation(
                "keys that are no text have no terms",
                "a2 01f6 6773657373696f6e a1 6a73657373696f6e2d6964 01",
            ),
        ),
        ("json-with-blank", conversation("JSON begins with a brace", "20 7b7d")),
        ("json-no-json", conversation("what begins with a brace is JSON", "7b")),
    ])
}

fn bytes(hex: &str) -> Vec<u8> {
    data_encoding::HEXLOWER.decode(hex.replace(' ', "").as_bytes()).unwrap()
}
