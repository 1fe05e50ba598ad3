//! A checkpoint received from the log or a vantage point, with a verified signature of the log.
//!
//! Not here: whether it is consistent with earlier checkpoints (`consistency`, `growth`).

use merkle::{RootHash, TreeSize};
use tlog::checkpoint::{Checkpoint, CheckpointError};
use tlog::cosignature;
use tlog::key::VerifierKey;
use tlog::note::{NotVerified, Note};

use crate::alarm::AlarmKind;
use crate::config::WatchedLog;
use crate::evidence::Sighting;

/// Size and root of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeHead {
    /// Tree size: the number of leaves.
    pub size: TreeSize,
    /// The root hash.
    pub root: RootHash,
}

/// A checkpoint with a verified signature of the log.
#[derive(Clone, Debug)]
pub struct SignedCheckpoint {
    /// Tree size: the number of leaves.
    pub size: TreeSize,
    /// The root hash.
    pub root: RootHash,
    /// Time of the newest cosignature by a known witness, in Unix seconds.
    pub cosigned_at: Option<u64>,
    /// Result of the witness policy; `None` if no policy is configured.
    pub quorum: Option<bool>,
    /// The note as received.
    pub sighting: Sighting,
}

/// Reason why received bytes are not a checkpoint of the log.
pub struct CheckpointRejection {
    /// The alarm if the log itself served the bytes. `None` if they are not a note, for example an error page.
    pub kind: Option<AlarmKind>,
    /// Reason for the rejection.
    pub words: String,
}

impl SignedCheckpoint {
    /// Verifies a note with the log's keys, and reads the cosignatures of known witnesses.
    pub fn open(note: &[u8], target: &WatchedLog, from: &str, at: u64) -> Result<Self, CheckpointRejection> {
        let checkpoint = Checkpoint::open(note, &target.origin, &target.all_keys())?;
        let note = Note::parse(note).map_err(CheckpointError::from)?;
        check_key_in_force(&note, checkpoint.size(), target)?;
        Ok(Self {
            size: checkpoint.size(),
            root: checkpoint.root(),
            cosigned_at: newest_cosignature(&note, &target.witnesses),
            quorum: target.policy.as_ref().map(|policy| policy.judge(&note).met),
            sighting: Sighting { note: note.to_string(), from: from.to_owned(), at },
        })
    }

    /// Size and root of the signed tree.
    pub fn head(&self) -> TreeHead {
        TreeHead { size: self.size, root: self.root }
    }
}

/// Fails unless the note has a signature by a key that was in force at this size.
fn check_key_in_force(note: &Note, size: TreeSize, target: &WatchedLog) -> Result<(), CheckpointRejection> {
    let in_force = target.retired.iter().filter(|(_, end)| size < *end).map(|(key, _)| key);
    let in_force: Vec<VerifierKey> = std::iter::once(&target.vkey).chain(in_force).cloned().collect();
    if note.verify(&in_force).is_ok() {
        return Ok(());
    }
    let ended: Vec<String> = target
        .retired
        .iter()
        .map(|(key, end)| format!("{}+{} from size {end} on", key.name(), key.id()))
        .collect();
    let words = format!("a checkpoint of size {size} is signed by a retired key ({})", ended.join(", "));
    Err(CheckpointRejection { kind: Some(AlarmKind::RetiredKey), words })
}

fn newest_cosignature(note: &Note, witnesses: &[VerifierKey]) -> Option<u64> {
    witnesses.iter().filter_map(|witness| cosignature::verified(note, witness)).max()
}

impl From<CheckpointError> for CheckpointRejection {
    fn from(why: CheckpointError) -> Self {
        let kind = match &why {
            CheckpointError::NotVerified(NotVerified::NoKnownKey) => Some(AlarmKind::UnknownKey),
            CheckpointError::NotVerified(NotVerified::BadSignature { .. }) => Some(AlarmKind::BadSignature),
            CheckpointError::OtherLog { .. } => Some(AlarmKind::OtherLog),
            CheckpointError::NotACheckpoint(_) => Some(AlarmKind::Inconsistent),
            CheckpointError::NotANote(_) => None,
        };
        Self { kind, words: why.to_string() }
    }
}
