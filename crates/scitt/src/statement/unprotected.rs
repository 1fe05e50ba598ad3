//! The parts of an unprotected header that are kept: certificates, receipts, and all other labels unparsed, so that
//! they can be compared with signed values. None of it is part of S, and none of it ever admits a statement.

use std::ops::Range;

use bytes::Bytes;

use crate::cbor::{Item, Value};
use crate::frame::COSE_SIGN1;
use crate::header::{Header, Label, X5Chain, labels, read_entries, wrong_type};
use crate::limits;
use crate::malformed::{Malformed, MalformedKind};

/// Labels that are valid only in the protected header (RFC 9052 `crit`, RFC 9995).
const PROTECTED_ONLY: [i64; 4] =
    [labels::CRIT, labels::PAYLOAD_HASH_ALG, labels::PREIMAGE_CONTENT_TYPE, labels::PAYLOAD_LOCATION];

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Unprotected {
    pub(super) x5chain: Option<X5Chain>,
    pub(super) receipts: Vec<Bytes>,
    /// All other labels, with their values as encoded.
    pub(super) others: Vec<(Label, Bytes)>,
}

impl Unprotected {
    pub(super) fn read(map: &Item<'_>, input: &[u8], header: &Header) -> Result<Self, Malformed> {
        let entries = read_entries(map, "the unprotected header")?;
        for (label, offset) in entries.labels() {
            check_placement(label, header).map_err(|kind| Malformed::at(offset, kind))?;
        }
        let other = |(label, span): (Label, Range<usize>)| {
            let ours = label == labels::X5CHAIN.into() || label == labels::RECEIPTS.into();
            (!ours).then(|| (label, Bytes::copy_from_slice(&input[span])))
        };
        Ok(Self {
            others: entries.spans_from(0).into_iter().filter_map(other).collect(),
            x5chain: entries.int(labels::X5CHAIN).map(X5Chain::read).transpose()?,
            receipts: match entries.int(labels::RECEIPTS) {
                Some(item) => receipts(item, input)?,
                None => Vec::new(),
            },
        })
    }
}

fn check_placement(label: &Label, header: &Header) -> Result<(), MalformedKind> {
    if header.contains(label) {
        return Err(MalformedKind::LabelInBothHeaders(label.clone()));
    }
    let Label::Int(number) = label else {
        return Ok(());
    };
    if PROTECTED_ONLY.contains(number) {
        return Err(MalformedKind::MustBeProtected(label.clone()));
    }
    if *number == labels::CONTENT_TYPE && header.hash_envelope().is_some() {
        return Err(MalformedKind::ContentTypeInHashEnvelope);
    }
    Ok(())
}

/// Reads the receipts, `[+ bstr .cbor Receipt]`. The unwrapped form of older drafts is accepted, too.
fn receipts(item: &Item<'_>, input: &[u8]) -> Result<Vec<Bytes>, Malformed> {
    let list = item.value.as_array().ok_or_else(|| wrong_type(item, "receipts (394)", "an array"))?;
    if !(1..=limits::RECEIPTS).contains(&list.len()) {
        let kind = MalformedKind::Count { what: "receipts (394)", least: 1, most: limits::RECEIPTS };
        return Err(Malformed::at(item.offset, kind));
    }
    list.iter().map(|receipt| one_receipt(receipt, input)).collect()
}

fn one_receipt(item: &Item<'_>, input: &[u8]) -> Result<Bytes, Malformed> {
    match &item.value {
        Value::Bytes(receipt) => Ok(Bytes::copy_from_slice(receipt)),
        Value::Tag(COSE_SIGN1, _) => Ok(Bytes::copy_from_slice(&input[item.span()])),
        _ => Err(wrong_type(item, "a receipt (in 394)", "a byte string")),
    }
}
