//! Wrappers of a gateway's store: [`FailingEvidence`] fails on request, in each of the ways in which a database can fail;
//! [`MeasuredEvidence`] reports how long each operation takes.

use std::time::Duration;

use fault_injection::{Fault, InjectedError, failing_store};
use merkle::EntryDigest;
use operation_times::measured_store;

use crate::{
    Backlog, Change, Claim, CommitError, Delivered, EvidenceStore, Horizon, Instances, OpenDecision, Outbox,
    PendingRecord, Pruned, RefusedRecord, StoreError, StoredRecord, StoredStream, StreamSummary, StuckRecord,
    Upkeep,
};

impl InjectedError for StoreError {
    fn injected(fault: Fault, text: String) -> Self {
        match fault {
            Fault::Full => Self::Full(text),
            Fault::Ended => Self::Refused(format!("{text}: start the process again")),
            Fault::Refused | Fault::Overtaken | Fault::NotApplied | Fault::AppliedWithoutAnswer => {
                Self::Unavailable(text)
            }
        }
    }
}

impl InjectedError for CommitError {
    fn injected(fault: Fault, text: String) -> Self {
        match fault {
            Fault::NotApplied | Fault::AppliedWithoutAnswer => Self::MayHaveHappened(text),
            Fault::Overtaken => Self::Conflict(Vec::new()),
            Fault::Refused | Fault::Full | Fault::Ended => StoreError::injected(fault, text).into(),
        }
    }
}

/// Passes the methods of [`EvidenceStore`] and of its supertraits to a macro that declares a wrapper, after `first`.
macro_rules! declare_wrapper {
    ($wrapper:ident { $($first:tt)* }) => {
        $wrapper! {
            $($first)*

            impl EvidenceStore [
                fn instance(&self) -> &str {
                    self.inner.instance()
                }
            ] {
                Streams streams(names: &[&str]) -> Result<Vec<Option<StoredStream>>, StoreError>;
                Claimed claimed(claims: &[Claim]) -> Result<Vec<bool>, StoreError>;
                Commit commit(changes: &[Change]) -> Result<(), CommitError>;
                Happened happened(changes: &[Change]) -> Result<bool, StoreError>;
                Record record(id: &EntryDigest) -> Result<Option<StoredRecord>, StoreError>;
                Records records(stream: &str, from: u64, limit: usize) -> Result<Vec<StoredRecord>, StoreError>;
                Due due(at: u64, limit: usize) -> Result<Vec<StreamSummary>, StoreError>;
                List list(after: Option<&str>, limit: usize) -> Result<Vec<StreamSummary>, StoreError>;
            }

            impl Outbox {
                Pending pending(limit: usize) -> Result<Vec<PendingRecord>, StoreError>;
                Delivered delivered(deliveries: &[Delivered]) -> Result<(), StoreError>;
                Stuck stuck(refused: &[RefusedRecord]) -> Result<(), StoreError>;
                StuckRecords stuck_records(limit: usize) -> Result<Vec<StuckRecord>, StoreError>;
                Unstick unstick() -> Result<u64, StoreError>;
                Backlog backlog() -> Result<Backlog, StoreError>;
            }

            impl Instances {
                Orphans orphans(limit: usize) -> Result<Vec<OpenDecision>, StoreError>;
                Renew renew(lasts: Duration) -> Result<Option<Duration>, StoreError>;
                Leave leave() -> Result<(), StoreError>;
            }

            impl Upkeep {
                Prune prune(horizon: Horizon, limit: usize) -> Result<Pruned, StoreError>;
                CheckDurability check_durability() -> Result<(), StoreError>;
            }
        }
    };
}

declare_wrapper! {
    failing_store {
        /// Wrapper of an [`EvidenceStore`] whose calls fail as ordered. Clones share the orders.
        pub struct FailingEvidence over EvidenceStore;
        /// Methods of [`EvidenceStore`] and of its supertraits.
        pub enum EvidenceMethod;
        writes [Commit, Delivered, Stuck, Unstick, Prune, Renew, Leave];
    }
}

declare_wrapper! {
    measured_store {
        /// Wrapper of an [`EvidenceStore`] that reports the duration of each call.
        pub struct MeasuredEvidence over EvidenceMethod;
    }
}
