//! Evidence as a file that somebody else can check with this process dead and no network.

use std::io;
use std::path::Path;

use durable::Access;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tlog::checkpoint::Checkpoint;
use tlog::note::Note;

use crate::alarm::Alarm;
use crate::evidence::{Evidence, Sighting};
use crate::limits::{EVIDENCE_TOLD_BYTES, MAX_EVIDENCE_BYTES};

/// The form of these files.
const FORMAT: &str = "tabellion-evidence/1";
/// Their folder.
const FOLDER: &str = "evidence";

/// An alarm with what shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvidenceFile {
    format: String,
    /// What is wrong, in whose words, since when, and what shows it.
    pub alarm: Alarm,
}

/// Why bytes are no evidence.
#[derive(Debug, thiserror::Error)]
pub enum NotEvidence {
    /// Not this form of JSON.
    #[error("not evidence of a monitor: {0}")]
    Form(#[from] serde_json::Error),
    /// Another form.
    #[error("evidence of the form {0:?}, which this release does not know")]
    Version(String),
    /// More than any of ours.
    #[error("longer than any evidence")]
    TooLong,
}

impl EvidenceFile {
    /// The file for an alarm; `None` if nothing but words shows it.
    pub fn of(alarm: &Alarm) -> Option<Self> {
        alarm.evidence.is_some().then(|| Self { format: FORMAT.to_owned(), alarm: alarm.clone() })
    }

    /// Reads one.
    ///
    /// # Errors
    /// If it is not one.
    pub fn parse(bytes: &[u8]) -> Result<Self, NotEvidence> {
        if bytes.len() as u64 > MAX_EVIDENCE_BYTES {
            return Err(NotEvidence::TooLong);
        }
        let file: Self = serde_json::from_slice(bytes)?;
        match file.format == FORMAT {
            true => Ok(file),
            false => Err(NotEvidence::Version(file.format)),
        }
    }

    /// Writes it below a state directory; gives its name there. Once `Ok`, it survives power loss.
    pub(super) fn keep(&self, state_dir: &Path) -> io::Result<String> {
        let folder = state_dir.join(FOLDER);
        durable::make_folder(&folder, Access::Secret)?;
        let bytes = self.bytes()?;
        let name = self.name(&bytes);
        let path = folder.join(&name);
        if !path.exists() {
            durable::replace(&path, &bytes, Access::Secret)?;
        }
        Ok(format!("{FOLDER}/{name}"))
    }

    /// Whether it may travel inside of a message.
    pub(super) fn is_small(&self) -> bool {
        self.bytes().is_ok_and(|bytes| bytes.len() <= EVIDENCE_TOLD_BYTES)
    }

    fn bytes(&self) -> io::Result<Vec<u8>> {
        let mut bytes = serde_json::to_vec_pretty(self)?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    fn name(&self, bytes: &[u8]) -> String {
        let size = self.alarm.evidence.as_ref().and_then(size).map(|size| format!("{size}-"));
        let hash = data_encoding::HEXLOWER.encode(&Sha256::digest(bytes)[..4]);
        format!("{}-{}{hash}.json", self.alarm.kind, size.unwrap_or_default())
    }
}

/// The largest tree in question.
fn size(evidence: &Evidence) -> Option<u64> {
    let of = |seen: &Sighting| {
        let note = Note::parse(seen.note.as_bytes()).ok()?;
        Checkpoint::parse_text(note.text()).ok().map(|checkpoint| checkpoint.size().get())
    };
    match evidence {
        Evidence::Contradiction { older, newer, .. } => of(older).max(of(newer)),
        Evidence::Rollback { larger, .. } => of(larger),
        Evidence::Checkpoint { seen, .. } => of(seen),
        Evidence::Served { checkpoint, .. } => of(checkpoint),
        Evidence::Entries { checkpoint, .. } => checkpoint.as_ref().and_then(of),
        Evidence::Receipts { .. } => None,
    }
}
