//! The traits beside [`LogReader`](store::LogReader) and [`LogWriter`](store::LogWriter), implemented for [`Sqlite`].

use async_trait::async_trait;
use merkle::{LeafIndex, TreeSize};
use store::{
    Cosignature, Cosignatures, Custody, EntryStatus, Erased, Hold, Indexed, KeptReport, KeyAnnouncement,
    KeyRotation, LogKey, Lookup, LookupIndex, Page, Query, Quotas, Report, Reports, StoreError,
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
        let released = custody::end_hold(self.writable().await?, entry, case, at).await;
        self.noting(released)
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
    async fn indexed(&self) -> Result<Indexed, StoreError> {
        lookup::indexed(&self.read).await
    }

    async fn index(&self, from: Indexed, to: TreeSize, rows: &[Lookup]) -> Result<bool, StoreError> {
        self.noting(lookup::index(self, from, to, rows).await)
    }

    async fn drop_index(&self, form: u32) -> Result<(), StoreError> {
        self.noting(lookup::drop_index(self, form).await)
    }

    async fn search(&self, query: &Query) -> Result<Page, StoreError> {
        lookup::search(&self.read, query).await
    }

    async fn values(
        &self,
        kind: u8,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<String>, StoreError> {
        lookup::values(&self.read, kind, prefix, after, limit).await
    }

    async fn lookups(&self, entries: &[LeafIndex]) -> Result<Vec<Lookup>, StoreError> {
        lookup::lookups(&self.read, entries).await
    }
}

#[async_trait]
impl Quotas for Sqlite {
    async fn take_quota(&self, bucket: &str, window: u64, limit: u64, want: u64) -> Result<u64, StoreError> {
        self.shared.quotas.take(bucket, window, limit, want)
    }

    async fn trim_quotas(&self, before: u64) -> Result<u64, StoreError> {
        Ok(self.shared.quotas.trim(before))
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
