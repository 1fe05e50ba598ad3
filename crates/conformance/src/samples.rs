//! The statement that is registered, and hostile variants of it. None of them needs the issuer's key.

use bytes::Bytes;
use scitt::cbor::{ItemWriter, Limits, Value, parse};
use scitt::limits::{HEADER_DEPTH, HEADER_ITEMS};
use scitt::{Malformed, SignedStatement, transparent};

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
/// Protected header `{1: -7, 1: -7}`.
const SAME_LABEL_TWICE: &[u8] = &[0xa2, 0x01, 0x26, 0x01, 0x26];
/// Unprotected header `{2: [1]}`: `alg` is critical.
const CRITICAL: &[u8] = &[0xa1, 0x02, 0x81, 0x01];
/// Head of a byte string of 2^63 bytes.
const HUGE_STRING: &[u8] = &[0x5b, 0x80, 0, 0, 0, 0, 0, 0, 0];
/// Label of `alg`, and a number that the registry of algorithms does not assign.
const ALG: i64 = 1;
const UNASSIGNED_ALGORITHM: i64 = -999;
/// A private label for the nested arrays.
const NESTED_LABEL: i64 = -70_000;

/// A signed statement, with the encoding that is sent.
#[derive(Clone, Debug)]
pub struct Samples {
    statement: SignedStatement,
    message: Bytes,
}

impl Samples {
    /// Reads the statement to be registered. Its signature is not verified.
    ///
    /// # Errors
    /// Returns [`Malformed`] if the message is not a Signed Statement.
    pub fn of(message: impl Into<Bytes>) -> Result<Self, Malformed> {
        let message = message.into();
        Ok(Self { statement: SignedStatement::parse(message.clone())?, message })
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

    /// Returns the body of a hostile input.
    pub fn hostile(&self, input: HostileInput) -> Bytes {
        let whole = self.statement.bytes();
        let (protected, payload) = (self.statement.header().bytes(), self.statement.payload());
        let signature = self.statement.signature();
        let sign1 = |protected: &[u8], unprotected: &[u8], payload| {
            write_sign1(protected, unprotected, payload, signature)
        };
        match input {
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
            HostileInput::DuplicateLabel => sign1(SAME_LABEL_TWICE, &EMPTY_MAP, payload),
            HostileInput::UnprotectedCritical => sign1(protected, CRITICAL, payload),
            HostileInput::BothHeaders => sign1(protected, protected, payload),
            HostileInput::DeepNesting => sign1(protected, &nested_arrays(), payload),
            HostileInput::UnprotectedOnly => sign1(&[], protected, payload),
            HostileInput::WrongSignature => with_last_bit_changed(whole),
            HostileInput::UnknownAlgorithm => sign1(&unassigned_algorithm(protected), &EMPTY_MAP, payload),
            HostileInput::NoPayload => sign1(protected, &EMPTY_MAP, None),
            HostileInput::TooLarge => vec![0; TOO_LARGE_BYTES].into(),
        }
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

/// Encodes a map whose only value is an array in an array, [`NESTED_ARRAYS`] deep.
fn nested_arrays() -> Vec<u8> {
    let mut writer = ItemWriter::new();
    writer.map(1).int(NESTED_LABEL).raw(&vec![ARRAY_OF_1; NESTED_ARRAYS]).int(0);
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
    let limits = Limits { depth: HEADER_DEPTH, items: HEADER_ITEMS };
    let parsed = parse(protected, limits).ok();
    let entries = parsed.as_ref().and_then(|item| item.value.as_map()).unwrap_or_default();
    let others = entries.iter().filter(|(label, _)| label.value.as_i64() != Some(ALG));
    let others = others.map(|(label, value)| (label.value.clone(), value.value.clone()));
    Value::map(others.chain([(ALG.into(), UNASSIGNED_ALGORITHM.into())])).encode()
}
