//! Starts and stops a witness, and reloads its list of logs.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tlog::key::{KeyName, VerifierKey};
use tlog::note::NoteSigner;
use tokio::net::TcpListener;
use tokio::sync::Notify;

use crate::files;
use crate::key::{KeyError, KeyPlace};
use crate::ledger::Ledger;
use crate::limits::{ADMIN_CONNECTIONS, CONNECTIONS, LIST_BYTES};
use crate::list::{LogList, NotAList};
use crate::listen::{self, Serving};
use crate::metrics::Metrics;
use crate::routes::{self, Desk};
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
    Key(#[from] KeyError),
    /// The list of logs ([`Config::logs`]) cannot be loaded.
    #[error(transparent)]
    List(#[from] ListError),
    /// The listen address cannot be bound.
    #[error("cannot listen on {address}: {error}")]
    Listen {
        /// The configured address.
        address: SocketAddr,
        /// The underlying error.
        error: io::Error,
    },
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
#[error("what is kept is not known, or not all that was cosigned: the log of this process says which")]
pub struct InDoubt;

/// A running witness.
pub struct Witness {
    desk: Desk,
    list: PathBuf,
    public: Serving,
    admin: Option<Serving>,
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
        let desk = Desk { ledger: Arc::new(Ledger::new(state, key, kept, list, back_to)), metrics };
        let public = open(config.listen, CONNECTIONS, routes::public(desk.clone())).await?;
        let admin = match config.admin_listen {
            Some(address) => Some(open(address, ADMIN_CONNECTIONS, routes::admin(desk.clone())).await?),
            None => None,
        };
        tracing::info!(address = %public.address, key = %desk.ledger.signer().key(), "witnessing");
        Ok(Self { desk, list: config.logs, public, admin })
    }

    /// The public listen address.
    pub fn address(&self) -> SocketAddr {
        self.public.address
    }

    /// The listen address of the metrics, if any.
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.admin.as_ref().map(|admin| admin.address)
    }

    /// The public key, for the policies of relying parties.
    pub fn key(&self) -> &VerifierKey {
        self.desk.ledger.signer().key()
    }

    /// The number of witnessed logs.
    pub fn logs(&self) -> usize {
        self.desk.ledger.logs().len()
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
                () = self.desk.ledger.doubt() => break Err(InDoubt),
            }
        };
        tracing::info!("stopping");
        self.public.drain().await;
        if let Some(admin) = self.admin {
            admin.drain().await;
        }
        ended
    }

    fn read_list_again(&self) {
        match read_list(&self.list) {
            Ok(list) => {
                tracing::info!(logs = list.len(), "the list of logs was read again");
                self.desk.ledger.witness(list);
            }
            Err(error) => tracing::error!(%error, "the list of logs stays as it was"),
        }
    }
}

async fn open(address: SocketAddr, connections: usize, router: axum::Router) -> Result<Serving, StartError> {
    let bound = TcpListener::bind(address).await.and_then(|tcp| listen::serve(tcp, connections, router));
    bound.map_err(|error| StartError::Listen { address, error })
}

fn read_list(path: &Path) -> Result<LogList, ListError> {
    let io = |error| ListError::Io { path: path.to_owned(), error };
    let bytes = files::read(path, LIST_BYTES).and_then(|bytes| bytes.ok_or(io::ErrorKind::NotFound.into()));
    let text = String::from_utf8(bytes.map_err(io)?)
        .map_err(|_| io(io::Error::new(io::ErrorKind::InvalidData, "not UTF-8")))?;
    text.parse().map_err(|flaw| ListError::Form { path: path.to_owned(), flaw })
}
