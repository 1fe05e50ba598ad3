//! `state_dir/fsck.json`: the progress of the check, its last clean walk, and the findings since.
//!
//! The file is replaced atomically, like the pin. An unreadable file only makes the next walk begin at the start.

use std::io;
use std::path::{Path, PathBuf};

use durable::FileAccess;
use serde::{Deserialize, Serialize};
use store::fsck::FsckState;

use crate::limits::FSCK_STATE_BYTES;

/// The stored state of the check.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SavedCheck {
    /// The last complete walk without findings.
    pub clean: Option<CleanWalk>,
    /// The findings that are not known to be repaired.
    pub findings: Vec<String>,
    /// The number of further findings that are only counted.
    pub omitted: u64,
    /// The walk in progress.
    pub walk: Option<FsckState>,
    /// `true` once this process has made its quick check; not stored.
    #[serde(skip)]
    pub looked_quickly: bool,
}

/// A complete walk without findings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CleanWalk {
    /// End of the walk, in Unix seconds.
    pub at: u64,
    /// Number of entries checked.
    pub size: u64,
}

/// The file `fsck.json`.
#[derive(Clone, Debug)]
pub struct CheckStateFile {
    directory: PathBuf,
    path: PathBuf,
}

impl CheckStateFile {
    /// The file in a state directory. Reads and writes nothing yet.
    pub fn in_directory(directory: &Path) -> Self {
        Self { directory: directory.to_owned(), path: directory.join("fsck.json") }
    }

    /// Reads the state; the default one if there is no file.
    pub async fn read(&self) -> Result<SavedCheck, String> {
        let path = self.path.clone();
        let read = tokio::task::spawn_blocking(move || read(&path)).await;
        read.map_err(|error| error.to_string())?.map_err(|why| format!("{}: {why}", self.path.display()))
    }

    /// Replaces the file; once `Ok`, the state survives power loss.
    pub async fn write(&self, kept: &SavedCheck) -> Result<(), String> {
        let bytes = serde_json::to_vec(kept).map_err(|error| error.to_string())?;
        let Self { directory, path } = self.clone();
        let written = tokio::task::spawn_blocking(move || replace(&directory, &path, &bytes)).await;
        written.map_err(|error| error.to_string())?.map_err(|why| format!("{}: {why}", self.path.display()))
    }
}

fn read(path: &Path) -> Result<SavedCheck, String> {
    match durable::read(path, FSCK_STATE_BYTES) {
        Ok(Some(bytes)) => serde_json::from_slice(&bytes).map_err(|error| error.to_string()),
        Ok(None) => Ok(SavedCheck::default()),
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => Err("too long".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

fn replace(directory: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    durable::make_folder(directory, FileAccess::Public)?;
    Ok(durable::replace(path, bytes, FileAccess::Public)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_kept_is_read_again_and_damage_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = CheckStateFile::in_directory(&folder.path().join("state"));
        assert_eq!(file.read().await.unwrap(), SavedCheck::default());
        let clean = Some(CleanWalk { at: 7, size: 4 });
        let kept = SavedCheck { clean, findings: vec!["entry 3: gone".into()], ..SavedCheck::default() };
        file.write(&kept).await.unwrap();
        assert_eq!(file.read().await.unwrap(), kept);
        std::fs::write(folder.path().join("state/fsck.json"), b"{\"clean\":").unwrap();
        assert!(file.read().await.unwrap_err().contains("fsck.json"));
    }
}
