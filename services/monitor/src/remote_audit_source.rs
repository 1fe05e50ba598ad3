//! [`RemoteAuditSource`]: the data of an audit, fetched from a log over HTTP.
//!
//! A log's public data suffices to recompute its admission decisions.
//!
//! The head is either verified already, or trusted if a receipt of the newest entry verifies with the trust file. The
//! leaves are verified by the head's root, and all other data by deciding again. The service's indexes are not used:
//! the audit keeps its own claims and positions. The commit time of an entry is proven by a receipt of its batch's head
//! if a trusted key signed it (`commit_times`); otherwise it is the service's unproven statement. A receipt that does not
//! verify is passed to the audit with its entry.

mod commit_times;

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use audit::{AuditHead, AuditSource, EntryEvidence, HistoryHead, LeafRow, LookUpAnswer, SourceError};
use client::{Client, ClientError};
use data_encoding::BASE64URL_NOPAD;
use merkle::tile::{TileId, TilePath};
use merkle::{EntryDigest, LeafHash, LeafIndex, TreeSize};
use registration::{COLLATERAL_PAYLOAD, COLLATERAL_X5CHAIN};
use serde::Deserialize;
use serde_json::value::RawValue;
use store::{Collateral, Found, GuardKey};
use verifier::{Code, TrustStore};

use crate::clock::now;
use crate::signed_checkpoint::TreeHead;
use commit_times::{BatchReceipt, CommittedEntry, PageHeads};

/// Entries in one request.
const PAGE: usize = 256;
/// Attempts to fetch a checkpoint at least as large as the tree of the receipt.
const FETCH_ATTEMPTS: u32 = 20;
/// Pause between two attempts.
const FETCH_PAUSE: Duration = Duration::from_millis(250);

/// An [`AuditSource`] that reads the public data of a log over HTTP.
pub struct RemoteAuditSource<'a> {
    client: &'a Client,
    /// Trust store with the log's receipt keys.
    trust: Option<&'a TrustStore>,
    /// The verified head; if `None`, a receipt must prove it.
    verified: Option<TreeHead>,
    fetched: Mutex<FetchedData>,
}

/// Fetched data that is still needed.
#[derive(Default)]
struct FetchedData {
    size: TreeSize,
    /// Entries fetched ahead of the audit.
    ahead: VecDeque<FetchedEntry>,
    collateral: HashMap<LeafIndex, Vec<Collateral>>,
    heads: PageHeads,
}

/// A fetched entry.
struct FetchedEntry {
    evidence: EntryEvidence,
    /// Tree size after the entry's batch, as reported by the service.
    size: Option<TreeSize>,
}

/// A page of `GET /v1/evidence`.
#[derive(Deserialize)]
struct EvidenceRows {
    evidence: Vec<EvidenceRow>,
}

/// A row of [`EvidenceRows`].
#[derive(Deserialize)]
struct EvidenceRow {
    index: u64,
    entry_id: String,
    statement: Option<String>,
    payload: Option<String>,
    collateral: Vec<CollateralResponse>,
    policy: PolicyResponse,
    rule: String,
    facts: Box<RawValue>,
    at: Option<u64>,
    #[serde(default)]
    tree_size_committed: Option<u64>,
    /// `true` if the service has bytes that this caller may not read.
    #[serde(default)]
    closed: bool,
}

#[derive(Deserialize)]
struct CollateralResponse {
    kind: String,
    bytes: String,
}

#[derive(Deserialize)]
struct PolicyResponse {
    index: u64,
}

impl<'a> RemoteAuditSource<'a> {
    /// A source that verifies the service's head by a receipt and the keys in `trust`.
    pub fn new(client: &'a Client, trust: &'a TrustStore) -> Self {
        Self { client, trust: Some(trust), verified: None, fetched: Mutex::default() }
    }

    /// A source with an already verified head; receipts that verify with `trust` prove commit times.
    pub fn with_verified_head(client: &'a Client, head: TreeHead, trust: Option<&'a TrustStore>) -> Self {
        Self { client, trust, verified: Some(head), fetched: Mutex::default() }
    }

    fn fetched(&self) -> MutexGuard<'_, FetchedData> {
        self.fetched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Size in the newest checkpoint. Only a hint: its signature is not verified.
    async fn published_size(&self) -> Result<TreeSize, SourceError> {
        let note = self.client.bytes("checkpoint").await.map_err(unanswered)?;
        let size = std::str::from_utf8(&note).ok().and_then(|note| note.lines().nth(1)?.parse().ok());
        size.map(TreeSize::new).ok_or_else(|| nonsense("its checkpoint is malformed"))
    }

    /// Waits until the service's checkpoint covers `size` leaves; [`SourceError::Unavailable`] after [`FETCH_ATTEMPTS`]
    /// attempts.
    async fn wait_until_published(&self, size: TreeSize) -> Result<(), SourceError> {
        for _ in 0..FETCH_ATTEMPTS {
            if self.published_size().await? >= size {
                return Ok(());
            }
            tokio::time::sleep(FETCH_PAUSE).await;
        }
        Err(SourceError::Unavailable("its checkpoint is of a smaller tree than its receipts".into()))
    }

    async fn fetch_page(&self, from: LeafIndex, limit: usize) -> Result<Vec<EvidenceRow>, PageError> {
        let page: EvidenceRows = self.client.json(&format!("v1/evidence?from={from}&limit={limit}")).await?;
        let is_next =
            |(offset, row): (usize, &EvidenceRow)| row.index == from.get().saturating_add(offset as u64);
        match page.evidence.len() <= limit && page.evidence.iter().enumerate().all(is_next) {
            true => Ok(page.evidence),
            false => Err(nonsense("its evidence is not that of the requested leaves").into()),
        }
    }

    /// Fetches at least one entry from leaf `from` on; returns the reason if the service cannot serve that entry. An
    /// unservable entry fails its whole page, so the page size is halved until the entry is alone.
    async fn fetch_ahead(&self, from: LeafIndex, mut limit: usize) -> Result<Option<String>, SourceError> {
        let page = loop {
            match self.fetch_page(from, limit).await {
                Ok(page) => break page,
                Err(PageError::Damaged(why)) if limit == 1 => return Ok(Some(why)),
                Err(PageError::Damaged(_)) => limit /= 2,
                Err(PageError::Source(error)) => return Err(error),
            }
        };
        if page.is_empty() {
            return Err(SourceError::Damaged(format!("the evidence of leaf {from} is missing")));
        }
        let mut data = self.fetched();
        data.ahead.clear();
        for row in page {
            let (fetched, collateral) = row.read()?;
            data.collateral.insert(fetched.evidence.index, collateral);
            data.ahead.push_back(fetched);
        }
        Ok(None)
    }

    /// Fetches receipts of the page's batch heads, which prove commit times. For a signed head the time is kept with
    /// the head and removed from the entry. A receipt that does not verify is recorded with its entry.
    async fn prove_times(&self, page: &mut [Result<FetchedEntry, LeafRow>]) -> Result<(), SourceError> {
        let Some(trust) = self.trust else { return Ok(()) };
        let committed = page.iter().filter_map(|row| row.as_ref().ok()?.committed());
        let batches = self.fetched().heads.start_page(committed);
        let receipts = commit_times::fetch_receipts(self.client, trust, batches).await?;
        let (mut heads, mut refused) = (Vec::new(), HashMap::new());
        for receipt in receipts {
            match receipt {
                BatchReceipt::Signed(head) => heads.push(head),
                BatchReceipt::Refused(leaf, why) => drop(refused.insert(leaf, why)),
                BatchReceipt::Absent => {}
            }
        }
        let mut data = self.fetched();
        data.heads.store(heads);
        for fetched in page.iter_mut().flatten() {
            fetched.evidence.refused_receipt = refused.remove(&fetched.evidence.index);
            if fetched.size.is_some_and(|size| data.heads.holds(size)) {
                fetched.evidence.at = None;
            }
        }
        Ok(())
    }

    /// Fetches a receipt of the leaf's entry and returns the tree size and root that a trusted key signed.
    async fn signed_tree(&self, trust: &TrustStore, leaf: LeafIndex) -> Result<TreeHead, SourceError> {
        let row = self.fetch_page(leaf, 1).await?.into_iter().next();
        let row = row.ok_or_else(|| nonsense("its newest entry is missing"))?;
        let entry: EntryDigest = row.entry_id.parse().map_err(|_| nonsense("an entry ID is malformed"))?;
        let receipt = self.client.receipt(&entry).await.map_err(unanswered)?;
        let verdict = verifier::verify_receipt_of(entry, &receipt, trust, now());
        if !verdict.is_verified() {
            let why = verdict.why();
            return Err(match verdict.reason {
                Some(Code::MalformedReceipt) => nonsense(why),
                Some(Code::UnknownLog | Code::UnknownLogKey) => SourceError::Untrusted(why.to_owned()),
                _ => {
                    SourceError::Untrusted(format!("the receipt of its newest entry does not verify: {why}"))
                }
            });
        }
        let tree = verdict.receipts.first().and_then(commit_times::signed_tree);
        tree.ok_or_else(|| nonsense("its receipts do not sign a tree size"))
    }
}

/// Errors of fetching a page.
enum PageError {
    /// The service reports that an entry is damaged.
    Damaged(String),
    /// Any other error.
    Source(SourceError),
}

impl From<SourceError> for PageError {
    fn from(error: SourceError) -> Self {
        Self::Source(error)
    }
}

impl From<ClientError> for PageError {
    fn from(error: ClientError) -> Self {
        match error.is_damage() {
            true => Self::Damaged(error.to_string()),
            false => Self::Source(unanswered(error)),
        }
    }
}

impl From<PageError> for SourceError {
    fn from(why: PageError) -> Self {
        match why {
            PageError::Damaged(why) => SourceError::Damaged(why),
            PageError::Source(error) => error,
        }
    }
}

#[async_trait::async_trait]
impl AuditSource for RemoteAuditSource<'_> {
    async fn head(&self) -> Result<AuditHead, SourceError> {
        if let Some(TreeHead { size, root }) = self.verified {
            self.fetched().size = size;
            return Ok(AuditHead { size, root, batch: None, policy: None });
        }
        let Some(newest) = self.published_size().await?.last_leaf() else {
            return Ok(AuditHead {
                size: TreeSize::EMPTY,
                root: merkle::empty_root(),
                batch: None,
                policy: None,
            });
        };
        let no_keys = TrustStore::default();
        let TreeHead { size, root } = self.signed_tree(self.trust.unwrap_or(&no_keys), newest).await?;
        self.wait_until_published(size).await?;
        self.fetched().size = size;
        Ok(AuditHead { size, root, batch: None, policy: None })
    }

    async fn rows(&self, from: LeafIndex, count: usize) -> Result<Vec<LeafRow>, SourceError> {
        let mut page: Vec<Result<FetchedEntry, LeafRow>> = Vec::with_capacity(count);
        self.fetched().drop_before(from);
        while page.len() < count {
            let next = LeafIndex::new(from.get() + page.len() as u64);
            let known = self.fetched().take(next);
            match known {
                Some(fetched) => page.push(Ok(fetched)),
                // A caller that asks for one row needs only that: the first, which names the log, or the newest.
                None => {
                    let lost = self.fetch_ahead(next, if count == 1 { 1 } else { PAGE }).await?;
                    page.extend(lost.map(|why| {
                        Err(LeafRow::Lost { index: next, why: format!("it is not served: {why}") })
                    }));
                }
            }
        }
        self.prove_times(&mut page).await?;
        let row = |fetched: FetchedEntry| LeafRow::Kept(Box::new(fetched.evidence));
        Ok(page.into_iter().map(|fetched| fetched.map_or_else(|lost| lost, row)).collect())
    }

    async fn collateral(&self, leaf: LeafIndex) -> Result<Vec<Collateral>, SourceError> {
        Ok(self.fetched().collateral.get(&leaf).cloned().unwrap_or_default())
    }

    async fn heads(&self, from: u64, _: usize) -> Result<Vec<HistoryHead>, SourceError> {
        Ok(self.fetched().heads.take(from))
    }

    async fn leaves(&self, tile: u64) -> Result<Vec<LeafHash>, SourceError> {
        let size = self.fetched().size;
        let Some(tile) = TileId::at(0, tile, size) else { return Ok(Vec::new()) };
        let data = self.client.bytes(&TilePath::Hashes(tile).to_string()).await.map_err(unanswered)?;
        Ok(data.as_chunks().0.iter().map(|hash| LeafHash::from_bytes(*hash)).collect())
    }

    fn keeps_indexes(&self) -> bool {
        false
    }

    async fn find(&self, digests: &[EntryDigest]) -> Result<Vec<LookUpAnswer<Found>>, SourceError> {
        Ok(digests.iter().map(|_| Ok(None)).collect())
    }

    async fn guards(&self, keys: &[GuardKey]) -> Result<Vec<LookUpAnswer<LeafIndex>>, SourceError> {
        Ok(keys.iter().map(|_| Ok(None)).collect())
    }
}

impl FetchedData {
    /// Drops the collateral of leaves before `from`.
    fn drop_before(&mut self, from: LeafIndex) {
        self.collateral.retain(|leaf, _| *leaf >= from);
    }

    fn take(&mut self, leaf: LeafIndex) -> Option<FetchedEntry> {
        self.ahead.pop_front_if(|fetched| fetched.evidence.index == leaf)
    }
}

impl FetchedEntry {
    /// The batch's tree and commit time, if the reported tree contains the leaf.
    fn committed(&self) -> Option<CommittedEntry> {
        let EntryEvidence { index: leaf, digest: entry, at, .. } = self.evidence;
        let size = self.size.filter(|size| size.holds(leaf))?;
        Some(CommittedEntry { leaf, entry, size, at: at? })
    }
}

impl EvidenceRow {
    fn read(self) -> Result<(FetchedEntry, Vec<Collateral>), SourceError> {
        if self.closed {
            return Err(SourceError::Closed(LeafIndex::new(self.index)));
        }
        let mut collateral = Vec::new();
        if let Some(payload) = &self.payload {
            collateral.push(Collateral { kind: COLLATERAL_PAYLOAD, bytes: decode(payload)? });
        }
        for item in self.collateral.iter().filter(|item| item.kind == "x5chain") {
            collateral.push(Collateral { kind: COLLATERAL_X5CHAIN, bytes: decode(&item.bytes)? });
        }
        let evidence = EntryEvidence {
            index: LeafIndex::new(self.index),
            digest: self.entry_id.parse().map_err(|_| nonsense("an entry ID is malformed"))?,
            statement: self.statement.as_deref().map(decode).transpose()?,
            policy: LeafIndex::new(self.policy.index),
            rule: self.rule,
            facts: self.facts.get().to_owned(),
            at: self.at,
            refused_receipt: None,
        };
        let size = self.tree_size_committed.map(TreeSize::new);
        Ok((FetchedEntry { evidence, size }, collateral))
    }
}

fn decode(text: &str) -> Result<bytes::Bytes, SourceError> {
    BASE64URL_NOPAD.decode(text.as_bytes()).map(Into::into).map_err(|why| nonsense(why.to_string()))
}

fn nonsense(why: impl Into<String>) -> SourceError {
    SourceError::Refused(format!("the service's answer is not one of a log: {}", why.into()))
}

fn unanswered(error: ClientError) -> SourceError {
    match error {
        ClientError::Unreachable(_) | ClientError::TryAgain { .. } => {
            SourceError::Unavailable(error.to_string())
        }
        other => SourceError::Refused(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use axum::Json;
    use axum::routing::get;
    use serde_json::json;

    use super::*;

    /// The leaves in a page of the service with these rows, where two rows from leaf 5 on were requested.
    async fn asked_for_two(leaves: &[u64]) -> Result<Vec<u64>, SourceError> {
        let row = |index: &u64| {
            json!({ "index": index, "entry_id": "x", "statement": null, "payload": null,
                "collateral": [], "policy": { "index": 0 }, "rule": "r", "facts": {}, "at": null })
        };
        let page = json!({ "evidence": leaves.iter().map(row).collect::<Vec<_>>() });
        let app = axum::Router::new().route("/v1/evidence", get(|| async { Json(page) }));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, app).await });
        let client = Client::new(&url, client::Options::default()).unwrap();
        let head = TreeHead { size: TreeSize::new(9), root: merkle::empty_root() };
        let source = RemoteAuditSource::with_verified_head(&client, head, None);
        let page = source.fetch_page(LeafIndex::new(5), 2).await?;
        Ok(page.iter().map(|row| row.index).collect())
    }

    #[tokio::test]
    async fn a_page_of_more_rows_than_were_asked_for_or_of_others_is_refused() {
        assert_eq!(asked_for_two(&[5, 6]).await.unwrap(), [5, 6]);
        assert_eq!(asked_for_two(&[5]).await.unwrap(), [5]);
        for wrong in [&[5, 6, 7][..], &[5, 7], &[5, 5], &[6], &[6, 5]] {
            let error = asked_for_two(wrong).await.unwrap_err();
            assert!(matches!(error, SourceError::Refused(_)), "{wrong:?}: {error}");
        }
    }
}
