//! Checks of signatures: each is over a committed head and verifies, and none is missing.
//!
//! The leader signs heads in order, so within one epoch no head stays unsigned before a signed one. The last heads
//! of an epoch may be unsigned, if the process was killed before it signed them.

use merkle::TreeSize;
use serde::{Deserialize, Serialize};

use super::history::HistoryRows;
use super::{CheckedHead, Defect, Fsck, FsckReport, ROWS, damage};
use crate::{CommittedHead, HeadSignature, LogKey, SignatureKind, StoreError};

/// Number of heads above which a log must have at least one signature.
const UNSIGNED_HEADS: u64 = 2;

/// Position of the check in the signatures.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SignaturePosition {
    /// Largest size whose signatures were checked.
    pub(super) after: Option<u64>,
    /// First batch whose signatures were not looked for.
    next: u64,
    /// Heads of the current epoch without all their signatures, up to the position of the check.
    unsigned: Option<UnsignedHeads>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct UnsignedHeads {
    epoch: u64,
    first: u64,
    last: u64,
}

impl Fsck<'_> {
    /// Checks each published key against its kid.
    pub(super) async fn check_keys(&self, report: &mut FsckReport) -> Result<(), StoreError> {
        let keys = damage(self.store.keys().await)?;
        let keys = keys.unwrap_or_else(|why| {
            report.add(Defect::Unreadable { table: "log_key", why });
            Vec::new()
        });
        for key in keys {
            if let Err(why) = self.facts.check_key(&key) {
                report.add(Defect::KeyWrong { kid: key.kid, why });
            }
        }
        Ok(())
    }

    /// Checks the newest signature of each kind: these are served first after a start.
    pub(super) async fn check_newest_signatures(&self, report: &mut FsckReport) -> Result<(), StoreError> {
        let keys = self.store.keys().await?;
        for kind in [SignatureKind::Receipt, SignatureKind::Checkpoint, SignatureKind::Cosignature] {
            if let Some(signed) = self.store.newest_signed(kind).await? {
                self.check_signature(&signed.head, &signed.signature, &keys, report);
            }
        }
        Ok(())
    }

    /// Checks the next signatures, up to a head; returns their number, or `None` at the end.
    pub(super) async fn check_signatures(
        &self,
        head: &CheckedHead,
        position: &mut SignaturePosition,
        report: &mut FsckReport,
    ) -> Result<Option<u64>, StoreError> {
        let after = position.after.map(TreeSize::new);
        let mut page = self.store.signatures(after, ROWS).await?;
        page.retain(|signature| signature.size <= head.size);
        let Some(last) = page.last().map(|signature| signature.size) else {
            self.check_any_signature(head, position, report);
            return Ok(None);
        };
        let keys = self.store.keys().await?;
        let mut rows = HistoryRows::from(self.store, position.next.max(1));
        let mut row = rows.next().await?;
        for of_one_head in page.chunk_by(|a, b| a.size == b.size) {
            let size = of_one_head[0].size;
            while let Some(unsigned) = row.filter(|row| row.size < size) {
                position.record_head(&unsigned, false, report);
                row = rows.next().await?;
            }
            match row.filter(|row| row.size == size) {
                Some(head) => {
                    for signature in of_one_head {
                        self.check_signature(&head, signature, &keys, report);
                    }
                    position.record_head(&head, self.has_all(of_one_head), report);
                    row = rows.next().await?;
                }
                None => {
                    of_one_head.iter().for_each(|signature| report.add(signature_without_head(signature)))
                }
            }
        }
        position.after = Some(last.get());
        Ok(Some(page.len() as u64))
    }

    /// Checks the next cosignatures, from the largest head down; returns their number, or `None` at the end.
    pub(super) async fn check_cosignatures(
        &self,
        below: &mut Option<u64>,
        report: &mut FsckReport,
    ) -> Result<Option<u64>, StoreError> {
        let page = self.store.cosigned(below.map(TreeSize::new), ROWS).await?;
        let Some(last) = page.last() else { return Ok(None) };
        for of_one_head in page.chunk_by(|a, b| a.size == b.size) {
            let head = self.store.head_of_size(of_one_head[0].size).await?;
            for cosignature in of_one_head {
                report.signatures += 1;
                let outcome = match &head {
                    Some(head) => self.facts.check_cosignature(head, cosignature),
                    None => Err("no head of this size was committed".to_owned()),
                };
                if let Err(why) = outcome {
                    let (size, witness) = (cosignature.size, cosignature.witness.clone());
                    report.add(Defect::CosignatureWrong { size, witness, why });
                }
            }
        }
        *below = Some(last.size.get());
        Ok(Some(page.len() as u64))
    }

    fn has_all(&self, signatures: &[HeadSignature]) -> bool {
        let is_there = |kind: &SignatureKind| signatures.iter().any(|signature| signature.kind == *kind);
        self.facts.kinds().iter().all(is_there)
    }

    /// Reports a log of many heads that has no signature at all.
    fn check_any_signature(&self, head: &CheckedHead, position: &SignaturePosition, report: &mut FsckReport) {
        if position.after.is_none() && head.batch > UNSIGNED_HEADS && !self.facts.kinds().is_empty() {
            report.add(Defect::HeadsUnsigned { first: 1, last: head.batch });
        }
    }

    fn check_signature(
        &self,
        head: &CommittedHead,
        signature: &HeadSignature,
        keys: &[LogKey],
        report: &mut FsckReport,
    ) {
        report.signatures += 1;
        if let Err(why) = self.facts.check_signature(head, signature, keys) {
            let HeadSignature { size, kind, kid, .. } = signature.clone();
            report.add(Defect::SignatureWrong { size, kind, kid, why });
        }
        if keys.iter().any(|key| key.kid == signature.kid && !key.signs(head.size)) {
            let HeadSignature { size, kind, kid, .. } = signature.clone();
            report.add(Defect::KeyNotInForce { size, kind, kid });
        }
    }
}

impl SignaturePosition {
    /// Records one head, in the order of the history.
    fn record_head(&mut self, head: &CommittedHead, is_signed: bool, report: &mut FsckReport) {
        self.next = head.batch + 1;
        let before = self.unsigned.take().filter(|before| before.epoch == head.epoch);
        match (is_signed, before) {
            (true, Some(UnsignedHeads { first, last, .. })) => {
                report.add(Defect::HeadsUnsigned { first, last })
            }
            (true, None) => {}
            (false, before) => {
                let first = before.map_or(head.batch, |before| before.first);
                self.unsigned = Some(UnsignedHeads { epoch: head.epoch, first, last: head.batch });
            }
        }
    }
}

fn signature_without_head(signature: &HeadSignature) -> Defect {
    let HeadSignature { size, kind, kid, .. } = signature.clone();
    Defect::SignatureOverNothing { size, kind, kid }
}
