//! The last step before a child process becomes the server: the gateway's own program restricts itself, then executes
//! the server.

use std::convert::Infallible;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use landlock::RulesetStatus;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CapabilitySet, CapabilitySets};

use super::rules::{RulesError, restrict};
use super::{ChildLimits, Confinement};

/// Folders for temporary files, which every server may write.
const TEMPORARY: [&str; 2] = ["/tmp", "/var/tmp"];
/// Maximum number of files of a hidden folder that are tried.
const TRIED_FILES: usize = 16;

/// Reason why a server was not started.
#[derive(Debug, thiserror::Error)]
pub enum EnterError {
    /// A restriction could not be set.
    #[error("{what}: {error}")]
    Refused {
        /// The restriction.
        what: &'static str,
        /// The system's error.
        error: io::Error,
    },
    /// The Landlock rules could not be made.
    #[error(transparent)]
    Rules(#[from] RulesError),
    /// The kernel does not enforce Landlock rules.
    #[error("the kernel does not enforce Landlock rules")]
    NotEnforced,
    /// A hidden file can be read despite the rules.
    #[error("{0} can be read in spite of the Landlock rules: is its file system mounted twice?")]
    Readable(PathBuf),
    /// A hidden file has a second hard link, which cannot be hidden.
    #[error("{0} has a second name (a hard link), by which it could be read: delete one of them")]
    Linked(PathBuf),
    /// The program cannot be executed.
    #[error("{program}: {error}")]
    Program {
        /// The program.
        program: String,
        /// The system's error.
        error: io::Error,
    },
}

/// Restricts this process, and executes `server` in its place. Returns only on failure. The process must have a single
/// thread, because Landlock rules apply to the calling thread.
///
/// # Errors
/// An [`EnterError`] with the step that failed.
pub fn enter(confinement: &Confinement, server: &[OsString]) -> Result<Infallible, EnterError> {
    let Some((program, arguments)) = server.split_first() else {
        return Err(EnterError::Refused { what: "command", error: io::ErrorKind::InvalidInput.into() });
    };
    set_limits(&confinement.limits)?;
    rustix::thread::set_no_new_privs(true).map_err(|error| refused("no_new_privs", error))?;
    restrict_files(confinement)?;
    drop_capabilities()?;
    let mut command = Command::new(program);
    command.args(arguments);
    if let Some(user) = &confinement.user {
        // With a user id and no groups, the standard library drops the supplementary groups of root.
        command.uid(user.uid).gid(user.gid);
    }
    let error = command.exec();
    Err(EnterError::Program { program: program.display().to_string(), error })
}

fn refused(what: &'static str, error: rustix::io::Errno) -> EnterError {
    EnterError::Refused { what, error: error.into() }
}

fn set_limits(limits: &ChildLimits) -> Result<(), EnterError> {
    for (what, resource, most) in [
        ("core dumps", Resource::Core, 0),
        ("memory", Resource::Data, limits.memory),
        ("processes", Resource::Nproc, limits.processes),
        ("open_files", Resource::Nofile, limits.open_files),
    ] {
        // A limit that is already lower is kept.
        let most = getrlimit(resource).maximum.map_or(most, |hard| hard.min(most));
        let limit = Rlimit { current: Some(most), maximum: Some(most) };
        setrlimit(resource, limit).map_err(|error| refused(what, error))?;
    }
    Ok(())
}

fn restrict_files(confinement: &Confinement) -> Result<(), EnterError> {
    let temporary = TEMPORARY.iter().map(PathBuf::from).chain(std::env::var_os("TMPDIR").map(PathBuf::from));
    let writable: Vec<PathBuf> = confinement.writable.iter().cloned().chain(temporary).collect();
    let enforced = restrict(&confinement.own_files, &writable)?.ruleset != RulesetStatus::NotEnforced;
    match enforced {
        true => confinement.own_files.secret.iter().try_for_each(|path| must_be_unreadable(path)),
        false if confinement.landlock_optional || confinement.user.is_some() => Ok(()),
        false => Err(EnterError::NotEnforced),
    }
}

/// Checks that a hidden file, or some files of a hidden folder, cannot be read.
fn must_be_unreadable(path: &Path) -> Result<(), EnterError> {
    let Ok(kind) = path.symlink_metadata() else { return Ok(()) };
    if kind.is_dir() {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        let files = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
        return files.take(TRIED_FILES).try_for_each(|entry| must_be_unreadable(&entry.path()));
    }
    match (kind.is_file(), File::open(path)) {
        (true, Ok(_)) => Err(EnterError::Readable(path.to_owned())),
        (true, Err(_)) if kind.nlink() > 1 => Err(EnterError::Linked(path.to_owned())),
        _ => Ok(()),
    }
}

/// Drops root's capabilities: a program that root executes receives those of its bounding and inheritable sets.
fn drop_capabilities() -> Result<(), EnterError> {
    let failed = |error| refused("capabilities", error);
    let now = rustix::thread::capabilities(None).map_err(failed)?;
    if now.effective.contains(CapabilitySet::SETPCAP) {
        for number in 0..u64::BITS {
            let capability = CapabilitySet::from_bits_retain(1 << number);
            match rustix::thread::remove_capability_from_bounding_set(capability) {
                Ok(()) => {}
                Err(rustix::io::Errno::INVAL) => break, // The kernel knows no more of them.
                Err(error) => return Err(failed(error)),
            }
        }
    }
    rustix::thread::clear_ambient_capability_set().map_err(failed)?;
    let sets = CapabilitySets { inheritable: CapabilitySet::empty(), ..now };
    rustix::thread::set_capabilities(None, sets).map_err(failed)
}
