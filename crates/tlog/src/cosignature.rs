//! Cosignatures: a witness says when a checkpoint was the largest it had seen of its log (tlog-cosignature v1.0.1).
//!
//! A cosignature is a signature line whose bytes begin with a time, in Unix seconds. A checkpoint itself carries none, so
//! the newest cosignature is also what tells how fresh it is.
//!
//! Not here: ML-DSA-44 cosignatures (type 0x06), which notes carry along unread.

use crate::key::{KeyKind, VerifierKey};
use crate::note::{Note, NoteSigner, SignFailed, SignatureLine};

/// The latest time that can be signed: one more bit and some readers take it for a negative number.
pub const MAX_TIME: u64 = i64::MAX as u64;

/// Says of a checkpoint's text that at `time` (Unix seconds) it was the largest tree the signer had seen of this log.
///
/// # Errors
/// If the key is not one for cosignatures, the time is beyond [`MAX_TIME`], or the signer fails.
pub fn cosign(signer: &dyn NoteSigner, text: &str, time: u64) -> Result<SignatureLine, SignFailed> {
    if signer.key().kind() != KeyKind::Cosignature {
        return Err(SignFailed(format!("{} is no witness's key", signer.key().name())));
    }
    if time > MAX_TIME {
        return Err(SignFailed(format!("{time} is no time")));
    }
    Ok(SignatureLine::cosignature(signer.key(), time, signer.sign(&message(text, time))?))
}

/// When this witness cosigned the note: the newest time that it signed. `None` without a cosignature of its key, and also if
/// one of them is not valid.
pub fn verified(note: &Note, witness: &VerifierKey) -> Option<u64> {
    if witness.kind() != KeyKind::Cosignature {
        return None;
    }
    let lines = || note.signatures().iter().filter(|line| line.is_by(witness));
    let all_valid = lines().all(|line| witness.verifies(note.text(), line.signature()));
    all_valid.then(|| lines().filter_map(time_of).max()).flatten()
}

/// The time in a line, if it has the form of a cosignature. Whether it is one, only the key tells.
pub fn time_of(line: &SignatureLine) -> Option<u64> {
    split(line.signature()).map(|(time, _)| time)
}

/// Time and signature.
pub(crate) fn split(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (time, signature) = bytes.split_first_chunk::<8>()?;
    let time = u64::from_be_bytes(*time);
    (signature.len() == 64 && time <= MAX_TIME).then_some((time, signature))
}

/// What is signed.
pub(crate) fn message(text: &str, time: u64) -> Vec<u8> {
    format!("cosignature/v1\ntime {time}\n{text}").into_bytes()
}
