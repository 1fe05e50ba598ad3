//! The command that starts a guest: arguments of bubblewrap, and the descriptors that it gets.

use std::fs::{self, File};
use std::io::{self, Seek, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use command_fds::{CommandFdExt, FdMapping};
use rustix::fs::MemfdFlags;

use crate::{Job, Limits, OOM_SCORE_OF_GUESTS, SandboxError};

/// The user and group of guests if the service runs as root, whom no bound on processes holds. The number is from the range that
/// systemd uses for services without an account, so that no other process has it.
const GUEST_USER: u32 = 61_234;

/// The guest's descriptor for its result (`driver.py`).
const CHANNEL: i32 = 3;
const SECCOMP: i32 = 4;
const STATUS: i32 = 5;
const FIRST_FILE: i32 = 6;

/// Open files of a guest.
const OPEN_FILES: u32 = 64;

/// Bytes of address space that a program needs beside its own memory: shared libraries, and the stacks of threads.
const ADDRESS_SPACE_OF_LIBRARIES: u64 = 64 << 20;

/// Arguments that do not depend on the job. No `/proc`, no `/etc`, no `/home`; nothing but `/tmp` can be written.
#[rustfmt::skip]
const ISOLATION: &[&str] = &[
    "--unshare-all",
    "--unshare-user",
    "--disable-userns",
    "--die-with-parent",
    "--new-session",
    "--cap-drop", "ALL",
    "--hostname", "sandbox",
    "--clearenv",
    "--setenv", "PATH", "/usr/bin",
    "--setenv", "HOME", "/tmp",
    "--setenv", "LANG", "C.UTF-8",
    "--setenv", "PYTHONHASHSEED", "0",
    "--setenv", "PYTHONDONTWRITEBYTECODE", "1",
    "--ro-bind", "/usr", "/usr",
    "--symlink", "usr/bin", "/bin",
    "--symlink", "usr/lib", "/lib",
    "--symlink", "usr/lib64", "/lib64",
    "--dir", "/dev",
    "--dev-bind", "/dev/null", "/dev/null",
    "--dev-bind", "/dev/zero", "/dev/zero",
    "--dev-bind", "/dev/urandom", "/dev/urandom",
    "--dir", "/job",
];

/// What a guest starts with.
pub(super) struct Start<'a> {
    pub(super) bubblewrap: &'a Path,
    pub(super) seccomp: &'a [u8],
    pub(super) job: &'a Job,
    /// Files of the sandbox, such as the driver: absolute path and content.
    pub(super) own_files: Vec<(&'static str, Vec<u8>)>,
    /// The program, with its path in the guest, and its arguments.
    pub(super) program: Vec<String>,
    /// The end of the result's pipe, for calls of functions.
    pub(super) channel: Option<OwnedFd>,
    pub(super) status: OwnedFd,
}

/// Returns the command, ready to be started once.
pub(super) fn command(start: Start<'_>) -> Result<Command, SandboxError> {
    let limits = &start.job.limits;
    let mut descriptors = vec![
        FdMapping { parent_fd: content("seccomp", start.seccomp)?, child_fd: SECCOMP },
        FdMapping { parent_fd: start.status, child_fd: STATUS },
    ];
    descriptors.extend(start.channel.map(|parent_fd| FdMapping { parent_fd, child_fd: CHANNEL }));

    let mut command = first_to_be_killed(start.bubblewrap);
    command.args(ISOLATION);
    command.args(["--size", &limits.memory.to_string(), "--tmpfs", "/tmp"]);
    let of_job = start.job.files.iter().map(|(path, bytes)| (format!("/job/{path}"), bytes));
    let own = start.own_files.iter().map(|(path, bytes)| ((*path).to_owned(), bytes));
    for ((path, bytes), child_fd) in of_job.chain(own).zip(FIRST_FILE..) {
        descriptors.push(FdMapping { parent_fd: content("file", bytes)?, child_fd });
        command.args(["--perms", "0555", "--file", &child_fd.to_string(), &path]);
    }
    command.args(["--remount-ro", "/", "--chdir", "/job"]);
    command.args(["--seccomp", &SECCOMP.to_string(), "--json-status-fd", &STATUS.to_string(), "--"]);
    command.args(bounds(limits)).args(&start.program);
    command.env_clear().current_dir("/").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if rustix::process::geteuid().is_root() {
        command.uid(GUEST_USER).gid(GUEST_USER);
    }
    cover_inherited(&mut descriptors).map_err(|error| failed("descriptors of this process", &error))?;
    command.fd_mappings(descriptors).map_err(|error| failed("descriptors for the guest", &error))?;
    Ok(command)
}

/// Returns a command that has the kernel kill the program, and what it starts, before other processes if memory is short: a guest has
/// many processes, each smaller than the service. A machine without `choom` (util-linux 2.33) has no such order.
fn first_to_be_killed(program: &Path) -> Command {
    let choom = Path::new("/usr/bin/choom");
    if !choom.exists() {
        return Command::new(program);
    }
    let mut command = Command::new(choom);
    command.args(["-n", &OOM_SCORE_OF_GUESTS.to_string(), "--"]).arg(program);
    command
}

/// Puts `/dev/null` where the guest would inherit a descriptor that this process itself inherited, such as one of its supervisor.
fn cover_inherited(descriptors: &mut Vec<FdMapping>) -> io::Result<()> {
    for child_fd in inherited()? {
        if descriptors.iter().all(|mapping| mapping.child_fd != child_fd) {
            descriptors.push(FdMapping { parent_fd: File::open("/dev/null")?.into(), child_fd });
        }
    }
    Ok(())
}

/// Returns the descriptors of this process, beside the standard ones, that a program which it starts would have.
fn inherited() -> io::Result<Vec<i32>> {
    let entries = fs::read_dir("/proc/self/fdinfo")?.collect::<io::Result<Vec<_>>>()?;
    let numbers =
        entries.iter().filter_map(|entry| Some((entry.path(), entry.file_name().to_str()?.parse().ok()?)));
    Ok(numbers
        .filter(|(path, number)| *number > 2 && is_kept_on_exec(path))
        .map(|(_, number)| number)
        .collect())
}

/// Reads the flags of a descriptor. One that was closed in the meantime is not kept.
fn is_kept_on_exec(path: &Path) -> bool {
    let text = fs::read_to_string(path).unwrap_or_default();
    let flags =
        text.lines().find_map(|line| u32::from_str_radix(line.strip_prefix("flags:")?.trim(), 8).ok());
    flags.is_some_and(|flags| flags & libc::O_CLOEXEC as u32 == 0)
}

/// The program that sets resource limits and then becomes the guest. Processor time is that of all threads of a process, so
/// that it ends only after wall time.
fn bounds(limits: &Limits) -> Vec<String> {
    let threads = u64::from(limits.processes.max(1));
    let seconds = limits.time.as_secs().saturating_add(1).saturating_mul(threads);
    let address_space = limits.memory.saturating_add(ADDRESS_SPACE_OF_LIBRARIES);
    vec![
        "/usr/bin/prlimit".to_owned(),
        format!("--as={address_space}"),
        format!("--cpu={seconds}:{}", seconds.saturating_add(1)),
        format!("--fsize={}", limits.memory),
        format!("--nofile={OPEN_FILES}"),
        format!("--nproc={}", limits.processes.saturating_add(PROCESSES_OF_BUBBLEWRAP)),
        "--core=0".to_owned(),
        "--msgqueue=0".to_owned(),
        "--memlock=0".to_owned(),
        "--".to_owned(),
    ]
}

/// Processes in the guest's namespace that are not the guest's own: the first one, which waits for the others.
const PROCESSES_OF_BUBBLEWRAP: u32 = 1;

/// An anonymous file, read from its beginning.
fn content(name: &str, bytes: &[u8]) -> Result<OwnedFd, SandboxError> {
    let write = || {
        let mut file = File::from(rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC)?);
        file.write_all(bytes)?;
        file.rewind()?;
        Ok(OwnedFd::from(file))
    };
    write().map_err(|error: io::Error| failed("a file for the guest", &error))
}

fn failed(what: &str, error: &dyn std::fmt::Display) -> SandboxError {
    SandboxError::Failed(format!("{what}: {error}"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn threads_that_run_at_the_same_time_have_the_whole_wall_time() {
        let limits =
            Limits { fuel: 0, memory: 1, output: 1, processes: 16, time: Duration::from_millis(9_500) };
        assert!(bounds(&limits).contains(&"--cpu=160:161".to_owned()), "{:?}", bounds(&limits));
    }
}
