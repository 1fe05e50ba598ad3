//! A service as a source: what it shows to everybody is enough to decide its admissions again.
//!
//! The head is the one that was verified otherwise, or it is believed where a receipt of its newest entry verifies with the
//! trust file; the leaves by its root; all else because it is decided again. The service's indexes are asked nothing: claims and places the audit keeps itself. When an
//! entry was admitted, receipts of its batch's head prove, where a trusted key signed one; else it is the service's word.

mod heads;

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use audit::{Answer, Evidence, Head, Row, SignedHead, Source, SourceError};
use client::{Client, ClientError};
use data_encoding::BASE64URL_NOPAD;
use merkle::tile::{TileId, TilePath};
use merkle::{EntryDigest, LeafHash, LeafIndex, RootHash, TreeSize};
use registration::{COLLATERAL_PAYLOAD, COLLATERAL_X5CHAIN};
use serde::Deserialize;
use serde_json::value::RawValue;
use store::{Collateral, Found, GuardKey};
use verifier::{Code, TrustStore};

use crate::run::now;
use heads::{Committed, Heads};

/// Entries that are asked for at once.
const PAGE: usize = 256;
/// How often a published tree is looked for that has what a receipt has.
const LOOKS: u32 = 20;
/// How long is waited in between.
const LOOK: Duration = Duration::from_millis(250);

/// A service, seen by somebody who has nothing but what it serves.
pub struct Outside<'a> {
    client: &'a Client,
    /// Whose receipts are believed.
    trust: Option<&'a TrustStore>,
    /// The head, if it was verified already; else a receipt must prove it.
    verified: Option<(TreeSize, RootHash)>,
    seen: Mutex<Seen>,
}

/// What was fetched and is needed again.
#[derive(Default)]
struct Seen {
    size: TreeSize,
    /// Entries that were not asked for yet.
    ahead: VecDeque<Fetched>,
    beside: HashMap<LeafIndex, Vec<Collateral>>,
    heads: Heads,
}

/// An entry as it was fetched.
struct Fetched {
    evidence: Evidence,
    /// The tree that its batch made, as the service tells.
    size: Option<TreeSize>,
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
    #[serde(default)]
    tree_size_committed: Option<u64>,
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
        Self { client, trust: Some(trust), verified: None, seen: Mutex::default() }
    }

    /// The service behind this client, up to a tree that was verified; and whom to believe about its times.
    pub fn at(client: &'a Client, size: TreeSize, root: RootHash, trust: Option<&'a TrustStore>) -> Self {
        Self { client, trust, verified: Some((size, root)), seen: Mutex::default() }
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

    async fn page(&self, from: LeafIndex, limit: usize) -> Result<Vec<Told>, NoPage> {
        let page: Page = self.client.json(&format!("v1/evidence?from={from}&limit={limit}")).await?;
        let follow = |(place, told): (usize, &Told)| told.index == from.get().saturating_add(place as u64);
        match page.evidence.len() <= limit && page.evidence.iter().enumerate().all(follow) {
            true => Ok(page.evidence),
            false => Err(nonsense("its evidence is not what was asked for").into()),
        }
    }

    /// Fetches entries from a leaf on, one at least; or learns that the service cannot serve this one. An entry that it cannot
    /// serve takes the page with it, so smaller pages are asked for until the entry stands alone.
    async fn fetch(&self, from: LeafIndex, mut limit: usize) -> Result<Option<String>, SourceError> {
        let page = loop {
            match self.page(from, limit).await {
                Ok(page) => break page,
                Err(NoPage::Damaged(why)) if limit == 1 => return Ok(Some(why)),
                Err(NoPage::Damaged(_)) => limit /= 2,
                Err(NoPage::Source(error)) => return Err(error),
            }
        };
        if page.is_empty() {
            return Err(SourceError::Damaged(format!("the evidence of leaf {from} is missing")));
        }
        let mut seen = self.seen();
        seen.ahead.clear();
        for told in page {
            let (fetched, beside) = told.read()?;
            seen.beside.insert(fetched.evidence.index, beside);
            seen.ahead.push_back(fetched);
        }
        Ok(None)
    }

    /// Learns when the entries of a page were committed from receipts, as far as a trusted key signed them. A time that is
    /// signed stands with its head, and not with the entry.
    async fn sign_times(&self, page: &mut [Result<Fetched, Row>]) -> Result<(), SourceError> {
        let Some(trust) = self.trust else { return Ok(()) };
        let committed = page.iter().filter_map(|row| row.as_ref().ok()?.committed());
        let batches = self.seen().heads.turn(committed);
        let heads = heads::fetch(self.client, trust, batches).await?;
        let mut seen = self.seen();
        seen.heads.put(heads);
        for fetched in page.iter_mut().flatten() {
            if fetched.size.is_some_and(|size| seen.heads.holds(size)) {
                fetched.evidence.at = None;
            }
        }
        Ok(())
    }

    /// A size and root that a trusted key signed, with this leaf below.
    async fn signed(&self, trust: &TrustStore, leaf: LeafIndex) -> Result<(TreeSize, RootHash), SourceError> {
        let told = self.page(leaf, 1).await?.into_iter().next();
        let told = told.ok_or_else(|| nonsense("its newest entry is missing"))?;
        let entry: EntryDigest = told.entry_id.parse().map_err(|_| nonsense("an entry ID is none"))?;
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
        let tree = verdict.receipts.first().and_then(heads::signed_tree);
        tree.ok_or_else(|| nonsense("its receipts sign no tree size"))
    }
}

/// Why there is no page.
enum NoPage {
    /// The service says that an entry of it is damaged.
    Damaged(String),
    Source(SourceError),
}

impl From<SourceError> for NoPage {
    fn from(error: SourceError) -> Self {
        Self::Source(error)
    }
}

impl From<ClientError> for NoPage {
    fn from(error: ClientError) -> Self {
        match error.is_damage() {
            true => Self::Damaged(error.to_string()),
            false => Self::Source(unanswered(error)),
        }
    }
}

impl From<NoPage> for SourceError {
    fn from(why: NoPage) -> Self {
        match why {
            NoPage::Damaged(why) => SourceError::Damaged(why),
            NoPage::Source(error) => error,
        }
    }
}

#[async_trait::async_trait]
impl Source for Outside<'_> {
    async fn head(&self) -> Result<Head, SourceError> {
        if let Some((size, root)) = self.verified {
            self.seen().size = size;
            return Ok(Head { size, root, batch: None, policy: None });
        }
        let Some(newest) = self.published().await?.last_leaf() else {
            return Ok(Head { size: TreeSize::EMPTY, root: merkle::empty_root(), batch: None, policy: None });
        };
        let nobody = TrustStore::default();
        let (size, root) = self.signed(self.trust.unwrap_or(&nobody), newest).await?;
        self.until_published(size).await?;
        self.seen().size = size;
        Ok(Head { size, root, batch: None, policy: None })
    }

    async fn rows(&self, from: LeafIndex, count: usize) -> Result<Vec<Row>, SourceError> {
        let mut page: Vec<Result<Fetched, Row>> = Vec::with_capacity(count);
        self.seen().start_at(from);
        while page.len() < count {
            let next = LeafIndex::new(from.get() + page.len() as u64);
            let known = self.seen().take(next);
            match known {
                Some(fetched) => page.push(Ok(fetched)),
                // Whoever asks for one row wants that one: which log it is, or the newest.
                None => {
                    let lost = self.fetch(next, if count == 1 { 1 } else { PAGE }).await?;
                    page.extend(
                        lost.map(|why| {
                            Err(Row::Lost { index: next, why: format!("it is not served: {why}") })
                        }),
                    );
                }
            }
        }
        self.sign_times(&mut page).await?;
        let row = |fetched: Fetched| Row::Kept(Box::new(fetched.evidence));
        Ok(page.into_iter().map(|fetched| fetched.map_or_else(|lost| lost, row)).collect())
    }

    async fn collateral(&self, leaf: LeafIndex) -> Result<Vec<Collateral>, SourceError> {
        Ok(self.seen().beside.get(&leaf).cloned().unwrap_or_default())
    }

    async fn heads(&self, from: u64, _: usize) -> Result<Vec<SignedHead>, SourceError> {
        Ok(self.seen().heads.give(from))
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

    fn take(&mut self, leaf: LeafIndex) -> Option<Fetched> {
        self.ahead.pop_front_if(|fetched| fetched.evidence.index == leaf)
    }
}

impl Fetched {
    /// The tree that its batch made and when, if the service tells a tree that holds it.
    fn committed(&self) -> Option<Committed> {
        let Evidence { index: leaf, digest: entry, at, .. } = self.evidence;
        let size = self.size.filter(|size| size.holds(leaf))?;
        Some(Committed { leaf, entry, size, at: at? })
    }
}

impl Told {
    fn read(self) -> Result<(Fetched, Vec<Collateral>), SourceError> {
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
        let size = self.tree_size_committed.map(TreeSize::new);
        Ok((Fetched { evidence, size }, beside))
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
        let outside = Outside::at(&client, TreeSize::new(9), merkle::empty_root(), None);
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
