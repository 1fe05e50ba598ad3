//! Starting, re-reading the list, and stopping.

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

/// All that a witness is told.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where logs and monitors come.
    pub listen: SocketAddr,
    /// Where the operator's metrics are.
    pub admin_listen: Option<SocketAddr>,
    /// What has been seen; made if there is none.
    pub state: PathBuf,
    /// The key, PKCS #8 PEM; `key.pem` in the state directory unless said. Made at the first start.
    pub key: Option<PathBuf>,
    /// The witness's name: needed at the first start, and the same ever after.
    pub name: Option<KeyName>,
    /// A key that comes without state is one that never cosigned.
    pub unused_key: bool,
    /// The clock was ahead when some logs were cosigned last, and is right now: it may go back once for each of them.
    pub clock_was_ahead: bool,
    /// The list of logs (C2SP tlog-list).
    pub logs: PathBuf,
}

/// Why a witness did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The state is in use, damaged or out of reach.
    #[error(transparent)]
    State(#[from] StateError),
    /// There is no key to cosign with.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The list of logs cannot be read.
    #[error(transparent)]
    List(#[from] ListError),
    /// The address cannot be taken.
    #[error("cannot listen on {address}: {error}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        error: io::Error,
    },
    /// The metrics could not be set up.
    #[error(transparent)]
    Metrics(#[from] prometheus::Error),
}

/// Why a list of logs is not in force.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// The file could not be read.
    #[error("{path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// It is no list.
    #[error("{path}: {flaw}")]
    Form {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        flaw: NotAList,
    },
}

/// The witness does not know what it has kept, or has cosigned what it does not know: only a new start tells.
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
    /// Takes the state directory, verifies all that is in it, and serves.
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

    /// Where logs and monitors come.
    pub fn address(&self) -> SocketAddr {
        self.public.address
    }

    /// Where the operator's metrics are.
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.admin.as_ref().map(|admin| admin.address)
    }

    /// The key that relying parties put into their policies.
    pub fn key(&self) -> &VerifierKey {
        self.desk.ledger.signer().key()
    }

    /// How many logs are witnessed.
    pub fn logs(&self) -> usize {
        self.desk.ledger.logs().len()
    }

    /// Serves until `shutdown` resolves; reads the list of logs again whenever `reread` is notified.
    ///
    /// # Errors
    /// When it cannot know any more what it has kept.
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
