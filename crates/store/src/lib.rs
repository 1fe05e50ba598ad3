//! The storage traits of a log: promises that bind every database.
//!
//! To this crate an entry is opaque bytes at a position. The history can fork in one place only:
//! [`LogWriter::commit`], which moves the head by compare-and-swap on epoch, size and root, in the same transaction
//! as the entries that the head covers. All other data is inserted and never changed, except the right-most tile
//! of a level, which only grows, and the bytes of an entry, which can be erased ([`Custody`]).
//!
//! Each trait is one ability. [`LogReader`] and [`LogWriter`] have the tree's entries and heads. The others store what
//! belongs to the log and is not part of its tree: contradictions ([`Reports`]), witnesses' signatures
//! ([`Cosignatures`]), the lookup index ([`LookupIndex`]), usage counters ([`Quotas`]) and the succession of signing
//! keys ([`KeyRotation`]). [`Lifecycle`] ends a log; [`HistoryExport`] and [`HistoryImport`] continue it in another
//! database.
//!
//! A consumer requests the trait that it needs. One that needs several requests their combination, for example
//! [`SequencerStore`]. [`LogStore`] is all of them: only code that opens a database and passes it on names it.
//!
//! Every method may be called concurrently from many tasks. An `Err` means that nothing was changed, with two
//! exceptions, both [`StoreError::Unavailable`]: a connection that dies can lose the answer to a write that happened,
//! and a write that happened may be on no standby that the server waits for. Both are harmless, as every write except
//! [`LogWriter::commit`] may be repeated; a commit returns [`CommitError::Unknown`] instead.
//!
//! Not here: which statements may enter (`registration`), their order and the signing of heads (`sequencer`), SQL
//! (`store-sqlite`, `store-postgres`).

mod append;
#[cfg(feature = "contract")]
#[allow(clippy::unwrap_used)]
pub mod contract;
mod cosignature;
pub mod custody;
mod error;
pub mod fsck;
mod inbox;
mod lifecycle;
mod log;
pub mod lookup;
mod memory;
mod model;
pub mod moving;
mod pin;
pub mod proofs;
pub mod quota;
mod report;
pub mod rotation;
mod signed;
mod tiles;
mod wrappers;

pub use append::AppendedBatch;
pub use cosignature::{Cosignature, Cosignatures};
pub use custody::{Custody, EntryStatus, Erased, Hold};
pub use error::{CommitError, StorageFault, StoreError};
pub use fault_injection::Fault;
pub use inbox::{Arrival, Enqueued, Inbox, InboxBounds, InboxUse, PendingKey};
pub use lifecycle::{Lease, Lifecycle, ServerChecks};
pub use log::{LogReader, LogWriter};
pub use lookup::{Indexed, LookupIndex, Order, Page, Query, Term};
pub use memory::Memory;
pub use model::*;
pub use moving::{
    GuardRow, History, HistoryExport, HistoryImport, SeenKey, SeenRow, Source, State, seen_key,
};
pub use pin::{Pin, PinError, PinStore};
pub use quota::Quotas;
pub use report::{KeptReport, REPORTS_PER_GUARD, Report, Reports};
pub use rotation::{KeyAnnouncement, KeyRotation, LogKeys};
pub use signed::SignatureStore;
pub use tiles::{TILE_PARTS, TileStore};
pub use wrappers::{FailingStore, MeasuredStore, StoreMethod};

/// Declares combinations of storage traits. They are supertraits of [`LogStore`], because a `dyn LogStore` converts to
/// the trait object of a supertrait only.
macro_rules! combinations {
    ($($(#[$meta:meta])* pub trait $name:ident: $($part:path),+;)*) => {
        $(
            $(#[$meta])*
            pub trait $name: $($part +)+ {}

            impl<T: $($part +)+> $name for T {}
        )*
    };
}

combinations! {
    /// A log's entries, heads and tiles: enough to prove inclusion and consistency.
    pub trait TreeReader: LogReader, TileStore;

    /// A log with the signatures over its heads, and the keys that made them.
    pub trait SignedLog: TreeReader, SignatureStore, LogKeys;

    /// A signed log with the cosignatures of its witnesses.
    pub trait CosignedLog: SignedLog, Cosignatures;

    /// A log whose entries can be erased or held.
    pub trait ErasureStore: LogReader, Custody;

    /// Counters of issuers, and the clock by which their windows begin.
    pub trait QuotaStore: Quotas, ServerChecks;

    /// Storage for the decision about a statement: what it looks up, the issuer's quota, and reports of equivocation.
    pub trait AdmissionStore: ErasureStore, QuotaStore, Reports;

    /// Storage for a sequencer, which appends, signs heads, and empties the inbox.
    pub trait SequencerStore: LogWriter, TileStore, SignatureStore, Inbox, Lifecycle, ServerChecks;

    /// Storage that a check of the stored log reads ([`fsck`]).
    pub trait FsckStore: CosignedLog, ErasureStore, LookupIndex, Lifecycle;

    /// Storage that is copied into an archive.
    pub trait ArchiveSource: CosignedLog, Custody, Reports, Inbox, Lifecycle, HistoryExport;

    /// Storage that an archive is copied into.
    pub trait ArchiveTarget: TileStore, LogKeys, Custody, Reports, Inbox, HistoryImport;

    /// One log in one database, with all abilities. An implementation is bound to a log when it is opened.
    pub trait LogStore: SequencerStore, AdmissionStore, FsckStore, ArchiveSource, ArchiveTarget, KeyRotation;
}
