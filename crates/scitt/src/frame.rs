//! The outer framing of a COSE_Sign1 (RFC 9052, section 4.2), shared by statements and receipts.
//!
//! Only the framing must have one exact form (tag 18, an array of 4, shortest and definite lengths), so that the hashed
//! bytes follow from the received bytes by replacing one span. The content of the byte strings, and the unprotected
//! map, may have any well-formed encoding.

use std::ops::Range;

use coset::{CoseSign1, ProtectedHeader, SignatureContext, TaggedCborSerializable};

use crate::cbor::{Item, ItemHead, ItemReader, Major};
use crate::header::HEADER_LIMITS;
use crate::malformed::{Malformed, MalformedKind};

pub(crate) const COSE_SIGN1: u64 = 18;
/// The empty map that replaces the unprotected header before hashing.
pub(crate) const EMPTY_MAP: [u8; 1] = [0xa0];
const NIL: u64 = 22;

/// Byte spans of the four parts. A string's span is that of its content, without the head.
pub(crate) struct Sign1Frame<'a> {
    pub(crate) protected: Range<usize>,
    pub(crate) unprotected: Item<'a>,
    pub(crate) payload: Option<Range<usize>>,
    /// Span from the payload's head to the end: all that follows the unprotected header.
    pub(crate) rest: Range<usize>,
    pub(crate) signature: Range<usize>,
}

impl<'a> Sign1Frame<'a> {
    pub(crate) fn read(input: &'a [u8], limit: usize) -> Result<Self, Malformed> {
        if input.len() > limit {
            return Err(Malformed::at(limit, MalformedKind::TooLarge { limit }));
        }
        let mut reader = ItemReader::new(input, HEADER_LIMITS);
        expect_tag(&mut reader)?;
        expect_array(&mut reader)?;
        let protected = string(&mut reader, "the protected header")?;
        let unprotected = map(&mut reader)?;
        let start = reader.position();
        let payload = payload(&mut reader)?;
        let signature = string(&mut reader, "the signature")?;
        reader.finish()?;
        Ok(Self { protected, unprotected, payload, rest: start..input.len(), signature })
    }
}

/// Encodes a complete message; the labels of `unprotected` are distinct.
pub(crate) fn write(
    protected: &[u8],
    unprotected: coset::Header,
    payload: Option<&[u8]>,
    signature: &[u8],
) -> Vec<u8> {
    let message = CoseSign1 {
        protected: exactly(protected),
        unprotected,
        payload: payload.map(<[u8]>::to_vec),
        signature: signature.to_vec(),
    };
    message.to_tagged_vec().expect("coset refuses only labels that occur twice")
}

/// Encodes the `Sig_structure`, which is signed (RFC 9052, section 4.4), with no external data.
///
/// `protected` is used as received, except that an empty map counts as empty bytes, as the RFC requires.
pub(crate) fn sig_structure(protected: &[u8], header_is_empty: bool, payload: &[u8]) -> Vec<u8> {
    let protected = if header_is_empty { &[] } else { protected };
    coset::sig_structure_data(SignatureContext::CoseSign1, exactly(protected), None, &[], payload)
}

/// Returns a protected header that coset writes in these bytes.
fn exactly(protected: &[u8]) -> ProtectedHeader {
    ProtectedHeader { original_data: Some(protected.to_vec()), header: coset::Header::default() }
}

fn expect_tag(reader: &mut ItemReader<'_>) -> Result<(), Malformed> {
    let head = reader.head()?;
    if (head.major, head.argument) != (Major::Tag, COSE_SIGN1) {
        return Err(Malformed::at(head.offset, MalformedKind::NotTag18));
    }
    expect_shortest(&head)
}

fn expect_array(reader: &mut ItemReader<'_>) -> Result<(), Malformed> {
    let head = reader.head()?;
    if head.major != Major::Array {
        return Err(Malformed::at(head.offset, MalformedKind::NotArrayOf4));
    }
    expect_shortest(&head)?;
    if head.argument != 4 {
        return Err(Malformed::at(head.offset, MalformedKind::NotArrayOf4));
    }
    Ok(())
}

fn string(reader: &mut ItemReader<'_>, what: &'static str) -> Result<Range<usize>, Malformed> {
    let head = reader.head()?;
    string_after(reader, &head, what, "a byte string")
}

fn payload(reader: &mut ItemReader<'_>) -> Result<Option<Range<usize>>, Malformed> {
    let head = reader.head()?;
    if head.major == Major::Simple && u64::from(head.info) == NIL {
        return Ok(None);
    }
    string_after(reader, &head, "the payload", "a byte string or nil").map(Some)
}

fn string_after(
    reader: &mut ItemReader<'_>,
    head: &ItemHead,
    what: &'static str,
    expected: &'static str,
) -> Result<Range<usize>, Malformed> {
    if head.major != Major::Bytes {
        return Err(Malformed::at(head.offset, MalformedKind::Type { what, expected }));
    }
    expect_shortest(head)?;
    let start = reader.position();
    reader.take(head)?;
    Ok(start..reader.position())
}

fn map<'a>(reader: &mut ItemReader<'a>) -> Result<Item<'a>, Malformed> {
    let item = reader.item()?;
    match item.value.as_map() {
        Some(_) => Ok(item),
        None => Err(crate::header::wrong_type(&item, "the unprotected header", "a map")),
    }
}

fn expect_shortest(head: &ItemHead) -> Result<(), Malformed> {
    let kind = match head {
        head if head.is_indefinite() => MalformedKind::Indefinite,
        head if !head.is_shortest() => MalformedKind::NotShortest,
        _ => return Ok(()),
    };
    Err(Malformed::at(head.offset, kind))
}
