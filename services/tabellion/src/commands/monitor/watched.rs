//! The monitored logs: from the monitor's configuration file, or one log on the command line.

use std::path::{Path, PathBuf};

use clap::Args;
use monitor::config::{Config, WatchedLog};
use monitor::{MonitorError, RoundRecorder};
use tlog::key::VerifierKey;
use url::Url;

use crate::console::{Exit, Failure};
use crate::context::Context;
use crate::settings::daemon_file;

/// The default paths of the configuration file, in order of precedence.
const PLACES: &[&str] = &["monitor.toml", "tabellion-dev/monitor.toml", "/etc/tabellion/monitor.toml"];
/// The default state directory for a log on the command line.
const STATE: &str = "monitor-state";

/// Which logs.
#[derive(Debug, Args)]
pub struct WatchedArgs {
    /// One log instead of those in --config FILE [default: ./monitor.toml, then /etc/tabellion/monitor.toml]
    #[arg(long, requires = "key")]
    url: Option<String>,
    /// The log's checkpoint key, from a source that you trust
    #[arg(long, value_name = "VKEY", requires = "url")]
    key: Option<VerifierKey>,
    /// A witness whose cosignatures prove freshness
    #[arg(long, value_name = "VKEY", requires = "url")]
    witness: Vec<VerifierKey>,
    /// The folder for verified heads and alarms
    #[arg(long, value_name = "FOLDER")]
    state: Option<PathBuf>,
}

/// Where a monitor keeps its state.
#[derive(Debug, Args)]
pub struct StateDirArgs {
    /// The monitor's state directory, if not that of --config FILE
    #[arg(long, value_name = "FOLDER")]
    state: Option<PathBuf>,
}

impl WatchedArgs {
    /// Returns the configuration, from the file or from the command line.
    pub fn config(&self, context: &Context) -> Result<Config, Failure> {
        let config = match (&self.url, &self.key) {
            (Some(url), Some(key)) => one(url, key, &self.witness)?,
            _ => read(context)?,
        };
        Ok(match &self.state {
            Some(state) => Config { state_dir: state.clone(), ..config },
            None => config,
        })
    }
}

impl StateDirArgs {
    /// Returns the state directory, which need not exist.
    pub fn folder(&self, context: &Context) -> Result<PathBuf, Failure> {
        match &self.state {
            Some(state) => Ok(state.clone()),
            None if found(context)?.is_none() && Path::new(STATE).is_dir() => Ok(STATE.into()),
            None => Ok(read(context)?.state_dir),
        }
    }
}

fn one(url: &str, key: &VerifierKey, witnesses: &[VerifierKey]) -> Result<Config, Failure> {
    let url: Url = url.parse().map_err(|why| Failure::new(Exit::Usage, "usage", format!("{url}: {why}")))?;
    let mut target = WatchedLog::new("log", url, key.clone());
    target.witnesses = witnesses.to_vec();
    Ok(Config::new(STATE.into(), vec![target]))
}

fn found(context: &Context) -> Result<Option<PathBuf>, Failure> {
    daemon_file::find(context.config(), PLACES)
}

fn read(context: &Context) -> Result<Config, Failure> {
    let path = found(context)?.ok_or_else(|| {
        Failure::new(Exit::NotVerified, "nothing-watched", "there is no log to watch")
            .why("a log's key must come from a source other than the log")
            .hint("tabellion monitor once --url URL --key VKEY")
    })?;
    daemon_file::read(&path, "monitor-config", Config::from_toml)
}

/// Opens a recorder that passes the events it has stored to `listener`.
pub fn recorder(
    config: &Config,
    listener: monitor::recorder::EventListener,
) -> Result<RoundRecorder, Failure> {
    RoundRecorder::open(config, listener).map_err(|why| {
        Failure::new(Exit::Usage, "monitor-config", "the receivers of alarms cannot be used")
            .fact("because", why.to_string())
    })
}

/// Converts an error of starting the monitor.
pub fn not_begun(error: &MonitorError) -> Failure {
    use monitor::state::MonitorStateError;
    let code = match error {
        MonitorError::State(MonitorStateError::Taken(_)) => "monitor-in-use",
        MonitorError::State(MonitorStateError::Foreign { .. } | MonitorStateError::Unreadable { .. }) => {
            "monitor-state"
        }
        MonitorError::Broken(_) => "monitor-broken",
        _ => "monitor-not-begun",
    };
    Failure::new(Exit::Failure, code, "the monitor has stopped").fact("because", error.to_string())
}
