//! Watches the files of the configuration, to decide when it is read again.
//!
//! The files are polled: after any kind of replacement by an editor or an orchestrator (rename, link, mount), the time,
//! size or inode of a file differs.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use crate::limits::CONFIG_POLL;

/// The state of the files at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileStates(Vec<(PathBuf, Option<FileState>)>);

/// The state of one file: inode, size, and modification time in seconds and nanoseconds.
type FileState = (u64, u64, i64, i64);

impl FileStates {
    /// Reads the state of the files.
    #[must_use]
    pub fn of(files: &[PathBuf]) -> Self {
        let state = |path: &PathBuf| {
            let metadata = std::fs::metadata(path).ok()?;
            Some((metadata.ino(), metadata.size(), metadata.mtime(), metadata.mtime_nsec()))
        };
        Self(files.iter().map(|path| (path.clone(), state(path))).collect())
    }

    /// Waits until a file differs from this state, and records the new state. Polls every [`CONFIG_POLL`].
    pub async fn changed(&mut self) {
        let files: Vec<PathBuf> = self.0.iter().map(|(path, _)| path.clone()).collect();
        loop {
            tokio::time::sleep(CONFIG_POLL).await;
            let now = Self::of(&files);
            if now != *self {
                *self = now;
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_file_that_is_replaced_changed_even_within_one_second() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let files = [path.clone(), folder.path().join("missing")];
        std::fs::write(&path, "one").unwrap();
        let before = FileStates::of(&files);
        assert_eq!(before, FileStates::of(&files));
        durable::replace(&path, b"two", durable::FileAccess::Public).unwrap();
        assert_ne!(before, FileStates::of(&files));
        std::fs::write(&files[1], "").unwrap();
        assert_ne!(before, FileStates::of(&files));
    }
}
