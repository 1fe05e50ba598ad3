//! A log as an operator keeps it: a folder with configuration, keys, policy and pin, and a database.

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

/// Settings of every test log: rate limits, and a time until the answer 202, that no test reaches by accident.
const GENEROUS: &str = "
listen = \"127.0.0.1:0\"
admin_listen = \"127.0.0.1:0\"
tokens_file = \"tokens\"
answer_within_ms = 5000
write_rate = 1000000
write_burst = 1000000
read_rate = 1000000
read_burst = 1000000
";

/// Token of the role `operator`, for the admin listener.
pub const OPERATOR_TOKEN: &str = "operator-of-these-tests";
/// Token of the role `auditor`, which may read all payloads.
pub const AUDITOR_TOKEN: &str = "auditor-of-these-tests-";

/// The folder and database of a log, which outlive the processes that serve it.
pub struct Log {
    folder: TempDir,
    database: Database,
    next: AtomicU64,
}

impl Log {
    /// Creates a log in an SQLite file.
    pub fn sqlite() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("data")).expect("a folder");
        let database = Database::Sqlite(folder.path().join("data/log.db"));
        Self::init(folder, database)
    }

    /// Creates a log on the shared PostgreSQL server.
    pub fn postgres() -> Self {
        Self::on(Database::postgres())
    }

    /// Creates a log in this database.
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

    /// Adds settings to the configuration file, `tabellion.toml`; they replace earlier values.
    pub fn configure(&self, settings: &str) {
        let file = self.path("tabellion.toml");
        let text = fs::read_to_string(&file).expect("init wrote it");
        let changed: Vec<&str> = settings.lines().filter_map(key).collect();
        let kept = text.lines().filter(|line| key(line).is_none_or(|key| !changed.contains(&key)));
        let kept: String = kept.map(|line| format!("{line}\n")).collect();
        fs::write(file, format!("{kept}{settings}\n")).expect("our own file");
    }

    /// Writes a file that only its owner may read.
    pub fn write_private(&self, name: &str, text: &str) {
        let file = self.path(name);
        fs::write(&file, text).expect("our own file");
        fs::set_permissions(file, fs::Permissions::from_mode(0o600)).expect("our own file");
    }

    /// Writes the policy file, `policy.toml`.
    pub fn set_policy(&self, toml: &str) {
        fs::write(self.path("policy.toml"), toml).expect("our own file");
    }

    /// Returns the log's folder, which also contains the database if that is SQLite.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the path of a file in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns the files of the log's pin.
    pub fn pins(&self) -> Vec<PathBuf> {
        let Ok(files) = fs::read_dir(self.path("state")) else { return Vec::new() };
        let is_pin = |path: &PathBuf| path.file_stem().is_some_and(|stem| stem == "pin");
        files.filter_map(|file| Some(file.ok()?.path())).filter(is_pin).collect()
    }

    /// Returns the database with the entries.
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// Starts a process that serves the log, and waits until it does.
    pub fn serve(&self) -> Service {
        Service::start(self, &[]).unwrap_or_else(|ran| panic!("the service did not start: {ran}"))
    }

    /// Starts a service with additional settings as environment variables.
    pub fn serve_with(&self, variables: &[(&str, String)]) -> Service {
        Service::start(self, variables).unwrap_or_else(|ran| panic!("the service did not start: {ran}"))
    }

    /// Starts a service with additional environment variables; `Err` if it ends before it serves.
    pub fn try_serve_with(&self, variables: &[(&str, String)]) -> Result<Service, Ran> {
        Service::start(self, variables)
    }

    /// Starts a process that aborts at the `nth` visit of a crash point, possibly before it serves.
    pub fn serve_until(&self, point: &str, nth: u64) -> Result<Service, Ran> {
        Service::start(self, &[("TABELLION_CRASH_AT", format!("{point}:{nth}"))])
    }

    /// Starts a process that must fail to start, and returns its output.
    #[track_caller]
    pub fn serve_in_vain(&self) -> Ran {
        match Service::start(self, &[]) {
            Ok(_) => panic!("the service started"),
            Err(ran) => ran,
        }
    }

    /// Returns a new statement that this log admits, different at each call.
    pub fn statement(&self) -> SignedStatement {
        let n = self.next.fetch_add(1, Ordering::Relaxed);
        testkit::opaque(&format!("thing-{n}"), &json!({ "n": n }))
    }

    /// Registers so many new statements.
    #[track_caller]
    pub fn register(&self, service: &Service, statements: usize) {
        let mut connection = service.connection();
        for _ in 0..statements {
            let answer = connection.post(self.statement().bytes());
            assert_eq!(answer.status, 201, "{answer:?}");
        }
    }

    /// Returns the vkey of the log's checkpoint key, by which witnesses and monitors know the log.
    pub fn vkey(&self) -> String {
        let shown = self.tabellion(&["key", "show", "--json"]).must_succeed().json();
        shown["checkpoint"]["vkey"].as_str().unwrap_or_else(|| panic!("{shown}")).to_owned()
    }

    /// Returns a command that runs the program in the log's folder.
    pub fn command(&self) -> Command {
        command(self.folder.path())
    }

    /// Returns a command that runs the program through a starter program, which must end by executing its arguments.
    pub fn command_through(&self, starter: &str, arguments: &[&str]) -> Command {
        command_through(self.folder.path(), starter, arguments)
    }

    /// Runs the program in the log's folder, with the log's configuration.
    pub fn tabellion(&self, arguments: &[&str]) -> Ran {
        self.command().args(arguments).output().expect("the program runs").into()
    }

    /// Runs a command on the admin listener of this service, as operator.
    pub fn on_admin(&self, service: &Service, arguments: &[&str]) -> Ran {
        let url = format!("http://{}", service.admin_url());
        let admin = ["--admin-url", &url, "--token-file", "operator.token", "--json"];
        self.tabellion(&[arguments, &admin].concat())
    }

    /// Asserts that the log is sound: recomputes the whole tree from the stored statements (I7, I8), and decides every
    /// admission again. With SQLite, no service may be running.
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

/// Returns a command that runs the program without the environment variables that could be settings.
pub(crate) fn command(folder: &Path) -> Command {
    let mut command = dressed(Command::new(binary::path()), folder);
    command.arg0("tabellion");
    command
}

/// Returns a command that runs the program through a starter program. A starter may not inherit the open file of
/// [`command`], and so gets the program's path.
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

/// Result of a finished run of the program.
#[derive(Clone, Debug)]
pub struct Ran {
    /// Exit code; `None` if the process was killed by a signal.
    pub code: Option<i32>,
    /// Standard output, with the results.
    pub stdout: String,
    /// Standard error, with everything else.
    pub stderr: String,
}

impl Ran {
    /// Asserts exit code 0.
    #[track_caller]
    pub fn must_succeed(&self) -> &Self {
        assert_eq!(self.code, Some(0), "{self}");
        self
    }

    /// Asserts this exit code, and this code of the error or of the result.
    #[track_caller]
    pub fn must_fail(&self, exit: i32, code: &str) {
        assert_eq!(self.code, Some(exit), "{self}");
        let json = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
        let error = json(self.stderr.lines().last().unwrap_or_default())["error"]["code"].clone();
        assert!(error == code || json(&self.stdout)["reason"] == code, "{code}: {self}");
    }

    /// Returns standard output as JSON.
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
