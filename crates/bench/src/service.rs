//! The service under test: a new or existing log, and the processes that serve it.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use anyhow::{Context, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};

use crate::http;
use crate::limits::{POLL, STARTS_WITHIN, STOPS_WITHIN};
use crate::load::Processes;
use crate::process;
use crate::prometheus::Metrics;
use crate::statements;

/// Path of registrations.
pub(crate) const ENTRIES: &str = "/entries";
/// Configuration file in a log's folder.
pub(crate) const CONFIG: &str = "tabellion.toml";
/// Settings that override the log's own, so that no rate limit is measured. Memory limits stay at their defaults.
const SETTINGS: [(&str, &str); 5] = [
    ("TABELLION_WRITE_RATE", "10000000"),
    ("TABELLION_WRITE_BURST", "10000000"),
    ("TABELLION_READ_RATE", "10000000"),
    ("TABELLION_READ_BURST", "10000000"),
    ("TABELLION_LOG_LEVEL", "warn"),
];

/// The running processes of one log.
pub(crate) struct RunningService {
    processes: Vec<ServiceProcess>,
    database: Vec<u32>,
}

/// A log to be created.
#[derive(Clone, Copy, Debug)]
pub struct NewLog<'a> {
    /// The program, which has the command `init`.
    pub program: &'a Path,
    /// The log's folder, which does not exist.
    pub folder: &'a Path,
    /// URL of its database.
    pub database: &'a str,
}

/// Creates a log that admits the statements of this crate.
///
/// # Errors
/// If the folder exists, or the program refuses the database.
pub fn create_log(log: NewLog<'_>) -> anyhow::Result<()> {
    let mut init = command(log.program);
    init.arg("init").arg(log.folder).args(["--origin", "bench.example/log", "--db", log.database]);
    init.args(["--public-url", "http://127.0.0.1:0"]);
    let output = init.output().with_context(|| format!("{} cannot be started", log.program.display()))?;
    ensure!(output.status.success(), "tabellion init: {}", String::from_utf8_lossy(&output.stderr).trim());
    let policy = log.folder.join("policy.toml");
    let admitting = statements::admit_issuer(&fs::read_to_string(&policy)?)?;
    Ok(fs::write(policy, admitting)?)
}

/// Returns a port that was free a moment ago.
pub(crate) fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

impl RunningService {
    /// Starts this many processes on the log in a folder, and waits until each is ready. `database` has the IDs of its
    /// database's processes.
    pub(crate) async fn start(
        program: &Path,
        folder: &Path,
        count: usize,
        database: Vec<u32>,
    ) -> anyhow::Result<Self> {
        let mut processes = Vec::new();
        for number in 0..count {
            let mut process = ServiceProcess::spawn(program, folder, number)?;
            process.wait_until_ready().await?;
            processes.push(process);
        }
        Ok(Self { processes, database })
    }

    /// Returns the addresses for `POST /entries`.
    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        self.processes.iter().map(|process| process.address).collect()
    }

    /// Returns the IDs of the processes of service and database.
    pub(crate) fn processes(&self) -> Processes {
        Processes { service: self.pids(), database: self.database.clone() }
    }

    /// Returns the resident memory of all processes in bytes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.pids().into_iter().map(process::memory_of).sum()
    }

    /// Reads the metrics of all processes.
    pub(crate) async fn metrics(&self) -> anyhow::Result<Metrics> {
        let mut all = Metrics::default();
        for process in &self.processes {
            let (status, text) = http::get(process.admin, "/metrics").await?;
            ensure!(status == 200, "/metrics: {status}");
            all.add(&Metrics::parse(&text));
        }
        Ok(all)
    }

    /// Kills all processes, as a loss of power does.
    pub(crate) fn kill(self) {
        drop(self.processes);
    }

    /// Sends `SIGTERM`, and waits until all processes have ended.
    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        for process in &self.processes {
            kill_process(Pid::from_child(&process.child), Signal::TERM)?;
        }
        let begun = Instant::now();
        for process in &mut self.processes {
            while process.child.try_wait()?.is_none() {
                ensure!(begun.elapsed() < STOPS_WITHIN, "the service does not stop");
                tokio::time::sleep(POLL).await;
            }
        }
        Ok(())
    }

    fn pids(&self) -> Vec<u32> {
        self.processes.iter().map(|process| process.child.id()).collect()
    }
}

/// A `tabellion serve` process, killed on drop.
struct ServiceProcess {
    child: Child,
    log: PathBuf,
    address: SocketAddr,
    admin: SocketAddr,
}

impl ServiceProcess {
    fn spawn(program: &Path, folder: &Path, number: usize) -> anyhow::Result<Self> {
        let local = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let (address, admin) = (local(free_port()?), local(free_port()?));
        let log = folder.join(format!("stderr-{number}"));
        let mut serve = command(program);
        serve.arg("serve").arg("--config").arg(folder.join(CONFIG)).envs(SETTINGS);
        serve.env("TABELLION_LISTEN", address.to_string()).env("TABELLION_ADMIN_LISTEN", admin.to_string());
        serve.stdout(Stdio::null()).stderr(fs::File::create(&log)?);
        let child = serve.spawn().with_context(|| format!("{} cannot be started", program.display()))?;
        Ok(Self { child, log, address, admin })
    }

    async fn wait_until_ready(&mut self) -> anyhow::Result<()> {
        let begun = Instant::now();
        while begun.elapsed() < STARTS_WITHIN {
            if let Some(status) = self.child.try_wait()? {
                bail!("the service ended with {status}: {}", self.output());
            }
            if matches!(http::get(self.admin, "/readyz").await, Ok((200, _))) {
                return Ok(());
            }
            tokio::time::sleep(POLL).await;
        }
        bail!("the service is not ready: {}", self.output())
    }

    fn output(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for ServiceProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns a command that runs the program without the environment variables that could be settings.
fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    let variables = std::env::vars_os().map(|(name, _)| name);
    for name in variables.filter(|name| name.to_string_lossy().starts_with("TABELLION_")) {
        command.env_remove(name);
    }
    command.stdin(Stdio::null());
    command
}
