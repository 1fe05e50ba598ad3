//! The supertraits of `LogStore`, implemented for [`Failing`].

use std::ops::Range;

use async_trait::async_trait;
use merkle::{LeafIndex, TreeSize};

use super::{Call, Failing};
use crate::{
    Collateral, Cosignature, Cosignatures, Custody, Erased, GuardKey, GuardRow, Head, History, Hold,
    InboxItem, Indexed, KeptReport, KeyAnnouncement, KeyRotation, LogKey, Lookup, LookupIndex, Moving, Page,
    Query, Quotas, Report, Reports, SeenKey, SeenRow, Source, Standing, State, StoreError,
};

#[async_trait]
impl Custody for Failing {
    async fn erase(&self, entries: &[LeafIndex]) -> Result<Erased, StoreError> {
        self.run(Call::Erase, self.inner.erase(entries)).await
    }

    async fn hold(&self, entry: LeafIndex, case: &str, at: u64) -> Result<(), StoreError> {
        self.run(Call::Hold, self.inner.hold(entry, case, at)).await
    }

    async fn release(&self, entry: LeafIndex, case: &str, at: u64) -> Result<bool, StoreError> {
        self.run(Call::Release, self.inner.release(entry, case, at)).await
    }

    async fn holds(&self, after: Option<LeafIndex>, limit: usize) -> Result<Vec<Hold>, StoreError> {
        self.run(Call::Holds, self.inner.holds(after, limit)).await
    }

    async fn held(&self, entries: &[LeafIndex]) -> Result<Vec<LeafIndex>, StoreError> {
        self.run(Call::Held, self.inner.held(entries)).await
    }

    async fn standing(&self, entries: &[LeafIndex]) -> Result<Vec<Standing>, StoreError> {
        self.run(Call::Standing, self.inner.standing(entries)).await
    }
}

#[async_trait]
impl Reports for Failing {
    async fn keep_report(&self, report: &Report) -> Result<bool, StoreError> {
        self.run(Call::KeepReport, self.inner.keep_report(report)).await
    }

    async fn reports(&self, after: Option<u64>, limit: usize) -> Result<Vec<KeptReport>, StoreError> {
        self.run(Call::Reports, self.inner.reports(after, limit)).await
    }

    async fn reports_about(&self, registered: &[LeafIndex]) -> Result<Vec<KeptReport>, StoreError> {
        self.run(Call::ReportsAbout, self.inner.reports_about(registered)).await
    }
}

#[async_trait]
impl LookupIndex for Failing {
    async fn indexed(&self) -> Result<Indexed, StoreError> {
        self.run(Call::Indexed, self.inner.indexed()).await
    }

    async fn index(&self, from: Indexed, to: TreeSize, rows: &[Lookup]) -> Result<bool, StoreError> {
        self.run(Call::Index, self.inner.index(from, to, rows)).await
    }

    async fn drop_index(&self, form: u32) -> Result<(), StoreError> {
        self.run(Call::DropIndex, self.inner.drop_index(form)).await
    }

    async fn search(&self, query: &Query) -> Result<Page, StoreError> {
        self.run(Call::Search, self.inner.search(query)).await
    }

    async fn values(
        &self,
        kind: u8,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<String>, StoreError> {
        self.run(Call::Values, self.inner.values(kind, prefix, after, limit)).await
    }

    async fn lookups(&self, entries: &[LeafIndex]) -> Result<Vec<Lookup>, StoreError> {
        self.run(Call::Lookups, self.inner.lookups(entries)).await
    }
}

#[async_trait]
impl Quotas for Failing {
    async fn take_quota(&self, bucket: &str, window: u64, limit: u64, want: u64) -> Result<u64, StoreError> {
        self.run(Call::TakeQuota, self.inner.take_quota(bucket, window, limit, want)).await
    }

    async fn trim_quotas(&self, before: u64) -> Result<u64, StoreError> {
        self.run(Call::TrimQuotas, self.inner.trim_quotas(before)).await
    }
}

#[async_trait]
impl Cosignatures for Failing {
    async fn keep_cosignature(&self, cosignature: &Cosignature) -> Result<(), StoreError> {
        self.run(Call::KeepCosignature, self.inner.keep_cosignature(cosignature)).await
    }

    async fn cosignatures(&self, size: TreeSize) -> Result<Vec<Cosignature>, StoreError> {
        self.run(Call::Cosignatures, self.inner.cosignatures(size)).await
    }

    async fn newest_cosignature(&self, witness: &[u8]) -> Result<Option<Cosignature>, StoreError> {
        self.run(Call::NewestCosignature, self.inner.newest_cosignature(witness)).await
    }

    async fn cosigned(&self, below: Option<TreeSize>, limit: usize) -> Result<Vec<Cosignature>, StoreError> {
        self.run(Call::Cosigned, self.inner.cosigned(below, limit)).await
    }
}

#[async_trait]
impl Moving for Failing {
    async fn state(&self) -> Result<State, StoreError> {
        self.run(Call::State, self.inner.state()).await
    }

    async fn freeze(&self, holder: &str, at: u64) -> Result<Head, StoreError> {
        self.run(Call::Freeze, self.inner.freeze(holder, at)).await
    }

    async fn seen_rows(&self, after: Option<SeenKey>, limit: usize) -> Result<Vec<SeenRow>, StoreError> {
        self.run(Call::SeenRows, self.inner.seen_rows(after, limit)).await
    }

    async fn guard_rows(&self, after: Option<&GuardKey>, limit: usize) -> Result<Vec<GuardRow>, StoreError> {
        self.run(Call::GuardRows, self.inner.guard_rows(after, limit)).await
    }

    async fn collateral_rows(&self, entries: Range<u64>) -> Result<Vec<(LeafIndex, Collateral)>, StoreError> {
        self.run(Call::CollateralRows, self.inner.collateral_rows(entries)).await
    }

    async fn waiting(&self, after: Option<u64>, limit: usize) -> Result<Vec<(u64, InboxItem)>, StoreError> {
        self.run(Call::Waiting, self.inner.waiting(after, limit)).await
    }

    async fn begin_filling(&self, origin: &str, source: &Source) -> Result<Head, StoreError> {
        self.run(Call::BeginFilling, self.inner.begin_filling(origin, source)).await
    }

    async fn fill(&self, source: &Source, history: &History) -> Result<(), StoreError> {
        self.run(Call::Fill, self.inner.fill(source, history)).await
    }

    async fn fill_claims(
        &self,
        source: &Source,
        seen: &[SeenRow],
        guards: &[GuardRow],
    ) -> Result<(), StoreError> {
        self.run(Call::FillClaims, self.inner.fill_claims(source, seen, guards)).await
    }

    async fn end_filling(&self, source: &Source, epoch: u64, policy: LeafIndex) -> Result<Head, StoreError> {
        self.run(Call::EndFilling, self.inner.end_filling(source, epoch, policy)).await
    }
}

#[async_trait]
impl KeyRotation for Failing {
    async fn announce_key(&self, announcement: &KeyAnnouncement) -> Result<(), StoreError> {
        self.run(Call::AnnounceKey, self.inner.announce_key(announcement)).await
    }

    async fn announced_keys(&self) -> Result<Vec<KeyAnnouncement>, StoreError> {
        self.run(Call::AnnouncedKeys, self.inner.announced_keys()).await
    }

    async fn take_up_key(&self, kid: &[u8], epoch: u64, at: u64) -> Result<Option<LogKey>, StoreError> {
        self.run(Call::TakeUpKey, self.inner.take_up_key(kid, epoch, at)).await
    }

    async fn mark_compromised(&self, kid: &[u8], since: TreeSize) -> Result<(), StoreError> {
        self.run(Call::MarkCompromised, self.inner.mark_compromised(kid, since)).await
    }
}
