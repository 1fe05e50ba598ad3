//! The payload as JSON, and the closed objects in it.

use registration::aer::AerRule;
use serde_json::json;

use super::{breaks, keeps, plain, remove, remove_from, set, set_in};
use crate::Case;
use crate::draft::{Draft, text_with};

pub fn json() -> Vec<Case> {
    use AerRule::{Canonical, DuplicateMember, Json, LoneSurrogate, Size};
    let text = |text: &str| Draft::of_json(text.as_bytes());
    vec![
        keeps(Size, "ordinary", "a receipt takes about a kilobyte", plain()),
        breaks(
            Size,
            "too-many-bytes",
            "65537 bytes are more than any receipt has",
            text(&" ".repeat(65_537)),
        ),
        keeps(Json, "one-object", "one JSON object", plain()),
        breaks(Json, "empty", "nothing is no JSON", text("")),
        breaks(Json, "cut-short", "the object does not end", text("{\"aer_id\":\"aer:")),
        breaks(Json, "trailing", "something follows the object", text_with("}]}", "}]}}")),
        breaks(Json, "byte-order-mark", "a byte order mark is no JSON", text("\u{feff}{}")),
        breaks(Json, "not-utf-8", "a string that is not UTF-8", Draft::of_json(b"{\"aer_id\":\"\xff\"}")),
        breaks(
            Json,
            "nested",
            "deeper than any receipt, and nothing is read beyond that",
            text(&"[".repeat(60_000)),
        ),
        keeps(DuplicateMember, "each-once", "each member once", plain()),
        breaks(
            DuplicateMember,
            "second-outcome",
            "permit for one reader, deny for another",
            text_with(
                "\"enforcement_outcome\":\"permit\"",
                "\"enforcement_outcome\":\"deny\",\"enforcement_outcome\":\"permit\"",
            ),
        ),
        breaks(
            DuplicateMember,
            "second-tool-escaped",
            "the same name, spelt with an escape",
            text_with("\"mcp_server_id\"", "\"mcp_tool_nam\\u0065\":\"x\",\"mcp_server_id\""),
        ),
        keeps(
            LoneSurrogate,
            "whole-pair",
            "a character beyond U+FFFF in a name",
            set_in("policy", "policy_id", json!("devops-\u{1f511}")),
        ),
        breaks(LoneSurrogate, "half", "half a surrogate pair", text_with("devops-v4", "devops-\\ud83d")),
        keeps(Canonical, "sorted", "members sorted, no blanks", plain()),
        breaks(
            Canonical,
            "blank",
            "a blank after a colon",
            text_with("\"schema_version\":", "\"schema_version\": "),
        ),
        breaks(Canonical, "line-end", "a line end after the object", text_with("}]}", "}]}\n")),
        breaks(
            Canonical,
            "number",
            "1.0 where 1 is canonical",
            text_with("\"chain_depth\":1", "\"chain_depth\":1.0"),
        ),
        breaks(Canonical, "escape", "an escape that need not be", text_with("devops", "d\\u0065vops")),
    ]
}

pub fn members() -> Vec<Case> {
    use AerRule::{Count, Member, Null, SchemaVersion, Text, Token, UnknownMember};
    let detail = |detail| {
        Draft::changed(|receipt| {
            receipt["enforcement_outcome"] = json!("deny");
            receipt["denial_reason"] = json!("budget_expansion_denied");
            receipt["denial_detail"] = detail;
        })
    };
    vec![
        keeps(Member, "all-required", "what is required and nothing else", plain()),
        breaks(Member, "an-array", "a receipt is an object", Draft::of_json(b"[]")),
        breaks(Member, "no-session", "a required object is missing", remove("session")),
        breaks(
            Member,
            "no-gateway-version",
            "every member is required",
            remove_from("border_gateway", "gateway_version"),
        ),
        breaks(Member, "no-input-hash", "the inputs are not bound", remove_from("action", "input_hash")),
        breaks(Member, "policy-as-text", "policy is an object", set("policy", json!("devops-v4"))),
        breaks(
            Member,
            "version-as-number",
            "a version is text",
            set_in("border_gateway", "gateway_version", json!(1)),
        ),
        breaks(
            Member,
            "signatures-as-object",
            "signatures is an array",
            Draft::tampered(|receipt| receipt["signatures"] = json!({})),
        ),
        breaks(
            Member,
            "no-signature",
            "a receipt without signatures is nobody's word",
            Draft::tampered(|receipt| drop(receipt.as_object_mut().unwrap().remove("signatures"))),
        ),
        breaks(Member, "detail-without-code", "a detail has a code", detail(json!({ "hop": 1 }))),
        keeps(UnknownMember, "every-optional-one", "every optional member of R-8", full()),
        breaks(
            UnknownMember,
            "at-the-top",
            "what nobody understands would be signed",
            set("note", json!("urgent")),
        ),
        breaks(
            UnknownMember,
            "in-session",
            "the AgentROA example left inner objects open",
            set_in("session", "user", json!("eve")),
        ),
        breaks(
            UnknownMember,
            "misspelt",
            "a misspelt member would mean nothing",
            set("plan_hsah", json!(format!("sha256:{}", "1".repeat(64)))),
        ),
        breaks(
            UnknownMember,
            "in-signature",
            "a log's receipt is no member of signatures",
            Draft::tampered(|receipt| receipt["signatures"][0]["receipt"] = json!("2oRB")),
        ),
        breaks(
            UnknownMember,
            "in-denial-detail",
            "three members, no more",
            detail(json!({ "code": "budget", "limit": 5 })),
        ),
        keeps(Null, "left-out", "a member without a value is left out", plain()),
        breaks(
            Null,
            "device-attestation",
            "null, as in the example of Appendix B",
            set_in("session", "device_attestation_ref", json!(null)),
        ),
        breaks(Null, "denial-reason", "a permit with a null reason", set("denial_reason", json!(null))),
        keeps(
            Text,
            "256-characters",
            "the longest name",
            set_in("policy", "policy_id", json!("é".repeat(256))),
        ),
        breaks(
            Text,
            "257-characters",
            "longer than any name",
            set_in("policy", "policy_id", json!("é".repeat(257))),
        ),
        keeps(
            Text,
            "attestation-8192-characters",
            "a reference to an attestation may be a token",
            set_in("session", "device_attestation_ref", json!("a".repeat(8192))),
        ),
        breaks(
            Text,
            "attestation-8193-characters",
            "longer than any identifier",
            set_in("session", "device_attestation_ref", json!("a".repeat(8193))),
        ),
        breaks(Text, "empty", "an empty session", set_in("session", "session_id", json!(""))),
        breaks(
            Text,
            "control-character",
            "a name that could forge a line",
            set_in("border_gateway", "gateway_version", json!("1\n2")),
        ),
        keeps(
            Token,
            "snake-case",
            "a code of ours",
            detail(json!({ "code": "budget_raised", "hop": 2, "dimension": "usd" })),
        ),
        keeps(
            Token,
            "every-character",
            "letters of both cases, digits and _ . : + -",
            detail(json!({ "code": "OPA:rule-7.b+exp_2", "dimension": "cost.USD" })),
        ),
        keeps(Token, "64-characters", "the longest code", detail(json!({ "code": "x".repeat(64) }))),
        breaks(Token, "65-characters", "longer than any code", detail(json!({ "code": "x".repeat(65) }))),
        breaks(Token, "slash", "a path is no code", detail(json!({ "code": "budget/usd" }))),
        breaks(Token, "prose", "a code is no sentence", detail(json!({ "code": "The budget was raised." }))),
        breaks(
            Token,
            "empty-dimension",
            "an empty dimension",
            detail(json!({ "code": "budget", "dimension": "" })),
        ),
        keeps(Count, "no-hops", "a root alone has depth 0", set_in("chain_summary", "chain_depth", json!(0))),
        breaks(Count, "negative", "less than none", set_in("chain_summary", "chain_depth", json!(-1))),
        breaks(Count, "half", "half a hop", detail(json!({ "code": "budget", "hop": 0.5 }))),
        breaks(
            Count,
            "as-text",
            "a number in quotation marks",
            set_in("chain_summary", "chain_depth", json!("1")),
        ),
        breaks(
            Count,
            "beyond-2-53",
            "a number that not every reader holds",
            set_in("chain_summary", "chain_depth", json!(9_007_199_254_740_992_u64)),
        ),
        breaks(
            Count,
            "beyond-doubles",
            "no double is so large",
            text_with("\"chain_depth\":1", "\"chain_depth\":1e999"),
        ),
        keeps(SchemaVersion, "one-point-zero", "the one version", plain()),
        breaks(SchemaVersion, "newer", "a version we cannot know", set("schema_version", json!("1.1"))),
    ]
}

/// A denial with every optional member that one can have.
fn full() -> Draft {
    Draft::changed(|receipt| {
        receipt["enforcement_outcome"] = json!("deny");
        receipt["denial_reason"] = json!("envelope_revoked");
        receipt["denial_detail"] = json!({ "code": "key_revoked", "hop": 0, "dimension": "signature" });
        receipt["revocation"] = json!({ "epoch": 3, "sequence": 14 });
        receipt["session"]["device_attestation_ref"] = json!("att:ref:k8s-pod-sidecar-001");
        receipt["plan_hash"] = json!(format!("sha256:{}", "4b".repeat(32)));
    })
}
