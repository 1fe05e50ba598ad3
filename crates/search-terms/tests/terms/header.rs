//! What all statements have, whatever their content.

use scitt::HashEnvelope;
use scitt::header::ContentType;

use super::{Case, Cases, statement};

const VRF: &str = r#"{"verdict":"pass"}"#;

pub fn cases() -> Cases {
    Cases::from([
        ("opaque", Case::of("a content type without a row", "text/plain", "hello")),
        ("no-content-type", Case::new("a statement without a content type", statement("hello"))),
        (
            "content-format",
            Case::new("a CoAP content format", statement("{}").content_type(ContentType::Id(50))),
        ),
        (
            "as-written",
            Case::of(
                "the content type is a term as it is written",
                "Application/VRF+JSON ; charset=utf-8",
                VRF,
            ),
        ),
        ("other-blanks", Case::of("only spaces and tabs are cut off", "application/vrf+json\u{a0}", VRF)),
        ("not-served", Case::new("a payload that the log does not serve", vrf(VRF).detached())),
        ("served", Case::new("a detached payload", vrf(VRF).detached()).serving(VRF)),
        ("hash", Case::new("a hash envelope: the payload is the digest", hash(-16, &[7; 32]))),
        ("longer-hash", Case::new("only SHA-256 is a term", hash(-44, &[7; 64]))),
        (
            "hash-not-served",
            Case::new("a digest that the log does not serve", hash(-16, &[7; 32]).detached()),
        ),
        (
            "no-names",
            Case::new("no kid, and an empty subject", scitt::StatementBuilder::new("x").iss("i").sub("")),
        ),
    ])
}

fn vrf(payload: &str) -> scitt::StatementBuilder {
    statement(payload).content_type("application/vrf+json")
}

fn hash(algorithm: i64, digest: &[u8]) -> scitt::StatementBuilder {
    let preimage_content_type = Some("application/vrf+cbor".into());
    let envelope = HashEnvelope { algorithm, preimage_content_type, location: None };
    statement(digest).label(-70003, "receipt-1".into()).hash_envelope(&envelope)
}
