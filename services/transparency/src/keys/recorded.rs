//! Checks of recorded keys, and of signatures under them.

use scitt::CoseKey;
use scitt::receipt::SignedRoot;
use store::{CommittedHead, HeadSignature, LogKey, SignatureKind, SignedLog, StoreError};
use tlog::checkpoint::{Checkpoint, Origin};
use tlog::key::VerifierKey;

/// Checks that a published key has the kid that it is recorded under, and is encoded as it was recorded.
///
/// # Errors
/// The defect, in words.
pub fn check_key(key: &LogKey) -> Result<(), String> {
    let vkey = std::str::from_utf8(&key.public).ok().and_then(|text| text.parse::<VerifierKey>().ok());
    if let Some(vkey) = vkey {
        let is_named = vkey.id().get().to_be_bytes()[..] == key.kid[..];
        return if is_named { Ok(()) } else { Err("its name is not that of the key".to_owned()) };
    }
    let parsed = CoseKey::parse(&key.public).map_err(|why| format!("it is not a key: {why}"))?;
    if parsed.kid.as_ref() != Some(&key.kid) || parsed.key.thumbprint()[..] != key.kid[..] {
        return Err("its name is not that of the key".to_owned());
    }
    // The thumbprint does not cover everything: the key must name its algorithm, and re-encode to the recorded bytes.
    match parsed.algorithm.is_some() && parsed.encode()[..] == key.public[..] {
        true => Ok(()),
        false => Err("it is not as it was written".to_owned()),
    }
}

/// Returns a stored signature if it verifies under the log's keys on record: a damaged one is never served.
///
/// # Errors
/// If the keys or the head cannot be read, or the signature does not verify.
pub async fn sound(store: &dyn SignedLog, signature: HeadSignature) -> Result<HeadSignature, StoreError> {
    let damaged = |why: &str| {
        let HeadSignature { size, kind, .. } = &signature;
        StoreError::Damaged(format!("the {kind:?} signature over size {size}: {why}"))
    };
    let keys = store.keys().await?;
    let origin = keys.iter().find_map(|key| std::str::from_utf8(&key.public).ok()?.split('+').next());
    let origin = origin.unwrap_or_default();
    let origin = origin.parse().map_err(|_| StoreError::Refused(format!("{origin:?} is not an origin")))?;
    let head = store.head_of_size(signature.size).await?.ok_or_else(|| damaged("its head is missing"))?;
    check_head_signature(&origin, &head, &signature, &keys).map_err(|why| damaged(&why))?;
    Ok(signature)
}

/// Checks a signature over a head with the log's keys on record. A cosignature is checked with its witness's key
/// elsewhere.
///
/// # Errors
/// The defect, in words.
pub fn check_head_signature(
    origin: &Origin,
    head: &CommittedHead,
    signature: &HeadSignature,
    keys: &[LogKey],
) -> Result<(), String> {
    match signature.kind {
        SignatureKind::Receipt => check_receipt(head, signature, keys),
        SignatureKind::Checkpoint => check_checkpoint(origin, head, signature, keys),
        SignatureKind::Cosignature => Ok(()),
    }
}

fn check_receipt(head: &CommittedHead, signature: &HeadSignature, keys: &[LogKey]) -> Result<(), String> {
    let signed = SignedRoot::parse(signature.bytes.clone()).map_err(|error| error.to_string())?;
    if signed.tree_size() != head.size {
        return Err(format!("it signs size {}", signed.tree_size()));
    }
    let key = keys.iter().find(|key| key.kid == signature.kid).ok_or("its key is not on record")?;
    let key = CoseKey::parse(&key.public).map_err(|error| error.to_string())?;
    signed.verify(&head.root, &key.key).map_err(|error| error.to_string())
}

fn check_checkpoint(
    origin: &Origin,
    head: &CommittedHead,
    signature: &HeadSignature,
    keys: &[LogKey],
) -> Result<(), String> {
    let vkeys: Vec<VerifierKey> =
        keys.iter().filter_map(|key| std::str::from_utf8(&key.public).ok()?.parse().ok()).collect();
    let checkpoint = Checkpoint::open(&signature.bytes, origin, &vkeys).map_err(|error| error.to_string())?;
    if (checkpoint.size(), checkpoint.root()) != (head.size, head.root) {
        return Err(format!("it signs size {} and root {}", checkpoint.size(), checkpoint.root()));
    }
    Ok(())
}
