//! The program under test, with a new log.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};

use crate::http;
use crate::statements::{self, CONTENT_TYPE, ISS, KID};

const STARTS_WITHIN: Duration = Duration::from_secs(30);
const STOPS_WITHIN: Duration = Duration::from_secs(30);

/// Settings in `tabellion.toml` without effective rate limits, which would be measured otherwise. Memory limits stay at
/// their defaults.
const DOORS: &str = "write_rate = 10000000\nwrite_burst = 10000000\nread_rate = 10000000\nread_burst = 10000000\n\
                     log_level = \"warn\"\n";

/// A running `tabellion serve` process, killed on drop.
pub struct Service {
    child: Child,
    folder: PathBuf,
    /// Address for `POST /entries`.
    pub address: SocketAddr,
    admin: SocketAddr,
}

/// Counters from the service's `/metrics`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    /// Number of committed batches.
    pub batches: f64,
    /// Number of signatures over tree heads, of both kinds.
    pub signatures: f64,
}

impl Service {
    /// Creates a log in a new folder, and starts its service.
    pub async fn start(program: &Path, folder: &Path, db: &str, linger_ms: u64) -> anyhow::Result<Self> {
        let [address, admin] = [free_port()?, free_port()?].map(|port| (Ipv4Addr::LOCALHOST, port).into());
        initialise(program, folder, db, address)?;
        admit_the_issuer(folder)?;
        let config = folder.join("tabellion.toml");
        // `init` writes `listen` according to the public URL; it is replaced below.
        let written = fs::read_to_string(&config)?;
        let kept = written.lines().filter(|line| !line.starts_with("listen"));
        let kept: String = kept.map(|line| format!("{line}\n")).collect();
        let settings = format!(
            "listen = \"{address}\"\nadmin_listen = \"{admin}\"\nlinger_ms = {linger_ms}\n{DOORS}{kept}"
        );
        fs::write(&config, settings)?;
        let log = fs::File::create(folder.join("stderr"))?;
        let mut command = quiet(program);
        let child =
            command.arg("serve").arg("--config").arg(&config).stdout(Stdio::null()).stderr(log).spawn()?;
        let mut service = Self { child, folder: folder.to_owned(), address, admin };
        service.wait_until_ready().await?;
        Ok(service)
    }

    /// Returns the process ID.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Reads the counters from `/metrics`.
    pub async fn counters(&self) -> anyhow::Result<Counters> {
        let (status, text) = http::get(self.admin, "/metrics").await?;
        ensure!(status == 200, "/metrics: {status}");
        Ok(Counters {
            batches: counter(&text, "tabellion_sequence_batch_entries_count"),
            signatures: counter(&text, "tabellion_head_signatures_total"),
        })
    }

    /// Sends `SIGTERM`, and waits until the process has ended.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::TERM)?;
        let begun = Instant::now();
        while self.child.try_wait()?.is_none() {
            ensure!(begun.elapsed() < STOPS_WITHIN, "the service does not stop");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    async fn wait_until_ready(&mut self) -> anyhow::Result<()> {
        let begun = Instant::now();
        while begun.elapsed() < STARTS_WITHIN {
            if let Some(status) = self.child.try_wait()? {
                bail!("the service ended with {status}: {}", self.said());
            }
            if matches!(http::get(self.admin, "/readyz").await, Ok((200, _))) {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        bail!("the service is not ready: {}", self.said())
    }

    fn said(&self) -> String {
        fs::read_to_string(self.folder.join("stderr")).unwrap_or_default()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns a port that was free a moment ago.
pub fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

fn initialise(program: &Path, folder: &Path, db: &str, address: SocketAddr) -> anyhow::Result<()> {
    let mut init = quiet(program);
    init.arg("init").arg(folder).args(["--origin", "bench.example/log", "--db", db]);
    init.args(["--public-url", &format!("http://{address}")]);
    let output = init
        .output()
        .with_context(|| format!("{} (cargo build --release -p tabellion)", program.display()))?;
    ensure!(output.status.success(), "tabellion init: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// Adds the issuer to the policy that `init` wrote, in which every listed issuer may register any statement.
fn admit_the_issuer(folder: &Path) -> anyhow::Result<()> {
    let path = folder.join("policy.toml");
    let policy = fs::read_to_string(&path)?;
    ensure!(policy.contains(CONTENT_TYPE), "the first policy does not admit {CONTENT_TYPE}");
    let key = statements::issuer_key()?;
    let issuer = format!("\n[[issuer]]\niss = \"{ISS}\"\nkeys = [{{ key = \"{key}\", kid = \"{KID}\" }}]\n");
    Ok(fs::write(&path, policy + &issuer)?)
}

/// Returns a command that runs the program without the environment variables that could be settings.
fn quiet(program: &Path) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("TABELLION_"))
    {
        command.env_remove(name);
    }
    command.stdin(Stdio::null());
    command
}

/// Returns the value of a metric without labels in the Prometheus text format; 0 if it is absent.
fn counter(text: &str, name: &str) -> f64 {
    let value = |line: &str| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok();
    text.lines().find_map(value).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_found_by_its_whole_name() {
        let text = "# TYPE a_total counter\na_total_other 7\na_total 12\n";
        assert_eq!(counter(text, "a_total"), 12.0);
        assert_eq!(counter(text, "a"), 0.0);
    }
}
