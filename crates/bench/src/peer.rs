//! Another service that takes the same requests, for comparison.

use std::process::{Child, Command, Stdio};
use std::time::Instant;

use anyhow::{Context, bail, ensure};
use tokio::net::TcpStream;

use crate::limits::{POLL, STARTS_WITHIN};
use crate::options::PeerService;

/// Text in a peer's command that is replaced by the URL of an empty PostgreSQL database.
const POSTGRES: &str = "{postgres}";

/// A peer that accepts connections. A process that was started for it is killed on drop.
pub(crate) struct RunningPeer {
    child: Option<Child>,
}

impl RunningPeer {
    /// Starts the peer's command, if it has one, and waits until the peer accepts connections. `postgres` is the URL of
    /// an empty database; the peer needs one if its command contains `{postgres}`.
    pub(crate) async fn start(peer: &PeerService, postgres: Option<&str>) -> anyhow::Result<Self> {
        let mut running = Self { child: spawn(peer, postgres)? };
        let begun = Instant::now();
        while TcpStream::connect(peer.address).await.is_err() {
            if let Some(status) = running.child.as_mut().map(Child::try_wait).transpose()?.flatten() {
                bail!("the peer ended with {status}");
            }
            ensure!(begun.elapsed() < STARTS_WITHIN, "no peer accepts connections at {}", peer.address);
            tokio::time::sleep(POLL).await;
        }
        Ok(running)
    }

    /// Returns the process ID, if the peer was started here.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }
}

/// Returns whether the peer's command names a PostgreSQL database.
pub(crate) fn needs_postgres(peer: &PeerService) -> bool {
    peer.command.iter().any(|word| word.contains(POSTGRES))
}

fn spawn(peer: &PeerService, postgres: Option<&str>) -> anyhow::Result<Option<Child>> {
    let Some((program, arguments)) = peer.command.split_first() else { return Ok(None) };
    let arguments = arguments.iter().map(|word| word.replace(POSTGRES, postgres.unwrap_or_default()));
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let child =
        command.spawn().with_context(|| format!("the peer's program {program:?} cannot be started"))?;
    Ok(Some(child))
}

impl Drop for RunningPeer {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
