//! The monitor as a process: `tabellion monitor` in a folder of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::log::{Ran, command};

/// A monitor's folder: its configuration, and what it remembers.
pub struct Watch {
    folder: TempDir,
}

impl Watch {
    /// With this configuration beside `state_dir` and `every`.
    pub fn new(config: &str) -> Self {
        let this = Self { folder: tempfile::tempdir().expect("a folder") };
        this.configure(config);
        this
    }

    /// Of one log, with these settings beside its name.
    pub fn of(url: &str, vkey: &str, settings: &str) -> Self {
        Self::new(&format!("[[log]]\nname = \"log\"\nurl = \"{url}\"\nvkey = \"{vkey}\"\n{settings}\n"))
    }

    /// Writes another configuration.
    pub fn configure(&self, config: &str) {
        let text = format!("state_dir = \"state\"\nevery = \"1s\"\n{config}");
        fs::write(self.path("monitor.toml"), text).expect("our own folder");
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A file of its folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The program, to be run in its folder.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = command(self.folder.path());
        command.args(arguments);
        command
    }

    /// Runs the program in its folder.
    pub fn tabellion(&self, arguments: &[&str]) -> Ran {
        self.command(arguments).output().expect("the program runs").into()
    }

    /// One round, of a new process.
    #[track_caller]
    pub fn look(&self) -> Looked {
        Looked { ran: self.tabellion(&["monitor", "once", "--config", "monitor.toml", "--json"]) }
    }

    /// The same with variables in its surroundings, of a process that may be killed.
    pub fn look_with(&self, variables: &[(&str, String)]) -> Looked {
        let mut command = self.command(&["monitor", "once", "--config", "monitor.toml", "--json"]);
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        Looked { ran: command.output().expect("the program runs").into() }
    }

    /// A process that goes on looking; what it says is in `run.log`.
    pub fn run(&self) -> Child {
        let log =
            fs::File::options().create(true).append(true).open(self.path("run.log")).expect("our own folder");
        let mut command = self.command(&["monitor", "run", "--config", "monitor.toml", "--json"]);
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("a file"));
        command.stderr(log).spawn().expect("the program starts")
    }

    /// What stands, in an exit code and in JSON.
    pub fn alarms(&self) -> Ran {
        self.tabellion(&["monitor", "alerts", "--all", "--config", "monitor.toml", "--json"])
    }

    /// Somebody has looked, and takes all alarms back.
    #[track_caller]
    pub fn reset(&self) {
        let reset =
            ["monitor", "reset", "--all", "--because", "a test", "--config", "monitor.toml", "--json"];
        self.tabellion(&reset).must_succeed();
    }

    /// Whether a file of evidence convinces somebody who has nothing but the file and the program, in another folder.
    pub fn convinces(&self, evidence: &Path, more: &[&str]) -> Ran {
        let elsewhere = tempfile::tempdir().expect("a folder");
        fs::copy(self.path("state").join(evidence), elsewhere.path().join("evidence.json"))
            .expect("evidence");
        let mut command = command(elsewhere.path());
        command.args(["checkpoint", "diff", "evidence.json", "--json"]).args(more);
        command.output().expect("the program runs").into()
    }
}

/// What one look came to.
#[derive(Debug)]
pub struct Looked {
    /// The process.
    pub ran: Ran,
}

impl Looked {
    /// The exit code.
    pub fn code(&self) -> Option<i32> {
        self.ran.code
    }

    /// The kinds of the alarms that stand.
    #[track_caller]
    pub fn kinds(&self) -> Vec<String> {
        let alarms = self.ran.json()["alarms"].as_array().cloned().unwrap_or_default();
        alarms.iter().filter_map(|alarm| alarm["kind"].as_str()).map(str::to_owned).collect()
    }

    /// The file of evidence of the only alarm that stands.
    #[track_caller]
    pub fn evidence(&self) -> PathBuf {
        let result = self.ran.json();
        let [alarm] = &result["alarms"].as_array().expect("a list")[..] else { panic!("{self:#?}") };
        alarm["evidence_file"].as_str().unwrap_or_else(|| panic!("no evidence: {alarm}")).into()
    }

    /// How a check of the only round ended, and what was found.
    #[track_caller]
    pub fn check(&self, name: &str) -> (String, String) {
        let result = self.ran.json();
        let checks = result["rounds"][0]["checks"].as_array().cloned().unwrap_or_default();
        let found = checks.iter().find(|check| check["name"] == name);
        let found = found.unwrap_or_else(|| panic!("no check {name}: {result}"));
        let text = |name: &str| found[name].as_str().unwrap_or_default().to_owned();
        (text("outcome"), text("words"))
    }

    /// Ends well, and nothing is wrong.
    #[track_caller]
    pub fn must_be_well(&self) -> &Self {
        assert_eq!((self.code(), self.kinds()), (Some(0), Vec::new()), "{self:#?}");
        self
    }

    /// Ends like this, with this one alarm.
    #[track_caller]
    pub fn must_accuse(&self, code: i32, kind: &str) -> &Self {
        assert_eq!((self.code(), self.kinds()), (Some(code), vec![kind.to_owned()]), "{self:#?}");
        self
    }

    /// The only round as JSON.
    #[track_caller]
    pub fn round(&self) -> Value {
        self.ran.json()["rounds"][0].clone()
    }
}
