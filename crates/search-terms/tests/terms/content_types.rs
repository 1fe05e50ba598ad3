//! What each content type adds. Most payloads are no valid records: what stands at a place counts.

use scitt::HashEnvelope;
use scitt::cbor::Value as Cbor;
use serde_json::{Value, json};

use super::{Case, Cases, statement};

const DIGEST: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

pub fn cases() -> Cases {
    let mut cases = agents();
    cases.extend(records());
    cases.extend(of_the_operator());
    cases
}

fn json_case(why: &'static str, content_type: &str, payload: &Value) -> Case {
    Case::of(why, content_type, payload.to_string())
}

/// What VRF, AgentROA and VAP write.
fn agents() -> Cases {
    let vrf = json!({
        "receipt_id": "not the one of the header", "verdict": "pass", "tier": 2, "task": { "task_type": "code" },
        "hashes": { "output": DIGEST, "input": "not taken" },
    });
    let in_cbor = Cbor::Bytes(vrf.to_string().into_bytes().into()).encode();
    let with_id = |payload: Vec<u8>| statement(payload).label(-70003, "receipt-1".into());
    let aer = json!({
        "aer_id": "aer:0000000000000001", "enforcement_outcome": "permit",
        "action": { "mcp_tool_name": "search", "input_hash": DIGEST },
        "session": { "session_id": "session-1", "agent_id": "aha:a/b/c" },
    });
    let no_root = json!({
        "aer_id": "aer:0000000000000002", "enforcement_outcome": "deny",
        "action": { "mcp_tool_name": "", "input_hash": DIGEST },
        "session": { "session_id": "none", "agent_id": "aha:unknown/unknown/unknown" },
    });
    let envelope = HashEnvelope {
        algorithm: -16,
        preimage_content_type: Some("application/aer+json".into()),
        location: None,
    };
    let hashed = |sub: &str| statement([1; 32]).sub(sub).hash_envelope(&envelope);
    let audit =
        |record: Value| json_case("an audit record of a gateway", "application/vap-audit+json", &record);
    Cases::from([
        (
            "vrf-json",
            Case::new(
                "the identifier is that of the header",
                with_id(vrf.to_string().into()).content_type("application/vrf+json"),
            ),
        ),
        (
            "vrf-cbor",
            Case::new("JSON in a byte string", with_id(in_cbor).content_type("application/vrf+cbor")),
        ),
        ("aer", json_case("an execution receipt; its sub is a session", "application/aer+json", &aer)),
        ("aer-no-root", json_case("placeholders are no terms", "application/aer+json", &no_root)),
        ("aer-hash", Case::new("a receipt's identifier in sub", hashed("aer:0000000000000003"))),
        ("aer-hash-of-session", Case::new("a session in sub", hashed("session-3"))),
        ("aer-hash-of-prefix", Case::new("sub begins like an identifier", hashed("aer:"))),
        (
            "vap-verdict",
            json_case(
                "a verdict",
                "application/vap-verdict+json",
                &json!({ "session_id": "s", "verdict": "served" }),
            ),
        ),
        (
            "vap-verdict-no-session",
            json_case(
                "none is no session",
                "application/vap-verdict+json",
                &json!({ "session_id": "none", "verdict": "denied" }),
            ),
        ),
        (
            "vap-audit-decision",
            audit(json!({
                "gateway": "https://gateway.example", "stream": "session \"1\"\n\u{7f}é", "verdict": "served", "tool": "search",
                "agent_id": "agent-1", "aer_id": "aer:0000000000000001",
            })),
        ),
        ("vap-audit-outcome", audit(json!({ "gateway": "g", "stream": "unbound:1", "backLink": "00ff" }))),
        ("vap-audit-no-gateway", audit(json!({ "stream": "s", "verdict": ["served"] }))),
    ])
}

/// Conversations, registries and key sets.
fn records() -> Cases {
    let conversation = conversation();
    let cbor = as_cbor(&conversation);
    let tagged = Cbor::tagged(4149, as_cbor(&conversation));
    let of_bytes = Cbor::map([(
        "session".into(),
        Cbor::map([
            ("session-id".into(), Cbor::from(vec![0xfb, 0xff])),
            (
                "entries".into(),
                Cbor::array([
                    Cbor::map([("type".into(), "tool-call".into()), ("input".into(), Cbor::from(vec![1]))]),
                    Cbor::map([
                        ("type".into(), "tool-result".into()),
                        ("output".into(), Cbor::from(vec![1])),
                    ]),
                    Cbor::map([
                        ("type".into(), Cbor::tagged(1, "tool-call".into())),
                        ("name".into(), "not taken".into()),
                    ]),
                ]),
            ),
        ]),
    )]);
    let name = "application/agent-conversation";
    let policies =
        json!({ "policies": [{ "policy_digest": DIGEST }, { "policy_digest": "sha256:00" }, "no object"] });
    Cases::from([
        ("conversation-json", json_case("a conversation", name, &conversation)),
        ("conversation-cbor", Case::of("the same in CBOR", name, cbor.encode())),
        ("conversation-tagged", Case::of("a tag around all of it", name, tagged.encode())),
        ("conversation-bytes", Case::of("byte strings, which only CBOR has", name, of_bytes.encode())),
        ("plain-json", json_case("plain JSON has the same terms", "application/json", &conversation)),
        (
            "plain-json-other",
            json_case("plain JSON of another kind", "application/json", &json!({ "session": "s", "a": 1 })),
        ),
        (
            "agentroa-registry",
            json_case("policies in force", "application/agentroa-registry+json", &policies),
        ),
        (
            "agentroa-policy",
            json_case("a content type without a row", "application/agentroa-policy+json", &json!({})),
        ),
        (
            "agentroa-chain",
            json_case(
                "a chain is found by its issuer and its digest, the subject",
                "application/agentroa-chain+json",
                &json!([{ "session": { "session_id": "session-1", "agent_id": "aha:a/b/c" } }]),
            ),
        ),
        ("jwk-set", json_case("the thumbprints of keys", "application/jwk-set+json", &keys())),
    ])
}

fn conversation() -> Value {
    let call =
        json!({ "type": "tool-call", "name": "Bash", "call-id": "c1", "input": { "b": 1.0, "a": "é" } });
    let text = json!({ "type": "tool-result", "call-id": "c1", "output": "5 passed", "name": "not taken" });
    let inner = json!({ "type": "tool-call", "name": "Inner", "children": [{ "type": "tool-call", "name": "Innermost" }] });
    let elsewhere = json!([{ "type": "tool-call", "name": "not an entry" }]);
    json!({
        "previous-record": DIGEST,
        "session": {
            "session-id": "session-1",
            "agent-meta": { "model-id": "model-1", "cli-name": "cli", "models": ["model-1", "model-2", 3, null] },
            "entries": [
                { "type": "user", "name": "not taken", "call-id": "not taken", "children": [call, text] },
                { "type": "assistant", "children": [inner], "content": elsewhere },
                { "type": "tool-result", "output": { "z": [1, true], "a": null } },
                "no object",
                { "type": ["tool-call"], "name": "not taken" },
            ],
        },
    })
}

/// The keys of RFC 7638, section 3.1 (RSA, not taken), of RFC 8037, appendix A.2, and two with a member at fault.
fn keys() -> Value {
    let ed25519 = json!({ "kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo", "kid": "a" });
    json!({ "keys": [
        ed25519,
        { "kty": "EC", "crv": "P-256", "x": "x", "y": "y", "d": "private", "alg": "ES256" },
        { "kty": "RSA", "n": "n", "e": "AQAB" },
        { "kty": "EC", "crv": "P-256", "x": "x" },
        { "kty": "OKP", "crv": "Ed25519", "x": 1 },
    ] })
}

fn of_the_operator() -> Cases {
    let hex = "00".repeat(32);
    let action = "application/vnd.tabellion.operator-action+json";
    Cases::from([
        (
            "erasure",
            json_case(
                "erased entries",
                "application/vnd.tabellion.erasure+json",
                &json!({ "entries": [hex, "ff", 1] }),
            ),
        ),
        ("hold", json_case("a held entry", action, &json!({ "action": "hold", "entry": hex }))),
        ("freeze", json_case("a freeze", action, &json!({ "action": "freeze", "reason": "moved" }))),
        (
            "approval",
            json_case(
                "the payload that is approved",
                "application/vnd.tabellion.operator-approval+json",
                &json!({ "payload_sha256": hex }),
            ),
        ),
        (
            "policy",
            Case::of("a content type without a row", "application/vnd.tabellion.policy+json", "no JSON"),
        ),
    ])
}

fn as_cbor(value: &Value) -> Cbor<'static> {
    match value {
        Value::Null => Cbor::Null,
        Value::Bool(value) => (*value).into(),
        Value::Number(number) => {
            number.as_u64().map_or_else(|| Cbor::Float(number.as_f64().unwrap()), Cbor::from)
        }
        Value::String(text) => text.clone().into(),
        Value::Array(elements) => Cbor::array(elements.iter().map(as_cbor)),
        Value::Object(members) => {
            Cbor::map(members.iter().map(|(name, value)| (name.clone().into(), as_cbor(value))))
        }
    }
}
