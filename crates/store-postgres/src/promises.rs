//! The traits beside [`LogReader`](store::LogReader) and [`LogWriter`](store::LogWriter), implemented for [`Postgres`].

use std::ops::Range;

use async_trait::async_trait;
use lookup_tree::{InnerNode, Posting, PostingBlock, PostingPrefix};
use merkle::{LeafIndex, TreeSize};
use store::lookup::{Build, FinishedRun, ListedValue, RunCatalog, ValueBlock};
use store::{
    Cosignature, Cosignatures, Custody, EntryStatus, Erased, Hold, KeptReport, KeyAnnouncement, KeyRotation,
    LogKey, LookupIndex, Order, Quotas, Report, Reports, StoreError,
};

use crate::{Postgres, cosignature, custody, keys, lookup, quota};

#[async_trait]
impl Custody for Postgres {
    async fn erase(&self, entries: &[LeafIndex]) -> Result<Erased, StoreError> {
        self.in_time(custody::erase(&self.pool, &self.warnings, entries)).await
    }

    async fn hold(&self, entry: LeafIndex, case: &str, at: u64) -> Result<(), StoreError> {
        self.in_time(custody::hold(&self.pool, entry, case, at)).await
    }

    async fn release(&self, entry: LeafIndex, case: &str, at: u64) -> Result<bool, StoreError> {
        self.in_time(custody::end_hold(&self.pool, entry, case, at)).await
    }

    async fn holds(&self, after: Option<LeafIndex>, limit: usize) -> Result<Vec<Hold>, StoreError> {
        self.in_time(custody::holds(&self.pool, after, limit)).await
    }

    async fn held(&self, entries: &[LeafIndex]) -> Result<Vec<LeafIndex>, StoreError> {
        self.in_time(custody::held(&self.pool, entries)).await
    }

    async fn statuses(&self, entries: &[LeafIndex]) -> Result<Vec<EntryStatus>, StoreError> {
        self.in_time(custody::statuses(&self.pool, entries)).await
    }
}

#[async_trait]
impl Reports for Postgres {
    async fn keep_report(&self, report: &Report) -> Result<bool, StoreError> {
        self.in_time(custody::keep_report(&self.pool, report)).await
    }

    async fn reports(&self, after: Option<u64>, limit: usize) -> Result<Vec<KeptReport>, StoreError> {
        self.in_time(custody::reports(&self.pool, after, limit)).await
    }

    async fn reports_about(&self, registered: &[LeafIndex]) -> Result<Vec<KeptReport>, StoreError> {
        self.in_time(custody::reports_about(&self.pool, registered)).await
    }
}

#[async_trait]
impl LookupIndex for Postgres {
    async fn catalog(&self) -> Result<RunCatalog, StoreError> {
        self.in_time(lookup::catalog(&self.pool)).await
    }

    async fn begin_run(&self) -> Result<Build, StoreError> {
        self.in_time(lookup::begin_run(&self.pool)).await
    }

    async fn add_blocks(
        &self,
        build: Build,
        blocks: &[PostingBlock],
        nodes: &[InnerNode],
    ) -> Result<(), StoreError> {
        self.in_time(lookup::add_blocks(&self.pool, build, blocks, nodes)).await
    }

    async fn finish_run(&self, run: &FinishedRun) -> Result<bool, StoreError> {
        self.in_time(lookup::finish_run(&self.pool, run)).await
    }

    async fn retire_run(&self, build: Build) -> Result<(), StoreError> {
        self.in_time(lookup::retire_run(&self.pool, build)).await
    }

    async fn sweep(&self, abandoned: Build, limit: usize) -> Result<bool, StoreError> {
        self.in_time(lookup::sweep(&self.pool, abandoned, limit)).await
    }

    async fn drop_index(&self, form: u32) -> Result<(), StoreError> {
        self.in_time(lookup::drop_index(&self.pool, form)).await
    }

    async fn blocks(
        &self,
        build: Build,
        from: Posting,
        to: Posting,
        order: Order,
        limit: usize,
    ) -> Result<Vec<PostingBlock>, StoreError> {
        self.in_time(lookup::blocks(&self.pool, build, (from, to), order, limit)).await
    }

    async fn blocks_with(&self, build: Build, postings: &[Posting]) -> Result<Vec<PostingBlock>, StoreError> {
        self.in_time(lookup::blocks_with(&self.pool, build, postings)).await
    }

    async fn nodes(
        &self,
        build: Build,
        places: &[PostingPrefix],
    ) -> Result<Vec<Option<InnerNode>>, StoreError> {
        self.in_time(lookup::nodes(&self.pool, build, places)).await
    }

    async fn add_values(&self, build: Build, blocks: &[ValueBlock]) -> Result<(), StoreError> {
        self.in_time(lookup::add_values(&self.pool, build, blocks)).await
    }

    async fn value_blocks(
        &self,
        build: Build,
        from: &ListedValue,
        limit: usize,
    ) -> Result<Vec<ValueBlock>, StoreError> {
        self.in_time(lookup::value_blocks(&self.pool, build, from, limit)).await
    }
}

#[async_trait]
impl Quotas for Postgres {
    async fn take_quota(&self, bucket: &str, window: u64, limit: u64, want: u64) -> Result<u64, StoreError> {
        self.in_time(quota::take(&self.pool, bucket, window, limit, want)).await
    }

    async fn trim_quotas(&self, keep: Range<u64>) -> Result<u64, StoreError> {
        self.in_time(quota::trim(&self.pool, keep)).await
    }
}

#[async_trait]
impl Cosignatures for Postgres {
    async fn keep_cosignature(&self, cosignature: &Cosignature) -> Result<(), StoreError> {
        self.in_time(cosignature::keep(&self.pool, cosignature)).await
    }

    async fn cosignatures(&self, size: TreeSize) -> Result<Vec<Cosignature>, StoreError> {
        self.in_time(cosignature::of_size(&self.pool, size)).await
    }

    async fn newest_cosignature(&self, witness: &[u8]) -> Result<Option<Cosignature>, StoreError> {
        self.in_time(cosignature::newest(&self.pool, witness)).await
    }

    async fn cosigned(&self, below: Option<TreeSize>, limit: usize) -> Result<Vec<Cosignature>, StoreError> {
        self.in_time(cosignature::below(&self.pool, below, limit)).await
    }
}

#[async_trait]
impl KeyRotation for Postgres {
    async fn announce_key(&self, announcement: &KeyAnnouncement) -> Result<(), StoreError> {
        self.in_time(keys::announce(&self.pool, announcement)).await
    }

    async fn announced_keys(&self) -> Result<Vec<KeyAnnouncement>, StoreError> {
        self.in_time(keys::announced(&self.pool)).await
    }

    async fn take_up_key(&self, kid: &[u8], epoch: u64, at: u64) -> Result<Option<LogKey>, StoreError> {
        self.in_time(keys::take_up(&self.pool, &self.warnings, kid, (epoch, at))).await
    }

    async fn mark_compromised(&self, kid: &[u8], since: TreeSize) -> Result<(), StoreError> {
        self.in_time(keys::mark_compromised(&self.pool, &self.warnings, kid, since)).await
    }
}
