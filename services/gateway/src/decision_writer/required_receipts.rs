//! Receipts of the log that a call waits for before it is forwarded, if `receipt_required` is set. A call whose
//! decision gets none in time is denied.

use bytes::Bytes;
use evidence::DeliveryState;
use merkle::EntryDigest;

use super::DecisionWriter;
use super::decisions::{DecisionAnswer, DenialWithRecord};
use super::error::WriterError;
use super::record_outbox::NoReceipt;

impl DecisionWriter {
    /// Waits for the log's receipt of an admitted call if one is required, and denies the call if none arrives.
    pub(super) async fn with_required_receipt(
        &self,
        mut answer: Box<DecisionAnswer>,
    ) -> Result<DecisionAnswer, WriterError> {
        let required = self.inner.context.settings.receipt_required;
        let (Some(admitted), Some(evidence)) = (answer.pass.take_if(|_| required), answer.evidence.as_mut())
        else {
            return Ok(*answer);
        };
        // The execution receipt is delivered in the same way: both are on the log before the call goes on.
        let execution = match &answer.receipt {
            Some(execution) => self.log_receipt(&execution.id).await.map(drop),
            None => Ok(()),
        };
        let receipt = match execution {
            Ok(()) => self.log_receipt(&evidence.id).await,
            Err(why) => Err(why),
        };
        match receipt {
            Ok(receipt) => {
                evidence.receipt = Some(receipt);
                answer.pass = Some(admitted);
                Ok(*answer)
            }
            Err(why) => {
                let Some(permit) = answer.ruling else { return Err(why.into()) };
                let DenialWithRecord { ruling, recorded } = admitted.deny(permit, why.into()).await?;
                Ok(DecisionAnswer::of(ruling, recorded, None))
            }
        }
    }

    /// Waits up to `receipt_wait` for the log's receipt of a record.
    async fn log_receipt(&self, id: &EntryDigest) -> Result<Bytes, NoReceipt> {
        let receipt = self.inner.receipt_waiters.wait(*id);
        // The record may have been delivered before the waiter was registered.
        match self.inner.store.record(id).await.ok().flatten().map(|stored| stored.standing) {
            Some(DeliveryState::Delivered { receipt: Some(receipt), .. }) => return Ok(receipt),
            Some(DeliveryState::Stuck(why)) => return Err(NoReceipt::Refused(why)),
            _ => {}
        }
        let wait = self.inner.context.settings.receipt_wait;
        let received = tokio::time::timeout(wait, receipt).await.ok().and_then(Result::ok);
        received.unwrap_or(Err(NoReceipt::TimedOut))
    }
}
