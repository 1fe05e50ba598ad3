//! The statement that is registered, and hostile variants of it. Variants of its signed parts need the issuer's key.

use std::collections::BTreeMap;

use bytes::Bytes;
use scitt::cbor::{ItemWriter, Limits, Value, parse};
use scitt::header::labels::{ALG, CRIT, CWT_CLAIMS, KID, PAYLOAD_HASH_ALG};
use scitt::limits::{HEADER_DEPTH, HEADER_ITEMS};
use scitt::{Malformed, SignError, SignedStatement, Signer, transparent};

use crate::limits::{NESTED_ARRAYS, TOO_LARGE_BYTES};
use crate::probe::HostileInput;

/// Tag of COSE_Sign1 (RFC 9052, section 2), as it is encoded.
const SIGN1_TAG: u8 = 0xd2;
/// Tag of COSE_Mac0, as it is encoded.
const MAC0_TAG: u8 = 0xd1;
/// Head of an array of four.
const ARRAY_OF_4: u8 = 0x84;
/// Head of an array of indefinite length, and the break that ends it.
const INDEFINITE_ARRAY: u8 = 0x9f;
const BREAK: u8 = 0xff;
/// Head of an array of one.
const ARRAY_OF_1: u8 = 0x81;
/// Unprotected header `{-70001: 0, -70001: 0}`.
const SAME_LABEL_TWICE: &[u8] = &[0xa2, 0x3a, 0, 1, 0x11, 0x70, 0, 0x3a, 0, 1, 0x11, 0x70, 0];
/// Unprotected header `{2: [1]}`: `alg` is critical.
const CRITICAL: &[u8] = &[0xa1, 0x02, 0x81, 0x01];
/// Head of a byte string of 2^63 bytes.
const HUGE_STRING: &[u8] = &[0x5b, 0x80, 0, 0, 0, 0, 0, 0, 0];
/// A number that the registry of algorithms does not assign.
const UNASSIGNED_ALGORITHM: i64 = -999;
/// A private label, for the nested arrays and as one that no service knows.
const PRIVATE_LABEL: i64 = -70_000;
/// COSE identifier of SHA-256 (RFC 9054).
const SHA_256: i64 = -16;
/// Context of the signature of a COSE_Sign1 (RFC 9052, section 4.4).
const SIGNATURE_1: &str = "Signature1";
/// Label and value of a header.
type HeaderEntry<'a> = (Value<'a>, Value<'a>);

/// A signed statement, with the encoding that is sent.
#[derive(Clone, Debug)]
pub struct Samples {
    statement: SignedStatement,
    message: Bytes,
    signed: BTreeMap<HostileInput, Bytes>,
}

impl Samples {
    /// Reads the statement to be registered. Its signature is not verified.
    ///
    /// # Errors
    /// Returns [`Malformed`] if the message is not a Signed Statement.
    pub fn of(message: impl Into<Bytes>) -> Result<Self, Malformed> {
        let message = message.into();
        let statement = SignedStatement::parse(message.clone())?;
        Ok(Self { statement, message, signed: BTreeMap::new() })
    }

    /// Adds the hostile inputs that need a signature. `issuer` is the key that signed the statement.
    ///
    /// # Errors
    /// Returns the signer's error.
    pub fn signed_by(mut self, issuer: &dyn Signer) -> Result<Self, SignError> {
        let header = entries(self.statement.header().bytes());
        let (payload, digest) = (self.statement.payload().unwrap_or_default(), self.statement.digest());
        let unknown =
            [(CRIT.into(), Value::array([PRIVATE_LABEL.into()])), (PRIVATE_LABEL.into(), 0_u64.into())];
        let hash = [(PAYLOAD_HASH_ALG.into(), SHA_256.into())];
        let (none, claims, alg) = (Vec::new(), only(&header, CWT_CLAIMS), only(&header, ALG));
        let messages = [
            (HostileInput::UnprotectedClaims, without(&header, CWT_CLAIMS), claims, payload),
            (HostileInput::NoKid, without(&header, KID), none.clone(), payload),
            (HostileInput::UnknownCritical, with(&header, &unknown), none.clone(), payload),
            (HostileInput::ProtectedDuplicate, with(&header, &alg), none.clone(), payload),
            (HostileInput::TypedHashEnvelope, with(&header, &hash), none, digest.as_bytes()),
        ];
        for (input, protected, unprotected, payload) in messages {
            self.signed.insert(input, sign(issuer, protected, unprotected, payload)?);
        }
        Ok(self)
    }

    /// Returns the statement.
    pub fn statement(&self) -> &SignedStatement {
        &self.statement
    }

    /// Returns the encoding to send.
    pub fn message(&self) -> &Bytes {
        &self.message
    }

    /// Returns the statement with a receipt in its unprotected header; `None` if it has no room for one.
    pub fn transparent(&self, receipt: &[u8]) -> Option<Bytes> {
        transparent::attach(self.statement.bytes(), &[receipt]).ok().map(Bytes::from)
    }

    /// Returns the body of a hostile input; `None` if the issuer must sign it and has not.
    pub fn hostile(&self, input: HostileInput) -> Option<Bytes> {
        let whole = self.statement.bytes();
        let (protected, payload) = (self.statement.header().bytes(), self.statement.payload());
        let signature = self.statement.signature();
        let sign1 = |protected: &[u8], unprotected: &[u8], payload| {
            write_sign1(protected, unprotected, payload, signature)
        };
        Some(match input {
            HostileInput::Empty => Bytes::new(),
            HostileInput::Text => Bytes::from_static(b"this is not a COSE message"),
            HostileInput::Truncated => whole.slice(..whole.len() - 1),
            HostileInput::TrailingByte => [whole, &[0][..]].concat().into(),
            HostileInput::Untagged => whole.slice(1..),
            HostileInput::WrongTag => [&[MAC0_TAG], &whole[1..]].concat().into(),
            HostileInput::AnnouncedLength => [&[SIGN1_TAG, ARRAY_OF_4], HUGE_STRING].concat().into(),
            HostileInput::IndefiniteLength => {
                [&[SIGN1_TAG, INDEFINITE_ARRAY], &whole[2..], &[BREAK]].concat().into()
            }
            HostileInput::DuplicateLabel => sign1(protected, SAME_LABEL_TWICE, payload),
            HostileInput::UnprotectedCritical => sign1(protected, CRITICAL, payload),
            HostileInput::BothHeaders => sign1(protected, protected, payload),
            HostileInput::DeepNesting => sign1(protected, &nested_arrays(), payload),
            HostileInput::UnprotectedClaims
            | HostileInput::NoKid
            | HostileInput::UnknownCritical
            | HostileInput::ProtectedDuplicate
            | HostileInput::TypedHashEnvelope => return self.signed.get(&input).cloned(),
            HostileInput::WrongSignature => with_last_bit_changed(whole),
            HostileInput::UnknownAlgorithm => sign1(&unassigned_algorithm(protected), &EMPTY_MAP, payload),
            HostileInput::NoPayload => sign1(protected, &EMPTY_MAP, None),
            HostileInput::TooLarge => vec![0; TOO_LARGE_BYTES].into(),
        })
    }
}

/// The empty map.
const EMPTY_MAP: [u8; 1] = [0xa0];

fn write_sign1(protected: &[u8], unprotected: &[u8], payload: Option<&[u8]>, signature: &[u8]) -> Bytes {
    let mut writer = ItemWriter::new();
    writer.raw(&[SIGN1_TAG, ARRAY_OF_4]).bytes(protected).raw(unprotected);
    match payload {
        Some(payload) => writer.bytes(payload),
        None => writer.null(),
    };
    writer.bytes(signature);
    writer.into_bytes().into()
}

fn sign(
    issuer: &dyn Signer,
    protected: Vec<HeaderEntry<'_>>,
    unprotected: Vec<HeaderEntry<'_>>,
    payload: &[u8],
) -> Result<Bytes, SignError> {
    let protected = Value::map(protected).encode();
    let mut signed = ItemWriter::new();
    signed.array(4).text(SIGNATURE_1).bytes(&protected).bytes(&[]).bytes(payload);
    let signature = issuer.sign(&signed.into_bytes())?;
    Ok(write_sign1(&protected, &Value::map(unprotected).encode(), Some(payload), &signature))
}

/// Encodes a map whose only value is an array in an array, [`NESTED_ARRAYS`] deep.
fn nested_arrays() -> Vec<u8> {
    let mut writer = ItemWriter::new();
    writer.map(1).int(PRIVATE_LABEL).raw(&vec![ARRAY_OF_1; NESTED_ARRAYS]).int(0);
    writer.into_bytes()
}

fn with_last_bit_changed(statement: &[u8]) -> Bytes {
    let mut bytes = statement.to_vec();
    if let Some(last) = bytes.last_mut() {
        *last ^= 1;
    }
    bytes.into()
}

/// Returns the protected header with [`UNASSIGNED_ALGORITHM`].
fn unassigned_algorithm(protected: &[u8]) -> Vec<u8> {
    let others = without(&entries(protected), ALG);
    Value::map(with(&others, &[(ALG.into(), UNASSIGNED_ALGORITHM.into())])).encode()
}

/// Returns the entries of an encoded header.
fn entries(header: &[u8]) -> Vec<HeaderEntry<'_>> {
    let limits = Limits { depth: HEADER_DEPTH, items: HEADER_ITEMS };
    let parsed = parse(header, limits).ok();
    let entries = parsed.as_ref().and_then(|item| item.value.as_map()).unwrap_or_default();
    entries.iter().map(|(label, value)| (label.value.clone(), value.value.clone())).collect()
}

fn only<'a>(header: &[HeaderEntry<'a>], label: i64) -> Vec<HeaderEntry<'a>> {
    header.iter().filter(|(other, _)| other.as_i64() == Some(label)).cloned().collect()
}

fn without<'a>(header: &[HeaderEntry<'a>], label: i64) -> Vec<HeaderEntry<'a>> {
    header.iter().filter(|(other, _)| other.as_i64() != Some(label)).cloned().collect()
}

fn with<'a>(header: &[HeaderEntry<'a>], more: &[HeaderEntry<'a>]) -> Vec<HeaderEntry<'a>> {
    [header, more].concat()
}
