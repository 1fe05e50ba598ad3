//! Cosignatures: a witness's signed statement of the time at which a checkpoint was the largest it had seen of its log
//! (tlog-cosignature v1.0.1).
//!
//! A cosignature is a signature line whose blob begins with a timestamp, in Unix seconds. A checkpoint itself has none,
//! so the newest cosignature also tells how fresh it is.
//!
//! Not here: ML-DSA-44 cosignatures (type 0x06), which notes preserve without verification.

use crate::key::{KeyKind, VerifierKey};
use crate::note::{Note, NoteSigner, SignFailed, SignatureLine};

/// Maximum timestamp; larger values are negative numbers to some implementations.
pub const MAX_TIME: u64 = i64::MAX as u64;

/// Cosigns a checkpoint's text: the signer states that at `time` (Unix seconds) it was the largest tree seen of this
/// log.
///
/// # Errors
/// [`SignFailed`] if the key is not of [`KeyKind::Cosignature`], the time exceeds [`MAX_TIME`], or the signer fails.
pub fn cosign(signer: &dyn NoteSigner, text: &str, time: u64) -> Result<SignatureLine, SignFailed> {
    if signer.key().kind() != KeyKind::Cosignature {
        return Err(SignFailed(format!("{} is no witness's key", signer.key().name())));
    }
    if time > MAX_TIME {
        return Err(SignFailed(format!("{time} is no time")));
    }
    Ok(SignatureLine::cosignature(signer.key(), time, signer.sign(&message(text, time))?))
}

/// The time of this witness's newest cosignature on the note. `None` if the note has no cosignature by this key, or an
/// invalid one.
pub fn verified(note: &Note, witness: &VerifierKey) -> Option<u64> {
    if witness.kind() != KeyKind::Cosignature {
        return None;
    }
    let lines = || note.signatures().iter().filter(|line| line.is_by(witness));
    let all_valid = lines().all(|line| witness.verifies(note.text(), line.signature()));
    all_valid.then(|| lines().filter_map(time_of).max()).flatten()
}

/// The timestamp of a line in the format of a cosignature. Not verified.
pub fn time_of(line: &SignatureLine) -> Option<u64> {
    split(line.signature()).map(|(time, _)| time)
}

/// Splits a blob into timestamp and signature.
pub(crate) fn split(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (time, signature) = bytes.split_first_chunk::<8>()?;
    let time = u64::from_be_bytes(*time);
    (signature.len() == 64 && time <= MAX_TIME).then_some((time, signature))
}

/// The signed message of a cosignature.
pub(crate) fn message(text: &str, time: u64) -> Vec<u8> {
    format!("cosignature/v1\ntime {time}\n{text}").into_bytes()
}
