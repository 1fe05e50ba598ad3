//! Receipts registered by their hash, and their disclosure (reading 21).

use registration::vrf::VrfRule;
use scitt::Signer;
use serde_json::{Value, json};
use testkit::verifier;

use super::{breaks, keeps, numbered, plain, set};
use crate::Case;

fn allowed() -> Value {
    json!({ "allow_redacted": true })
}

pub fn redacted() -> Vec<Case> {
    use VrfRule::{Labels, ReceiptId, Redacted, RedactedEnvelope, Version};
    let hash = || *merkle::EntryDigest::of(&plain().payload()).as_bytes();
    let did = verifier().public_key().did_key();
    vec![
        keeps(Redacted, "by-policy", "the hash of a receipt, where the policy says so", plain().redacted())
            .under(allowed()),
        keeps(Redacted, "listed-issuer", "an issuer of whom the policy takes hashes", plain().redacted())
            .under(json!({ "allow_redacted": true, "redacted_issuers": [did] })),
        keeps(
            Redacted,
            "below-the-minimum-tier",
            "the log does not know the tier; who admits hashes admits that",
            plain().redacted(),
        )
        .under(json!({ "allow_redacted": true, "min_tier": 3 })),
        breaks(
            Redacted,
            "by-default",
            "the hash of a receipt, where the policy does not say so",
            plain().redacted(),
        ),
        breaks(
            Redacted,
            "unlisted-issuer",
            "an issuer of whom the policy takes no hashes",
            plain().redacted(),
        )
        .under(json!({ "allow_redacted": true, "redacted_issuers": ["did:web:*"] })),
        keeps(
            RedactedEnvelope,
            "sha256-of-byte-string",
            "258: -16, 259: application/vrf+cbor, 32 bytes",
            plain().hash_of(-16, "application/vrf+cbor", hash()),
        )
        .under(allowed()),
        breaks(
            RedactedEnvelope,
            "sha512",
            "another hash algorithm",
            plain().hash_of(-44, "application/vrf+cbor", [7; 64]),
        )
        .under(allowed()),
        breaks(
            RedactedEnvelope,
            "bare-json",
            "the hash of application/vrf+json: one receipt, one hash",
            plain().hash_of(-16, "application/vrf+json", hash()),
        )
        .under(allowed()),
        breaks(
            Labels,
            "redacted-no-receipt-id",
            "a redacted receipt keeps its labels",
            plain().redacted().without(-70003),
        )
        .under(allowed()),
        breaks(
            ReceiptId,
            "redacted-upper-case",
            "the label is checked though the payload is not there",
            plain().redacted().label(-70003, "550E8400-E29B-41D4-A716-446655440000"),
        )
        .under(allowed()),
        breaks(
            Version,
            "redacted-newer",
            "the same for the version",
            plain().redacted().label(-70001, "1.1"),
        )
        .under(allowed()),
    ]
}

pub fn disclosed() -> Vec<Case> {
    use VrfRule::{Disclosure, Form, ReceiptIdAgrees, SubjectAgrees, VerdictMeaning};
    let lying = || set("verdict", json!("fail"));
    let elsewhere = || set("subject", json!("did:web:other.example"));
    let json_alone = plain().payload()[3..].to_vec();
    let of_json = *merkle::EntryDigest::of(&json_alone).as_bytes();
    let case = |case: Case, shown: Vec<u8>| case.under(allowed()).disclosed(shown);
    vec![
        case(
            keeps(Disclosure, "same", "what is shown is what was hashed", plain().redacted()),
            plain().payload(),
        ),
        case(
            breaks(Disclosure, "another-receipt", "another receipt is shown", plain().redacted()),
            numbered(1).payload(),
        ),
        case(
            breaks(Disclosure, "bare-json", "the JSON is shown without its byte string", plain().redacted()),
            json_alone.clone(),
        ),
        case(
            breaks(
                Form,
                "disclosed-bare-json",
                "the hash was made of the JSON without its byte string",
                plain().hash_of(-16, "application/vrf+cbor", of_json),
            ),
            json_alone,
        ),
        case(
            breaks(
                VerdictMeaning,
                "disclosed",
                "the receipt that was hidden breaks a rule of its own",
                lying().redacted(),
            ),
            lying().payload(),
        ),
        case(
            breaks(
                ReceiptIdAgrees,
                "disclosed",
                "the receipt that was hidden has another receipt_id than the label",
                plain().redacted().label(-70003, "550e8400-e29b-41d4-a716-446655440000"),
            ),
            plain().payload(),
        ),
        case(
            breaks(
                SubjectAgrees,
                "disclosed",
                "the receipt that was hidden speaks of another agent",
                elsewhere().redacted(),
            ),
            elsewhere().payload(),
        ),
    ]
}
