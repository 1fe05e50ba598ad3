//! Requests to the log for evidence about its index: policies, statements, receipts, paths, and proven searches.

use std::sync::Arc;

use audit::{AuditSource, EntryEvidence, LeafRow, SourceError};
use bytes::Bytes;
use client::{Client, ClientError};
use data_encoding::BASE64;
use merkle::{Hash, LeafIndex, TreeSize};
use registration::COLLATERAL_PAYLOAD;
use scitt::SignedStatement;
use search_evidence::PolicyIndex;
use serde::Deserialize;
use tlog::checkpoint::Origin;
use verifier::index::{IndexHeadEvidence, SearchProof};

use crate::remote_audit_source::RemoteAuditSource;
use crate::signed_checkpoint::SignedCheckpoint;

/// A log with an index, as its client sees it.
pub struct IndexedLog<'a> {
    client: &'a Client,
    origin: &'a Origin,
    entries: RemoteAuditSource<'a>,
    /// The newest policy that was read; `None` if it describes no index.
    policy: Option<(LeafIndex, Option<IndexPolicy>)>,
}

/// A policy with an index, and its statement.
#[derive(Clone)]
pub struct IndexPolicy {
    /// The statement of the policy.
    pub statement: SignedStatement,
    /// The index that it describes.
    pub index: Arc<PolicyIndex>,
}

#[derive(Deserialize)]
struct PathView {
    path: Vec<String>,
}

#[derive(Deserialize)]
struct ProvenPage {
    proof: Option<PageProof>,
}

#[derive(Deserialize)]
struct PageProof {
    /// The encoded [`SearchProof`] in base64.
    file: String,
}

/// An entry with its detached payload.
pub struct ServedEntry {
    /// The statement.
    pub statement: SignedStatement,
    /// The payload, if the log serves one.
    pub payload: Option<Bytes>,
}

/// Reads the detached payload of an entry, if the log serves one.
pub async fn payload(source: &dyn AuditSource, leaf: LeafIndex) -> Result<Option<Bytes>, SourceError> {
    let collateral = source.collateral(leaf).await?;
    Ok(collateral.into_iter().find(|item| item.kind == COLLATERAL_PAYLOAD).map(|item| item.bytes))
}

impl<'a> IndexedLog<'a> {
    /// The log of a client, whose tree was verified in this round.
    pub fn new(client: &'a Client, origin: &'a Origin, seen: &SignedCheckpoint) -> Self {
        Self {
            client,
            origin,
            entries: RemoteAuditSource::with_verified_head(client, seen.head(), None),
            policy: None,
        }
    }

    /// Reads the policy at a leaf; `None` if the entry describes no index.
    pub async fn policy(&mut self, leaf: LeafIndex) -> Result<Option<IndexPolicy>, SourceError> {
        if let Some((_, policy)) = self.policy.as_ref().filter(|(known, _)| *known == leaf) {
            return Ok(policy.clone());
        }
        let entry = self.entry(leaf).await?;
        let policy = entry.and_then(|entry| {
            let index = PolicyIndex::read(entry.statement.payload()?, &self.origin.to_string()).ok()?;
            Some(IndexPolicy { statement: entry.statement, index: Arc::new(index) })
        });
        self.policy = Some((leaf, policy.clone()));
        Ok(policy)
    }

    /// Reads an entry; `None` if its statement is not served or malformed.
    pub async fn entry(&self, leaf: LeafIndex) -> Result<Option<ServedEntry>, SourceError> {
        let Some(LeafRow::Kept(row)) = self.entries.rows(leaf, 1).await?.pop() else { return Ok(None) };
        let EntryEvidence { statement: Some(statement), .. } = *row else { return Ok(None) };
        let Ok(statement) = SignedStatement::parse(statement) else { return Ok(None) };
        let payload = payload(&self.entries, leaf).await?;
        Ok(Some(ServedEntry { statement, payload }))
    }

    /// Fetches a receipt of a statement.
    pub async fn receipt(&self, statement: &SignedStatement) -> Result<Vec<u8>, ClientError> {
        Ok(self.client.receipt(&statement.digest()).await?.to_vec())
    }

    /// Fetches a receipt of a head.
    pub async fn head(&self, statement: &SignedStatement) -> Result<IndexHeadEvidence, ClientError> {
        let receipt = self.receipt(statement).await?;
        Ok(IndexHeadEvidence { statement: statement.bytes().to_vec(), receipt })
    }

    /// Fetches the statement of an entry.
    pub async fn statement(&self, entry: &str) -> Result<SignedStatement, ClientError> {
        let digest =
            entry.parse().map_err(|_| ClientError::Nonsense(format!("{entry} is not an entry ID")))?;
        self.client.statement(&digest).await
    }

    /// Fetches the path from a leaf to the root of the tree of a size. It is not verified.
    pub async fn inclusion(&self, leaf: LeafIndex, size: TreeSize) -> Result<Vec<Hash>, ClientError> {
        self.path(&format!("v1/proof/inclusion?index={leaf}&size={size}")).await
    }

    /// Fetches the path of consistency from one tree to a larger one. It is not verified.
    pub async fn consistency(&self, first: TreeSize, second: TreeSize) -> Result<Vec<Hash>, ClientError> {
        self.path(&format!("v1/proof/consistency?first={first}&second={second}")).await
    }

    async fn path(&self, request: &str) -> Result<Vec<Hash>, ClientError> {
        let view: PathView = self.client.json(request).await?;
        let hashes = view.path.iter().map(|hash| hash.parse()).collect::<Result<_, _>>();
        hashes.map_err(|_| ClientError::Nonsense(format!("{request}: a hash is malformed")))
    }

    /// Fetches the proof of the entries with a term among one leaf. It is not verified.
    pub async fn prove(&self, term: &str, leaf: LeafIndex) -> Result<SearchProof, ClientError> {
        let after = leaf.get().checked_sub(1).map(|after| format!("&after={after}")).unwrap_or_default();
        let before = leaf.get().saturating_add(1);
        let request = format!("v1/entries?{term}{after}&before={before}&limit=1&proof=1");
        let nonsense = |why: String| ClientError::Nonsense(format!("{request}: {why}"));
        let page: ProvenPage = self.client.json(&request).await?;
        let proof = page.proof.ok_or_else(|| nonsense("no proof".into()))?;
        let bytes = BASE64.decode(proof.file.as_bytes()).map_err(|why| nonsense(why.to_string()))?;
        SearchProof::decode(&bytes).map_err(|why| nonsense(why.to_string()))
    }
}
