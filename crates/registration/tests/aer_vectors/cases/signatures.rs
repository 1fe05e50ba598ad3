//! Who signs: the signatures within a receipt, and the statement around it.

use data_encoding::BASE64URL_NOPAD;
use registration::aer::{AerRule, inner_signature};
use scitt::{Signer, SigningKey};
use serde_json::{Value, json};
use testkit::{GATEWAY, GATEWAY_ID, aer_json, denied_aer_json, ed25519, gateway, rootless_aer_json};

use super::{breaks, keeps, options, options_with, plain};
use crate::Case;
use crate::draft::{Draft, signed};

/// The order of the Ed25519 group, little-endian.
const ORDER: [u8; 32] = [
    0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
];

pub fn form() -> Vec<Case> {
    use AerRule::{SignatureAlgorithm, SignatureForm, Signatures};
    let sig = |change: fn(&str) -> String| {
        Draft::tampered(|receipt| {
            let sig = receipt["signatures"][0]["sig"].as_str().unwrap().to_owned();
            receipt["signatures"][0]["sig"] = json!(change(&sig));
        })
    };
    let alg =
        |alg: &'static str| Draft::tampered(move |receipt| receipt["signatures"][0]["alg"] = json!(alg));
    let many = |count: usize| {
        Draft::tampered(move |receipt| {
            let one = receipt["signatures"][0].clone();
            receipt["signatures"] = json!(vec![one; count]);
        })
    };
    vec![
        keeps(Signatures, "one", "the gateway's", plain()),
        breaks(Signatures, "none", "nobody signs", many(0)),
        breaks(Signatures, "nine", "more signatures than any gateway needs", many(9)),
        keeps(SignatureAlgorithm, "eddsa", "EdDSA, as written", plain()),
        breaks(SignatureAlgorithm, "ed25519", "the newer name is not the draft's", alg("Ed25519")),
        breaks(SignatureAlgorithm, "none", "no algorithm at all", alg("none")),
        breaks(SignatureAlgorithm, "es256", "another curve", alg("ES256")),
        keeps(SignatureForm, "bare-base64url", "86 characters, no padding", plain()),
        breaks(
            SignatureForm,
            "prefix",
            "base64url: in front, as in the examples",
            sig(|sig| format!("base64url:{sig}")),
        ),
        breaks(SignatureForm, "padding", "padded to 88 characters", sig(|sig| format!("{sig}=="))),
        breaks(
            SignatureForm,
            "standard-alphabet",
            "base64, not base64url",
            sig(|sig| format!("+/{}", &sig[2..])),
        ),
        breaks(
            SignatureForm,
            "der",
            "a DER signature, as in the examples",
            sig(|_| BASE64URL_NOPAD.encode(&[[0x30, 0x45, 0x02, 0x21].as_slice(), &[0; 67]].concat())),
        ),
        breaks(SignatureForm, "short", "63 bytes", sig(|_| BASE64URL_NOPAD.encode(&[1; 63]))),
        breaks(SignatureForm, "empty", "no bytes", sig(|_| String::new())),
    ]
}

pub fn whose() -> Vec<Case> {
    use AerRule::{Signature, Signer as SignerRule};
    let stranger = ed25519([7; 32]);
    let two_keys = json!({ "gateway": [{
        "iss": GATEWAY,
        "id": GATEWAY_ID,
        "keys": [gateway().public_key().did_key(), { "key": stranger.public_key().did_key(), "signer": "hsm-2" }],
    }] });
    let second = |signer: &str, key: &SigningKey| {
        let mut another = inner_signature(&aer_json(0), key).unwrap();
        another["signer"] = json!(signer);
        Draft::tampered(|receipt| receipt["signatures"].as_array_mut().unwrap().push(another))
    };
    // A key and the one that replaces it, under one name; and the same name of another gateway's instance.
    let rotated = json!({ "gateway": [
        {
            "iss": GATEWAY,
            "id": GATEWAY_ID,
            "keys": [gateway().public_key().did_key(), stranger.public_key().did_key()],
        },
        { "iss": "https://other-gateway.example", "id": GATEWAY_ID, "keys": [others_key().public_key().did_key()] },
    ] });
    let by = |key: &SigningKey| {
        let signature = inner_signature(&aer_json(0), key).unwrap();
        Draft::tampered(|receipt| receipt["signatures"] = json!([signature]))
    };
    let mut over_signatures = signed();
    over_signatures["signatures"][0]["sig"] =
        json!(BASE64URL_NOPAD.encode(&gateway().sign(&jose::jcs::canonical(&signed())).unwrap()));
    vec![
        keeps(SignerRule, "listed", "a key that the policy lists for the gateway", plain()),
        keeps(SignerRule, "two-listed", "two keys of the gateway, both listed", second("hsm-2", &stranger))
            .under(two_keys),
        keeps(SignerRule, "old-key", "while a key is replaced, the old one still signs", by(&gateway()))
            .under(rotated.clone()),
        keeps(SignerRule, "new-key", "and so does the new one, under the same name", by(&stranger))
            .under(rotated.clone()),
        breaks(
            Signature,
            "neither-old-nor-new",
            "a key of another gateway, whose instance has the same name",
            by(&others_key()),
        )
        .under(rotated),
        breaks(
            SignerRule,
            "unlisted",
            "a good signature does not make up for one that nobody can check",
            second("hsm-2", &stranger),
        ),
        breaks(
            SignerRule,
            "agent",
            "agents sign delegations, not receipts",
            Draft::tampered(|receipt| {
                receipt["signatures"][0]["signer"] = json!("aha:acme/engineering/coder-7")
            }),
        ),
        keeps(Signature, "over-the-rest", "over the canonical form without signatures", plain()),
        breaks(
            Signature,
            "changed-afterwards",
            "the call was another one",
            Draft::tampered(|receipt| receipt["session"]["agent_id"] = json!("aha:acme/engineering/coder-8")),
        ),
        breaks(
            Signature,
            "another-key",
            "somebody else under the gateway's name",
            Draft::tampered(|receipt| {
                receipt["signatures"] = json!([inner_signature(&aer_json(0), &ed25519([7; 32])).unwrap()]);
            }),
        ),
        breaks(Signature, "second-is-bad", "all that are there must verify", second(GATEWAY_ID, &stranger)),
        breaks(Signature, "over-everything", "signed with signatures in it", Draft::of(over_signatures)),
        breaks(
            Signature,
            "other-s",
            "the same signature with S + L: strict verification takes one of the two",
            Draft::tampered(malleate),
        ),
    ]
}

/// A key of another gateway.
fn others_key() -> SigningKey {
    ed25519([8; 32])
}

/// S becomes S + L, which a careless verifier takes for the same signature.
fn malleate(receipt: &mut Value) {
    let sig = receipt["signatures"][0]["sig"].as_str().unwrap().to_owned();
    let mut bytes = BASE64URL_NOPAD.decode(sig.as_bytes()).unwrap();
    let mut carry = 0;
    for (byte, order) in bytes[32..].iter_mut().zip(ORDER) {
        let sum = u16::from(*byte) + u16::from(order) + carry;
        *byte = sum as u8;
        carry = sum >> 8;
    }
    assert_eq!(carry, 0);
    receipt["signatures"][0]["sig"] = json!(BASE64URL_NOPAD.encode(&bytes));
}

pub fn statement() -> Vec<Case> {
    use AerRule::{Gateway, GatewayAgrees, Subject};
    let own = |key: &SigningKey, id: &str| {
        let mut receipt = aer_json(0);
        receipt["border_gateway"]["gateway_id"] = json!(id);
        receipt["signatures"] = json!([inner_signature(&receipt, key).unwrap()]);
        Draft::of(receipt)
    };
    let stranger = || ed25519([7; 32]);
    let did = stranger().public_key().did_key();
    let other_instance =
        Draft::changed(|receipt| receipt["border_gateway"]["gateway_id"] = json!("gateway:test-2"));
    let open = || options_with("did_key_gateways", json!(true));
    vec![
        keeps(Gateway, "listed", "a gateway that the policy lists", plain()),
        keeps(
            Gateway,
            "did-key",
            "a did:key, where the policy lets one be a gateway",
            own(&stranger(), &did).by(stranger()),
        )
        .under(open()),
        keeps(
            Gateway,
            "by-its-hash",
            "of a receipt that stays with the gateway, only whose it is can be seen",
            plain().redacted(),
        ),
        breaks(
            Gateway,
            "did-key-not-by-policy",
            "a did:key, where the policy does not",
            own(&stranger(), &did).by(stranger()),
        ),
        breaks(
            Gateway,
            "somebody-else-s-receipt",
            "a receipt of the gateway, handed in by another issuer",
            plain().by(stranger()),
        ),
        breaks(
            Gateway,
            "by-the-hash-of-a-stranger",
            "another issuer's, by its hash",
            plain().redacted().by(stranger()),
        ),
        breaks(Gateway, "nobody-listed", "a policy that lists no gateway", plain()).under(json!({})),
        keeps(GatewayAgrees, "listed-instance", "gateway_id is the instance that the policy lists", plain()),
        breaks(
            GatewayAgrees,
            "another-instance",
            "an instance that the policy does not know",
            other_instance,
        ),
        breaks(
            GatewayAgrees,
            "did-key-as-another",
            "a did:key is a gateway of its own name only",
            own(&stranger(), GATEWAY_ID).by(stranger()),
        )
        .under(open()),
        keeps(Subject, "receipt", "about the receipt", plain()),
        keeps(Subject, "session", "about the session", plain().sub("sess:8b3d0e7f2a1c9b4e")),
        keeps(
            Subject,
            "denied-session",
            "about the session of a denial",
            Draft::of(denied_aer_json(0, "approval_required")).sub("sess:8b3d0e7f2a1c9b4e"),
        ),
        breaks(Subject, "another-receipt", "about another receipt", plain().sub("aer:2f5a8c1d4e7b0f3a")),
        breaks(Subject, "agent", "about the agent", plain().sub("aha:acme/engineering/coder-7")),
        breaks(
            Subject,
            "no-session",
            "none is no session to be about",
            Draft::of(rootless_aer_json(0)).sub("none"),
        ),
        keeps(
            Subject,
            "no-root",
            "a receipt without a session is about itself",
            Draft::of(rootless_aer_json(0)),
        )
        .under(options()),
    ]
}
