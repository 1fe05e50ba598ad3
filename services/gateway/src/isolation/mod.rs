//! Isolation of the MCP servers that the gateway starts as child processes.
//!
//! A child must not be able to read the gateway's keys, evidence, configuration or memory, even if it runs as the same
//! user: the keys can sign decisions. The gateway therefore starts its own program again (`tabellion gateway
//! start-server`, a hidden command), which restricts itself and only then becomes the server by `exec`:
//!
//! * [Landlock](https://docs.kernel.org/userspace-api/landlock.html): files are readable except the gateway's own
//!   ([`OwnFiles`]), and writable only where the configuration says so. Landlock also forbids ptrace and
//!   `/proc/PID/{environ,mem,fd}` of processes outside, and since ABI 6 signals and abstract Unix sockets; this holds
//!   for root, too.
//! * `no_new_privs`, no capabilities, and resource limits ([`ChildLimits`]).
//! * Optionally another user ([`User`]), which needs a gateway that runs as root.
//!
//! The restrictions are inherited by every process that the server starts, and cannot be lifted.
//!
//! Not here: spawning and communication ([`upstream::stdio`](crate::upstream::stdio)). Not covered: the network, Unix
//! sockets with a path name, and services that start programs on request; a child that runs as root can reach all of
//! those that root can.

mod enter;
mod host;
mod own_files;
mod rules;
mod user;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

pub use enter::{EnterError, enter};
pub use host::{Host, NotIsolated, require};
pub use own_files::{OwnFiles, OwnFilesError};
pub use user::User;

use crate::limits;

/// The running program, even if its file was replaced since it started.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// Resource limits of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChildLimits {
    /// Bytes of memory of one process (`RLIMIT_DATA`).
    pub memory: u64,
    /// Processes and threads of the child's user, of all programs together (`RLIMIT_NPROC`). The kernel exempts root.
    pub processes: u64,
    /// Open files of one process (`RLIMIT_NOFILE`).
    pub open_files: u64,
}

impl Default for ChildLimits {
    fn default() -> Self {
        Self {
            memory: limits::CHILD_MEMORY_BYTES,
            processes: limits::CHILD_PROCESSES,
            open_files: limits::CHILD_OPEN_FILES,
        }
    }
}

/// The restrictions of one child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confinement {
    /// The gateway's own files, which are hidden or read-only.
    pub own_files: OwnFiles,
    /// Files and folders that the child may write, in addition to the temporary folders.
    pub writable: Vec<PathBuf>,
    /// The user that runs the child; `None` for the gateway's own.
    pub user: Option<User>,
    /// The resource limits.
    pub limits: ChildLimits,
    /// True if the child is started even without Landlock (`--unsafe-shared-user`).
    pub landlock_optional: bool,
}

impl Confinement {
    /// The command that applies these restrictions and then becomes `server`.
    pub fn command(&self, server: &[String]) -> Command {
        let mut command = Command::new(OWN_PROGRAM);
        command.args(["gateway", "start-server"]);
        let OwnFiles { secret, public } = &self.own_files;
        for (flag, paths) in [("--secret=", secret), ("--public=", public), ("--writable=", &self.writable)] {
            command.args(paths.iter().map(|path| assignment(flag, path)));
        }
        if let Some(user) = &self.user {
            command.args([format!("--uid={}", user.uid), format!("--gid={}", user.gid)]);
        }
        let ChildLimits { memory, processes, open_files } = self.limits;
        command.arg(format!("--memory={memory}"));
        command.arg(format!("--processes={processes}"));
        command.arg(format!("--open-files={open_files}"));
        if self.landlock_optional {
            command.arg("--landlock-optional");
        }
        command.arg("--").args(server);
        command
    }
}

fn assignment(flag: &str, path: &Path) -> OsString {
    let mut text = OsString::from(flag);
    text.push(path);
    text
}

/// Makes the memory, environment and open files of this process unreadable for other processes of its user, and turns
/// core dumps off.
///
/// # Errors
/// If the kernel refuses.
pub fn protect_own_memory() -> std::io::Result<()> {
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)?;
    Ok(())
}
