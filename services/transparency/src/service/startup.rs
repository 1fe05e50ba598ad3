//! Opening a log from its configuration: database, keys, pin, sequencer.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use sequencer::{Sequencer, SequencerParts, SystemClock};
use serving::failed_write::FailedWrite;
use serving::listener::{BindError, Listener};
use serving::tls::TlsError;
use store::{LogStore, StoreError};

use crate::config::{Config, InvalidSetting};
use crate::edge::state::EdgeState;
use crate::keys::key_files::PrivateKeys;
use crate::keys::signer::{IntroduceError, LogSigner};
use crate::log::admission::InboxRedecider;
use crate::log::decided::DecidedTerms;
use crate::log::erasures::{CarriedOut, EraserWakeup};
use crate::log::free_space::FreeSpace;
use crate::log::open_findings::OpenFindings;
use crate::log::policies::Policies;
use crate::log::recent_entries::RecentEntries;
use crate::log::state::{Identity, Log};
use crate::metrics::Metrics;
use crate::metrics::sequencing::Counting;
use crate::operator::effects;
use crate::proofs::published_keys::PublishedKeys;
use crate::proofs::receipts::Receipts;
use crate::proofs::tiles::Tiles;
use crate::sequencer_runtime::SequencerRuntime;
use crate::service::policy::PolicyError;
use crate::storage;
use crate::witnessing::{self, Witnessing};

/// Reason why a service did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration has mistakes.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Config(Vec<InvalidSetting>),
    /// The database cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The keys cannot be used, or are not this log's.
    #[error(transparent)]
    Keys(#[from] IntroduceError),
    /// The TLS certificate cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The sequencer's thread did not start.
    #[error("the sequencer has no thread: {0}")]
    Thread(std::io::Error),
    /// The sequencer did not start.
    #[error(transparent)]
    Sequencer(#[from] sequencer::StartError),
    /// The policy cannot be put in force.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// An address cannot be bound.
    #[error(transparent)]
    Listen(#[from] BindError),
    /// The admin socket cannot be created.
    #[error("{}: {error}", path.display())]
    AdminSocket {
        /// Path of the socket.
        path: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// The HTTP client of a witness cannot be created.
    #[error("a witness cannot be asked: {0}")]
    Witness(#[from] client::ClientError),
    /// The metrics could not be registered.
    #[error(transparent)]
    Metrics(#[from] prometheus::Error),
}

/// Fails with [`StartError::Config`] if the configuration has mistakes, naming all of them.
pub fn refuse_mistakes(config: &Config) -> Result<(), StartError> {
    let mistakes = config.mistakes();
    if mistakes.is_empty() { Ok(()) } else { Err(StartError::Config(mistakes)) }
}

/// Replaces port 0 in the public URL by the port of the public listener.
pub fn name_the_port(config: &mut Config, public: &Listener) {
    if let (Some(base), Some(address)) = (config.public_url.strip_suffix(":0"), public.address()) {
        config.public_url = format!("{base}:{}", address.port());
    }
}

/// Opens the log: first the database, then the keys on record, then the sequencer.
pub async fn open_log(
    config: &Config,
    store: Arc<dyn LogStore>,
    edge: &EdgeState,
    metrics: Arc<Metrics>,
) -> Result<Log, StartError> {
    // Check the keys before a new database is created: without keys nothing could be signed.
    PrivateKeys::of(config).and_then(|files| files.check()).map_err(IntroduceError::File)?;
    store.check_durability().await?;
    store.open(&config.origin).await?;
    effects::keep_frozen(&*store).await?;
    let signer = Arc::new(LogSigner::open(config, store.clone()).await?);
    let policies = Arc::new(Policies::new(store.clone(), edge.largest_admitted.clone()));
    let algorithm = signer.algorithm().name();
    let identity = Identity {
        origin: config.origin.clone(),
        iss: config.iss.clone(),
        public_url: config.public_url.clone(),
        public_path: edge.public_path.clone(),
        receipt_kid: signer.kid(),
        receipt_algorithm: algorithm,
        checkpoint_key: signer.checkpoint_key(),
    };
    let witnessing =
        Witnessing::new(&config.origin, &config.witnesses, store.clone(), metrics.clone()).map(Arc::new)?;
    let runtime = SequencerRuntime::start().map_err(StartError::Thread)?;
    let starting = Sequencer::start(SequencerParts {
        origin: config.origin.clone(),
        holder: format!("{}:{}", hostname(), std::process::id()),
        store: store.for_sequencing().unwrap_or_else(|| store.clone()),
        signer: signer.clone(),
        pin: storage::pin(config)?,
        witnesses: Arc::new(witnessing::WitnessConfirmation(witnessing.clone())),
        clock: Arc::new(SystemClock),
        redecide: Arc::new(InboxRedecider {
            store: store.clone(),
            policies: policies.clone(),
            metrics: metrics.clone(),
        }),
        observer: Arc::new(Counting(metrics.clone())),
        limits: sequencer_limits(config),
    });
    let sequencer = runtime.run(starting).await.unwrap_or(Err(sequencer::StartError::Failed))?;
    witnessing.recall().await;
    let space = FreeSpace::of(config);
    space.measure(&metrics);
    let tiles = Tiles::new(store.clone(), config.limits.tile_cache_bytes, metrics.clone());
    Ok(Log {
        identity,
        receipts: Receipts::new(store.clone(), tiles, metrics.receipts(algorithm)),
        recent: RecentEntries::default(),
        keys: ArcSwap::from_pointee(PublishedKeys::sound(&signer.keys())),
        signer,
        store,
        sequencer,
        _sequencer_runtime: runtime,
        policies,
        obstacle: ArcSwapOption::empty(),
        fsck: OpenFindings::default(),
        space,
        failed_write: FailedWrite::default(),
        witnessing,
        erasing: EraserWakeup::default(),
        carried_out: CarriedOut::default(),
        decided: DecidedTerms::default(),
        access: edge.access.clone(),
        metrics,
    })
}

fn sequencer_limits(config: &Config) -> sequencer::Limits {
    let ours = &config.limits;
    sequencer::Limits {
        queue_entries: ours.queue_entries,
        queue_bytes: ours.queue_bytes,
        inbox: ours.inbox,
        linger: ours.linger,
        retry_after: Duration::from_secs(ours.retry_after.into()),
        wait_leading: ours.receipt_wait,
        wait_following: ours.receipt_wait,
        ..sequencer::Limits::default()
    }
}

fn hostname() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .map_or_else(|_| "unknown".into(), |name| name.trim().to_owned())
}
