//! Starts and stops a witness, and reloads its list of logs.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serving::listener::BindError;
use serving::problem::ErrorDocumentation;
use serving::two_listeners::{ListenersConfig, RunningListeners, TwoListeners};
use tlog::key::{KeyName, VerifierKey};
use tlog::note::NoteSigner;
use tokio::sync::Notify;

use crate::files;
use crate::key::{KeyPlace, WitnessKeyError};
use crate::ledger::Ledger;
use crate::limits::{CONNECTIONS, LIST_BYTES, PEER_CONNECTIONS};
use crate::list::{LogList, NotAList};
use crate::metrics::Metrics;
use crate::routes::{self, RouteState};
use crate::state::{StateDir, StateError};

/// Configuration of a witness.
#[derive(Clone, Debug)]
pub struct Config {
    /// Public listen address, for logs and monitors.
    pub listen: SocketAddr,
    /// Listen address of the metrics and health endpoints, if any.
    pub admin_listen: Option<SocketAddr>,
    /// State directory; created if it does not exist.
    pub state: PathBuf,
    /// Key file (PKCS #8 PEM), by default `key.pem` in the state directory; generated at the first start.
    pub key: Option<PathBuf>,
    /// The witness's key name: required at the first start, and unchangeable afterwards.
    pub name: Option<KeyName>,
    /// Accepts a key without state, which the operator knows to be unused.
    pub unused_key: bool,
    /// Allows each log one cosignature with an earlier time, after the clock was ahead and has been corrected.
    pub clock_was_ahead: bool,
    /// Path of the list of logs (C2SP tlog-list).
    pub logs: PathBuf,
}

/// Errors of starting a witness.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The state directory ([`Config::state`]) is locked, damaged or inaccessible.
    #[error(transparent)]
    State(#[from] StateError),
    /// The signing key cannot be opened.
    #[error(transparent)]
    Key(#[from] WitnessKeyError),
    /// The list of logs ([`Config::logs`]) cannot be loaded.
    #[error(transparent)]
    List(#[from] ListError),
    /// An address cannot be bound.
    #[error(transparent)]
    Listen(#[from] BindError),
    /// The metrics cannot be registered.
    #[error(transparent)]
    Metrics(#[from] prometheus::Error),
}

/// Errors of loading the list of logs.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// The file cannot be read.
    #[error("{path}: {error}")]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// The underlying error.
        error: io::Error,
    },
    /// The file is not a valid list.
    #[error("{path}: {flaw}")]
    Form {
        /// Path of the file.
        path: PathBuf,
        /// Reason for the rejection.
        flaw: NotAList,
    },
}

/// Error: the contents of the state directory are uncertain, or the key has cosigned something unknown to it. Restart
/// the witness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the state on disk is unknown, or lacks a cosigned checkpoint: see the log of this process")]
pub struct InDoubt;

/// A running witness.
pub struct Witness {
    route_state: RouteState,
    list: PathBuf,
    listeners: RunningListeners,
}

impl Witness {
    /// Opens and verifies the state directory, opens the key, and starts the listeners.
    pub async fn start(config: Config) -> Result<Self, StartError> {
        let list = read_list(&config.logs)?;
        let state = StateDir::open(&config.state)?;
        let place = KeyPlace {
            key: config.key.unwrap_or_else(|| state.file("key.pem")),
            vkey: state.file("vkey"),
            name: config.name,
            unused: config.unused_key,
        };
        let key = place.open(state.is_used()?)?;
        let kept = state.load(key.key())?;
        let metrics = Arc::new(Metrics::new()?);
        let back_to = config.clock_was_ahead.then(routes::now).flatten();
        let route_state =
            RouteState { ledger: Arc::new(Ledger::new(state, key, kept, list, back_to)), metrics };
        let listeners = ListenersConfig {
            listen: config.listen,
            admin_listen: config.admin_listen,
            connections: CONNECTIONS,
            client_connections: PEER_CONNECTIONS,
            error_documentation: ErrorDocumentation::default(),
        };
        let listeners = TwoListeners::bind(listeners, routes::admin(route_state.clone())).await?;
        let listeners = listeners.serve(routes::public(route_state.clone()));
        tracing::info!(address = %listeners.address(), key = %route_state.ledger.signer().key(), "witnessing");
        Ok(Self { route_state, list: config.logs, listeners })
    }

    /// The public listen address.
    pub fn address(&self) -> SocketAddr {
        self.listeners.address()
    }

    /// The listen address of the metrics, if any.
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.listeners.admin_address()
    }

    /// The public key, for the policies of relying parties.
    pub fn key(&self) -> &VerifierKey {
        self.route_state.ledger.signer().key()
    }

    /// The number of witnessed logs.
    pub fn logs(&self) -> usize {
        self.route_state.ledger.logs().len()
    }

    /// Serves until `shutdown` resolves; reloads the list of logs whenever `reread` is notified.
    ///
    /// # Errors
    /// [`InDoubt`] if the contents of the state directory have become uncertain.
    pub async fn run_until(
        self,
        reread: Arc<Notify>,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), InDoubt> {
        let mut shutdown = std::pin::pin!(shutdown);
        let ended = loop {
            tokio::select! {
                () = &mut shutdown => break Ok(()),
                () = reread.notified() => self.read_list_again(),
                () = self.route_state.ledger.doubt() => break Err(InDoubt),
            }
        };
        tracing::info!("stopping");
        self.listeners.drain().await;
        ended
    }

    fn read_list_again(&self) {
        match read_list(&self.list) {
            Ok(list) => {
                tracing::info!(logs = list.len(), "the list of logs was read again");
                self.route_state.ledger.witness(list);
            }
            Err(error) => tracing::error!(%error, "the list of logs stays as it was"),
        }
    }
}

fn read_list(path: &Path) -> Result<LogList, ListError> {
    let io = |error| ListError::Io { path: path.to_owned(), error };
    let bytes = files::read(path, LIST_BYTES).and_then(|bytes| bytes.ok_or(io::ErrorKind::NotFound.into()));
    let text = String::from_utf8(bytes.map_err(io)?)
        .map_err(|_| io(io::Error::new(io::ErrorKind::InvalidData, "not UTF-8")))?;
    text.parse().map_err(|flaw| ListError::Form { path: path.to_owned(), flaw })
}
