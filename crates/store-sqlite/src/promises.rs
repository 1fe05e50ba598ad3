//! The traits beside [`LogReader`](store::LogReader) and [`LogWriter`](store::LogWriter), implemented for [`Sqlite`].

use std::ops::Range;

use async_trait::async_trait;
use lookup_tree::{InnerNode, Posting, PostingBlock, PostingPrefix};
use merkle::{LeafIndex, TreeSize};
use store::lookup::{Build, FinishedRun, ListedValue, RunCatalog, ValueBlock};
use store::{
    Cosignature, Cosignatures, Custody, EntryStatus, Erased, Hold, KeptReport, KeyAnnouncement, KeyRotation,
    LogKey, LookupIndex, Order, Quotas, Report, Reports, StoreError,
};

use crate::{Sqlite, cosignature, custody, keys, lookup};

#[async_trait]
impl Custody for Sqlite {
    async fn erase(&self, entries: &[LeafIndex]) -> Result<Erased, StoreError> {
        self.noting(custody::erase(self, entries).await)
    }

    async fn hold(&self, entry: LeafIndex, case: &str, at: u64) -> Result<(), StoreError> {
        self.noting(custody::hold(self, entry, case, at).await)
    }

    async fn release(&self, entry: LeafIndex, case: &str, at: u64) -> Result<bool, StoreError> {
        self.noting(custody::release(self, entry, case, at).await)
    }

    async fn holds(&self, after: Option<LeafIndex>, limit: usize) -> Result<Vec<Hold>, StoreError> {
        custody::holds(&self.read, after, limit).await
    }

    async fn held(&self, entries: &[LeafIndex]) -> Result<Vec<LeafIndex>, StoreError> {
        custody::held(&self.read, entries).await
    }

    async fn statuses(&self, entries: &[LeafIndex]) -> Result<Vec<EntryStatus>, StoreError> {
        custody::statuses(&self.read, entries).await
    }
}

#[async_trait]
impl Reports for Sqlite {
    async fn keep_report(&self, report: &Report) -> Result<bool, StoreError> {
        self.noting(custody::keep_report(self, report).await)
    }

    async fn reports(&self, after: Option<u64>, limit: usize) -> Result<Vec<KeptReport>, StoreError> {
        custody::reports(&self.read, after, limit).await
    }

    async fn reports_about(&self, registered: &[LeafIndex]) -> Result<Vec<KeptReport>, StoreError> {
        custody::reports_about(&self.read, registered).await
    }
}

#[async_trait]
impl LookupIndex for Sqlite {
    async fn catalog(&self) -> Result<RunCatalog, StoreError> {
        lookup::catalog(&self.read).await
    }

    async fn begin_run(&self) -> Result<Build, StoreError> {
        self.noting(lookup::begin_run(self).await)
    }

    async fn add_blocks(
        &self,
        build: Build,
        blocks: &[PostingBlock],
        nodes: &[InnerNode],
    ) -> Result<(), StoreError> {
        self.noting(lookup::add_blocks(self, build, blocks, nodes).await)
    }

    async fn finish_run(&self, run: &FinishedRun) -> Result<bool, StoreError> {
        self.noting(lookup::finish_run(self, run).await)
    }

    async fn retire_run(&self, build: Build) -> Result<(), StoreError> {
        self.noting(lookup::retire_run(self, build).await)
    }

    async fn sweep(&self, abandoned: Build, limit: usize) -> Result<bool, StoreError> {
        self.noting(lookup::sweep(self, abandoned, limit).await)
    }

    async fn drop_index(&self, form: u32) -> Result<(), StoreError> {
        self.noting(lookup::drop_index(self, form).await)
    }

    async fn blocks(
        &self,
        build: Build,
        from: Posting,
        to: Posting,
        order: Order,
        limit: usize,
    ) -> Result<Vec<PostingBlock>, StoreError> {
        lookup::blocks(&self.read, build, from, to, order, limit).await
    }

    async fn blocks_with(&self, build: Build, postings: &[Posting]) -> Result<Vec<PostingBlock>, StoreError> {
        lookup::blocks_with(&self.read, build, postings).await
    }

    async fn nodes(
        &self,
        build: Build,
        places: &[PostingPrefix],
    ) -> Result<Vec<Option<InnerNode>>, StoreError> {
        lookup::nodes(&self.read, build, places).await
    }

    async fn add_values(&self, build: Build, blocks: &[ValueBlock]) -> Result<(), StoreError> {
        self.noting(lookup::add_values(self, build, blocks).await)
    }

    async fn value_blocks(
        &self,
        build: Build,
        from: &ListedValue,
        limit: usize,
    ) -> Result<Vec<ValueBlock>, StoreError> {
        lookup::value_blocks(&self.read, build, from, limit).await
    }
}

#[async_trait]
impl Quotas for Sqlite {
    async fn take_quota(&self, bucket: &str, window: u64, limit: u64, want: u64) -> Result<u64, StoreError> {
        self.shared.quotas.take(bucket, window, limit, want)
    }

    async fn trim_quotas(&self, keep: Range<u64>) -> Result<u64, StoreError> {
        Ok(self.shared.quotas.trim(keep))
    }
}

#[async_trait]
impl Cosignatures for Sqlite {
    async fn keep_cosignature(&self, cosignature: &Cosignature) -> Result<(), StoreError> {
        let kept = cosignature::keep(self.writable().await?, cosignature).await;
        self.noting(kept)
    }

    async fn cosignatures(&self, size: TreeSize) -> Result<Vec<Cosignature>, StoreError> {
        cosignature::of_size(&self.read, size).await
    }

    async fn newest_cosignature(&self, witness: &[u8]) -> Result<Option<Cosignature>, StoreError> {
        cosignature::newest(&self.read, witness).await
    }

    async fn cosigned(&self, below: Option<TreeSize>, limit: usize) -> Result<Vec<Cosignature>, StoreError> {
        cosignature::below(&self.read, below, limit).await
    }
}

#[async_trait]
impl KeyRotation for Sqlite {
    async fn announce_key(&self, announcement: &KeyAnnouncement) -> Result<(), StoreError> {
        self.noting(keys::announce(self, announcement).await)
    }

    async fn announced_keys(&self) -> Result<Vec<KeyAnnouncement>, StoreError> {
        keys::announced(&self.read).await
    }

    async fn take_up_key(&self, kid: &[u8], epoch: u64, at: u64) -> Result<Option<LogKey>, StoreError> {
        self.noting(keys::take_up(self, kid, epoch, at).await)
    }

    async fn mark_compromised(&self, kid: &[u8], since: TreeSize) -> Result<(), StoreError> {
        let marked = keys::mark_compromised(self.writable().await?, kid, since).await;
        self.noting(marked)
    }
}
