//! A log's database as an [`AuditSource`].

use async_trait::async_trait;
use merkle::{EntryDigest, LeafHash, LeafIndex};
use scitt::CoseKey;
use scitt::receipt::SignedRoot;
use store::{
    Collateral, CommittedHead, Entry, Found, GuardKey, HeadSignature, LogKey, SignatureKind, SignedLog,
    StoreError, TileAddress,
};

use crate::source::{AuditHead, AuditSource, EntryEvidence, HistoryHead, LeafRow, LookUpAnswer, SourceError};

/// Read access to a log's database, also while the log's writer is running.
pub struct StoreSource<'a> {
    store: &'a dyn SignedLog,
}

impl<'a> StoreSource<'a> {
    /// Creates a source that reads the log in this store.
    pub fn new(store: &'a dyn SignedLog) -> Self {
        Self { store }
    }

    /// Reads rows one by one, so that a damaged row does not hide the others of its page.
    async fn one_by_one(&self, from: LeafIndex, count: usize) -> Result<Vec<LeafRow>, SourceError> {
        let mut rows = Vec::with_capacity(count);
        for index in (from.get()..).take(count).map(LeafIndex::new) {
            let entry = damage(self.store.entry(index).await)?;
            rows.push(match entry.and_then(|entry| entry.ok_or_else(|| "it is missing".to_owned())) {
                Ok(entry) => kept(entry),
                Err(why) => LeafRow::Lost { index, why },
            });
        }
        Ok(rows)
    }

    /// Returns the receipt keys' signatures over all heads from the first to the last of `heads`.
    async fn signatures(&self, heads: &[CommittedHead]) -> Result<Vec<HeadSignature>, StoreError> {
        let (Some(first), Some(last)) = (heads.first(), heads.last()) else { return Ok(Vec::new()) };
        let mut after = first.size.get().checked_sub(1).map(merkle::TreeSize::new);
        let mut signatures = Vec::new();
        loop {
            let page = self.store.signatures(after, heads.len()).await?;
            let Some(newest) = page.last().map(|signature| signature.size) else { return Ok(signatures) };
            signatures.extend(page.into_iter().filter(|it| it.kind == SignatureKind::Receipt));
            if newest >= last.size {
                return Ok(signatures);
            }
            after = Some(newest);
        }
    }
}

#[async_trait]
impl AuditSource for StoreSource<'_> {
    async fn head(&self) -> Result<AuditHead, SourceError> {
        let head = self.store.head().await?;
        Ok(AuditHead {
            size: head.size(),
            root: head.root(),
            batch: Some((head.batch, head.at)),
            policy: Some(head.policy),
        })
    }

    async fn rows(&self, from: LeafIndex, count: usize) -> Result<Vec<LeafRow>, SourceError> {
        match damage(self.store.entries(from, count).await)? {
            Ok(entries) if entries.len() == count => Ok(entries.into_iter().map(kept).collect()),
            _ => self.one_by_one(from, count).await,
        }
    }

    async fn collateral(&self, leaf: LeafIndex) -> Result<Vec<Collateral>, SourceError> {
        Ok(self.store.collateral(leaf).await?)
    }

    async fn heads(&self, from: u64, limit: usize) -> Result<Vec<HistoryHead>, SourceError> {
        let heads = self.store.heads(from, limit).await?;
        let keys = self.store.keys().await?;
        let signatures = self.signatures(&heads).await?;
        let signed = |head: &CommittedHead| {
            let own = signatures.iter().filter(|signature| signature.size == head.size);
            own.map(|signature| signed_at(head, signature, &keys)).collect()
        };
        Ok(heads.iter().map(|head| HistoryHead { head: *head, signed: signed(head) }).collect())
    }

    async fn leaves(&self, tile: u64) -> Result<Vec<LeafHash>, SourceError> {
        let address = TileAddress { level: 0, number: tile };
        let data = self.store.tiles(&[address]).await?.pop().flatten().unwrap_or_default();
        Ok(data.as_chunks().0.iter().map(|hash| LeafHash::from_bytes(*hash)).collect())
    }

    async fn find(&self, digests: &[EntryDigest]) -> Result<Vec<LookUpAnswer<Found>>, SourceError> {
        if let Ok(found) = damage(self.store.find(digests).await)? {
            return Ok(found.into_iter().map(Ok).collect());
        }
        let mut answers = Vec::with_capacity(digests.len());
        for digest in digests {
            let answer = damage(self.store.find(&[*digest]).await)?;
            answers.push(answer.map(|mut found| found.pop().flatten()));
        }
        Ok(answers)
    }

    async fn guards(&self, keys: &[GuardKey]) -> Result<Vec<LookUpAnswer<LeafIndex>>, SourceError> {
        Ok(match damage(self.store.guards(keys).await)? {
            Ok(holders) => holders.into_iter().map(Ok).collect(),
            Err(why) => vec![Err(why); keys.len()],
        })
    }
}

fn kept(entry: Entry) -> LeafRow {
    let Entry { index, digest, statement, policy, rule, facts } = entry;
    let evidence =
        EntryEvidence { index, digest, statement, policy, rule, facts, at: None, refused_receipt: None };
    LeafRow::Kept(Box::new(evidence))
}

/// Verifies a signature over a head and returns the commit time that it covers.
fn signed_at(head: &CommittedHead, signature: &HeadSignature, keys: &[LogKey]) -> Result<u64, String> {
    let signed = SignedRoot::parse(signature.bytes.clone()).map_err(|error| error.to_string())?;
    if signed.tree_size() != head.size {
        return Err(format!("it signs size {}", signed.tree_size()));
    }
    let key = keys.iter().find(|key| key.kid == signature.kid).ok_or("its key is not on record")?;
    if !key.signs(head.size) {
        return Err("its key signs no head of that size".to_owned());
    }
    let recorded = &key.public;
    let key = CoseKey::parse(recorded).map_err(|error| error.to_string())?;
    if key.encode()[..] != recorded[..] {
        return Err("its key is not as it was written".to_owned());
    }
    signed.verify(&head.root, &key.key).map_err(|error| error.to_string())?;
    signed.committed_at().ok_or_else(|| "it signs no time".to_owned())
}

/// Separates damage to single values, which becomes an answer, from errors that end the audit.
fn damage<T>(outcome: Result<T, StoreError>) -> Result<Result<T, String>, SourceError> {
    match outcome {
        Ok(value) => Ok(Ok(value)),
        Err(StoreError::Damaged(why)) => Ok(Err(why)),
        Err(error) => Err(error.into()),
    }
}
