//! Fetches the parts of a bundle from a log. The log's answers are not believed: the bundle is verified before it is
//! written.

use std::collections::{BTreeMap, BTreeSet};

use bundle::{
    AdmittedBy, BundleClaims, BundleEntry, BundleProof, BundleSelection, EvidenceBundle, MAX_ENTRIES,
    SelectedBy, VERSION,
};
use client::{Client, ClientError};
use futures::stream::{self, StreamExt, TryStreamExt};
use merkle::{EntryDigest, Hash};
use serde::{Deserialize, Deserializer, de::Error};
use tlog::checkpoint::Checkpoint;
use tlog::note::Note;

use crate::console::{Exit, Failure};
use crate::service::{Service, percent_encoded};

/// Number of entries per page of a session or a search.
const PAGE: usize = 1000;
/// Maximum number of entries that are fetched at a time.
const CONCURRENT_ENTRIES: usize = 8;

/// Entries of one log that are to be bundled.
pub struct Gatherer<'s> {
    service: &'s Service,
    entries: BTreeMap<u64, ListedEntry>,
    selections: Vec<BundleSelection>,
}

/// What the log says of a session besides its entries.
pub struct SessionRemarks {
    /// Whether there are verification receipts that share a digest with the session and are not listed.
    pub has_more_receipts: bool,
}

/// An entry in a list of the service.
#[derive(Clone, Deserialize)]
struct ListedEntry {
    #[serde(deserialize_with = "parsed")]
    entry_id: EntryDigest,
    index: u64,
    policy: u64,
    rule: String,
}

/// The JSON of `GET /v1/sessions/{session}`.
#[derive(Deserialize)]
struct SessionPage {
    entries: Vec<ListedEntry>,
    receipts: Vec<ListedEntry>,
    more_receipts: bool,
    indexed_to: u64,
}

/// The JSON of `GET /v1/entries` with a filter.
#[derive(Deserialize)]
struct SearchPage {
    entries: Vec<ListedEntry>,
    indexed_to: u64,
}

/// The JSON of `GET /v1/proof/inclusion`.
#[derive(Deserialize)]
struct ServedProof {
    index: u64,
    #[serde(deserialize_with = "parsed")]
    entry_id: EntryDigest,
    #[serde(deserialize_with = "hashes")]
    path: Vec<Hash>,
}

impl<'s> Gatherer<'s> {
    /// Creates a gatherer without entries.
    pub fn new(service: &'s Service) -> Self {
        Self { service, entries: BTreeMap::new(), selections: Vec::new() }
    }

    /// Adds every entry of a session, and the verification receipts that share a digest with them.
    pub fn add_session(&mut self, session: &str) -> Result<SessionRemarks, Failure> {
        let mut remarks = SessionRemarks { has_more_receipts: false };
        let (mut found, mut indexed_to) = (BTreeMap::new(), 0);
        let path = format!("v1/sessions/{}?limit={PAGE}", percent_encoded(session));
        self.service.pages(path, |page: SessionPage| {
            remarks.has_more_receipts |= page.more_receipts;
            indexed_to = page.indexed_to;
            insert(&mut found, page.entries.into_iter().chain(page.receipts))
        })?;
        self.select(SelectedBy::Session, session, indexed_to, found)?;
        Ok(remarks)
    }

    /// Adds every entry of an agent.
    pub fn add_agent(&mut self, agent: &str) -> Result<(), Failure> {
        let (mut found, mut indexed_to) = (BTreeMap::new(), 0);
        let path = format!("v1/entries?agent={}&limit={PAGE}", percent_encoded(agent));
        self.service.pages(path, |page: SearchPage| {
            indexed_to = page.indexed_to;
            insert(&mut found, page.entries)
        })?;
        self.select(SelectedBy::Agent, agent, indexed_to, found)
    }

    /// Adds one entry.
    pub fn add_entry(&mut self, entry: &EntryDigest) -> Result<(), Failure> {
        let listed: ListedEntry =
            self.service.block_on(self.service.client.json(&format!("v1/entries/{entry}")))?;
        insert(&mut self.entries, [listed])
    }

    fn select(
        &mut self,
        by: SelectedBy,
        name: &str,
        indexed_to: u64,
        found: BTreeMap<u64, ListedEntry>,
    ) -> Result<(), Failure> {
        if found.is_empty() {
            let what = format!("the log's index names no entry of {} {name}", by.as_str());
            return Err(Failure::new(Exit::NotFound, "nothing-selected", what));
        }
        let entries = found.values().map(|entry| entry.entry_id).collect();
        self.selections.push(BundleSelection { by, entries, indexed_to, name: name.to_owned() });
        insert(&mut self.entries, found.into_values())
    }

    /// Fetches checkpoint, statements, receipts, proofs and policies.
    pub fn finish(self, claims: BundleClaims) -> Result<EvidenceBundle, Failure> {
        let (checkpoint, size) = self.checkpoint()?;
        let fetcher = EntryFetcher { client: &self.service.client, size };
        let policies: BTreeSet<u64> = self.entries.values().map(|listed| listed.policy).collect();
        let entries = self.service.block_on(fetcher.all(self.entries.keys().copied()))?;
        let policies = self.service.block_on(fetcher.all(policies))?;
        let admitted_by =
            |listed: &ListedEntry| AdmittedBy { policy: listed.policy, rule: listed.rule.clone() };
        let admitted = self.entries.values().zip(entries);
        let entries = admitted
            .map(|(listed, entry)| BundleEntry { admitted_by: Some(admitted_by(listed)), ..entry })
            .collect();
        let selections = self.selections;
        Ok(EvidenceBundle { version: VERSION, checkpoint, claims, entries, policies, selections })
    }

    /// Fetches the newest checkpoint that witnesses have cosigned; fails if its tree lacks one of the entries.
    fn checkpoint(&self) -> Result<(String, u64), Failure> {
        let note = self.service.block_on(self.service.client.bytes("checkpoint"))?;
        let text = String::from_utf8(note.into()).map_err(|_| nonsense("the checkpoint is no text"))?;
        let note = Note::parse(text.as_bytes()).map_err(|error| nonsense(&error.to_string()))?;
        let size =
            Checkpoint::parse_text(note.text()).map_err(|error| nonsense(&error.to_string()))?.size().get();
        match self.entries.last_key_value() {
            Some((last, _)) if *last >= size => {
                let what = "the newest cosigned checkpoint does not cover all entries yet";
                Err(Failure::new(Exit::TryAgain, "checkpoint-behind", what)
                    .fact("checkpoint", format!("{size} leaves"))
                    .fact("newest entry", format!("leaf {last}"))
                    .why("witnesses cosign a new tree some seconds after its entries were registered"))
            }
            _ => Ok((text, size)),
        }
    }
}

/// Fetches entries with their proofs to one tree, several at a time.
struct EntryFetcher<'c> {
    client: &'c Client,
    /// The size of the tree.
    size: u64,
}

impl EntryFetcher<'_> {
    /// Fetches the entries at these leaves, in their order.
    async fn all(&self, leaves: impl IntoIterator<Item = u64>) -> Result<Vec<BundleEntry>, ClientError> {
        stream::iter(leaves).map(|leaf| self.entry(leaf)).buffered(CONCURRENT_ENTRIES).try_collect().await
    }

    /// Fetches proof, statement, detached payload and receipt of the entry at a leaf.
    async fn entry(&self, leaf: u64) -> Result<BundleEntry, ClientError> {
        let proof = self.proof(leaf).await?;
        let id = proof.entry_id;
        let statement = self.client.statement(&id).await?;
        let payload = if statement.is_detached() { self.payload(&id).await? } else { None };
        Ok(BundleEntry {
            admitted_by: None,
            payload,
            proof: BundleProof { index: proof.index, path: proof.path },
            receipt: self.client.receipt(&id).await?.into(),
            statement: statement.bytes().to_vec(),
        })
    }

    async fn proof(&self, leaf: u64) -> Result<ServedProof, ClientError> {
        let path = format!("v1/proof/inclusion?index={leaf}&size={}", self.size);
        let proof: ServedProof = self.client.json(&path).await?;
        match proof.index == leaf {
            true => Ok(proof),
            false => Err(ClientError::Nonsense("the proof is of another leaf".to_owned())),
        }
    }

    /// Fetches a detached payload; `None` if the log did not store it.
    async fn payload(&self, entry: &EntryDigest) -> Result<Option<Vec<u8>>, ClientError> {
        match self.client.bytes(&format!("v1/entries/{entry}/payload")).await {
            Ok(payload) => Ok(Some(payload.into())),
            Err(ClientError::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn insert(
    entries: &mut BTreeMap<u64, ListedEntry>,
    listed: impl IntoIterator<Item = ListedEntry>,
) -> Result<(), Failure> {
    entries.extend(listed.into_iter().map(|entry| (entry.index, entry)));
    match entries.len() <= MAX_ENTRIES {
        true => Ok(()),
        false => {
            let what = format!("a bundle holds at most {MAX_ENTRIES} entries");
            Err(Failure::new(Exit::Failure, "bundle-too-large", what))
        }
    }
}

fn nonsense(why: &str) -> Failure {
    Failure::new(Exit::Failure, "nonsense", format!("the service's answer makes no sense: {why}"))
}

fn parsed<'de, D: Deserializer<'de>>(deserializer: D) -> Result<EntryDigest, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(|_| D::Error::custom("not 32 bytes in hexadecimal"))
}

fn hashes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Hash>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    let hash = |text: String| text.parse().map_err(|_| D::Error::custom("not 32 bytes in hexadecimal"));
    texts.into_iter().map(hash).collect()
}
