//! The protected header: labels, identities, chains (readings 3 to 10, 12).

use registration::vrf::{VrfRule, kid_of};
use scitt::cbor::Value as Cbor;
use scitt::{Algorithm, Signer};
use serde_json::json;
use testkit::{ed25519, es384, verifier};

use super::{breaks, keeps, plain, set};
use crate::Case;
use crate::draft::Draft;

pub fn header() -> Vec<Case> {
    use VrfRule::{Algorithm as AlgorithmRule, IssuerAgrees, IssuerDidKey, Kid, Labels};
    let did = verifier().public_key().did_key();
    let jwk = verifier().public_key().did_jwk();
    let other = ed25519([7; 32]).public_key().did_key();
    let fully = || verifier().with_algorithm(Algorithm::Ed25519).unwrap();
    vec![
        keeps(Labels, "all-present", "the five labels of section 5.2", plain()),
        breaks(Labels, "no-version", "label -70001 is absent", plain().without(-70001)),
        breaks(Labels, "no-issuer", "label -70002 is absent", plain().without(-70002)),
        breaks(Labels, "no-receipt-id", "label -70003 is absent", plain().without(-70003)),
        breaks(
            Labels,
            "version-as-number",
            "label -70001 is text",
            plain().raw_label(-70001, Cbor::Unsigned(1)),
        ),
        breaks(
            Labels,
            "receipt-id-as-bytes",
            "label -70003 is text, not the UUID's bytes",
            plain().raw_label(-70003, Cbor::from(vec![0x11; 16])),
        ),
        keeps(IssuerDidKey, "ed25519", "the issuer is the did:key of its Ed25519 key", plain()),
        breaks(IssuerDidKey, "did-jwk", "the same key under another DID method", plain().iss(&jwk)),
        keeps(IssuerAgrees, "same", "-70002 repeats iss", plain()),
        breaks(
            IssuerAgrees,
            "another-verifier",
            "-70002 claims somebody else's work",
            plain().label(-70002, &other),
        ),
        keeps(Kid, "did-with-fragment", "kid is the DID and its only fragment", plain()),
        breaks(Kid, "did-alone", "kid names a key, not a subject", plain().kid(&did)),
        breaks(Kid, "fragment-alone", "a relative kid", plain().kid("#key-1")),
        breaks(Kid, "another-key", "kid names the key of another verifier", plain().kid(&kid_of(&other))),
        keeps(AlgorithmRule, "eddsa", "alg -8, as section 5.1 says", plain()),
        keeps(
            AlgorithmRule,
            "ed25519-by-policy",
            "alg -19, where the policy says so",
            plain().signer(fully()),
        )
        .under(json!({ "allow_ed25519_algorithm": true })),
        breaks(
            AlgorithmRule,
            "ed25519",
            "alg -19, where the policy does not say so",
            plain().signer(fully()),
        ),
        breaks(AlgorithmRule, "es384", "another curve", plain().signer(es384())),
    ]
}

pub fn chain() -> Vec<Case> {
    use VrfRule::{ChainLabels, ChainPosition, Genesis, PrevReceiptHash};
    let first = "sha256:21e9e561d4cfe5e7c073f557680f347c7217894a5c2a97c8a855bbe62615d2db";
    let linked = |hash: &str| plain().at(1).label(-70004, hash);
    vec![
        keeps(PrevReceiptHash, "entry-id", "the predecessor by its entry ID", linked(first)),
        breaks(PrevReceiptHash, "empty", "an empty string is neither a hash nor null", linked("")),
        breaks(
            PrevReceiptHash,
            "zeros",
            "zeros stand for null elsewhere, not here",
            linked(&format!("sha256:{}", "0".repeat(64))),
        ),
        breaks(
            PrevReceiptHash,
            "upper-case",
            "hex digits are lower case",
            linked(&first.to_uppercase().replace("SHA256", "sha256")),
        ),
        breaks(PrevReceiptHash, "bare-hex", "the algorithm is missing", linked(&first[7..])),
        breaks(
            PrevReceiptHash,
            "sha512",
            "entry IDs are SHA-256",
            linked(&format!("sha512:{}", "a".repeat(128))),
        ),
        breaks(
            PrevReceiptHash,
            "bytes",
            "text, not bytes",
            plain().at(1).raw_label(-70004, Cbor::from(vec![0x21; 32])),
        ),
        keeps(Genesis, "null", "the first receipt has null for a predecessor", plain()),
        keeps(Genesis, "label-absent", "or no label at all", plain().without(-70004)),
        breaks(
            Genesis,
            "first-with-predecessor",
            "position 0 names a predecessor",
            plain().label(-70004, first),
        ),
        breaks(Genesis, "null-later", "position 1 has null for a predecessor", plain().at(1)),
        breaks(Genesis, "absent-later", "position 1 names no predecessor", plain().at(1).without(-70004)),
        keeps(ChainPosition, "later", "a position is an unsigned integer", linked(first).at(42)),
        breaks(
            ChainPosition,
            "negative",
            "positions count from 0",
            plain().raw_label(-70005, Cbor::Negative(0)),
        ),
        keeps(
            ChainPosition,
            "largest",
            "2^53 - 1, which every reader holds",
            linked(first).at((1 << 53) - 1),
        ),
        breaks(ChainPosition, "too-large", "2^53, which some readers round", linked(first).at(1 << 53)),
        breaks(ChainPosition, "text", "a number, not its digits", plain().label(-70005, "0")),
        keeps(
            ChainLabels,
            "unchained",
            "a receipt outside any chain has neither label",
            plain().without(-70004).without(-70005),
        ),
        breaks(
            ChainLabels,
            "null-without-position",
            "null says that this is the first of a chain, so it has a position",
            plain().without(-70005),
        ),
        breaks(
            ChainLabels,
            "hash-without-position",
            "a predecessor, but no position",
            plain().label(-70004, first).without(-70005),
        ),
    ]
}

pub fn identity() -> Vec<Case> {
    use VrfRule::{ReceiptId, ReceiptIdAgrees, ReceiptIdUnique, Subject, SubjectAgrees};
    let id = |id: &str| set("receipt_id", json!(id));
    let unchained = |draft: Draft| draft.without(-70004).without(-70005);
    let again = || unchained(set("tier", json!(1)));
    vec![
        keeps(
            Subject,
            "urn",
            "an agent may be a URN",
            plain().sub("urn:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6"),
        ),
        breaks(Subject, "bare-name", "a name that means something here only", plain().sub("agent-7")),
        breaks(Subject, "url", "neither DID nor URN", plain().sub("https://agent.example")),
        keeps(SubjectAgrees, "same", "the payload may repeat sub", set("subject", json!(testkit::AGENT))),
        breaks(
            SubjectAgrees,
            "another-agent",
            "the payload speaks of another agent's work",
            set("subject", json!("did:web:other.example")),
        ),
        keeps(
            ReceiptId,
            "uuid-v4",
            "a random UUID in lower case",
            id("550e8400-e29b-41d4-a716-446655440000"),
        ),
        breaks(
            ReceiptId,
            "upper-case",
            "one receipt, one spelling",
            id("550E8400-E29B-41D4-A716-446655440000"),
        ),
        breaks(ReceiptId, "uuid-v1", "a UUID of another version", id("550e8400-e29b-11d4-a716-446655440000")),
        breaks(
            ReceiptId,
            "wrong-variant",
            "version 4 of another variant",
            id("550e8400-e29b-41d4-c716-446655440000"),
        ),
        breaks(
            ReceiptId,
            "urn",
            "the UUID, not its URN",
            id("urn:uuid:550e8400-e29b-41d4-a716-446655440000"),
        ),
        breaks(ReceiptId, "no-hyphens", "the UUID in one piece", id("550e8400e29b41d4a716446655440000")),
        keeps(ReceiptIdAgrees, "same", "-70003 repeats receipt_id", plain()),
        breaks(
            ReceiptIdAgrees,
            "another-receipt",
            "-70003 claims another receipt",
            plain().label(-70003, "550e8400-e29b-41d4-a716-446655440000"),
        ),
        keeps(
            ReceiptIdUnique,
            "another-issuer",
            "another issuer may use the same receipt_id",
            plain().signer(ed25519([7; 32])),
        )
        .after(plain()),
        breaks(
            ReceiptIdUnique,
            "used-again",
            "the issuer says something else under the same receipt_id",
            again(),
        )
        .after(unchained(plain())),
        breaks(
            ReceiptIdUnique,
            "used-again-redacted",
            "the same receipt_id in a statement that hides the rest",
            again().redacted(),
        )
        .under(json!({ "allow_redacted": true }))
        .after(unchained(plain())),
    ]
}
