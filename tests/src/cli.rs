//! The program in a folder of its own, as a person or a script runs it.

use std::fs;
use std::io::Write;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::daemon::Daemon;

/// Longest time of a command; none waits for an answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// An empty folder to run commands in.
pub struct Folder(TempDir);

impl Default for Folder {
    fn default() -> Self {
        Self::new()
    }
}

impl Folder {
    /// Creates an empty folder, which is deleted when dropped.
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    /// Returns the path of a file in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.path(name), bytes).expect("our own folder");
    }

    /// Reads a file.
    #[track_caller]
    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap_or_else(|why| panic!("{name}: {why}"))
    }

    /// Returns whether the file is there.
    pub fn has(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    /// Runs the program with nothing on standard input.
    #[track_caller]
    pub fn run(&self, arguments: &[&str]) -> Ended {
        self.run_with(arguments, b"")
    }

    /// Runs the program with this on standard input.
    #[track_caller]
    pub fn run_with(&self, arguments: &[&str], stdin: &[u8]) -> Ended {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let mut pipe = child.stdin.take().expect("it was asked for");
        let bytes = stdin.to_vec();
        let feeding = std::thread::spawn(move || pipe.write_all(&bytes));
        let ended = wait(child, arguments);
        let _ = feeding.join();
        ended
    }

    /// Returns a command for the program, without settings from the environment.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(crate::program());
        self.settle(&mut command);
        command.args(arguments);
        command
    }

    /// Gives a command this folder, and surroundings that are the same on every machine.
    pub fn settle(&self, command: &mut Command) {
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("TABELLION_")) {
            command.env_remove(name);
        }
        for name in
            ["XDG_CONFIG_HOME", "CONFIGURATION_DIRECTORY", "STATE_DIRECTORY", "NO_COLOR", "CLICOLOR_FORCE"]
        {
            command.env_remove(name);
        }
        command.current_dir(self.0.path()).env("HOME", self.0.path()).env("COLUMNS", "80");
    }
}

#[track_caller]
fn wait(child: Child, arguments: &[&str]) -> Ended {
    let (sender, ended) = std::sync::mpsc::channel();
    let pid = child.id();
    std::thread::spawn(move || sender.send(child.wait_with_output()));
    match ended.recv_timeout(PATIENCE) {
        Ok(output) => output.expect("it ran").into(),
        Err(_) => panic!("{arguments:?} (process {pid}) does not end: does it wait for an answer?"),
    }
}

/// A run that has ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Exit code, unless a signal ended the run.
    pub code: Option<i32>,
    /// Bytes on standard output.
    pub stdout: Vec<u8>,
    /// Text on standard error.
    pub stderr: String,
}

impl Ended {
    /// Panics unless the exit code is `code`.
    #[track_caller]
    pub fn must_end_with(&self, code: i32) -> &Self {
        assert_eq!(self.code, Some(code), "{self}");
        self
    }

    /// Returns standard output as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Returns the result, which must be one JSON object on one line.
    #[track_caller]
    pub fn json(&self) -> Value {
        let text = self.text();
        assert_eq!(text.lines().count(), 1, "{self}");
        let value: Value = serde_json::from_str(&text).unwrap_or_else(|why| panic!("{why}: {self}"));
        assert!(value.is_object(), "{self}");
        value
    }

    /// Returns the code of the error that `--json` printed.
    #[track_caller]
    pub fn error(&self) -> String {
        let line = self.stderr.lines().last().unwrap_or_default();
        let value: Value = serde_json::from_str(line).unwrap_or_else(|why| panic!("{why}: {self}"));
        value["error"]["code"].as_str().unwrap_or_default().to_owned()
    }
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        Self { code: output.status.code(), stdout: output.stdout, stderr }
    }
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "exit {:?}\nstdout: {}\nstderr: {}", self.code, self.text(), self.stderr)
    }
}

/// `tabellion serve --dev` in a folder, on free ports. Killed when dropped.
pub struct Dev {
    /// The service.
    pub daemon: Daemon,
    /// Folder in which the service runs.
    pub folder: Folder,
}

impl Dev {
    /// Starts the service in a new folder.
    pub fn start() -> Self {
        Self::start_in(Folder::new())
    }

    /// Starts the service in this folder.
    pub fn start_in(folder: Folder) -> Self {
        Self::start_with(folder, &[])
    }

    /// Starts the service in this folder with more flags.
    pub fn start_with(folder: Folder, flags: &[&str]) -> Self {
        let mut command = folder.command(&[&["serve", "--dev", "--json"], flags].concat());
        command.env("TABELLION_LISTEN", "127.0.0.1:0").env("TABELLION_ADMIN_LISTEN", "127.0.0.1:0");
        Self { daemon: Daemon::serve(command, folder.path("serve.log")), folder }
    }

    /// Ends the service and returns its folder.
    pub fn stop(self) -> Folder {
        let Self { mut daemon, folder } = self;
        daemon.kill_here();
        folder
    }
}

impl Deref for Dev {
    type Target = Daemon;

    fn deref(&self) -> &Daemon {
        &self.daemon
    }
}

/// Returns every command that does something, as words, read from the program's own help.
pub fn runnable_commands(folder: &Folder) -> Vec<Vec<String>> {
    let mut runnable = Vec::new();
    let mut open = vec![Vec::new()];
    while let Some(path) = open.pop() {
        let help = help_of(folder, &path);
        open.extend(subcommands(&help).into_iter().map(|name| [path.clone(), vec![name]].concat()));
        if !needs_subcommand(&help) {
            runnable.push(path);
        }
    }
    runnable.sort();
    runnable
}

/// Returns whether the first form of the command in its help is that with a subcommand.
fn needs_subcommand(help: &str) -> bool {
    let usage = help.lines().find(|line| line.starts_with("Usage: ")).expect("a usage");
    usage.ends_with(" <COMMAND>")
}

fn subcommands(help: &str) -> Vec<String> {
    let Some((_, list)) = help.split_once("Commands:\n") else { return Vec::new() };
    let lines = list.lines().take_while(|line| line.starts_with("  "));
    lines
        .filter(|line| !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .map(str::to_owned)
        .collect()
}

/// Returns what `--help` prints, 80 columns wide.
#[track_caller]
pub fn help_of(folder: &Folder, path: &[String]) -> String {
    let mut arguments: Vec<&str> = path.iter().map(String::as_str).collect();
    arguments.push("--help");
    folder.run(&arguments).must_end_with(0).text()
}

/// Returns the path of a file of the repository.
pub fn repository(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)
}
