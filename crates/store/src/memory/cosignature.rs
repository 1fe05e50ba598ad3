//! `Cosignatures` in memory.

use async_trait::async_trait;
use merkle::TreeSize;

use super::Memory;
use crate::{Cosignature, Cosignatures, StoreError};

#[async_trait]
impl Cosignatures for Memory {
    async fn keep_cosignature(&self, cosignature: &Cosignature) -> Result<(), StoreError> {
        let mut tables = self.tables();
        if tables.head_of_size(cosignature.size).is_none() {
            return Err(StoreError::Refused(format!("no head of size {} was committed", cosignature.size)));
        }
        let key = (cosignature.size, cosignature.witness.clone());
        let kept = tables.cosignatures.entry(key).or_insert_with(|| cosignature.clone());
        if kept.at < cosignature.at {
            *kept = cosignature.clone();
        }
        Ok(())
    }

    async fn cosignatures(&self, size: TreeSize) -> Result<Vec<Cosignature>, StoreError> {
        Ok(self.tables().cosignatures.values().filter(|kept| kept.size == size).cloned().collect())
    }

    async fn newest_cosignature(&self, witness: &[u8]) -> Result<Option<Cosignature>, StoreError> {
        Ok(self.tables().cosignatures.values().rev().find(|kept| kept.witness == witness).cloned())
    }

    async fn cosigned(&self, below: Option<TreeSize>, limit: usize) -> Result<Vec<Cosignature>, StoreError> {
        let tables = self.tables();
        let within = |kept: &&Cosignature| below.is_none_or(|below| kept.size < below);
        let mut found: Vec<Cosignature> = tables.cosignatures.values().filter(within).cloned().collect();
        found.sort_by_key(|kept| std::cmp::Reverse(kept.size)); // stable: a head's stay in order of witness
        let last = limit.checked_sub(1).and_then(|last| found.get(last)).map(|kept| kept.size);
        found.retain(|kept| limit > 0 && last.is_none_or(|last| kept.size >= last));
        Ok(found)
    }
}
