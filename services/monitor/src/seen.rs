//! A checkpoint as shown by the log or a vantage point, verified with the log's key.

use merkle::{RootHash, TreeSize};
use tlog::checkpoint::{Checkpoint, CheckpointError};
use tlog::cosignature;
use tlog::key::VerifierKey;
use tlog::note::{NotVerified, Note};

use crate::alarm::AlarmKind;
use crate::config::WatchedLog;
use crate::evidence::Sighting;

/// A checkpoint with a verified signature of the log.
#[derive(Clone, Debug)]
pub struct SeenCheckpoint {
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

/// Error for bytes that are not the log's checkpoint.
pub struct NotTheLogs {
    /// The alarm if the log itself served the bytes. `None` if they are not a note, for example an error page.
    pub kind: Option<AlarmKind>,
    /// Reason for the rejection.
    pub words: String,
}

impl SeenCheckpoint {
    /// Verifies a note with the log's keys, and reads the cosignatures of known witnesses.
    pub fn open(note: &[u8], target: &WatchedLog, from: &str, at: u64) -> Result<Self, NotTheLogs> {
        let checkpoint = Checkpoint::open(note, &target.origin, &target.all_keys())?;
        let note = Note::parse(note).map_err(CheckpointError::from)?;
        refuse_retired(&note, checkpoint.size(), target)?;
        Ok(Self {
            size: checkpoint.size(),
            root: checkpoint.root(),
            cosigned_at: newest(&note, &target.witnesses),
            quorum: target.policy.as_ref().map(|policy| policy.judge(&note).met),
            sighting: Sighting { note: note.to_string(), from: from.to_owned(), at },
        })
    }

    /// Returns `true` if size and root are equal.
    pub fn is_same_tree(&self, other: &Self) -> bool {
        (self.size, self.root) == (other.size, other.root)
    }
}

/// Fails unless the note has a signature by a key that was in force at this size.
fn refuse_retired(note: &Note, size: TreeSize, target: &WatchedLog) -> Result<(), NotTheLogs> {
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
    Err(NotTheLogs { kind: Some(AlarmKind::RetiredKey), words })
}

fn newest(note: &Note, witnesses: &[VerifierKey]) -> Option<u64> {
    witnesses.iter().filter_map(|witness| cosignature::verified(note, witness)).max()
}

impl From<CheckpointError> for NotTheLogs {
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
