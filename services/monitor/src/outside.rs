//! A service as a source: what it shows to everybody is enough to decide its admissions again.
//!
//! The head is the one that was verified otherwise, or it is believed where a receipt of its newest entry verifies with the
//! trust file; the leaves by its root; all else because it is decided again. The service's indexes are asked nothing: claims and places the audit keeps itself. When an
//! entry was admitted is the service's word.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use audit::{Answer, Evidence, Head, Row, SignedHead, Source, SourceError};
use client::{Client, ClientError};
use data_encoding::BASE64URL_NOPAD;
use merkle::tile::{TileId, TilePath};
use merkle::{EntryDigest, LeafHash, LeafIndex, RootHash, TreeSize};
use registration::{COLLATERAL_PAYLOAD, COLLATERAL_X5CHAIN};
use scitt::Receipt;
use serde::Deserialize;
use serde_json::value::RawValue;
use store::{Collateral, Found, GuardKey};
use verifier::TrustStore;

/// Entries that are asked for at once.
const PAGE: usize = 256;
/// How often a published tree is looked for that has what a receipt has.
const LOOKS: u32 = 20;
/// How long is waited in between.
const LOOK: Duration = Duration::from_millis(250);

/// A service, seen by somebody who has nothing but what it serves.
pub struct Outside<'a> {
    client: &'a Client,
    believed: Believed<'a>,
    seen: Mutex<Seen>,
}

/// Why its head is believed.
enum Believed<'a> {
    /// Because a trusted key signed a receipt.
    Signed(&'a TrustStore),
    /// Because it was verified already.
    Verified(TreeSize, RootHash),
}

/// What was fetched and is needed again.
#[derive(Default)]
struct Seen {
    size: TreeSize,
    /// Rows that were not asked for yet.
    ahead: VecDeque<Evidence>,
    beside: HashMap<LeafIndex, Vec<Collateral>>,
}

/// A page of `/v1/evidence`.
#[derive(Deserialize)]
struct Page {
    evidence: Vec<Told>,
}

/// Evidence as the service tells it.
#[derive(Deserialize)]
struct Told {
    index: u64,
    entry_id: String,
    statement: Option<String>,
    payload: Option<String>,
    collateral: Vec<ToldCollateral>,
    policy: ToldPolicy,
    rule: String,
    facts: Box<RawValue>,
    at: Option<u64>,
    /// That the service has bytes which this caller may not have.
    #[serde(default)]
    closed: bool,
}

#[derive(Deserialize)]
struct ToldCollateral {
    kind: String,
    bytes: String,
}

#[derive(Deserialize)]
struct ToldPolicy {
    index: u64,
}

impl<'a> Outside<'a> {
    /// The service behind this client, and whom to believe about it.
    pub fn of(client: &'a Client, trust: &'a TrustStore) -> Self {
        Self { client, believed: Believed::Signed(trust), seen: Mutex::default() }
    }

    /// The service behind this client, up to a tree that was verified.
    pub fn at(client: &'a Client, size: TreeSize, root: RootHash) -> Self {
        Self { client, believed: Believed::Verified(size, root), seen: Mutex::default() }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The size of the newest published tree. A hint, and believed in nothing.
    async fn published(&self) -> Result<TreeSize, SourceError> {
        let note = self.client.bytes("checkpoint").await.map_err(unanswered)?;
        let size = std::str::from_utf8(&note).ok().and_then(|note| note.lines().nth(1)?.parse().ok());
        size.map(TreeSize::new).ok_or_else(|| nonsense("its checkpoint is none"))
    }

    /// Waits until everything below a size is published.
    async fn until_published(&self, size: TreeSize) -> Result<(), SourceError> {
        for _ in 0..LOOKS {
            if self.published().await? >= size {
                return Ok(());
            }
            tokio::time::sleep(LOOK).await;
        }
        Err(SourceError::Unavailable("its checkpoint stays behind its receipts".into()))
    }

    async fn page(&self, from: LeafIndex, limit: usize) -> Result<Vec<Told>, SourceError> {
        let page: Page =
            self.client.json(&format!("v1/evidence?from={from}&limit={limit}")).await.map_err(unanswered)?;
        let follow = |(place, told): (usize, &Told)| told.index == from.get().saturating_add(place as u64);
        match page.evidence.len() <= limit && page.evidence.iter().enumerate().all(follow) {
            true => Ok(page.evidence),
            false => Err(nonsense("its evidence is not what was asked for")),
        }
    }

    /// A size and root that a trusted key signed, with this leaf below.
    async fn signed(&self, trust: &TrustStore, leaf: LeafIndex) -> Result<(TreeSize, RootHash), SourceError> {
        let told = self.page(leaf, 1).await?.into_iter().next();
        let told = told.ok_or_else(|| nonsense("its newest entry is missing"))?;
        let entry: EntryDigest = told.entry_id.parse().map_err(|_| nonsense("an entry ID is none"))?;
        let bytes = self.client.receipt(&entry).await.map_err(unanswered)?;
        let receipt = Receipt::parse(bytes).map_err(|why| nonsense(why.to_string()))?;
        let root =
            receipt.implied_root(&entry.leaf_hash()).map_err(|why| SourceError::Damaged(why.to_string()))?;
        let iss = receipt.header().claims().and_then(|claims| claims.iss()).unwrap_or_default();
        let mut keys = trust.logs_of(iss).flat_map(|log| &log.keys);
        if !keys.any(|key| receipt.verify_root(&root, &key.key).is_ok()) {
            return Err(SourceError::Untrusted(format!("no trusted key of {iss} signed its newest head")));
        }
        let size = receipt.signed_tree_size().ok_or_else(|| nonsense("its receipts sign no tree size"))?;
        Ok((size, root))
    }
}

#[async_trait::async_trait]
impl Source for Outside<'_> {
    async fn head(&self) -> Result<Head, SourceError> {
        let trust = match self.believed {
            Believed::Signed(trust) => trust,
            Believed::Verified(size, root) => {
                self.seen().size = size;
                return Ok(Head { size, root, batch: None, policy: None });
            }
        };
        let Some(newest) = self.published().await?.last_leaf() else {
            return Ok(Head { size: TreeSize::EMPTY, root: merkle::empty_root(), batch: None, policy: None });
        };
        let (size, root) = self.signed(trust, newest).await?;
        self.until_published(size).await?;
        self.seen().size = size;
        Ok(Head { size, root, batch: None, policy: None })
    }

    async fn rows(&self, from: LeafIndex, count: usize) -> Result<Vec<Row>, SourceError> {
        let mut rows = Vec::with_capacity(count);
        self.seen().start_at(from);
        while rows.len() < count {
            let next = LeafIndex::new(from.get() + rows.len() as u64);
            if let Some(evidence) = self.seen().take(next) {
                rows.push(Row::Kept(Box::new(evidence)));
                continue;
            }
            // Whoever asks for one row wants that one: which log it is, or the newest.
            let page = self.page(next, if count == 1 { 1 } else { PAGE }).await?;
            if page.is_empty() {
                return Err(SourceError::Damaged(format!("the evidence of leaf {next} is missing")));
            }
            let mut seen = self.seen();
            seen.ahead.clear();
            for told in page {
                let (evidence, beside) = told.read()?;
                seen.beside.insert(evidence.index, beside);
                seen.ahead.push_back(evidence);
            }
        }
        Ok(rows)
    }

    async fn collateral(&self, leaf: LeafIndex) -> Result<Vec<Collateral>, SourceError> {
        Ok(self.seen().beside.get(&leaf).cloned().unwrap_or_default())
    }

    async fn heads(&self, _: u64, _: usize) -> Result<Vec<SignedHead>, SourceError> {
        Ok(Vec::new())
    }

    async fn leaves(&self, tile: u64) -> Result<Vec<LeafHash>, SourceError> {
        let size = self.seen().size;
        let Some(tile) = TileId::at(0, tile, size) else { return Ok(Vec::new()) };
        let data = self.client.bytes(&TilePath::Hashes(tile).to_string()).await.map_err(unanswered)?;
        Ok(data.as_chunks().0.iter().map(|hash| LeafHash::from_bytes(*hash)).collect())
    }

    fn keeps_indexes(&self) -> bool {
        false
    }

    async fn find(&self, digests: &[EntryDigest]) -> Result<Vec<Answer<Found>>, SourceError> {
        Ok(digests.iter().map(|_| Ok(None)).collect())
    }

    async fn guards(&self, keys: &[GuardKey]) -> Result<Vec<Answer<LeafIndex>>, SourceError> {
        Ok(keys.iter().map(|_| Ok(None)).collect())
    }
}

impl Seen {
    /// Forgets what stands before a leaf.
    fn start_at(&mut self, from: LeafIndex) {
        self.beside.retain(|leaf, _| *leaf >= from);
    }

    fn take(&mut self, leaf: LeafIndex) -> Option<Evidence> {
        self.ahead.pop_front_if(|evidence| evidence.index == leaf)
    }
}

impl Told {
    fn read(self) -> Result<(Evidence, Vec<Collateral>), SourceError> {
        if self.closed {
            return Err(SourceError::Closed(LeafIndex::new(self.index)));
        }
        let mut beside = Vec::new();
        if let Some(payload) = &self.payload {
            beside.push(Collateral { kind: COLLATERAL_PAYLOAD, bytes: decode(payload)? });
        }
        for item in self.collateral.iter().filter(|item| item.kind == "x5chain") {
            beside.push(Collateral { kind: COLLATERAL_X5CHAIN, bytes: decode(&item.bytes)? });
        }
        let evidence = Evidence {
            index: LeafIndex::new(self.index),
            digest: self.entry_id.parse().map_err(|_| nonsense("an entry ID is none"))?,
            statement: self.statement.as_deref().map(decode).transpose()?,
            policy: LeafIndex::new(self.policy.index),
            rule: self.rule,
            facts: self.facts.get().to_owned(),
            at: self.at,
        };
        Ok((evidence, beside))
    }
}

fn decode(text: &str) -> Result<bytes::Bytes, SourceError> {
    BASE64URL_NOPAD.decode(text.as_bytes()).map(Into::into).map_err(|why| nonsense(why.to_string()))
}

fn nonsense(why: impl Into<String>) -> SourceError {
    SourceError::Refused(format!("the service does not answer as a log does: {}", why.into()))
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

    /// What comes of a page with these leaves, where two rows from leaf 5 on were asked for.
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
        let outside = Outside::at(&client, TreeSize::new(9), merkle::empty_root());
        let page = outside.page(LeafIndex::new(5), 2).await?;
        Ok(page.iter().map(|told| told.index).collect())
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
