//! Recovery after a process died: calls without a known outcome, and streams without a closing record.

use admission::message::UNBOUND;
use admission::session::ReservationId;
use evidence::{Open, StoreError};
use serde_json::Value;

use super::Desk;
use super::decisions::{CloseWork, OutcomeWork};
use crate::limits::{SETTLE_TIME, UPKEEP_PAGE};

/// Prefix of the gateway's internal streams, which hold no records of calls.
const INTERNAL: &str = "unbound:.";

impl Desk {
    /// Settles the open calls of dead instances as unknown, and ends the streams of earlier runs. Errors are only
    /// logged; `upkeep` repeats the settlement.
    pub(super) async fn recover(&self) {
        self.settle_orphans().await;
        if self.inner.house.settings.shared {
            return;
        }
        // Without a shared database no other instance can be alive: the streams of earlier runs end here.
        if let Err(error) = self.end_earlier_runs().await {
            tracing::warn!(%error, "the streams of earlier runs are not ended yet");
        }
    }

    /// Records the outcome `unknown` for each forwarded decision of a dead instance that has no outcome.
    pub(super) async fn settle_orphans(&self) {
        match self.orphans_settled().await {
            Ok(0) => {}
            Ok(count) => {
                tracing::warn!(count, "calls of a process that died: nobody knows what became of them")
            }
            Err(error) => tracing::warn!(%error, "what a process that died left open is not settled yet"),
        }
    }

    async fn orphans_settled(&self) -> Result<usize, StoreError> {
        let mut count = 0;
        loop {
            let orphans = self.inner.store.orphans(UPKEEP_PAGE).await?;
            let mut durable = Vec::with_capacity(orphans.len());
            for orphan in &orphans {
                let (tell, told) = tokio::sync::oneshot::channel();
                self.hand_in(Box::new(self.unknown(orphan).await?.told_to(tell)));
                durable.push(told);
            }
            for told in durable {
                if !matches!(tokio::time::timeout(SETTLE_TIME, told).await, Ok(Ok(()))) {
                    return Err(StoreError::Unavailable("the outcomes are not committed".to_owned()));
                }
            }
            count += orphans.len();
            if orphans.len() < UPKEEP_PAGE {
                return Ok(count);
            }
        }
    }

    async fn unknown(&self, orphan: &Open) -> Result<OutcomeWork, StoreError> {
        let record = self.inner.store.record(&orphan.id).await?;
        let annex =
            record.map(|stored| jose::json::read_bytes::<Value>(&stored.record.annex).unwrap_or_default());
        let annex = annex.unwrap_or_default();
        let reservation = annex["reservation"].as_u64().map(ReservationId);
        let tool = annex["replay"]["tool"].as_str().unwrap_or_default().to_owned();
        let route = annex["replay"]["route"].as_str().unwrap_or_default();
        let place = (orphan.stream.clone(), orphan.id);
        Ok(OutcomeWork::unknown(self.clone(), self.rules_of(route), place, reservation, tool))
    }

    async fn end_earlier_runs(&self) -> Result<(), StoreError> {
        let mut after = UNBOUND.to_owned();
        loop {
            let page = self.inner.store.list(Some(&after), UPKEEP_PAGE).await?;
            for listed in &page {
                let theirs = listed.stream.starts_with(UNBOUND) && !listed.stream.starts_with(INTERNAL);
                if theirs && !listed.closed && listed.stream != self.unbound() {
                    self.hand_in(Box::new(CloseWork::new(self.clone(), listed.stream.clone(), None)));
                }
            }
            match page.last() {
                Some(last) if last.stream.starts_with(UNBOUND) => after = last.stream.clone(),
                _ => return Ok(()),
            }
        }
    }
}
