//! One process that serves a log.

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

/// How long a process may take to end once it should.
const END: Duration = Duration::from_secs(30);
/// How much of a process's log a failed test shows.
const SHOWN: usize = 6_000;

/// A running service. Killed when dropped.
pub struct Service {
    child: Child,
    stderr: PathBuf,
    serving: Value,
    database: &'static str,
}

impl Service {
    /// Starts the process and waits for the line that says where it listens; `Err` if it ends before that.
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

    /// Starts the process and waits until it serves, or gives what it said when it did not.
    pub fn started(log: &Log) -> Result<Self, Ran> {
        Self::start(log, &[])
    }

    /// The same for a process that ignores a signal.
    pub fn started_deaf_to(log: &Log, signal: &str) -> Result<Self, Ran> {
        Self::spawned(log.command_through("env", &[&format!("--ignore-signal={signal}")]), log, &[]).serving()
    }

    /// The same with at most so many open files.
    pub fn started_with_descriptors(log: &Log, most: u32) -> Result<Self, Ran> {
        Self::started_through(log, "prlimit", &[&format!("--nofile={most}")], &[])
    }

    /// The same, started by another program that ends in starting it.
    pub(crate) fn started_through(
        log: &Log,
        starter: &str,
        arguments: &[&str],
        variables: &[(&str, String)],
    ) -> Result<Self, Ran> {
        Self::spawned(log.command_through(starter, arguments), log, variables).serving()
    }

    /// The same on storage that fails on request.
    pub fn started_with_faults(log: &Log, faults: &StorageFaults) -> Result<Self, Ran> {
        Self::start(log, &faults.variables())
    }

    /// The same with a folder of the log on a disk of its own, of so many kB, that nobody else sees: [`Service::disk`]. What
    /// is in the folder is moved there.
    pub fn started_on_a_small_disk(log: &Log, folder: &str, kb: u64) -> Result<Self, Ran> {
        let mount = format!(
            "cp -a {folder} {folder}.before && mount -t tmpfs -o size={kb}k none {folder} && \
             cp -a {folder}.before/. {folder}/ && exec \"$@\""
        );
        let alone = ["--user", "--map-root-user", "--mount", "sh", "-c", &mount, "sh"];
        Self::spawned(log.command_through("unshare", &alone), log, &[]).serving()
    }

    /// The small disk that it was started with.
    pub fn disk(&self, log: &Log, folder: &str) -> SmallDisk {
        let inside = log.path(folder);
        let below = inside.strip_prefix("/").expect("an absolute path");
        SmallDisk::of(PathBuf::from(format!("/proc/{}/root", self.child.id())).join(below))
    }

    /// Starts the process and waits for nothing.
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

    /// A new connection to it.
    pub fn connection(&self) -> Connection {
        Connection::to(self.address("listen", "url"))
    }

    /// A new connection to its admin listener.
    pub fn admin(&self) -> Connection {
        Connection::to(self.address("admin", "admin"))
    }

    /// Where its admin listener is.
    pub fn admin_url(&self) -> &str {
        self.address("admin", "admin")
    }

    /// What its `Location` headers start with.
    pub fn url(&self) -> &str {
        self.address("url", "url")
    }

    fn address(&self, name: &str, other: &str) -> &str {
        let found = self.serving[name].as_str().or_else(|| self.serving[other].as_str());
        found.unwrap_or_else(|| panic!("{}", self.serving))
    }

    /// Ends it where it stands.
    pub fn kill(mut self) {
        self.signal(Signal::KILL);
        self.wait();
    }

    /// Asks it to stop, and waits until it has.
    #[track_caller]
    pub fn stop(mut self) {
        self.signal(Signal::TERM);
        let status = self.wait();
        assert_eq!(status.code(), Some(0), "{}", self.said());
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        match signal {
            Signal::KILL if self.runs() => count(&format!("services killed on {}", self.database), 1),
            Signal::STOP => count("services paused", 1),
            _ => {}
        }
        let _ = kill_process(self.pid(), signal);
    }

    /// Whether it still runs.
    pub fn runs(&self) -> bool {
        // Without taking the exit status away from `wait`.
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(self.pid()), look).expect("our own child").is_none()
    }

    /// Waits until it has ended.
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

    /// Its process.
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// What it has written to its log so far.
    pub fn said(&self) -> String {
        fs::read_to_string(&self.stderr).unwrap_or_default()
    }

    /// Memory that it holds, in bytes.
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

/// Memory that a process holds, in bytes.
pub(crate) fn memory_of(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a running process");
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kib << 10
}

/// Nothing more is read from it: the service prints one line.
fn first_line(out: ChildStdout) -> Option<String> {
    let mut line = String::new();
    BufReader::new(out).read_line(&mut line).ok()?;
    (!line.is_empty()).then_some(line)
}
