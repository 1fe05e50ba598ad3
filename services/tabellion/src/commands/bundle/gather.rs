//! Fetches the parts of a bundle from a log. The log's answers are not believed: the bundle is verified before it is
//! written.

use std::collections::{BTreeMap, BTreeSet};

use bundle::{
    AdmittedBy, BundleClaims, BundleEntry, BundleProof, BundleSelection, EvidenceBundle, MAX_ENTRIES,
    SelectedBy, VERSION,
};
use client::{Client, ClientError};
use display::counted;
use futures::stream::{self, StreamExt, TryStreamExt};
use merkle::{EntryDigest, Hash};
use serde::{Deserialize, Deserializer, de::Error};
use tlog::checkpoint::Checkpoint;
use tlog::note::Note;
use verifier::TrustStore;

use crate::commands::verify::now;
use crate::console::{Exit, Failure};
use crate::service::{Service, nonsense, percent_encoded};

/// Number of entries per page of a session or a search.
const PAGE: usize = 1000;
/// Maximum number of entries that are fetched at a time.
const CONCURRENT_ENTRIES: usize = 8;
/// Code of the service for a session of which it has no entry.
const NAME_UNKNOWN: &str = "name-unknown";
/// Code of a session or agent of which the log's index names no entry.
const NOTHING_SELECTED: &str = "nothing-selected";

/// Entries of one log that are to be bundled.
pub struct Gatherer<'s> {
    service: &'s Service,
    /// Trust of the reader, by which receipts are chosen.
    trust: &'s TrustStore,
    entries: BTreeMap<u64, ListedEntry>,
    selections: Vec<BundleSelection>,
    sessions_with_more_receipts: Vec<String>,
}

/// The entries that the log's index names for a session or an agent; at least one.
struct NamedEntries {
    by: SelectedBy,
    name: String,
    entries: BTreeMap<u64, ListedEntry>,
    indexed_to: u64,
    /// Whether there are verification receipts that share a digest with the session and are not listed.
    has_more_receipts: bool,
}

/// An entry in a list of the service.
#[derive(Clone, Deserialize)]
pub struct ListedEntry {
    /// The entry ID.
    #[serde(deserialize_with = "parsed")]
    pub entry_id: EntryDigest,
    /// Leaf index.
    pub index: u64,
    /// Leaf index of the policy that admitted it, according to the log.
    pub policy: u64,
    /// The rule of that policy.
    pub rule: String,
}

/// The tree of the newest checkpoint that witnesses have cosigned.
pub struct CosignedTree {
    /// The checkpoint with its cosignatures (C2SP tlog-checkpoint). Not verified.
    pub checkpoint: String,
    /// The origin of the log.
    pub origin: String,
    /// The tree size.
    pub size: u64,
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
pub struct ServedProof {
    /// Leaf index.
    pub index: u64,
    /// The entry ID.
    #[serde(deserialize_with = "parsed")]
    pub entry_id: EntryDigest,
    /// Hashes from the leaf to the root.
    #[serde(deserialize_with = "hashes")]
    pub path: Vec<Hash>,
}

impl<'s> Gatherer<'s> {
    /// Creates a gatherer without entries.
    pub fn new(service: &'s Service, trust: &'s TrustStore) -> Self {
        Self {
            service,
            trust,
            entries: BTreeMap::new(),
            selections: Vec::new(),
            sessions_with_more_receipts: Vec::new(),
        }
    }

    /// Adds every entry of a session, and the verification receipts that share a digest with them.
    pub fn add_session(&mut self, session: &str) -> Result<(), Failure> {
        let named = self.session(session)?;
        self.select(named)
    }

    /// Adds every entry of an agent.
    pub fn add_agent(&mut self, agent: &str) -> Result<(), Failure> {
        let named = self.agent(agent)?;
        self.select(named)
    }

    /// Adds every entry of the session or of the agent of this name; fails if the log has neither or both.
    pub fn add_session_or_agent(&mut self, name: &str) -> Result<(), Failure> {
        match (if_any(self.session(name))?, if_any(self.agent(name))?) {
            (Some(named), None) | (None, Some(named)) => self.select(named),
            (Some(_), Some(_)) => Err(ambiguous(name)),
            (None, None) => Err(nothing_selected(format!(
                "{name} is neither an entry ID nor a file, and the log's index names no session or agent {name}"
            ))),
        }
    }

    /// Adds entries that the service listed.
    pub fn add_listed(&mut self, listed: impl IntoIterator<Item = ListedEntry>) -> Result<(), Failure> {
        insert(&mut self.entries, listed)
    }

    /// Adds one entry.
    pub fn add_entry(&mut self, entry: &EntryDigest) -> Result<(), Failure> {
        let listed: ListedEntry =
            self.service.block_on(self.service.client.json(&format!("v1/entries/{entry}")))?;
        insert(&mut self.entries, [listed])
    }

    /// Returns the sessions that have more verification receipts than the log listed.
    pub fn sessions_with_more_receipts(&self) -> &[String] {
        &self.sessions_with_more_receipts
    }

    fn session(&self, session: &str) -> Result<NamedEntries, Failure> {
        let mut named = NamedEntries::new(SelectedBy::Session, session);
        let path = format!("v1/sessions/{}?limit={PAGE}", percent_encoded(session));
        self.service.pages(path, |page: SessionPage| {
            named.has_more_receipts |= page.more_receipts;
            named.indexed_to = page.indexed_to;
            insert(&mut named.entries, page.entries.into_iter().chain(page.receipts))
        })?;
        named.unless_empty()
    }

    fn agent(&self, agent: &str) -> Result<NamedEntries, Failure> {
        let mut named = NamedEntries::new(SelectedBy::Agent, agent);
        let path = format!("v1/entries?agent={}&limit={PAGE}", percent_encoded(agent));
        self.service.pages(path, |page: SearchPage| {
            named.indexed_to = page.indexed_to;
            insert(&mut named.entries, page.entries)
        })?;
        named.unless_empty()
    }

    fn select(&mut self, named: NamedEntries) -> Result<(), Failure> {
        let NamedEntries { by, name, entries: found, indexed_to, has_more_receipts } = named;
        if has_more_receipts {
            self.sessions_with_more_receipts.push(name.clone());
        }
        let entries = found.values().map(|entry| entry.entry_id).collect();
        self.selections.push(BundleSelection { by, entries, indexed_to, name });
        insert(&mut self.entries, found.into_values())
    }

    /// Fetches checkpoint, statements, receipts, proofs and policies.
    pub fn finish(self, claims: BundleClaims) -> Result<EvidenceBundle, Failure> {
        let tree = CosignedTree::fetch(self.service)?;
        self.finish_at(tree, claims)
    }

    /// Fetches statements, receipts, policies, and proofs to this tree; fails if the tree lacks one of the entries.
    pub fn finish_at(self, tree: CosignedTree, claims: BundleClaims) -> Result<EvidenceBundle, Failure> {
        tree.covers(self.entries.last_key_value().map(|(last, _)| *last))?;
        let fetcher = EntryFetcher::new(self.service, self.trust, &tree);
        let policies: BTreeSet<u64> = self.entries.values().map(|listed| listed.policy).collect();
        let entries = self.service.block_on(fetcher.all(self.entries.keys().copied()))?;
        let policies = self.service.block_on(fetcher.all(policies))?;
        let admitted_by =
            |listed: &ListedEntry| AdmittedBy { policy: listed.policy, rule: listed.rule.clone() };
        let admitted = self.entries.values().zip(entries);
        let entries = admitted
            .map(|(listed, entry)| BundleEntry { admitted_by: Some(admitted_by(listed)), ..entry })
            .collect();
        let (checkpoint, selections) = (tree.checkpoint, self.selections);
        Ok(EvidenceBundle { version: VERSION, checkpoint, claims, entries, policies, selections })
    }
}

impl NamedEntries {
    fn new(by: SelectedBy, name: &str) -> Self {
        let name = name.to_owned();
        Self { by, name, entries: BTreeMap::new(), indexed_to: 0, has_more_receipts: false }
    }

    fn unless_empty(self) -> Result<Self, Failure> {
        match self.entries.is_empty() {
            false => Ok(self),
            true => Err(nothing_selected(format!(
                "the log's index names no entry of {} {}",
                self.by.as_str(),
                self.name
            ))),
        }
    }
}

/// Returns `None` if the failure says that the log has no entry of the name.
fn if_any(named: Result<NamedEntries, Failure>) -> Result<Option<NamedEntries>, Failure> {
    match named {
        Err(failure) if failure.has_code(NAME_UNKNOWN) || failure.has_code(NOTHING_SELECTED) => Ok(None),
        other => other.map(Some),
    }
}

fn nothing_selected(what: String) -> Failure {
    Failure::new(Exit::NotFound, NOTHING_SELECTED, what)
}

fn ambiguous(name: &str) -> Failure {
    let what = format!("the log has both a session and an agent {name}");
    Failure::new(Exit::Usage, "name-ambiguous", what)
        .why("--kind session or --kind agent says which one is meant")
}

impl CosignedTree {
    /// Fetches the newest checkpoint that witnesses have cosigned.
    pub fn fetch(service: &Service) -> Result<Self, Failure> {
        let note = service.block_on(service.client.bytes("checkpoint"))?;
        let text = String::from_utf8(note.into()).map_err(|_| nonsense("the checkpoint is not text"))?;
        let note = Note::parse(text.as_bytes()).map_err(nonsense)?;
        let checkpoint = Checkpoint::parse_text(note.text()).map_err(nonsense)?;
        let (origin, size) = (checkpoint.origin().to_string(), checkpoint.size().get());
        Ok(Self { checkpoint: text, origin, size })
    }

    /// Fails if the tree lacks the newest of the entries.
    fn covers(&self, newest: Option<u64>) -> Result<(), Failure> {
        match newest.filter(|newest| *newest >= self.size) {
            None => Ok(()),
            Some(newest) => {
                let what = "the newest cosigned checkpoint does not cover all entries yet";
                Err(Failure::new(Exit::TryAgain, "checkpoint-behind", what)
                    .fact("checkpoint", counted(self.size, "leaf", "leaves"))
                    .fact("newest entry", format!("leaf {newest}"))
                    .why("witnesses cosign a new tree some seconds after its entries were registered"))
            }
        }
    }
}

/// Fetches entries with their proofs to one tree, several at a time.
pub struct EntryFetcher<'c> {
    client: &'c Client,
    trust: &'c TrustStore,
    /// The size of the tree.
    size: u64,
}

impl<'c> EntryFetcher<'c> {
    /// Creates a fetcher of proofs to this tree, and of receipts that `trust` verifies.
    pub fn new(service: &'c Service, trust: &'c TrustStore, tree: &CosignedTree) -> Self {
        Self { client: &service.client, trust, size: tree.size }
    }

    /// Fetches the entries at these leaves, in their order.
    pub async fn all(&self, leaves: impl IntoIterator<Item = u64>) -> Result<Vec<BundleEntry>, ClientError> {
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
            receipt: self.client.dated_receipt(&statement, self.trust, now()).await?.into(),
            statement: statement.bytes().to_vec(),
        })
    }

    /// Fetches the proof of a leaf, whose entry may be erased.
    pub async fn proof(&self, leaf: u64) -> Result<ServedProof, ClientError> {
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

fn parsed<'de, D: Deserializer<'de>>(deserializer: D) -> Result<EntryDigest, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(|_| D::Error::custom("not 32 bytes in hexadecimal"))
}

fn hashes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Hash>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    let hash = |text: String| text.parse().map_err(|_| D::Error::custom("not 32 bytes in hexadecimal"));
    texts.into_iter().map(hash).collect()
}
