//! Reading of what proofs of both structures are made of: arrays of three, paths and hashes.

use merkle::Hash;

use crate::cbor::Item;
use crate::header::wrong_type;
use crate::limits;
use crate::malformed::{Malformed, MalformedKind};

/// Returns the parts of an array of three.
pub(super) fn parts<'i, 'a>(item: &'i Item<'a>, what: &'static str) -> Result<&'i [Item<'a>; 3], Malformed> {
    let parts = item.value.as_array().and_then(|parts| parts.try_into().ok());
    parts.ok_or_else(|| wrong_type(item, what, "an array of 3"))
}

/// Reads a path of `least` to [`PATH`](limits::PATH) steps.
pub(super) fn steps<S>(
    item: &Item<'_>,
    least: usize,
    read: impl Fn(&Item<'_>) -> Result<S, Malformed>,
) -> Result<Vec<S>, Malformed> {
    let steps = item.value.as_array().ok_or_else(|| wrong_type(item, "a path", "an array"))?;
    if !(least..=limits::PATH).contains(&steps.len()) {
        let kind = MalformedKind::Count { what: "a path", least, most: limits::PATH };
        return Err(Malformed::at(item.offset, kind));
    }
    steps.iter().map(read).collect()
}

/// Reads a hash.
pub(super) fn hash(item: &Item<'_>) -> Result<Hash, Malformed> {
    let bytes = item.value.as_bytes().and_then(|bytes| bytes.try_into().ok());
    bytes.map(Hash::from_bytes).ok_or_else(|| wrong_type(item, "a hash in a path", "32 bytes"))
}
