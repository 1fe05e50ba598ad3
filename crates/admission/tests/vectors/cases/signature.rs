//! Signed messages. The keys are Ed25519 with the seeds 01…01 (the agent), 02…02 (another agent) and 09…09 (an approver); the
//! agent's P-256 key signed once, for its signatures are never the same twice.

use jose::{jcs, jws};
use scitt::{Signer, SigningKey};
use serde_json::{Value, json};

use super::sample::{AGENT, GATEWAY, amendment, commitment, ed25519, header, intent, now, signed, with};
use crate::Case;

const P256_X: &str = "vElSSS_cTnPO3Hjp3IAt3n4drgY4VESf1EkcOVqXEV4";
const P256_Y: &str = "ZXT6XHSKjUftSnqX6sBf5OIne_dUqcEoiQSpbCfjP6w";
/// Over the sample commitment.
const P256_SIGNATURE: &str = "eyJhbGciOiJFUzI1NiIsImtpZCI6IkxsRXFuYlBuWjcwNVBqb1BqWS1WVHI4RXJIOVB3aE1PNDZENkhXM21LaDQifQ..sP3Qvw2COGOxtcF8D_CJ1sV4ZYsQN5Zkm7cOa9UywvAVllY0qiAXN-CTyNyIxxAlupBnkp5MkmudlSRDi91mnQ";

const FORGED: &str = "invalid_signature";
const HELD: &str = "accept";

fn case(
    name: &'static str,
    reading: &'static str,
    why: &'static str,
    text: String,
    expected: &'static str,
) -> Case {
    let key = |key: &SigningKey| key.public_key().to_jwk().to_value();
    let input = json!({
        "text": text,
        "agent_id": AGENT,
        "now": now().to_string(),
        "keys": [
            { "agent_id": AGENT, "jwk": key(&agent()) },
            { "agent_id": "did:example:b", "jwk": key(&other()) },
            { "jwk": key(&approver()) },
            { "agent_id": AGENT, "jwk": { "kty": "EC", "crv": "P-256", "x": P256_X, "y": P256_Y } },
        ],
        "demands": { "signed": false, "amendments_signed": true, "freshness": false, "audience": GATEWAY },
    });
    Case { folder: "signature", name, reading, why, input, expected }
}

fn agent() -> SigningKey {
    ed25519(1)
}

fn other() -> SigningKey {
    ed25519(2)
}

fn approver() -> SigningKey {
    ed25519(9)
}

fn by(key: &SigningKey, message: &Value) -> String {
    signed(message, key, &header(key)).to_string()
}

fn under(changes: &[(&str, Value)]) -> String {
    signed(&commitment(), &agent(), &with(header(&agent()), changes)).to_string()
}

pub fn cases() -> Vec<Case> {
    [held(), forged(), borrowed(), demanded(), dated()].into_iter().flatten().collect()
}

fn held() -> Vec<Case> {
    let message = signed(&commitment(), &agent(), &header(&agent()));
    let p256 = with(commitment(), &[("/signature", P256_SIGNATURE.into())]).to_string();
    let pretty = serde_json::to_string_pretty(&message).unwrap().replace("1000", "1e3");
    vec![
        case("commitment", "V-20", "Detached, by the agent's key.", by(&agent(), &commitment()), HELD),
        case("commitment-by-p256", "V-20", "ES256, r and s at fixed width.", p256, HELD),
        case("envelope", "V-20", "Detached, by the agent's key.", by(&agent(), &intent()), HELD),
        case(
            "amendment",
            "V-19",
            "Detached, by the agent's key.",
            by(&agent(), &amendment("sha256:00")),
            HELD,
        ),
        case(
            "amendment-by-approver",
            "V-19",
            "An approver may.",
            by(&approver(), &amendment("sha256:00")),
            HELD,
        ),
        case(
            "attached",
            "V-20",
            "With the canonical message as its payload.",
            attached(&jcs::canonical(&commitment())),
            HELD,
        ),
        case("spelt-otherwise", "V-20", "The canonical form is signed, not the text.", pretty, HELD),
        case(
            "fully-specified-algorithm",
            "V-20",
            "Ed25519 is EdDSA.",
            under(&[("/alg", json!("Ed25519"))]),
            HELD,
        ),
        unsigned_without_keys(),
        case(
            "unsigned",
            "V-19",
            "The agent has a key: its name is taken from nobody who does not sign.",
            commitment().to_string(),
            "signature_required",
        ),
    ]
}

fn unsigned_without_keys() -> Case {
    let why = "Nobody demands it of an agent that has no key.";
    let mut unsigned = case("unsigned-without-keys", "V-19", why, commitment().to_string(), HELD);
    unsigned.input["keys"] = json!([]);
    unsigned
}

fn attached(payload: &[u8]) -> String {
    let message = signed(&commitment(), &agent(), &header(&agent()));
    let payload = data_encoding::BASE64URL_NOPAD.encode(payload);
    let jws = message["signature"].as_str().unwrap().replace("..", &format!(".{payload}."));
    with(message, &[("/signature", jws.into())]).to_string()
}

fn forged() -> Vec<Case> {
    let changed = |change: (&str, Value)| {
        with(signed(&commitment(), &agent(), &header(&agent())), &[change]).to_string()
    };
    let junk = with(amendment("sha256:00"), &[("/signature", json!("junk"))]).to_string();
    let input = jws::signing_input(
        &with(header(&agent()), &[("/alg", json!("HS256"))]),
        &jcs::canonical(&commitment()),
    );
    let secret = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, agent().public_key().as_bytes());
    let hmac = jws::detached(&input, ring::hmac::sign(&secret, &input).as_ref());
    let hmac = with(commitment(), &[("/signature", hmac.into())]).to_string();
    vec![
        case("junk", "V-19", "Looks like a signature from afar.", junk, FORGED),
        case(
            "wider-scope",
            "V-20",
            "Changed after it was signed.",
            changed(("/scope/tools_allow", json!(["*"]))),
            FORGED,
        ),
        case(
            "moved-to-another-session",
            "V-20",
            "Changed after it was signed.",
            changed(("/session_id", json!("s-2"))),
            FORGED,
        ),
        case(
            "deny-removed",
            "V-20",
            "Changed after it was signed.",
            changed(("/scope/tools_deny", Value::Null)),
            FORGED,
        ),
        case(
            "attached-payload-of-another-message",
            "V-20",
            "What is verified must be what is read.",
            attached(&jcs::canonical(&intent())),
            FORGED,
        ),
        case(
            "attached-payload-not-canonical",
            "V-20",
            "Equal bytes, or not at all.",
            attached(&serde_json::to_vec_pretty(&commitment()).unwrap()),
            FORGED,
        ),
        case("algorithm-none", "V-20", "Never.", under(&[("/alg", json!("none"))]), FORGED),
        case("hmac-with-the-public-key", "V-20", "A public key is no secret.", hmac, FORGED),
        case(
            "algorithm-of-another-curve",
            "V-20",
            "The key decides.",
            under(&[("/alg", json!("ES256"))]),
            FORGED,
        ),
        case(
            "unencoded-payload",
            "V-20",
            "b64 changes what is signed.",
            under(&[("/b64", json!(false))]),
            FORGED,
        ),
        case(
            "critical-extension",
            "V-20",
            "None is known.",
            under(&[("/crit", json!(["exp"])), ("/exp", json!(0))]),
            FORGED,
        ),
        case(
            "number-beyond-double",
            "V-22",
            "Two messages have this canonical form.",
            by(&agent(), &intent()).replace("9931}", "9007199254740993}"),
            "not_canonical",
        ),
    ]
}

fn borrowed() -> Vec<Case> {
    let own = |member: &str, value: Value| {
        let header = with(header(&other()), &[(member, value), ("/kid", json!("mine"))]);
        signed(&commitment(), &other(), &header).to_string()
    };
    let borrowed_name = signed(&commitment(), &other(), &header(&agent())).to_string();
    vec![
        case(
            "key-brought-along",
            "V-20",
            "Whoever brings a key proves nothing.",
            own("/jwk", other().public_key().to_jwk().to_value()),
            FORGED,
        ),
        case(
            "key-from-an-address",
            "V-20",
            "Nothing is fetched.",
            own("/jku", json!("https://evil.example/jwks")),
            FORGED,
        ),
        case(
            "key-of-another-agent",
            "V-20",
            "It signs for another agent.",
            by(&other(), &commitment()),
            "key_not_authorised",
        ),
        case("name-of-the-agents-key", "V-20", "The name is not the key.", borrowed_name, FORGED),
        case(
            "key-of-nobody",
            "V-20",
            "The operator does not know it.",
            by(&ed25519(3), &commitment()),
            "unknown_key",
        ),
        case(
            "envelope-by-approver",
            "V-19",
            "An approver signs amendments only.",
            by(&approver(), &intent()),
            "key_not_authorised",
        ),
    ]
}

fn demanded() -> Vec<Case> {
    let mut signed = case(
        "unsigned-where-demanded",
        "V-19",
        "The route demands it.",
        intent().to_string(),
        "signature_required",
    );
    signed.input["demands"]["signed"] = true.into();
    let mut expired = case(
        "key-after-its-time",
        "V-20",
        "It ends before its last second.",
        by(&agent(), &commitment()),
        "key_not_valid_now",
    );
    expired.input["keys"][0]["not_after"] = now().to_string().into();
    let mut early = case(
        "key-before-its-time",
        "V-20",
        "It has not begun.",
        by(&agent(), &commitment()),
        "key_not_valid_now",
    );
    early.input["keys"][0]["not_before"] = "2026-11-22T09:00:01Z".into();
    let unsigned = case(
        "unsigned-amendment",
        "V-19",
        "It changes what is trusted.",
        amendment("sha256:00").to_string(),
        "signature_required",
    );
    vec![signed, expired, early, unsigned]
}

fn dated() -> Vec<Case> {
    let at = now().as_second();
    let all = [("/iat", json!(at)), ("/jti", json!("j-1")), ("/aud", json!(GATEWAY))];
    let fresh = |name, why, text, expected| {
        let mut case = case(name, "V-21", why, text, expected);
        case.input["demands"]["freshness"] = true.into();
        case
    };
    vec![
        fresh("fresh", "All three are there.", under(&all), HELD),
        fresh(
            "no-jti-where-demanded",
            "Two of three.",
            under(&[all[0].clone(), all[2].clone()]),
            "freshness_required",
        ),
        case("a-minute-old", "V-21", "Just in time.", under(&[("/iat", json!(at - 60))]), HELD),
        case(
            "older-than-a-minute",
            "V-21",
            "It counts whenever it is there.",
            under(&[("/iat", json!(at - 61))]),
            "stale",
        ),
        case(
            "from-the-future",
            "V-21",
            "It counts whenever it is there.",
            under(&[("/iat", json!(at + 61))]),
            "stale",
        ),
        case(
            "for-another-gateway",
            "V-21",
            "Signed for somebody else.",
            under(&[("/aud", json!("https://other.example"))]),
            "wrong_audience",
        ),
    ]
}
