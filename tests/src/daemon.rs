//! A process of the program that serves until it is stopped. It is started with `--json`, and prints one line with its
//! addresses once it serves.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use serde_json::Value;

use crate::http::Connection;
use crate::log::Ran;

/// Maximum time for a process to end after a signal, on a busy machine.
const END: Duration = Duration::from_secs(60);
/// Maximum length in bytes of the log output that a failed test shows.
const SHOWN: usize = 6_000;

/// A daemon, killed on drop.
pub struct Daemon {
    child: Child,
    stderr: PathBuf,
    /// The line that the process printed when it served.
    pub serving: Value,
}

impl Daemon {
    /// Starts a process, with its log output in this file, and waits until it serves; `Err` with its output if it ends
    /// before that.
    pub(crate) fn start(command: Command, stderr: PathBuf) -> Result<Self, Ran> {
        Self::spawn(command, stderr).started()
    }

    /// Starts a process as [`start`](Self::start) does. Panics if it ends before it serves.
    #[track_caller]
    pub(crate) fn serve(command: Command, stderr: PathBuf) -> Self {
        Self::start(command, stderr).unwrap_or_else(|ran| panic!("the daemon did not start: {ran}"))
    }

    /// Starts a process without waiting for it.
    pub(crate) fn spawn(mut command: Command, stderr: PathBuf) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command.stderr(File::create(&stderr).expect("our own folder"));
        Self { child: command.spawn().expect("the program starts"), stderr, serving: Value::Null }
    }

    fn started(mut self) -> Result<Self, Ran> {
        let mut line = String::new();
        let _ = BufReader::new(self.take_stdout()).read_line(&mut line);
        if line.is_empty() {
            let code = self.wait().code();
            return Err(Ran { code, stdout: String::new(), stderr: self.said() });
        }
        self.serving = serde_json::from_str(&line).unwrap_or_else(|why| panic!("{why}: {line}"));
        Ok(self)
    }

    /// Takes the standard output of a process that was only spawned.
    pub(crate) fn take_stdout(&mut self) -> ChildStdout {
        self.child.stdout.take().expect("it was asked for")
    }

    /// Returns a text of this line, such as an address.
    #[track_caller]
    pub fn announced(&self, name: &str) -> &str {
        self.serving[name].as_str().unwrap_or_else(|| panic!("no {name}: {}", self.serving))
    }

    /// Returns the URL for clients.
    #[track_caller]
    pub fn url(&self) -> &str {
        self.announced("url")
    }

    /// Returns a new connection to the admin listener.
    #[track_caller]
    pub fn admin(&self) -> Connection {
        Connection::to(self.announced("admin"))
    }

    /// Returns the metrics.
    #[track_caller]
    pub fn metrics(&self) -> String {
        String::from_utf8(self.admin().get("/metrics").body).expect("text")
    }

    /// Sends a signal to the process.
    pub fn signal(&self, signal: Signal) {
        let _ = kill_process(self.pid(), signal);
    }

    /// Kills the process with `SIGKILL`, and keeps `self`, so that the caller can replace it.
    pub fn kill_here(&mut self) {
        self.signal(Signal::KILL);
        self.wait();
    }

    /// Sends `SIGTERM`, and waits until the process has ended.
    #[track_caller]
    pub fn end(&mut self) -> ExitStatus {
        self.signal(Signal::TERM);
        self.wait()
    }

    /// Sends `SIGTERM`, and waits until the process has ended with exit code 0.
    #[track_caller]
    pub(crate) fn stop(mut self) {
        let status = self.end();
        assert_eq!(status.code(), Some(0), "{}", self.said());
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
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a running process");
        let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
        kib << 10
    }

    /// Returns a path as the process sees it, through `/proc/PID/root`: it may have mounts of its own.
    pub(crate) fn sees(&self, path: &Path) -> PathBuf {
        let below = path.strip_prefix("/").expect("an absolute path");
        PathBuf::from(format!("/proc/{}/root", self.child.id())).join(below)
    }
}

impl Drop for Daemon {
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
