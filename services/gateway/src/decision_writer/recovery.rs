//! Recovery after a process died: calls without a known outcome, and streams without a closing record.

use evidence::{OpenDecision, StoreError};
use tokio::sync::oneshot;
use vap::message::UNBOUND;

use super::DecisionWriter;
use super::decisions::{CallToSettle, CloseWork, OutcomeWork};
use crate::annex::{DecisionAnnex, RecordedInputs};
use crate::limits::{SETTLE_TIME, UPKEEP_PAGE};

/// Prefix of the gateway's internal streams, which hold no records of calls.
const INTERNAL: &str = "unbound:.";

impl DecisionWriter {
    /// Settles the open calls of dead instances as unknown, and ends the streams of earlier runs. Errors are only
    /// logged; `upkeep` repeats the settlement.
    pub(super) async fn recover(&self) {
        self.settle_orphans().await;
        if self.inner.context.settings.shared {
            return;
        }
        // Without a shared database no other instance can be alive: the streams of earlier runs end here.
        if let Err(error) = self.end_earlier_runs().await {
            tracing::warn!(%error, "the streams of earlier runs are not ended yet");
        }
    }

    /// Records the outcome `unknown` for each forwarded decision of a dead instance that has no outcome.
    pub(super) async fn settle_orphans(&self) {
        match self.settle_all_orphans().await {
            Ok(0) => {}
            Ok(count) => {
                tracing::warn!(count, "calls of a process that died: their outcomes are unknown")
            }
            Err(error) => {
                tracing::warn!(%error, "the open decisions of a process that died are not settled yet")
            }
        }
    }

    /// Returns the number of settled calls.
    async fn settle_all_orphans(&self) -> Result<usize, StoreError> {
        let mut count = 0;
        loop {
            let orphans = self.inner.store.orphans(UPKEEP_PAGE).await?;
            let mut durable = Vec::with_capacity(orphans.len());
            for orphan in &orphans {
                let (reply, is_durable) = oneshot::channel();
                let call = self.call_to_settle(orphan).await?;
                self.submit(Box::new(OutcomeWork::unknown(self.clone(), call, reply)));
                durable.push(is_durable);
            }
            for is_durable in durable {
                if !matches!(tokio::time::timeout(SETTLE_TIME, is_durable).await, Ok(Ok(()))) {
                    return Err(StoreError::Unavailable("the outcomes are not committed".to_owned()));
                }
            }
            count += orphans.len();
            if orphans.len() < UPKEEP_PAGE {
                return Ok(count);
            }
        }
    }

    /// Reads what the record of an open decision says about its call.
    async fn call_to_settle(&self, orphan: &OpenDecision) -> Result<CallToSettle, StoreError> {
        let record = self.inner.store.record(&orphan.id).await?;
        let annex = record.and_then(|stored| DecisionAnnex::read(&stored).ok()).unwrap_or_default();
        let inputs = annex.inputs.as_ref();
        let tool = inputs.and_then(RecordedInputs::tool).unwrap_or_default().to_owned();
        let rules = self.rules_of(inputs.and_then(RecordedInputs::route).unwrap_or_default());
        let (stream, decision) = (orphan.stream.clone(), orphan.id);
        let (reservation, envelope) = (annex.reservation, annex.envelope);
        Ok(CallToSettle { rules, stream, decision, reservation, tool, envelope })
    }

    async fn end_earlier_runs(&self) -> Result<(), StoreError> {
        let mut after = UNBOUND.to_owned();
        loop {
            let page = self.inner.store.list(Some(&after), UPKEEP_PAGE).await?;
            for listed in &page {
                let is_of_a_gateway =
                    listed.stream.starts_with(UNBOUND) && !listed.stream.starts_with(INTERNAL);
                if is_of_a_gateway && !listed.closed && listed.stream != self.own_stream() {
                    self.submit(Box::new(CloseWork::new(self.clone(), listed.stream.clone(), None)));
                }
            }
            match page.last() {
                Some(last) if last.stream.starts_with(UNBOUND) => after = last.stream.clone(),
                _ => return Ok(()),
            }
        }
    }
}
