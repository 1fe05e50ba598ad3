//! Hash envelopes: statements whose payload is a digest of the content (RFC 9995).

use super::entries::HeaderEntries;
use super::value::{ContentType, wrong_type};
use crate::label::{Label, labels};
use crate::malformed::{Malformed, MalformedKind};

/// Labels of a hash envelope, which describe the digest in the payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HashEnvelope {
    /// COSE identifier of the hash algorithm (label 258): -16 SHA-256, -43 SHA-384, -44 SHA-512.
    pub algorithm: i64,
    /// Content type of the hashed content (label 259).
    pub preimage_content_type: Option<ContentType>,
    /// Location of the hashed content (label 260): a hint that this crate never follows.
    pub location: Option<String>,
}

impl HashEnvelope {
    pub(super) fn read(entries: &HeaderEntries<'_, '_>) -> Result<Option<Self>, Malformed> {
        let Some(algorithm) = entries.int(labels::PAYLOAD_HASH_ALG) else {
            return refuse_orphans(entries).map(|()| None);
        };
        if let Some(content_type) = entries.int(labels::CONTENT_TYPE) {
            return Err(Malformed::at(content_type.offset, MalformedKind::ContentTypeInHashEnvelope));
        }
        let location = entries.int(labels::PAYLOAD_LOCATION).map(|item| {
            let text = item.value.as_text().map(str::to_owned);
            text.ok_or_else(|| wrong_type(item, "payload-location (260)", "text"))
        });
        let preimage = entries
            .int(labels::PREIMAGE_CONTENT_TYPE)
            .map(|item| ContentType::read(item, "preimage content type (259)"));
        let integer = || wrong_type(algorithm, "payload-hash-alg (258)", "an integer");
        Ok(Some(Self {
            algorithm: algorithm.value.as_i64().ok_or_else(integer)?,
            preimage_content_type: preimage.transpose()?,
            location: location.transpose()?,
        }))
    }
}

fn refuse_orphans(entries: &HeaderEntries<'_, '_>) -> Result<(), Malformed> {
    for label in [labels::PREIMAGE_CONTENT_TYPE, labels::PAYLOAD_LOCATION] {
        if let Some(item) = entries.int(label) {
            return Err(Malformed::at(item.offset, MalformedKind::NoHashEnvelope(Label::Int(label))));
        }
    }
    Ok(())
}

/// Returns the length of a digest in bytes, for the hash algorithms of RFC 9054 with a fixed length.
pub(crate) fn digest_length(algorithm: i64) -> Option<usize> {
    match algorithm {
        -14 => Some(20),
        -15 => Some(8),
        -18..=-16 => Some(32),
        -43 => Some(48),
        -44 | -45 => Some(64),
        _ => None,
    }
}
