//! A registry server in a folder with `registry.json` and `deltas.json`, which `operator.pem` has signed.

use std::io::{BufRead, BufReader};
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::cli::Folder;
use crate::http::Connection;

/// How long the server may take to stop on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running `tabellion registry serve` process, killed on drop.
pub struct RegistryProcess {
    child: Child,
    serving: Value,
}

impl RegistryProcess {
    /// Makes an empty registry and an empty list of deltas in the folder, and serves them.
    #[track_caller]
    pub fn of_a_new_registry(folder: &Folder) -> Self {
        folder.run(&["issuer", "new", "-o", "operator.pem", "--alg", "EdDSA"]).must_end_with(0);
        let registry = ["registry", "init", "registry.json", "--id", "acme", "--key", "operator.pem"];
        folder.run(&registry).must_end_with(0);
        folder.write("deltas.json", "[]");
        Self::start(folder)
    }

    /// Starts a process, and waits until it serves.
    #[track_caller]
    pub fn start(folder: &Folder) -> Self {
        Self::start_with(folder, &[])
    }

    /// Starts a process with further arguments.
    #[track_caller]
    pub fn start_with(folder: &Folder, further: &[&str]) -> Self {
        let mut command = folder.command(&["registry", "serve", "registry.json", "--json"]);
        command.args(["--registry-key", "operator.pem", "--deltas", "deltas.json"]);
        command.args(["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]).args(further);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the program starts");
        let mut line = String::new();
        let out = child.stdout.take().expect("it was asked for");
        BufReader::new(out).read_line(&mut line).expect("a pipe");
        assert!(!line.is_empty(), "it did not start: {:?}", child.wait());
        let serving = serde_json::from_str(&line).unwrap_or_else(|why| panic!("{why}: {line}"));
        Self { child, serving }
    }

    /// Returns a new connection to the listener for gateways.
    pub fn connection(&self) -> Connection {
        Connection::to(self.serving["url"].as_str().expect("a URL"))
    }

    /// Returns a new connection to the admin listener.
    pub fn admin(&self) -> Connection {
        Connection::to(self.serving["admin"].as_str().expect("an address"))
    }

    /// Returns the metrics.
    pub fn metrics(&self) -> String {
        String::from_utf8(self.admin().get("/metrics").body).expect("text")
    }

    /// Sends SIGTERM, and returns how the process ended.
    #[track_caller]
    pub fn stop(mut self) -> ExitStatus {
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let begun = Instant::now();
        loop {
            if let Some(ended) = self.child.try_wait().expect("our own child") {
                return ended;
            }
            assert!(begun.elapsed() < PATIENCE, "it does not stop");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for RegistryProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
