//! When the configuration is to be read again: a signal, or a change of one of its files.
//!
//! Files are looked at, not listened to: whatever an editor or an orchestrator does to replace one (rename, link, mount), its
//! time, size or inode differs afterwards.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use crate::limits::CONFIG_LOOK_EVERY;

/// What is known of the files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen(Vec<(PathBuf, Option<Look>)>);

/// What tells one state of a file from another: inode, size, and time to the nanosecond.
type Look = (u64, u64, i64, i64);

impl Seen {
    /// Looks at the files.
    #[must_use]
    pub fn of(files: &[PathBuf]) -> Self {
        let look = |path: &PathBuf| {
            let metadata = std::fs::metadata(path).ok()?;
            Some((metadata.ino(), metadata.size(), metadata.mtime(), metadata.mtime_nsec()))
        };
        Self(files.iter().map(|path| (path.clone(), look(path))).collect())
    }

    /// Returns when one of them is not what it was, and takes note of it.
    pub async fn changed(&mut self) {
        let files: Vec<PathBuf> = self.0.iter().map(|(path, _)| path.clone()).collect();
        loop {
            tokio::time::sleep(CONFIG_LOOK_EVERY).await;
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
        let before = Seen::of(&files);
        assert_eq!(before, Seen::of(&files));
        durable::replace(&path, b"two", durable::Access::Public).unwrap();
        assert_ne!(before, Seen::of(&files));
        std::fs::write(&files[1], "").unwrap();
        assert_ne!(before, Seen::of(&files));
    }
}
