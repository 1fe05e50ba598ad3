//! A monitor: `tabellion monitor` processes with a folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::log::{Ran, command};

/// Folder of a monitor, with its configuration and state.
pub struct Watch {
    folder: TempDir,
}

impl Watch {
    /// Creates a monitor with this configuration, in addition to `state_dir` and `every`.
    pub fn new(config: &str) -> Self {
        let this = Self { folder: tempfile::tempdir().expect("a folder") };
        this.configure(config);
        this
    }

    /// Creates a monitor of one log, with these settings in addition to name, URL and key.
    pub fn of(url: &str, vkey: &str, settings: &str) -> Self {
        Self::new(&format!("[[log]]\nname = \"log\"\nurl = \"{url}\"\nvkey = \"{vkey}\"\n{settings}\n"))
    }

    /// Replaces the configuration, `monitor.toml`.
    pub fn configure(&self, config: &str) {
        let text = format!("state_dir = \"state\"\nevery = \"1s\"\n{config}");
        fs::write(self.path("monitor.toml"), text).expect("our own folder");
    }

    /// Returns the monitor's folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the path of a file in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns a command that runs the program in the folder.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = command(self.folder.path());
        command.args(arguments);
        command
    }

    /// Runs the program in the folder.
    pub fn tabellion(&self, arguments: &[&str]) -> Ran {
        self.command(arguments).output().expect("the program runs").into()
    }

    /// Runs one round in a new process (`monitor once`).
    #[track_caller]
    pub fn look(&self) -> Looked {
        Looked { ran: self.tabellion(&["monitor", "once", "--config", "monitor.toml", "--json"]) }
    }

    /// Runs one round with additional environment variables. The process may be killed.
    pub fn look_with(&self, variables: &[(&str, String)]) -> Looked {
        let mut command = self.command(&["monitor", "once", "--config", "monitor.toml", "--json"]);
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        Looked { ran: command.output().expect("the program runs").into() }
    }

    /// Starts a process that runs continuously (`monitor run`), with its output in `run.log`.
    pub fn run(&self) -> Child {
        let log =
            fs::File::options().create(true).append(true).open(self.path("run.log")).expect("our own folder");
        let mut command = self.command(&["monitor", "run", "--config", "monitor.toml", "--json"]);
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("a file"));
        command.stderr(log).spawn().expect("the program starts")
    }

    /// Lists the alarms with `monitor alerts --all`.
    pub fn alarms(&self) -> Ran {
        self.tabellion(&["monitor", "alerts", "--all", "--config", "monitor.toml", "--json"])
    }

    /// Resets all alarms with `monitor reset --all`.
    #[track_caller]
    pub fn reset(&self) {
        let reset =
            ["monitor", "reset", "--all", "--because", "a test", "--config", "monitor.toml", "--json"];
        self.tabellion(&reset).must_succeed();
    }

    /// Verifies a file of evidence with `checkpoint diff` in an empty folder, with only the file and the program.
    pub fn convinces(&self, evidence: &Path, more: &[&str]) -> Ran {
        let elsewhere = tempfile::tempdir().expect("a folder");
        fs::copy(self.path("state").join(evidence), elsewhere.path().join("evidence.json"))
            .expect("evidence");
        let mut command = command(elsewhere.path());
        command.args(["checkpoint", "diff", "evidence.json", "--json"]).args(more);
        command.output().expect("the program runs").into()
    }
}

/// Result of one round.
#[derive(Debug)]
pub struct Looked {
    /// Exit code and output of the process.
    pub ran: Ran,
}

impl Looked {
    /// Returns the exit code.
    pub fn code(&self) -> Option<i32> {
        self.ran.code
    }

    /// Returns the kinds of the active alarms.
    #[track_caller]
    pub fn kinds(&self) -> Vec<String> {
        let alarms = self.ran.json()["alarms"].as_array().cloned().unwrap_or_default();
        alarms.iter().filter_map(|alarm| alarm["kind"].as_str()).map(str::to_owned).collect()
    }

    /// Returns the evidence file of the only active alarm.
    #[track_caller]
    pub fn evidence(&self) -> PathBuf {
        let result = self.ran.json();
        let [alarm] = &result["alarms"].as_array().expect("a list")[..] else { panic!("{self:#?}") };
        alarm["evidence_file"].as_str().unwrap_or_else(|| panic!("no evidence: {alarm}")).into()
    }

    /// Returns the outcome of a check in the only round, and its explanation.
    #[track_caller]
    pub fn check(&self, name: &str) -> (String, String) {
        let result = self.ran.json();
        let checks = result["rounds"][0]["checks"].as_array().cloned().unwrap_or_default();
        let found = checks.iter().find(|check| check["name"] == name);
        let found = found.unwrap_or_else(|| panic!("no check {name}: {result}"));
        let text = |name: &str| found[name].as_str().unwrap_or_default().to_owned();
        (text("outcome"), text("words"))
    }

    /// Asserts exit code 0 and no alarms.
    #[track_caller]
    pub fn must_be_well(&self) -> &Self {
        assert_eq!((self.code(), self.kinds()), (Some(0), Vec::new()), "{self:#?}");
        self
    }

    /// Asserts this exit code and exactly one alarm, of this kind.
    #[track_caller]
    pub fn must_accuse(&self, code: i32, kind: &str) -> &Self {
        assert_eq!((self.code(), self.kinds()), (Some(code), vec![kind.to_owned()]), "{self:#?}");
        self
    }

    /// Returns the only round as JSON.
    #[track_caller]
    pub fn round(&self) -> Value {
        self.ran.json()["rounds"][0].clone()
    }
}
