//! PostgreSQL for tests: databases on the server that the test driver started, and separate servers for fault tests.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::power::Power;
use crate::storage_faults::StorageFaults;
use crate::tally::count;

/// Variable with the URL of the shared server. If it is missing the test fails, and is not skipped.
const SERVER: &str = "TABELLION_TEST_POSTGRES";

/// Returns the URL of the server that `./test` started.
pub fn shared_server() -> String {
    std::env::var(SERVER).unwrap_or_else(|_| panic!("{SERVER} names no server: run ./test"))
}

/// File in a server's data folder that names the process using it.
const LOCK: &str = "postmaster.pid";

/// Runs SQL and returns the printed rows: one line per row, columns separated by `|`.
pub fn sql(url: &str, statements: &str) -> String {
    try_sql(url, statements).unwrap_or_else(|error| panic!("{statements}: {error}"))
}

/// Runs SQL like [`sql`]; `Err` with the server's error message.
pub fn try_sql(url: &str, statements: &str) -> Result<String, String> {
    let output = Command::new(programs().join("psql"))
        .args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "-v", "ON_ERROR_STOP=1", "-c"])
        .args([statements, url])
        .output()
        .expect("psql runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    match output.status.success() {
        true => Ok(text(&output.stdout)),
        false => Err(text(&output.stderr)),
    }
}

/// Creates a database on a server, and returns its URL.
pub fn fresh_database(server: &str) -> String {
    let name = format!("log_{:016x}", fastrand::u64(..));
    sql(server, &format!("CREATE DATABASE {name}"));
    in_server(server, &name)
}

/// Returns the URL of another database on the same server.
pub fn in_server(server: &str, name: &str) -> String {
    let (server, _) = server.rsplit_once('/').expect("a URL with a database");
    format!("{server}/{name}")
}

/// Returns the name of the database in a URL.
pub fn name_in(url: &str) -> &str {
    url.rsplit_once('/').expect("a URL with a database").1
}

/// A separate PostgreSQL server, to be crashed and misconfigured.
pub struct Cluster {
    folder: TempDir,
    url: String,
    variables: Vec<(&'static str, String)>,
}

impl Cluster {
    /// Starts a server with these settings (`name=value`) in addition to the defaults.
    pub fn start(settings: &[&str]) -> Self {
        Self::start_in(settings, &[])
    }

    fn start_in(settings: &[&str], variables: &[(&'static str, String)]) -> Self {
        Self::start_at(cluster_folder(), settings, variables)
    }

    fn start_at(folder: TempDir, settings: &[&str], variables: &[(&'static str, String)]) -> Self {
        open_to_all(folder.path());
        let mut command = Command::new(tool());
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        command.arg("start").arg(folder.path().join("server"));
        for setting in settings {
            command.args(["-c", setting]);
        }
        let output = command.stderr(Stdio::inherit()).output().expect("the tool runs");
        assert!(output.status.success(), "no server");
        let url = String::from_utf8(output.stdout).expect("a URL").trim().to_owned();
        Self { folder, url, variables: variables.to_vec() }
    }

    /// Starts a server on storage that fails on request, below [`Cluster::data`].
    pub fn start_with_faults(settings: &[&str], faults: &StorageFaults) -> Self {
        Self::start_in(settings, &faults.variables())
    }

    /// Starts a server on a machine whose power can be lost. Changes before [`Power::watch`] count as flushed.
    pub fn start_with_power() -> (Self, Power) {
        let folder = cluster_folder();
        let power = Power::of(folder.path());
        let cluster = Self::start_at(folder, &[], &power.variables());
        (cluster, power)
    }

    /// Returns the data folder.
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("server/data").canonicalize().expect("the server runs")
    }

    /// Returns the URL of the first database.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Stops the server with an `immediate` shutdown, thus without a checkpoint.
    pub fn crash(&self) {
        self.tool("crash");
        count("PostgreSQL servers crashed", 1);
    }

    /// Kills one session's process, as the kernel does when memory runs out: all sessions end, and the server recovers.
    pub fn kill_a_session(&self) {
        let one = "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'tabellion%' LIMIT 1";
        let pid = sql(&self.url, one).parse().ok().and_then(Pid::from_raw).expect("a session of the service");
        kill_process(pid, Signal::KILL).expect("a process of the server");
        count("PostgreSQL sessions killed", 1);
    }

    /// Starts the server again after a crash, at the same address.
    pub fn recover(&self) {
        // The process in the lock file may be dead and not yet reaped.
        let _ = std::fs::remove_file(self.data().join(LOCK));
        self.tool("recover");
    }

    /// Kills all processes of the server, found by their working directory.
    pub fn kill(&self) {
        let data = self.data();
        let begun = Instant::now();
        loop {
            let processes = std::fs::read_dir("/proc").expect("processes").flatten();
            let ours = processes.filter(|process| {
                std::fs::read_link(process.path().join("cwd")).is_ok_and(|folder| folder == data)
            });
            let pids: Vec<Pid> = ours
                .filter_map(|process| Pid::from_raw(process.file_name().to_str()?.parse().ok()?))
                .collect();
            if pids.is_empty() {
                return;
            }
            assert!(begun.elapsed() < Duration::from_secs(30), "{pids:?} do not end");
            for pid in pids {
                let _ = kill_process(pid, Signal::KILL);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn tool(&self, order: &str) {
        let mut command = Command::new(tool());
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        let status = command.arg(order).arg(self.folder.path().join("server")).status();
        assert!(status.expect("the tool runs").success(), "{order}");
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = Command::new(tool()).arg("stop").arg(self.folder.path().join("server")).status();
    }
}

fn cluster_folder() -> TempDir {
    tempfile::Builder::new().prefix("tabellion-cluster.").tempdir().expect("a folder")
}

/// Makes the folder accessible: the server runs as another user if the tests run as root.
fn open_to_all(folder: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let passable = std::fs::Permissions::from_mode(0o711);
    std::fs::set_permissions(folder, passable).expect("our own folder");
}

fn tool() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tools/throwaway-postgres")
}

fn programs() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let output = Command::new(tool()).arg("find").output().expect("the tool runs");
        String::from_utf8(output.stdout).expect("a path").trim().into()
    })
}
