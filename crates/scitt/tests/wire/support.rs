//! Keys with known secrets, and the CBOR that our own writer would never produce.

use data_encoding::HEXLOWER_PERMISSIVE;
use scitt::cbor::ItemWriter;
use scitt::{Algorithm, Malformed, SignedStatement, Signer, SigningKey, StatementBuilder};

pub fn hex(text: &str) -> Vec<u8> {
    let digits: String = text.chars().filter(|character| !character.is_whitespace()).collect();
    HEXLOWER_PERMISSIVE.decode(digits.as_bytes()).unwrap()
}

pub fn to_hex(bytes: &[u8]) -> String {
    HEXLOWER_PERMISSIVE.encode(bytes)
}

pub fn ed25519() -> SigningKey {
    SigningKey::from_ed25519_seed(&[7; 32]).unwrap()
}

pub fn key(algorithm: Algorithm) -> SigningKey {
    SigningKey::generate(algorithm).unwrap()
}

/// A statement as RFC 9943 wants it.
pub fn builder() -> StatementBuilder {
    StatementBuilder::new(b"{\"hello\":\"world\"}".as_slice())
        .content_type("application/json")
        .kid(b"issuer-1".as_slice())
        .iss("https://issuer.example")
        .sub("urn:example:artifact")
        .iat(1_700_000_000)
}

pub fn statement() -> SignedStatement {
    builder().sign(&ed25519()).unwrap()
}

/// A message out of a raw protected map, signed with whatever the map says.
pub fn message(signer: &dyn Signer, protected: &[u8], unprotected: &[u8], payload: Option<&[u8]>) -> Vec<u8> {
    let mut signed = ItemWriter::new();
    signed.array(4).text("Signature1").bytes(protected).bytes(&[]).bytes(payload.unwrap_or_default());
    let signature = signer.sign(&signed.into_bytes()).unwrap();
    frame(protected, unprotected, payload, &signature)
}

pub fn frame(protected: &[u8], unprotected: &[u8], payload: Option<&[u8]>, signature: &[u8]) -> Vec<u8> {
    let mut writer = ItemWriter::new();
    writer.tag(18).array(4).bytes(protected).raw(unprotected);
    match payload {
        Some(payload) => writer.bytes(payload),
        None => writer.null(),
    };
    writer.bytes(signature);
    writer.into_bytes()
}

/// `bytes` with `from` replaced by `to`, once.
pub fn replaced(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let at = bytes.windows(from.len()).position(|window| window == from).expect("the bytes to replace");
    [&bytes[..at], to, &bytes[at + from.len()..]].concat()
}

/// Why a statement is refused.
pub fn refused(input: &[u8]) -> Malformed {
    SignedStatement::parse(input.to_vec()).expect_err("this input is to be refused")
}

/// A message with this protected map and nothing else of interest.
pub fn with_protected(protected: &str) -> Vec<u8> {
    frame(&hex(protected), &[0xa0], Some(b"payload"), &[0; 64])
}
