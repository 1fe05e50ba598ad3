//! A running gateway: its parts are assembled at start, reconfigured on reload, and shut down at stop.
//!
//! The start order is: keys, evidence store, decision writer (which settles the calls that the last run left open, and
//! registers the keys), routes, and finally the listener. The stop order is the reverse: requests in flight finish, the
//! decision writer writes the jobs that it was given and then delivers for a moment, and records that the log does not have
//! by then stay in the outbox for the next start.
//!
//! A reloaded configuration changes routes, rules, agents and limits. A route with an unchanged server keeps it, with
//! its sessions and children. A configuration that cannot be applied changes nothing, and is reported.
//!
//! [`Gateway`] serves clients over HTTP; [`LocalGateway`] serves the one that started the process, on its standard input
//! and output.
//!
//! Not here: flags, files of the command, and signals (`tabellion gateway run` and `gateway stdio`).

mod admin;
mod build;
mod description;
mod local;
mod parts;

use std::net::SocketAddr;
use std::sync::Arc;

use serving::listener::{BindError, RunningListener};
use tokio::net::TcpListener;
use tokio::sync::Notify;

use crate::config::watch::FileStates;
use crate::config::{Config, Mistakes};
use crate::decision_writer::{Clock, DecisionWriter};
use crate::front::{Serving, Times};
use crate::keys::Keys;
use crate::start_error::StartError;
use parts::Parts;

pub use local::LocalGateway;

/// A running gateway that serves clients over HTTP.
pub struct Gateway {
    parts: Parts,
    public: Serving,
}

impl Gateway {
    /// Starts a gateway; it serves clients once this returns.
    ///
    /// # Errors
    /// A [`StartError`] if a key, the evidence store, a server or an address cannot be used.
    pub async fn start(config: Config) -> Result<Self, StartError> {
        Self::start_with_clock(config, Clock::system()).await
    }

    /// Starts a gateway that takes the time of its decisions from a clock.
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub async fn start_with_clock(config: Config, clock: Clock) -> Result<Self, StartError> {
        let address = config.listen;
        let at = |error| BindError { address, error };
        let listener = TcpListener::bind(address).await.map_err(at)?;
        let parts = Parts::start(config, clock).await?;
        match parts.front.serve(listener, Times::default()) {
            Ok(public) => {
                tracing::info!(address = %public.address, issuer = parts.config.issuer, "the gateway serves");
                Ok(Self { parts, public })
            }
            Err(error) => {
                parts.stop().await;
                Err(at(error).into())
            }
        }
    }

    /// The address of the clients' listener.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.public.address
    }

    /// The address of the listener for health and metrics, if any.
    #[must_use]
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.parts.admin.as_ref().and_then(RunningListener::address)
    }

    /// The address of the listener for approvers, if any.
    #[must_use]
    pub fn approvals_address(&self) -> Option<SocketAddr> {
        self.parts.approvals.as_ref().and_then(RunningListener::address)
    }

    /// The decision writer, for its status.
    #[must_use]
    pub fn writer(&self) -> &DecisionWriter {
        &self.parts.writer
    }

    /// The gateway's keys.
    #[must_use]
    pub fn keys(&self) -> &Keys {
        &self.parts.keys
    }

    /// Serves until `stop` resolves. The configuration is read again with `reread` when `hangup` is notified, and when
    /// one of its files changes.
    pub async fn run_until(
        mut self,
        reread: impl Fn() -> Result<Config, Mistakes>,
        hangup: Arc<Notify>,
        stop: impl Future<Output = ()>,
    ) {
        let mut stop = std::pin::pin!(stop);
        let mut seen = FileStates::of(&self.parts.config.sources);
        loop {
            let changed = async {
                match self.parts.config.sources.is_empty() {
                    true => std::future::pending().await,
                    false => seen.changed().await,
                }
            };
            tokio::select! {
                () = &mut stop => break,
                () = hangup.notified() => tracing::info!("asked to read the configuration again"),
                () = changed => tracing::info!("a file of the configuration changed"),
            }
            // The state of the files is taken before they are read, so that a change during the reload is noticed the
            // next time.
            let files = self.parts.config.sources.clone();
            seen = FileStates::of(&files);
            if self.reload(reread()).await && self.parts.config.sources != files {
                seen = FileStates::of(&self.parts.config.sources);
            }
        }
        self.stop().await;
    }

    /// Applies a configuration. Returns false, and logs the reason, if it cannot be applied; the current one then
    /// stays.
    pub async fn reload(&mut self, config: Result<Config, Mistakes>) -> bool {
        let taken = match config {
            Ok(config) => self.parts.reload(config).await,
            Err(mistakes) => Err(mistakes.to_string()),
        };
        self.parts.telemetry.reloaded(if taken.is_ok() { "taken" } else { "refused" });
        match &taken {
            Ok(()) => tracing::info!("the configuration was read again"),
            Err(why) => tracing::error!(why, "the configuration stays as it was"),
        }
        taken.is_ok()
    }

    /// Stops the gateway: requests in flight finish, and decisions are written.
    pub async fn stop(self) {
        tracing::info!("stopping");
        self.public.drain().await;
        self.parts.stop().await;
    }
}
