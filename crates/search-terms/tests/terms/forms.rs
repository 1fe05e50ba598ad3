//! The forms of values: which are taken, and as what.

use scitt::cbor::Value as Cbor;

use super::{Case, Cases};

const HEX: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

pub fn cases() -> Cases {
    let mut cases = texts();
    cases.extend(digests());
    cases.extend(digests_of_json());
    cases
}

/// A statement whose tier is this JSON.
fn tier(why: &'static str, json: &str) -> Case {
    Case::of(why, "application/vrf+json", format!(r#"{{"tier":{json}}}"#))
}

fn texts() -> Cases {
    Cases::from([
        ("text-integer", tier("an integer in decimal digits", "-1")),
        ("text-largest", tier("the largest integer", "18446744073709551615")),
        ("text-smallest", tier("the smallest integer", "-9223372036854775808")),
        ("text-beyond", tier("an integer that does not fit into 64 bits", "18446744073709551616")),
        ("text-fraction", tier("a number with a fraction", "1.0")),
        ("text-exponent", tier("a number with an exponent", "1e2")),
        ("text-minus-zero", tier("minus zero is no integer", "-0")),
        ("text-bool", tier("neither text nor number", "true")),
        ("text-empty", tier("an empty text", r#""""#)),
        ("text-escapes", tier("a text is decoded", r#""\u0061\n\ud83e\udd80\/""#)),
        ("text-cbor-integer", session("the smallest integer of CBOR", Cbor::Negative(u64::MAX))),
        ("text-cbor-float", session("a number with a fraction", Cbor::Float(1.0))),
        ("text-cbor-tag", session("a tagged text", Cbor::tagged(32, "s".into()))),
    ])
}

/// A conversation in CBOR with this identifier of its session.
fn session(why: &'static str, id: Cbor<'static>) -> Case {
    let record = Cbor::map([("session".into(), Cbor::map([("session-id".into(), id)]))]);
    Case::of(why, "application/agent-conversation", record.encode())
}

fn digests() -> Cases {
    let approval = |why, digest: &str| {
        let payload = format!(r#"{{"payload_sha256":{digest}}}"#);
        Case::of(why, "application/vnd.tabellion.operator-approval+json", payload)
    };
    Cases::from([
        ("digest-hex", approval("hexadecimal digits", &format!(r#""{HEX}""#))),
        ("digest-prefix", approval("the same digest", &format!(r#""sha256:{HEX}""#))),
        ("digest-upper-case", approval("upper-case digits", &format!(r#""{}""#, HEX.to_uppercase()))),
        ("digest-short", approval("63 digits", &format!(r#""{}""#, &HEX[1..]))),
        ("digest-other", approval("another algorithm", &format!(r#""sha512:{HEX}""#))),
        ("digest-number", approval("no text", "1")),
    ])
}

/// A conversation with this input of a call, and this output.
fn call(why: &'static str, json: &str) -> Case {
    let entries =
        format!(r#"[{{"type":"tool-call","input":{json}}},{{"type":"tool-result","output":{json}}}]"#);
    Case::of(why, "application/json", format!(r#"{{"session":{{"entries":{entries}}}}}"#))
}

fn digests_of_json() -> Cases {
    let members = r#"{"\ud83e\udd80":1,"\ufb33":2,"b":"\u0007\u001f\"\\\b\f\n\r\t\u007f","a":{}}"#;
    Cases::from([
        ("json-text", call("the digest of an input has the quotes", r#""text""#)),
        ("json-null", call("null has a digest", "null")),
        ("json-members", call("members in the order of UTF-16, and escapes", members)),
        (
            "json-numbers",
            call(
                "numbers as RFC 8785 writes them",
                "[1.0,-0,-0.0,1e3,0.1,0.000001,1e-7,123.456,5e-324,1e15,-1.5e-9]",
            ),
        ),
        ("json-largest", call("the largest exact integer", "[9007199254740991,-9007199254740991]")),
        ("json-beyond", call("an integer that is not exact", "[9007199254740992]")),
        ("json-beyond-float", call("the same with an exponent", r#"{"a":1e16}"#)),
        ("json-beyond-below", call("a large negative number", "[-1e300]")),
    ])
}
