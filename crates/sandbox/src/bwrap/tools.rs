//! Programs of the host that guests may start, and what they are: path, version, digest.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::SandboxError;
use crate::digest::sha256;

/// A program in `/usr`, which guests see read-only.
pub(super) struct Tool {
    pub(super) name: &'static str,
    pub(super) path: PathBuf,
    /// The first line that the program prints as its version.
    pub(super) version: String,
    pub(super) digest: String,
    /// What its file was before the digest was computed.
    file: FileState,
}

/// What changes if a file is replaced or written.
#[derive(Clone, Copy, PartialEq, Eq)]
struct FileState {
    device: u64,
    inode: u64,
    bytes: u64,
    /// Times of the last change of the content and of the inode, in seconds and nanoseconds.
    times: [i64; 4],
}

impl FileState {
    fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.size(),
            times: [metadata.mtime(), metadata.mtime_nsec(), metadata.ctime(), metadata.ctime_nsec()],
        }
    }
}

impl Tool {
    /// Returns an error if the file is not the one that version and digest are of.
    pub(super) fn check_unchanged(&self) -> Result<(), SandboxError> {
        let found = fs::metadata(&self.path).ok().map(|metadata| FileState::of(&metadata));
        match found == Some(self.file) {
            true => Ok(()),
            false => Err(SandboxError::Changed(self.path.display().to_string())),
        }
    }
}

/// Names by which a job may start a program of the host. A job's own file of that name is not started instead.
pub(super) const NAMES: &[&str] = &["python3", "z3", "cvc5"];

/// The folder of the programs, on the host and in the guest.
const FOLDER: &str = "/usr/bin";

/// Returns the programs that this machine has.
pub(super) fn find_all() -> Vec<Tool> {
    NAMES.iter().filter_map(|name| find(name, &Path::new(FOLDER).join(name))).collect()
}

/// Returns the program at `path`, `None` if there is none or it does not start.
pub(super) fn find(name: &'static str, path: &Path) -> Option<Tool> {
    let file = FileState::of(&fs::metadata(path).ok()?);
    let digest = sha256(&fs::read(path).ok()?);
    let printed = Command::new(path).arg("--version").env_clear().output().ok()?.stdout;
    let version = String::from_utf8_lossy(&printed).lines().next()?.trim().to_owned();
    Some(Tool { name, path: path.to_owned(), version, digest, file })
}
