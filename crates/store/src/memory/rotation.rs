//! `KeyRotation` in memory.

use async_trait::async_trait;
use merkle::TreeSize;

use super::Memory;
use crate::rotation::{already_listed, fenced, no_such_key, not_in_force};
use crate::{KeyAnnouncement, KeyRotation, LogKey, StoreError};

#[async_trait]
impl KeyRotation for Memory {
    async fn announce_key(&self, announcement: &KeyAnnouncement) -> Result<(), StoreError> {
        let mut tables = self.tables();
        tables.must_grow()?;
        if tables.keys.iter().any(|key| key.kid == announcement.kid) {
            return Err(already_listed());
        }
        let is_replaced = |key: &LogKey| key.kid == announcement.replaces && key.retired_at.is_none();
        if !tables.keys.iter().any(is_replaced) {
            return Err(not_in_force());
        }
        tables.announced.retain(|known| known.replaces != announcement.replaces);
        tables.announced.push(announcement.clone());
        Ok(())
    }

    async fn announced_keys(&self) -> Result<Vec<KeyAnnouncement>, StoreError> {
        Ok(self.tables().announced.clone())
    }

    async fn take_up_key(&self, kid: &[u8], epoch: u64, at: u64) -> Result<Option<LogKey>, StoreError> {
        let mut tables = self.tables();
        tables.must_grow()?;
        let head = tables.head()?.clone();
        if head.epoch != epoch {
            return Err(fenced(epoch, head.epoch));
        }
        let Some(place) = tables.announced.iter().position(|known| known.kid == kid) else { return Ok(None) };
        let KeyAnnouncement { kid, public, replaces, .. } = tables.announced.remove(place);
        let from = TreeSize::new(head.size().get() + 1);
        for key in tables.keys.iter_mut().filter(|key| key.kid == replaces) {
            (key.retired_at, key.retired_size) = (Some(at), Some(from));
        }
        let key = LogKey::new(kid, public, from);
        tables.keys.push(key.clone());
        Ok(Some(key))
    }

    async fn mark_compromised(&self, kid: &[u8], since: TreeSize) -> Result<(), StoreError> {
        let mut tables = self.tables();
        let key = tables.keys.iter_mut().find(|key| key.kid == kid).ok_or_else(no_such_key)?;
        key.compromised_size = Some(key.compromised_size.map_or(since, |known| known.min(since)));
        Ok(())
    }
}
