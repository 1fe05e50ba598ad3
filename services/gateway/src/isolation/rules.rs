//! Landlock rules that allow everything except some paths.
//!
//! Landlock only allows; it cannot deny paths below an allowed folder. A folder that contains a hidden path is
//! therefore not allowed itself, but each of its other entries is, and so on down to the hidden path. Entries that are
//! added to such a folder later are not allowed until the server is started again.
//!
//! Every entry is opened without following links, and allowed by its descriptor: an entry that is replaced by a link in
//! the meantime cannot make a rule for the link's target. Links need no rule, because Landlock checks the file that is
//! reached.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, BitFlags, PathBeneath, RestrictionStatus, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, RulesetError, Scope,
};
use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, fstat, openat};
use rustix::io::Errno;

use super::OwnFiles;
use crate::limits::MAX_CHILD_RULES;

/// The newest Landlock ABI that is used; older kernels enforce the part that they know.
const NEWEST: ABI = ABI::V6;
/// Device files that every program may use.
const DEVICES: [&str; 9] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
    "/dev/shm",
];
/// Folders that a rule for `/` does not make writable: kernel settings and devices.
const NEVER_WRITABLE: [&str; 3] = ["/dev", "/proc", "/sys"];

/// Reason why the rules could not be made.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    /// The kernel refused a rule or the ruleset.
    #[error("Landlock: {0}")]
    Landlock(#[from] RulesetError),
    /// A folder could not be read.
    #[error("{path}: {error}")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The system's error.
        error: Errno,
    },
    /// More than [`MAX_CHILD_RULES`] entries would have to be allowed one by one.
    #[error("more than {MAX_CHILD_RULES} files are in the folders of files that are hidden from the server")]
    TooMany,
}

/// Restricts this thread, and the program that it executes: all files but the secret ones can be read, and only those
/// below `writable` changed, except the gateway's own files.
pub fn restrict(own: &OwnFiles, writable: &[PathBuf]) -> Result<RestrictionStatus, RulesError> {
    let read = AccessFs::from_read(NEWEST);
    let all = AccessFs::from_all(NEWEST);
    let mut ruleset = Ruleset::default().handle_access(all)?.scope(Scope::from_all(NEWEST))?.create()?;
    // File names are not secret, and programs that list the parent folders would fail otherwise.
    allow(&mut ruleset, Path::new("/"), AccessFs::ReadDir.into(), &[])?;
    allow(&mut ruleset, Path::new("/"), read, &with(&own.secret, &["/dev"]))?;
    for device in DEVICES {
        allow(&mut ruleset, Path::new(device), all, &own.secret)?;
    }
    let unchanged = [&own.secret[..], &own.public[..]].concat();
    for path in writable {
        let never = if path.parent().is_none() { &NEVER_WRITABLE[..] } else { &[] };
        allow(&mut ruleset, path, all, &with(&unchanged, never))?;
    }
    Ok(ruleset.restrict_self()?)
}

fn with(paths: &[PathBuf], more: &[&str]) -> Vec<PathBuf> {
    paths.iter().cloned().chain(more.iter().map(PathBuf::from)).collect()
}

/// Allows access to `path`, if it exists, except for the paths in `except`.
fn allow(
    ruleset: &mut RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
    except: &[PathBuf],
) -> Result<(), RulesError> {
    let Ok(path) = path.canonicalize() else { return Ok(()) };
    if except.iter().any(|hidden| path.starts_with(hidden)) {
        return Ok(());
    }
    let Ok(entry) = open(CWD, path.as_os_str().to_owned()) else { return Ok(()) };
    Allowing { ruleset, access, except, rules: 0 }.entry(entry, &path)
}

struct Allowing<'a> {
    ruleset: &'a mut RulesetCreated,
    access: BitFlags<AccessFs>,
    except: &'a [PathBuf],
    rules: usize,
}

impl Allowing<'_> {
    fn entry(&mut self, entry: OwnedFd, path: &Path) -> Result<(), RulesError> {
        let failed = |error| RulesError::Folder { path: path.to_owned(), error };
        let kind = FileType::from_raw_mode(fstat(&entry).map_err(failed)?.st_mode);
        if kind == FileType::Symlink || self.except.iter().any(|hidden| hidden == path) {
            return Ok(());
        }
        if self.except.iter().any(|hidden| hidden.starts_with(path)) {
            return self.entries_of(&entry, path);
        }
        self.rules += 1;
        if self.rules > MAX_CHILD_RULES {
            return Err(RulesError::TooMany);
        }
        let access = match kind {
            FileType::Directory => self.access,
            _ => self.access & AccessFs::from_file(NEWEST),
        };
        if !access.is_empty() {
            (&mut *self.ruleset).add_rule(PathBeneath::new(entry, access))?;
        }
        Ok(())
    }

    fn entries_of(&mut self, folder: &OwnedFd, path: &Path) -> Result<(), RulesError> {
        let names = match names_in(folder) {
            Ok(names) => names,
            // A folder that the gateway may not list is not allowed to the child.
            Err(Errno::ACCESS) => return Ok(()),
            Err(error) => return Err(RulesError::Folder { path: path.to_owned(), error }),
        };
        for name in names {
            let below = path.join(&name);
            // An entry that cannot be opened is either deleted by now, or of no use to the child.
            if let Ok(entry) = open(folder, name) {
                self.entry(entry, &below)?;
            }
        }
        Ok(())
    }
}

fn open(folder: impl std::os::fd::AsFd, name: OsString) -> Result<OwnedFd, Errno> {
    openat(folder, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
}

fn names_in(folder: &OwnedFd) -> Result<Vec<OsString>, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let listed = Dir::new(openat(folder, ".", flags, Mode::empty())?)?;
    let mut names = Vec::new();
    for entry in listed {
        let name = entry?.file_name().to_owned().into_bytes();
        if name != b"." && name != b".." {
            names.push(OsString::from_vec(name));
        }
    }
    Ok(names)
}
