//! A process that serves a log.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use serde_json::Value;

use crate::http::Connection;
use crate::log::{Log, Ran};
use crate::storage_faults::{SmallDisk, StorageFaults};
use crate::tally::count;

/// Maximum time for a process to end after a signal.
const END: Duration = Duration::from_secs(30);
/// Maximum length in bytes of the log output that a failed test shows.
const SHOWN: usize = 6_000;

/// A running `tabellion serve` process, killed on drop.
pub struct Service {
    child: Child,
    stderr: PathBuf,
    serving: Value,
    database: &'static str,
}

impl Service {
    /// Starts the process and waits for the output line with its addresses; `Err` if it ends before that.
    pub(crate) fn start(log: &Log, variables: &[(&str, String)]) -> Result<Self, Ran> {
        Self::spawn(log, variables).serving()
    }

    fn serving(mut self) -> Result<Self, Ran> {
        let out = self.child.stdout.take().expect("it was asked for");
        match first_line(out) {
            Some(line) => {
                self.serving = serde_json::from_str(&line).unwrap_or_else(|why| panic!("{why}: {line}"));
                Ok(self)
            }
            None => Err(self.ended()),
        }
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
        Self::spawned(log.command_through(starter, arguments), log, variables).serving()
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
        Self::spawned(log.command_through("unshare", &alone), log, &[]).serving()
    }

    /// Returns the tmpfs that the process was started with.
    pub fn disk(&self, log: &Log, folder: &str) -> SmallDisk {
        let inside = log.path(folder);
        let below = inside.strip_prefix("/").expect("an absolute path");
        SmallDisk::of(PathBuf::from(format!("/proc/{}/root", self.child.id())).join(below))
    }

    /// Starts the process without waiting for it.
    pub fn spawn(log: &Log, variables: &[(&str, String)]) -> Self {
        Self::spawned(log.command(), log, variables)
    }

    fn spawned(mut command: Command, log: &Log, variables: &[(&str, String)]) -> Self {
        static STARTED: AtomicU64 = AtomicU64::new(0);
        let stderr = log.path(&format!("serve.{}.log", STARTED.fetch_add(1, Ordering::Relaxed)));
        command.args(["serve", "--json", "--config", "tabellion.toml"]).stdin(Stdio::null());
        command.envs(variables.iter().map(|(name, value)| (name, value))).stdout(Stdio::piped());
        command.stderr(File::create(&stderr).expect("our own folder"));
        let child = command.spawn().expect("the program starts");
        Self { child, stderr, serving: Value::Null, database: log.database().name() }
    }

    /// Returns a new connection to the service.
    pub fn connection(&self) -> Connection {
        Connection::to(self.address("listen", "url"))
    }

    /// Returns a new connection to the admin listener.
    pub fn admin(&self) -> Connection {
        Connection::to(self.address("admin", "admin"))
    }

    /// Returns the address of the admin listener.
    pub fn admin_url(&self) -> &str {
        self.address("admin", "admin")
    }

    /// Returns the URL that `Location` headers start with.
    pub fn url(&self) -> &str {
        self.address("url", "url")
    }

    fn address(&self, name: &str, other: &str) -> &str {
        let found = self.serving[name].as_str().or_else(|| self.serving[other].as_str());
        found.unwrap_or_else(|| panic!("{}", self.serving))
    }

    /// Kills the process with `SIGKILL`.
    pub fn kill(mut self) {
        self.signal(Signal::KILL);
        self.wait();
    }

    /// Sends `SIGTERM`, and waits until the process has ended with exit code 0.
    #[track_caller]
    pub fn stop(mut self) {
        self.signal(Signal::TERM);
        let status = self.wait();
        assert_eq!(status.code(), Some(0), "{}", self.said());
    }

    /// Sends a signal to the process.
    pub fn signal(&self, signal: Signal) {
        match signal {
            Signal::KILL if self.runs() => count(&format!("services killed on {}", self.database), 1),
            Signal::STOP => count("services paused", 1),
            _ => {}
        }
        let _ = kill_process(self.pid(), signal);
    }

    /// Returns `true` if the process is running.
    pub fn runs(&self) -> bool {
        // Leaves the exit status for `wait`.
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(self.pid()), look).expect("our own child").is_none()
    }

    /// Waits until the process has ended.
    #[track_caller]
    pub fn wait(&mut self) -> ExitStatus {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("our own child") {
                return status;
            }
            assert!(begun.elapsed() < END, "it does not end: {}", self.said());
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Returns the process ID.
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Returns the log output of the process so far.
    pub fn said(&self) -> String {
        fs::read_to_string(&self.stderr).unwrap_or_default()
    }

    /// Returns the resident memory of the process in bytes (`VmRSS`).
    pub fn memory(&self) -> u64 {
        memory_of(self.child.id())
    }

    fn ended(mut self) -> Ran {
        let code = self.wait().code();
        if code.is_none() {
            count(&format!("services killed in the start on {}", self.database), 1);
        }
        Ran { code, stdout: String::new(), stderr: self.said() }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let said = self.said();
            let from = said.len().saturating_sub(SHOWN);
            let from = (from..=said.len()).find(|at| said.is_char_boundary(*at)).unwrap_or(0);
            eprintln!("--- {} ends with:\n{}", self.stderr.display(), &said[from..]);
        }
    }
}

/// Returns the resident memory of a process in bytes (`VmRSS`).
pub(crate) fn memory_of(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a running process");
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kib << 10
}

/// Reads the first line of output, the only one that the service prints; `None` if the process ended before.
fn first_line(out: ChildStdout) -> Option<String> {
    let mut line = String::new();
    BufReader::new(out).read_line(&mut line).ok()?;
    (!line.is_empty()).then_some(line)
}
