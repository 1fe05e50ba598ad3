//! Packs entries of the log into an evidence bundle: statements, payloads, receipts, proofs that lead to the checkpoint of
//! `/checkpoint`, and the policies that admitted them.
//!
//! The caller needs the same permissions as for reading each statement by itself. Not here: which entries
//! ([`super::bundles`]), and the format (the crate `bundle`).

use std::collections::BTreeSet;

use bundle::{AdmittedBy, BundleClaims, BundleEntry, BundleProof, EvidenceBundle, VERSION};
use bytes::Bytes;
use http::StatusCode;
use merkle::{LeafIndex, TreeSize};
use scitt::KeySet;
use store::Entry;
use verifier::{TrustStore, TrustedLog};

use super::delegations::PageReader;
use crate::edge::problem::Problem;
use crate::limits::{BUNDLE_BYTES, BUNDLE_ENTRIES, BUNDLE_STATEMENTS_A_READ, WITNESS_PACE};
use crate::log::state::{Log, Resolved};
use crate::routes::bodies::must_be_open;
use crate::routes::payloads::{attached, kept};
use crate::routes::proof::inclusion_path;
use crate::routes::statements::erased;
use crate::routes::tlog;
use crate::time::{now, rfc3339};

/// A bundle that is being packed.
pub struct BundlePacker<'a> {
    reader: PageReader<'a>,
    /// The tree to whose root all proofs lead.
    size: TreeSize,
    checkpoint: String,
    /// Number of entries and policies so far.
    statements: usize,
    /// Bytes of their statements and payloads.
    bytes: usize,
}

impl<'a> BundlePacker<'a> {
    /// Begins a bundle with the newest checkpoint that enough witnesses have cosigned.
    pub async fn new(reader: PageReader<'a>) -> Result<Self, Problem> {
        let (size, note) = tlog::served(reader.app).await?;
        let checkpoint = String::from_utf8(note.into()).map_err(|_| Problem::internal())?;
        Ok(Self { reader, size, checkpoint, statements: 0, bytes: 0 })
    }

    /// Packs the entries at these leaves, which are in ascending order, with the policies that admitted them.
    pub async fn pack(
        mut self,
        leaves: impl IntoIterator<Item = LeafIndex>,
    ) -> Result<EvidenceBundle, Problem> {
        let (mut entries, mut admitting) = (Vec::new(), BTreeSet::new());
        for leaf in leaves {
            let entry = self.read(leaf).await?;
            admitting.insert(entry.policy);
            let admitted_by = AdmittedBy { policy: entry.policy.get(), rule: entry.rule.clone() };
            entries.push(BundleEntry { admitted_by: Some(admitted_by), ..self.with_proofs(entry).await? });
        }
        let mut policies = Vec::new();
        for leaf in admitting {
            let policy = self.read(leaf).await?;
            policies.push(self.with_proofs(policy).await?);
        }
        let claims = claims(&self.reader.app.log);
        let (checkpoint, selections) = (self.checkpoint, Vec::new());
        Ok(EvidenceBundle { version: VERSION, checkpoint, claims, entries, policies, selections })
    }

    async fn read(&self, leaf: LeafIndex) -> Result<Entry, Problem> {
        if !self.size.holds(leaf) {
            let detail =
                format!("The newest checkpoint has {} leaves, and leaf {leaf} is not covered yet", self.size);
            return Err(Problem::busy("checkpoint-behind", detail, WITNESS_PACE.as_secs()));
        }
        let entry = self.reader.app.log.store.entry(leaf).await?;
        Ok(entry.ok_or_else(|| Problem::unknown_entry(&leaf.to_string()))?.verified()?)
    }

    async fn with_proofs(&mut self, entry: Entry) -> Result<BundleEntry, Problem> {
        let PageReader { app, caller, .. } = self.reader;
        must_be_open(app, caller, &entry)?;
        let statement = entry.statement.clone().ok_or_else(erased)?;
        let payload = match attached(&statement)? {
            Some(_) => None,
            None => kept(app, &entry).await?,
        };
        self.count(statement.len() + payload.as_ref().map_or(0, Bytes::len))?;
        let (_, path) = inclusion_path(app, entry.index, Some(self.size.get())).await?;
        Ok(BundleEntry {
            admitted_by: None,
            payload: payload.map(Vec::from),
            proof: BundleProof { index: entry.index.get(), path },
            receipt: self.receipt(entry.index).await?.into(),
            statement: statement.into(),
        })
    }

    /// Counts a statement, and charges the client for it.
    fn count(&mut self, bytes: usize) -> Result<(), Problem> {
        self.statements += 1;
        self.bytes += bytes;
        if self.statements.is_multiple_of(BUNDLE_STATEMENTS_A_READ) {
            self.reader.charge.charge()?;
        }
        if self.bytes > BUNDLE_BYTES { Err(too_large()) } else { Ok(()) }
    }

    async fn receipt(&self, leaf: LeafIndex) -> Result<Bytes, Problem> {
        match self.reader.app.log.dated_receipt(leaf).await? {
            Resolved::Receipt(receipt) => Ok(receipt),
            _ => Err(Problem::busy("not-signed-yet", "An entry has no receipt yet", 1)),
        }
    }
}

/// The problem of a bundle beyond the bounds.
pub fn too_large() -> Problem {
    let detail = format!(
        "Pages offer a bundle of at most {BUNDLE_ENTRIES} entries and {} MiB: tabellion bundle NAME -o FILE makes a larger one",
        BUNDLE_BYTES >> 20
    );
    Problem::new(StatusCode::CONFLICT, "bundle-too-large", "Bundle Too Large", detail)
}

/// What the bundle says of itself, unsigned: from where it is, and the keys and witnesses of this log.
fn claims(log: &Log) -> BundleClaims {
    let trust = TrustStore { logs: vec![own_keys(log)], ..TrustStore::default() };
    BundleClaims {
        created_at: rfc3339(now()).unwrap_or_default(),
        log_url: log.identity.public_url.clone(),
        trust: trust.to_toml(),
        witness_policy: log.witnessing.policy().map(ToString::to_string),
    }
}

fn own_keys(log: &Log) -> TrustedLog {
    let identity = &log.identity;
    let published = KeySet::parse(&log.keys.load().set).map(|set| set.keys().to_vec()).unwrap_or_default();
    TrustedLog {
        checkpoint_keys: vec![identity.checkpoint_key.clone()],
        ..TrustedLog::new(identity.iss.clone(), identity.origin.clone(), published)
    }
}
