//! Evidence files: an alarm and its evidence, for verification by a third party without network access.

use std::io;
use std::path::Path;

use data_encoding::BASE64;
use durable::FileAccess;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tlog::checkpoint::Checkpoint;
use tlog::note::Note;

use crate::alarm::Alarm;
use crate::evidence::{Evidence, Sighting};
use crate::limits::{EVIDENCE_TOLD_BYTES, MAX_EVIDENCE_BYTES};

/// Identifier of the file format.
const FORMAT: &str = "tabellion-evidence/1";
/// End of the name of a file with an accusation against a search index alone.
const ACCUSATION: &str = "cbor";
/// Folder of the evidence files in the state directory.
const FOLDER: &str = "evidence";

/// An alarm with its evidence, as a JSON file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvidenceFile {
    format: String,
    /// The alarm, including its [`evidence`](Alarm::evidence).
    pub alarm: Alarm,
}

/// Errors of [`EvidenceFile::parse`].
#[derive(Debug, thiserror::Error)]
pub enum NotEvidence {
    /// Invalid JSON, or other fields than expected.
    #[error("not evidence of a monitor: {0}")]
    Form(#[from] serde_json::Error),
    /// An unknown value of `format`.
    #[error("evidence of the form {0:?}, which this release does not know")]
    Version(String),
    /// Longer than [`MAX_EVIDENCE_BYTES`].
    #[error("longer than an evidence file can be")]
    TooLong,
}

impl EvidenceFile {
    /// The file for an alarm; `None` if the alarm has no evidence.
    pub fn of(alarm: &Alarm) -> Option<Self> {
        alarm.evidence.is_some().then(|| Self { format: FORMAT.to_owned(), alarm: alarm.clone() })
    }

    /// Parses a file's bytes.
    ///
    /// # Errors
    /// [`NotEvidence`] if the bytes are too long, malformed or of an unknown format.
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

    /// Writes the file below the state directory and returns its relative path. Once `Ok`, it survives power loss.
    pub(super) fn keep(&self, state_dir: &Path) -> io::Result<String> {
        let folder = state_dir.join(FOLDER);
        durable::make_folder(&folder, FileAccess::Secret)?;
        let bytes = self.bytes()?;
        let name = self.name(&bytes);
        let path = folder.join(&name);
        if !path.exists() {
            durable::replace(&path, &bytes, FileAccess::Secret)?;
        }
        if let Some(accusation) = self.index_accusation() {
            durable::replace(&path.with_extension(ACCUSATION), &accusation, FileAccess::Secret)?;
        }
        Ok(format!("{FOLDER}/{name}"))
    }

    /// The file with an accusation against a search index, for programs that read it without the alarm.
    fn index_accusation(&self) -> Option<Vec<u8>> {
        match &self.alarm.evidence {
            Some(Evidence::Index { file }) => BASE64.decode(file.as_bytes()).ok(),
            _ => None,
        }
    }

    /// Returns `true` if the file is at most [`EVIDENCE_TOLD_BYTES`] long and may be part of a webhook message.
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

/// Size of the largest tree in the evidence, for the file name.
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
        Evidence::Receipts { .. } | Evidence::Index { .. } | Evidence::IndexHead { .. } => None,
    }
}
