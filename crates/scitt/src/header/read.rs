//! Parses a protected header: labels, `crit`, and the type of each known label.

use std::ops::Range;

use bytes::Bytes;

use super::entries::{HeaderEntries, read_entries};
use super::value::{ContentType, wrong_type};
use super::{CertHash, CwtClaims, HEADER_LIMITS, HashEnvelope, Header, X5Chain};
use crate::cbor::{Item, ItemReader};
use crate::label::{Label, labels};
use crate::malformed::{Malformed, MalformedKind};

/// Labels that are processed, so that `crit` may list them in a statement.
const UNDERSTOOD: [i64; 10] = [
    labels::ALG,
    labels::CONTENT_TYPE,
    labels::KID,
    labels::CWT_CLAIMS,
    labels::TYP,
    labels::X5CHAIN,
    labels::X5T,
    labels::PAYLOAD_HASH_ALG,
    labels::PREIMAGE_CONTENT_TYPE,
    labels::PAYLOAD_LOCATION,
];

impl Header {
    /// Reads the header in the given span of `message`. `also_understood` are labels that `crit` may list in addition
    /// to [`UNDERSTOOD`].
    pub(crate) fn read(
        message: &Bytes,
        span: Range<usize>,
        also_understood: &[Label],
    ) -> Result<Self, Malformed> {
        if span.is_empty() {
            return Ok(Self::empty());
        }
        let mut reader = ItemReader::starting_at(&message[..span.end], span.start, HEADER_LIMITS);
        let item = reader.item()?;
        reader.finish()?;
        let entries = read_entries(&item, "the protected header")?;
        check_critical(&entries, also_understood)?;
        Self::from_entries(&entries, message, span)
    }

    fn from_entries(
        entries: &HeaderEntries<'_, '_>,
        message: &Bytes,
        span: Range<usize>,
    ) -> Result<Self, Malformed> {
        let find = |label| entries.int(label);
        Ok(Self {
            alg: find(labels::ALG).map(alg).transpose()?,
            content_type: content_type(entries, labels::CONTENT_TYPE, "content type (3)")?,
            kid: find(labels::KID).map(kid).transpose()?,
            claims: find(labels::CWT_CLAIMS).map(|item| CwtClaims::read(item, message)).transpose()?,
            typ: content_type(entries, labels::TYP, "typ (16)")?,
            x5chain: find(labels::X5CHAIN).map(X5Chain::read).transpose()?,
            x5t: find(labels::X5T).map(CertHash::read).transpose()?,
            hash_envelope: HashEnvelope::read(entries)?,
            entries: entries.spans_from(span.start),
            bytes: message.slice(span),
        })
    }

    fn empty() -> Self {
        Self {
            bytes: Bytes::new(),
            entries: Vec::new(),
            alg: None,
            content_type: None,
            kid: None,
            claims: None,
            typ: None,
            x5chain: None,
            x5t: None,
            hash_envelope: None,
        }
    }
}

fn alg(item: &Item<'_>) -> Result<i64, Malformed> {
    item.value.as_i64().ok_or_else(|| wrong_type(item, "alg (1)", "an integer"))
}

fn kid(item: &Item<'_>) -> Result<Bytes, Malformed> {
    let bytes = item.value.as_bytes().map(Bytes::copy_from_slice);
    bytes.ok_or_else(|| wrong_type(item, "kid (4)", "a byte string"))
}

fn content_type(
    entries: &HeaderEntries<'_, '_>,
    label: i64,
    what: &'static str,
) -> Result<Option<ContentType>, Malformed> {
    entries.int(label).map(|item| ContentType::read(item, what)).transpose()
}

/// Checks `crit` (RFC 9052, section 3.1): all listed labels must be understood, and present in the protected header.
fn check_critical(entries: &HeaderEntries<'_, '_>, also_understood: &[Label]) -> Result<(), Malformed> {
    let Some(crit) = entries.int(labels::CRIT) else {
        return Ok(());
    };
    let listed = match crit.value.as_array() {
        Some(listed) if !listed.is_empty() => listed,
        _ => return Err(wrong_type(crit, "crit (2)", "an array that is not empty")),
    };
    for item in listed {
        let label = Label::read(item)?;
        let understood = matches!(label, Label::Int(number) if UNDERSTOOD.contains(&number));
        if !understood && !also_understood.contains(&label) {
            return Err(Malformed::at(item.offset, MalformedKind::CriticalUnknown(label)));
        }
        if entries.get(&label).is_none() {
            return Err(Malformed::at(item.offset, MalformedKind::CriticalAbsent(label)));
        }
    }
    Ok(())
}
