//! A gateway for the one client that started the process, which speaks MCP on standard input and output.
//!
//! Clients start one process for each server, and often several for the same one. The evidence in SQLite belongs to one
//! process, so each takes a folder of its own ([`state_slots`]); keys are shared.

use std::path::PathBuf;

use tokio::io::{AsyncRead, AsyncWrite};

use super::parts::Parts;
use crate::config::{Config, Evidence, KeyFiles};
use crate::decision_writer::Clock;
use crate::keys::Keys;
use crate::limits::{CALL_TIME, DRAIN_TIME, LOCAL_STATES};
use crate::start_error::StartError;
use crate::stdio_client::StdioClient;

/// A running gateway for one local client.
pub struct LocalGateway(Parts);

impl LocalGateway {
    /// Starts a gateway, with the first state folder that no other process uses.
    ///
    /// # Errors
    /// A [`StartError`] if a key, the evidence store or a server cannot be used, or all folders are in use.
    pub async fn start(config: Config) -> Result<Self, StartError> {
        let config = Config { admin_listen: None, ..config };
        if let Evidence::Postgres(_) = config.evidence {
            return Ok(Self(Parts::start(config, Clock::system()).await?));
        }
        Keys::open(&config)?;
        let mut last = None;
        for slot in state_slots(&config) {
            match Parts::start(slot, Clock::system()).await {
                Ok(parts) => return Ok(Self(parts)),
                Err(error) if error.is_in_use() => last = Some(error),
                Err(error) => return Err(error),
            }
        }
        Err(last.unwrap_or(StartError::NoStateFolder))
    }

    /// Serves the client on these streams at one route, until the input ends or `stop` resolves. Then requests in flight
    /// finish, and decisions are written.
    ///
    /// # Errors
    /// If the input cannot be read.
    pub async fn run_until(
        self,
        route: &str,
        (input, output): (impl AsyncRead + Unpin + Send + 'static, impl AsyncWrite + Unpin + Send + 'static),
        stop: impl Future<Output = ()>,
    ) -> std::io::Result<()> {
        let served = self.0.config.routes.iter().find(|served| served.path == route);
        let answer_time = served.map_or(CALL_TIME, |served| served.call_timeout);
        let client = StdioClient::new(self.0.front.clone(), route).waiting(answer_time);
        let served = client.serve(input, output, stop).await;
        self.0.front.finish(DRAIN_TIME).await;
        self.0.stop().await;
        served
    }
}

/// Returns the configuration with each of the state folders for local clients, below the configured one. The keys stay
/// in the configured folder. All folders are hidden from servers, because they hold messages of other clients.
fn state_slots(config: &Config) -> Vec<Config> {
    let key =
        |given: &Option<PathBuf>, name: &str| Some(given.clone().unwrap_or_else(|| config.state.join(name)));
    let keys = KeyFiles {
        evidence: key(&config.keys.evidence, "evidence.key"),
        verdict: key(&config.keys.verdict, "verdict.key"),
        state: key(&config.keys.state, "state.key"),
    };
    let slot = |number: usize| {
        let state = config.state.join("local").join(number.to_string());
        let evidence = Evidence::Sqlite(state.join("evidence.db"));
        let hide = config.hide.iter().chain([&config.state]).cloned().collect();
        Config { state, evidence, hide, keys: keys.clone(), ..config.clone() }
    };
    (0..LOCAL_STATES).map(slot).collect()
}
