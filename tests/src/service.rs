//! A process that serves a log.

use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::Signal;

use crate::daemon::Daemon;
use crate::http::Connection;
use crate::log::{Log, Ran};
use crate::storage_faults::{SmallDisk, StorageFaults};
use crate::tally::count;

/// A running `tabellion serve` process, killed on drop.
pub struct Service {
    daemon: Daemon,
    database: &'static str,
}

impl Service {
    /// Starts the process and waits for the output line with its addresses; `Err` if it ends before that.
    pub(crate) fn start(log: &Log, variables: &[(&str, String)]) -> Result<Self, Ran> {
        Self::started_by(log.command(), log, variables)
    }

    /// Starts the process and waits until it serves; `Err` with its output if it ends before that.
    pub fn started(log: &Log) -> Result<Self, Ran> {
        Self::start(log, &[])
    }

    /// Starts a process with at most this number of open files.
    pub fn started_with_descriptors(log: &Log, most: u32) -> Result<Self, Ran> {
        Self::started_through(log, "prlimit", &[&format!("--nofile={most}")], &[])
    }

    /// Starts the process through a starter program, which must end by executing its arguments.
    pub(crate) fn started_through(
        log: &Log,
        starter: &str,
        arguments: &[&str],
        variables: &[(&str, String)],
    ) -> Result<Self, Ran> {
        Self::started_by(log.command_through(starter, arguments), log, variables)
    }

    /// Starts a process on storage that fails on request.
    pub fn started_with_faults(log: &Log, faults: &StorageFaults) -> Result<Self, Ran> {
        Self::start(log, &faults.variables())
    }

    /// Starts a process with a folder of the log on a tmpfs of `kb` kB that only this process sees: [`Service::disk`].
    /// The folder's content is copied there.
    pub fn started_on_a_small_disk(log: &Log, folder: &str, kb: u64) -> Result<Self, Ran> {
        let mount = format!(
            "cp -a {folder} {folder}.before && mount -t tmpfs -o size={kb}k none {folder} && \
             cp -a {folder}.before/. {folder}/ && exec \"$@\""
        );
        let alone = ["--user", "--map-root-user", "--mount", "sh", "-c", &mount, "sh"];
        Self::started_by(log.command_through("unshare", &alone), log, &[])
    }

    /// Returns the tmpfs that the process was started with.
    pub fn disk(&self, log: &Log, folder: &str) -> SmallDisk {
        SmallDisk::of(self.sees(&log.path(folder)))
    }

    fn started_by(command: Command, log: &Log, variables: &[(&str, String)]) -> Result<Self, Ran> {
        let (command, stderr) = serving(command, log, variables);
        let database = log.database().name();
        match Daemon::start(command, stderr) {
            Ok(daemon) => Ok(Self { daemon, database }),
            Err(ran) => {
                if ran.code.is_none() {
                    count(&format!("services killed in the start on {database}"), 1);
                }
                Err(ran)
            }
        }
    }

    /// Starts the process without waiting for it.
    pub fn spawn(log: &Log, variables: &[(&str, String)]) -> Self {
        let (command, stderr) = serving(log.command(), log, variables);
        Self { daemon: Daemon::spawn(command, stderr), database: log.database().name() }
    }

    /// Returns a new connection to the service.
    pub fn connection(&self) -> Connection {
        Connection::to(self.serving["listen"].as_str().unwrap_or_else(|| self.url()))
    }

    /// Returns the address of the admin listener.
    pub fn admin_url(&self) -> &str {
        self.announced("admin")
    }

    /// Kills the process with `SIGKILL`.
    pub fn kill(mut self) {
        self.signal(Signal::KILL);
        self.wait();
    }

    /// Sends `SIGTERM`, and waits until the process has ended with exit code 0.
    #[track_caller]
    pub fn stop(self) {
        self.daemon.stop();
    }

    /// Sends a signal to the process.
    pub fn signal(&self, signal: Signal) {
        match signal {
            Signal::KILL if self.runs() => count(&format!("services killed on {}", self.database), 1),
            Signal::STOP => count("services paused", 1),
            _ => {}
        }
        self.daemon.signal(signal);
    }
}

impl Deref for Service {
    type Target = Daemon;

    fn deref(&self) -> &Daemon {
        &self.daemon
    }
}

impl DerefMut for Service {
    fn deref_mut(&mut self) -> &mut Daemon {
        &mut self.daemon
    }
}

/// Completes a command to one that serves a log, and returns it with the file of its log output.
fn serving(mut command: Command, log: &Log, variables: &[(&str, String)]) -> (Command, PathBuf) {
    static STARTED: AtomicU64 = AtomicU64::new(0);
    let stderr = log.path(&format!("serve.{}.log", STARTED.fetch_add(1, Ordering::Relaxed)));
    command.args(["serve", "--json", "--config", "tabellion.toml"]);
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    (command, stderr)
}
