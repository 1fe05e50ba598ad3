//! Transparent Statements: receipts in the unprotected header of a statement (label 394, RFC 9942).
//!
//! Only label 394 of the unprotected header is changed: other entries keep their bytes and their order. The rest of the
//! message is copied unchanged, so that signature and entry ID stay the same.
//!
//! Not here: whether a receipt belongs to its statement (`verifier`).

use bytes::Bytes;

use crate::cbor::{ItemWriter, Value};
use crate::frame::Sign1Frame;
use crate::header::{Label, labels};
use crate::limits;
use crate::malformed::{Malformed, MalformedKind};
use crate::statement::SignedStatement;

/// Attaches receipts to a statement. Receipts that are already attached are not added again.
///
/// # Errors
/// Returns [`Malformed`] if the statement is malformed, its protected header has label 394, or there would be more than
/// [`RECEIPTS`](limits::RECEIPTS) receipts or more than [`TRANSPARENT_BYTES`](limits::TRANSPARENT_BYTES) bytes.
pub fn attach<R: AsRef<[u8]>>(statement: &[u8], receipts: &[R]) -> Result<Vec<u8>, Malformed> {
    let parsed = SignedStatement::parse(statement.to_vec())?;
    refuse_protected_receipts(&parsed)?;
    let mut all = parsed.receipts().to_vec();
    for receipt in receipts.iter().map(AsRef::as_ref) {
        if !all.iter().any(|known| known == receipt) {
            all.push(Bytes::copy_from_slice(receipt));
        }
    }
    if all.len() > limits::RECEIPTS {
        let kind = MalformedKind::Count { what: "receipts (394)", least: 1, most: limits::RECEIPTS };
        return Err(Malformed::at(0, kind));
    }
    let attached = replace_receipts(statement, &all)?;
    let limit = limits::TRANSPARENT_BYTES;
    if attached.len() > limit {
        return Err(Malformed::at(limit, MalformedKind::TooLarge { limit }));
    }
    Ok(attached)
}

/// Returns `true` if receipts can be attached to the statement: its protected header does not have label 394.
pub fn takes_receipts(statement: &SignedStatement) -> bool {
    refuse_protected_receipts(statement).is_ok()
}

/// Refuses a statement whose protected header has label 394: a label may be in one header only, and the protected
/// header is signed.
fn refuse_protected_receipts(statement: &SignedStatement) -> Result<(), Malformed> {
    let label = Label::Int(labels::RECEIPTS);
    match statement.header().contains(&label) {
        true => Err(Malformed::at(0, MalformedKind::LabelInBothHeaders(label))),
        false => Ok(()),
    }
}

/// Removes the receipts from a statement, and returns both. The rest of the unprotected header is kept;
/// [`SignedStatement::bytes`] is the statement without it.
///
/// # Errors
/// Returns [`Malformed`] if the statement is malformed.
pub fn strip(statement: &[u8]) -> Result<(Vec<u8>, Vec<Bytes>), Malformed> {
    let receipts = SignedStatement::parse(statement.to_vec())?.receipts().to_vec();
    Ok((replace_receipts(statement, &[])?, receipts))
}

fn replace_receipts(statement: &[u8], receipts: &[Bytes]) -> Result<Vec<u8>, Malformed> {
    let frame = Sign1Frame::read(statement, limits::TRANSPARENT_BYTES)?;
    let map = frame.unprotected.value.as_map().unwrap_or_default();
    let receipts_key = Value::from(labels::RECEIPTS);
    let others: Vec<_> = map.iter().filter(|(key, _)| key.value != receipts_key).collect();

    let mut writer = ItemWriter::with_capacity(statement.len());
    writer.raw(&statement[..frame.unprotected.offset]);
    writer.map(others.len() + usize::from(!receipts.is_empty()));
    for (key, value) in others {
        writer.raw(&statement[key.offset..value.end]);
    }
    if !receipts.is_empty() {
        writer.int(labels::RECEIPTS).array(receipts.len());
        receipts.iter().for_each(|receipt| {
            writer.bytes(receipt);
        });
    }
    writer.raw(&statement[frame.rest]);
    Ok(writer.into_bytes())
}
