//! Cosignatures: a witness's signed statement of the time at which a checkpoint was the largest it had seen of its log
//! (tlog-cosignature v1.0.1).
//!
//! A cosignature is a signature line whose blob begins with a timestamp, in Unix seconds. A checkpoint itself has none,
//! so the newest cosignature also tells how fresh it is.
//!
//! Not here: ML-DSA-44 cosignatures (type 0x06), which notes preserve without verification.

pub use crate::timestamped::MAX_TIME;

use crate::key::{KeyKind, VerifierKey};
use crate::note::{Note, NoteSigner, NoteSignerError, SignatureLine};
use crate::timestamped;

/// Cosigns a checkpoint's text: the signer states that at `time` (Unix seconds) it was the largest tree seen of this
/// log.
///
/// # Errors
/// [`NoteSignerError`] if the key is not of [`KeyKind::Cosignature`], the time exceeds [`MAX_TIME`], or the signer
/// fails.
pub fn cosign(signer: &dyn NoteSigner, text: &str, time: u64) -> Result<SignatureLine, NoteSignerError> {
    if signer.key().kind() != KeyKind::Cosignature {
        return Err(NoteSignerError(format!("{} is not a witness's key", signer.key().name())));
    }
    if time > MAX_TIME {
        return Err(NoteSignerError(format!("{time} is not a time")));
    }
    Ok(SignatureLine::cosignature(signer.key(), time, signer.sign(&timestamped::message(text, time))?))
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
    timestamped::split(line.signature()).map(|(time, _)| time)
}
