//! A log as its operator keeps it: a folder with configuration, keys, policy and pin, and a database.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU64, Ordering};

use scitt::SignedStatement;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::binary;
use crate::database::Database;
use crate::service::Service;

/// Settings of every log here: nobody is turned away, unless a test wants that.
const GENEROUS: &str = "
listen = \"127.0.0.1:0\"
admin_listen = \"127.0.0.1:0\"
tokens_file = \"tokens\"
write_rate = 1000000
write_burst = 1000000
read_rate = 1000000
read_burst = 1000000
";

/// What the operator of every log here shows over TCP.
pub const OPERATOR_TOKEN: &str = "operator-of-these-tests";
/// What an auditor shows, who may read all bodies.
pub const AUDITOR_TOKEN: &str = "auditor-of-these-tests-";

/// What outlives the processes that serve it.
pub struct Log {
    folder: TempDir,
    database: Database,
    next: AtomicU64,
}

impl Log {
    /// A new log in a file.
    pub fn sqlite() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("data")).expect("a folder");
        let database = Database::Sqlite(folder.path().join("data/log.db"));
        Self::init(folder, database)
    }

    /// A new log on the shared PostgreSQL server.
    pub fn postgres() -> Self {
        Self::on(Database::postgres())
    }

    /// A new log in a database of one's own.
    pub fn on(database: Database) -> Self {
        Self::init(tempfile::tempdir().expect("a folder"), database)
    }

    fn init(folder: TempDir, database: Database) -> Self {
        let log = Self { folder, database, next: AtomicU64::new(1) };
        let url = log.database.url();
        let init =
            ["init", ".", "--origin", testkit::ORIGIN, "--public-url", "http://127.0.0.1:0", "--db", &url];
        log.tabellion(&init).must_succeed();
        let operator = testkit::operator().to_pkcs8_pem().expect("a key");
        fs::write(log.path("keys/operator.pem"), operator.as_bytes()).expect("our own file");
        log.set_policy(&testkit::policy_toml());
        log.write_private(
            "tokens",
            &format!("operator {OPERATOR_TOKEN} role=operator\nauditor {AUDITOR_TOKEN} role=auditor\n"),
        );
        log.write_private("operator.token", OPERATOR_TOKEN);
        log.configure(&format!("iss = \"{}\"\n{GENEROUS}", testkit::LOG_ISS));
        log
    }

    /// Adds settings to the configuration.
    pub fn configure(&self, settings: &str) {
        let file = self.path("tabellion.toml");
        let text = fs::read_to_string(&file).expect("init wrote it");
        let changed: Vec<&str> = settings.lines().filter_map(key).collect();
        let kept = text.lines().filter(|line| key(line).is_none_or(|key| !changed.contains(&key)));
        let kept: String = kept.map(|line| format!("{line}\n")).collect();
        fs::write(file, format!("{kept}{settings}\n")).expect("our own file");
    }

    fn write_private(&self, name: &str, text: &str) {
        let file = self.path(name);
        fs::write(&file, text).expect("our own file");
        fs::set_permissions(file, fs::Permissions::from_mode(0o600)).expect("our own file");
    }

    /// Writes the policy file.
    pub fn set_policy(&self, toml: &str) {
        fs::write(self.path("policy.toml"), toml).expect("our own file");
    }

    /// Its folder: all that it keeps, and the database too if that is a file.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A file of the log's folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The files of its pin.
    pub fn pins(&self) -> Vec<PathBuf> {
        let Ok(files) = fs::read_dir(self.path("state")) else { return Vec::new() };
        let is_pin = |path: &PathBuf| path.file_stem().is_some_and(|stem| stem == "pin");
        files.filter_map(|file| Some(file.ok()?.path())).filter(is_pin).collect()
    }

    /// Where entries are kept.
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// Starts a process that serves the log, and waits until it does.
    pub fn serve(&self) -> Service {
        Service::start(self, &[]).unwrap_or_else(|ran| panic!("the service did not start: {ran}"))
    }

    /// The same with settings of its own, as variables of its environment.
    pub fn serve_with(&self, variables: &[(&str, String)]) -> Service {
        Service::start(self, variables).unwrap_or_else(|ran| panic!("the service did not start: {ran}"))
    }

    /// The same; `Err` if it ends before it serves.
    pub fn try_serve_with(&self, variables: &[(&str, String)]) -> Result<Service, Ran> {
        Service::start(self, variables)
    }

    /// Starts a process that will abort at the `nth` visit of a crash point; it may do so before it serves.
    pub fn serve_until(&self, point: &str, nth: u64) -> Result<Service, Ran> {
        Service::start(self, &[("TABELLION_CRASH_AT", format!("{point}:{nth}"))])
    }

    /// Starts a process that must not come to serve, and gives what it said.
    #[track_caller]
    pub fn serve_in_vain(&self) -> Ran {
        match Service::start(self, &[]) {
            Ok(_) => panic!("the service started"),
            Err(ran) => ran,
        }
    }

    /// A statement that this log admits, another one each time.
    pub fn statement(&self) -> SignedStatement {
        let n = self.next.fetch_add(1, Ordering::Relaxed);
        testkit::opaque(&format!("thing-{n}"), &json!({ "n": n }))
    }

    /// The program, to be run in the log's folder.
    pub fn command(&self) -> Command {
        command(self.folder.path())
    }

    /// The same, started by another program that ends in starting it.
    pub fn command_through(&self, starter: &str, arguments: &[&str]) -> Command {
        command_through(self.folder.path(), starter, arguments)
    }

    /// Runs the program in the log's folder, with the log's configuration at hand.
    pub fn tabellion(&self, arguments: &[&str]) -> Ran {
        self.command().args(arguments).output().expect("the program runs").into()
    }

    /// Runs a command that asks this service over its admin listener.
    pub fn on_admin(&self, service: &Service, arguments: &[&str]) -> Ran {
        let url = format!("http://{}", service.admin_url());
        let admin = ["--admin-url", &url, "--token-file", "operator.token", "--json"];
        self.tabellion(&[arguments, &admin].concat())
    }

    /// The whole tree, recomputed from the stored statements (I7, I8), and every admission decided again. The service must
    /// not run on SQLite.
    #[track_caller]
    pub fn must_be_sound(&self) {
        let ran = self.tabellion(&["log", "fsck", "--deep", "--json"]);
        assert_eq!(ran.code, Some(0), "{ran}");
        let ran = self.tabellion(&["audit", "--json"]);
        let empty = ran.code == Some(4) && ran.stdout.contains("\"size\":0,");
        assert!(ran.code == Some(0) || empty, "{ran}");
    }
}

fn key(line: &str) -> Option<&str> {
    line.split_once('=').map(|(key, _)| key.trim())
}

/// The program, with nothing of the surroundings that could be a setting.
pub(crate) fn command(folder: &Path) -> Command {
    let mut command = dressed(Command::new(binary::path()), folder);
    command.arg0("tabellion");
    command
}

/// The same, started by another program that ends in starting it. That may see no open file of ours, so it is told the name.
pub(crate) fn command_through(folder: &Path, starter: &str, arguments: &[&str]) -> Command {
    let mut command = dressed(Command::new(starter), folder);
    let program = fs::canonicalize(binary::path()).unwrap_or_else(|_| binary::path().to_owned());
    command.args(arguments).arg(program);
    command
}

fn dressed(mut command: Command, folder: &Path) -> Command {
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("TABELLION_")) {
        command.env_remove(name);
    }
    command.current_dir(folder).env_remove("XDG_CONFIG_HOME").env("HOME", folder);
    command
}

/// A run of the program that has ended.
#[derive(Clone, Debug)]
pub struct Ran {
    /// The exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// Its results.
    pub stdout: String,
    /// All else it said.
    pub stderr: String,
}

impl Ran {
    /// The result, of a run that must have one.
    #[track_caller]
    pub fn must_succeed(&self) -> &Self {
        assert_eq!(self.code, Some(0), "{self}");
        self
    }

    /// The result as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|why| panic!("{why}: {self}"))
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
    }
}

impl std::fmt::Display for Ran {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "exit {:?}\nstdout: {}\nstderr: {}", self.code, self.stdout, self.stderr)
    }
}
