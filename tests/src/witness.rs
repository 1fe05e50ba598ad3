//! Our witness as its operator keeps it: a folder with what it has seen, and at most one process.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::binary;
use crate::http::Connection;
use crate::log::Ran;

/// The name of every witness here.
pub const WITNESS: &str = "witness.example/w1";

/// What outlives a witness's processes.
pub struct WitnessHome {
    folder: TempDir,
}

/// A running witness. Killed when dropped.
pub struct WitnessProcess {
    child: Child,
    told: Value,
}

impl WitnessHome {
    /// A new witness of the logs with these keys.
    pub fn of(vkeys: &[&str]) -> Self {
        let home = Self { folder: tempfile::tempdir().expect("a folder") };
        home.witness(vkeys);
        home
    }

    /// Lists the logs with these keys, and no others; a process takes it up when it starts, and on SIGHUP.
    pub fn witness(&self, vkeys: &[&str]) {
        let lines: String = vkeys.iter().map(|vkey| format!("vkey {vkey}\n")).collect();
        fs::write(self.path("logs.txt"), format!("logs/v0\n{lines}")).expect("our own file");
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A file of the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts a process, and waits until it serves; `Err` if it ends before that.
    pub fn start(&self) -> Result<WitnessProcess, Ran> {
        self.start_at("127.0.0.1:0")
    }

    /// The same at this address.
    pub fn start_at(&self, address: &str) -> Result<WitnessProcess, Ran> {
        self.start_with(address, &[])
    }

    /// The same with variables in its surroundings.
    pub fn start_with(&self, address: &str, variables: &[(&str, String)]) -> Result<WitnessProcess, Ran> {
        let stderr = self.path("witness.log");
        let mut command = self.command();
        command.args(["witness", "serve", "--json", "--listen", address, "--admin-listen", "127.0.0.1:0"]);
        command.args(["--state", "state", "--name", WITNESS, "--logs", "logs.txt"]);
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command.stderr(File::create(&stderr).expect("our own folder"));
        let mut child = command.spawn().expect("the program starts");
        let mut line = String::new();
        let out = child.stdout.take().expect("it was asked for");
        BufReader::new(out).read_line(&mut line).expect("a pipe");
        if line.is_empty() {
            let code = child.wait().expect("our own child").code();
            let said = fs::read_to_string(&stderr).unwrap_or_default();
            return Err(Ran { code, stdout: String::new(), stderr: said });
        }
        let told = serde_json::from_str(&line).unwrap_or_else(|why| panic!("{why}: {line}"));
        Ok(WitnessProcess { child, told })
    }

    /// Starts a process that must come to serve.
    #[track_caller]
    pub fn serve(&self) -> WitnessProcess {
        self.start().unwrap_or_else(|ran| panic!("the witness did not start: {ran}"))
    }

    /// Runs the program in this folder.
    pub fn tabellion(&self, arguments: &[&str]) -> Ran {
        self.command().args(arguments).output().expect("the program runs").into()
    }

    fn command(&self) -> Command {
        let mut command = Command::new(binary::path());
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("TABELLION_")) {
            command.env_remove(name);
        }
        command.arg0("tabellion").current_dir(self.folder.path());
        command.env_remove("XDG_CONFIG_HOME").env("HOME", self.folder.path());
        command
    }
}

impl WitnessProcess {
    /// Where logs come.
    pub fn url(&self) -> String {
        format!("http://{}", self.told["listen"].as_str().expect("an address"))
    }

    /// The key for verifiers' policies.
    pub fn vkey(&self) -> &str {
        self.told["key"].as_str().expect("a key")
    }

    /// A new connection to it.
    pub fn connection(&self) -> Connection {
        Connection::to(&self.url())
    }

    /// A new connection to its admin listener.
    pub fn admin(&self) -> Connection {
        Connection::to(self.told["admin"].as_str().expect("an address"))
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        let _ = kill_process(Pid::from_child(&self.child), signal);
    }

    /// Ends it where it stands.
    pub fn kill(mut self) {
        self.signal(Signal::KILL);
        let _ = self.child.wait();
    }

    /// Asks it to stop, and waits until it has.
    #[track_caller]
    pub fn stop(mut self) {
        self.signal(Signal::TERM);
        let status = self.child.wait().expect("our own child");
        assert_eq!(status.code(), Some(0));
    }
}

impl Drop for WitnessProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
