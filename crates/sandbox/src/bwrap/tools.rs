//! Programs of the host that guests may start, and what they are: path, version, digest.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::digest::sha256;

/// A program in `/usr`, which guests see read-only.
pub(super) struct Tool {
    pub(super) name: &'static str,
    pub(super) path: PathBuf,
    /// The first line that the program prints as its version.
    pub(super) version: String,
    pub(super) digest: String,
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
    let digest = sha256(&fs::read(path).ok()?);
    let printed = Command::new(path).arg("--version").env_clear().output().ok()?.stdout;
    let version = String::from_utf8_lossy(&printed).lines().next()?.trim().to_owned();
    Some(Tool { name, path: path.to_owned(), version, digest })
}
