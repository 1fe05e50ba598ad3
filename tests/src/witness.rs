//! A witness as an operator keeps it: a folder with its state, and at most one process.

use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::daemon::Daemon;
use crate::http::Connection;
use crate::log::{Ran, command};

/// Name of every test witness.
pub const WITNESS: &str = "witness.example/w1";

/// Folder of a witness, which outlives its processes.
pub struct WitnessHome {
    folder: TempDir,
}

/// A running `tabellion witness serve` process, killed on drop.
pub struct WitnessProcess {
    daemon: Daemon,
}

impl WitnessHome {
    /// Creates a witness of the logs with these keys.
    pub fn of(vkeys: &[&str]) -> Self {
        let home = Self { folder: tempfile::tempdir().expect("a folder") };
        home.witness(vkeys);
        home
    }

    /// Sets the witnessed logs in `logs.txt`. A process reads them when it starts, and on `SIGHUP`.
    pub fn witness(&self, vkeys: &[&str]) {
        let lines: String = vkeys.iter().map(|vkey| format!("vkey {vkey}\n")).collect();
        fs::write(self.path("logs.txt"), format!("logs/v0\n{lines}")).expect("our own file");
    }

    /// Returns the witness's folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the path of a file in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts a process, and waits until it serves; `Err` if it ends before that.
    pub fn start(&self) -> Result<WitnessProcess, Ran> {
        self.start_at("127.0.0.1:0")
    }

    /// Starts a process that listens at this address.
    pub fn start_at(&self, address: &str) -> Result<WitnessProcess, Ran> {
        self.start_with(address, &[])
    }

    /// Starts a process at this address, with additional environment variables.
    pub fn start_with(&self, address: &str, variables: &[(&str, String)]) -> Result<WitnessProcess, Ran> {
        self.run(address, &[], variables)
    }

    fn run(
        &self,
        address: &str,
        arguments: &[&str],
        variables: &[(&str, String)],
    ) -> Result<WitnessProcess, Ran> {
        let mut command = self.command();
        command.args(["witness", "serve", "--json", "--listen", address, "--admin-listen", "127.0.0.1:0"]);
        command.args(["--state", "state", "--name", WITNESS, "--logs", "logs.txt"]).args(arguments);
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        Ok(WitnessProcess { daemon: Daemon::start(command, self.path("witness.log"))? })
    }

    /// Starts a process with [`start`](Self::start). Panics if it ends before it serves.
    #[track_caller]
    pub fn serve(&self) -> WitnessProcess {
        self.start().unwrap_or_else(|ran| panic!("the witness did not start: {ran}"))
    }

    /// Starts a process with these arguments in addition. Panics if it ends before it serves.
    #[track_caller]
    pub fn serve_with(&self, arguments: &[&str]) -> WitnessProcess {
        let started = self.run("127.0.0.1:0", arguments, &[]);
        started.unwrap_or_else(|ran| panic!("the witness did not start: {ran}"))
    }

    /// Runs the program in the folder.
    pub fn tabellion(&self, arguments: &[&str]) -> Ran {
        self.command().args(arguments).output().expect("the program runs").into()
    }

    fn command(&self) -> Command {
        command(self.folder.path())
    }
}

impl WitnessProcess {
    /// Returns the base URL, to which logs submit checkpoints.
    pub fn url(&self) -> String {
        format!("http://{}", self.announced("listen"))
    }

    /// Returns the public key as a vkey, for witness policies.
    pub fn vkey(&self) -> &str {
        self.announced("key")
    }

    /// Returns a new connection to the witness.
    pub fn connection(&self) -> Connection {
        Connection::to(&self.url())
    }

    /// Kills the process with `SIGKILL`.
    pub fn kill(mut self) {
        self.daemon.kill_here();
    }

    /// Sends `SIGTERM`, and waits until the process has ended with exit code 0.
    #[track_caller]
    pub fn stop(self) {
        self.daemon.stop();
    }
}

impl Deref for WitnessProcess {
    type Target = Daemon;

    fn deref(&self) -> &Daemon {
        &self.daemon
    }
}
