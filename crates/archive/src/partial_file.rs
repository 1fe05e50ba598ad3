//! Atomic file creation: a file that is either complete or absent.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Suffix of the temporary name.
const SUFFIX: &str = ".partial";

/// A file written under a temporary name with mode 0600, which gets its final name once it is durable.
#[derive(Debug)]
pub struct PartialFile {
    file: File,
    partial: PathBuf,
    path: PathBuf,
    kept: bool,
}

impl PartialFile {
    /// Creates the temporary file. Fails with `AlreadyExists` if `path` exists.
    pub fn create(path: &Path) -> io::Result<Self> {
        if path.try_exists()? {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "it is there already"));
        }
        let mut partial = path.as_os_str().to_owned();
        partial.push(SUFFIX);
        let partial = PathBuf::from(partial);
        // A leftover of a crash is overwritten.
        let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&partial)?;
        let busy = || io::Error::other("another process is writing it");
        file.try_lock().map_err(|_| busy())?;
        // Another process may have given the file its final name before the lock was taken: then it must not be
        // truncated.
        let (ours, there) = (file.metadata()?, fs::metadata(&partial).map_err(|_| busy())?);
        if (ours.ino(), ours.nlink()) != (there.ino(), 1) {
            return Err(busy());
        }
        file.set_len(0)?;
        Ok(Self { file, partial, path: path.to_owned(), kept: false })
    }

    /// The file to write to.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Makes the file durable under its final name.
    pub fn keep(mut self) -> io::Result<()> {
        self.file.sync_all()?;
        // Unlike a rename, a hard link never replaces a file created in the meantime.
        fs::hard_link(&self.partial, &self.path)?;
        self.kept = true;
        fs::remove_file(&self.partial)?;
        durable::sync_folder_of(&self.path)
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        if !self.kept {
            let _ = fs::remove_file(&self.partial);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(folder).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn write(partial: &PartialFile, text: &str) {
        io::Write::write_all(&mut partial.file(), text.as_bytes()).unwrap();
    }

    #[test]
    fn a_file_has_its_name_once_it_is_whole_and_is_for_its_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.backup");
        let partial = PartialFile::create(&path).unwrap();
        write(&partial, "whole");
        assert_eq!(names(folder.path()), ["log.backup.partial"]);
        partial.keep().unwrap();
        assert_eq!(names(folder.path()), ["log.backup"]);
        assert_eq!(fs::read_to_string(&path).unwrap(), "whole");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn nothing_is_left_of_a_file_that_was_given_up() {
        let folder = tempfile::tempdir().unwrap();
        drop(PartialFile::create(&folder.path().join("log.backup")).unwrap());
        assert_eq!(names(folder.path()), [] as [&str; 0]);
    }

    #[test]
    fn what_a_crash_left_behind_is_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.backup");
        fs::write(folder.path().join("log.backup.partial"), "much more than is written now").unwrap();
        let partial = PartialFile::create(&path).unwrap();
        write(&partial, "whole");
        partial.keep().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "whole");
    }

    #[test]
    fn a_file_that_is_there_or_comes_meanwhile_is_never_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.backup");
        let partial = PartialFile::create(&path).unwrap();
        fs::write(&path, "somebody's").unwrap();
        assert_eq!(partial.keep().unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(PartialFile::create(&path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&path).unwrap(), "somebody's");
        assert_eq!(names(folder.path()), ["log.backup"]);
    }

    #[test]
    fn of_two_at_once_one_writes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.backup");
        let first = PartialFile::create(&path).unwrap();
        write(&first, "the first");
        assert!(PartialFile::create(&path).is_err());
        first.keep().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "the first");
    }
}
