//! `tabellion proof inclusion`: fetches an inclusion proof as JSON, as a receipt, or as a tlog-proof, which contains
//! the checkpoint with its cosignatures.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use bytes::Bytes;
use clap::{Args, ValueEnum};
use merkle::{EntryDigest, Hash, LeafIndex, TreeSize, verify::implied_root};
use scitt::media::RECEIPT;
use serde::Deserialize;
use serde_json::Value as Json;
use tlog::checkpoint::Checkpoint;
use tlog::proof::TlogProof;

use super::{Hex, TLOG_PROOF, hand_over, tell, write_json};
use crate::commands::statement;
use crate::commands::verify::{now, witness_policy};
use crate::console::{Exit, Failure};
use crate::context::Context;
use crate::service::{Service, ServiceArgs, nonsense};
use crate::trust_file::TrustFile;

#[derive(Debug, Args)]
#[command(
    before_help = "example:  tabellion proof inclusion report.json.cose --form tlog-proof -o report.tlog-proof",
    mut_arg("timeout", |timeout| timeout.hide(true)),
    mut_arg("cacert", |cacert| cacert.hide(true))
)]
pub struct Inclusion {
    /// An entry ID, a file that holds the statement, or a leaf index
    entry: String,
    /// The tree size [default: the newest signed one]
    #[arg(long, value_name = "LEAVES")]
    size: Option<u64>,
    /// json, receipt or tlog-proof
    #[arg(long, value_enum, default_value_t, value_name = "FORM", hide_possible_values = true)]
    form: InclusionFormat,
    /// The output file
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// Verify the proof before writing it
    #[arg(long)]
    verify: bool,
    /// Require the quorum of this policy (C2SP tlog-policy)
    #[arg(long, alias = "policy", value_name = "FILE", requires = "verify")]
    witness_policy: Option<PathBuf>,
    /// The trust file
    #[arg(long, value_name = "FILE")]
    trust: Option<PathBuf>,
    #[command(flatten)]
    service: ServiceArgs,
}

/// How a proof is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum InclusionFormat {
    #[default]
    Json,
    Receipt,
    TlogProof,
}

/// The JSON of `GET /v1/proof/inclusion`.
#[derive(Deserialize)]
struct ServedInclusionProof {
    index: u64,
    entry_id: Hex,
    tree_size: u64,
    leaf_hash: Hex,
    path: Vec<Hex>,
    root: Hex,
}

impl Inclusion {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        self.asked_digest()?;
        let service = self.service.connect(context)?;
        match self.form {
            InclusionFormat::Json => self.json(context, &service),
            InclusionFormat::Receipt if self.witness_policy.is_some() => {
                let what = "a receipt carries no cosignatures: ask for --form tlog-proof";
                Err(Failure::new(Exit::Usage, "usage", what))
            }
            InclusionFormat::Receipt => {
                let receipt = self.fetch(&service, self.size, RECEIPT)?;
                if self.verify {
                    self.verify_receipt(context, self.digest(&service)?, &receipt)?;
                }
                hand_over(context, &self.output, RECEIPT, &receipt, self.verify)
            }
            InclusionFormat::TlogProof => {
                let proof = self.fetch(&service, self.size, TLOG_PROOF)?;
                if self.verify {
                    self.verify_tlog_proof(context, self.digest(&service)?, &proof)?;
                }
                hand_over(context, &self.output, TLOG_PROOF, &proof, self.verify)
            }
        }
    }

    /// Fetches a proof in JSON. It has no signature, so it is verified with the tlog-proof of the same tree.
    fn json(&self, context: &Context, service: &Service) -> Result<(), Failure> {
        let view: Json = service.block_on(service.client.json(&self.query(self.size)))?;
        if self.verify {
            let served = ServedInclusionProof::deserialize(&view).map_err(nonsense)?;
            let asked = self.asked_digest()?.unwrap_or(served.entry_id.0);
            self.must_be_requested(&served, asked)?;
            let bytes = self.fetch(service, Some(served.tree_size), TLOG_PROOF)?;
            let checkpoint = self.verify_tlog_proof(context, asked, &bytes)?;
            let (leaf, size) = (LeafIndex::new(served.index), TreeSize::new(served.tree_size));
            let path: Vec<Hash> = served.path.iter().map(|hash| hash.hash()).collect();
            let root = implied_root(asked.leaf_hash(), leaf, size, &path).ok();
            if root.is_none() || size != checkpoint.size() || root != Some(checkpoint.root()) {
                return Err(mismatch("the path does not lead to the root of the checkpoint of that size"));
            }
            if root.map(Hash::from) != Some(served.root.hash()) {
                return Err(mismatch("the root in the answer is not the one of the checkpoint of that size"));
            }
        }
        write_json(context, &self.output, view)
    }

    /// Refuses an answer that names another entry, leaf, leaf hash or tree size than the requested ones.
    fn must_be_requested(&self, served: &ServedInclusionProof, entry: EntryDigest) -> Result<(), Failure> {
        if served.entry_id.0 != entry {
            return Err(mismatch(OTHER_ENTRY));
        }
        self.must_be_at(LeafIndex::new(served.index), TreeSize::new(served.tree_size))?;
        match served.leaf_hash.hash() == Hash::from(entry.leaf_hash()) {
            true => Ok(()),
            false => Err(mismatch("the leaf hash in the answer is not that of the entry")),
        }
    }

    /// Refuses a proof of another leaf or tree size than the requested ones.
    fn must_be_at(&self, leaf: LeafIndex, size: TreeSize) -> Result<(), Failure> {
        if self.leaf().is_some_and(|requested| requested != leaf.get()) {
            return Err(mismatch(OTHER_ENTRY));
        }
        match self.size.is_none_or(|requested| requested == size.get()) {
            true => Ok(()),
            false => Err(mismatch("the answer is about another tree size than the requested one")),
        }
    }

    fn verify_receipt(&self, context: &Context, entry: EntryDigest, receipt: &[u8]) -> Result<(), Failure> {
        let verdict = verifier::verify_receipt_of(entry, receipt, &self.trust(context)?.store, now());
        tell(context, (verdict.outcome, verdict.reason), &verdict.checks)?;
        match verdict.receipts.first().and_then(|receipt| receipt.position) {
            Some(position) => self.must_be_at(position.leaf_index, position.tree_size),
            None => Ok(()),
        }
    }

    /// Verifies a tlog-proof; returns its checkpoint.
    fn verify_tlog_proof(
        &self,
        context: &Context,
        entry: EntryDigest,
        bytes: &[u8],
    ) -> Result<Checkpoint, Failure> {
        let trust = self.trust(context)?;
        let policy = self.witness_policy.as_deref().map(witness_policy).transpose()?;
        let verdict = verifier::verify_tlog_proof_of(entry, bytes, policy.as_ref(), &trust.store);
        tell(context, (verdict.outcome, verdict.reason), &verdict.checks)?;
        let proof = TlogProof::from_str(&String::from_utf8_lossy(bytes)).map_err(nonsense)?;
        let checkpoint = proof.checkpoint().map_err(nonsense)?;
        self.must_be_at(proof.index(), checkpoint.size())?;
        Ok(checkpoint)
    }

    fn trust(&self, context: &Context) -> Result<TrustFile, Failure> {
        TrustFile::find(context, self.trust.as_deref())
    }

    fn fetch(&self, service: &Service, size: Option<u64>, form: &'static str) -> Result<Bytes, Failure> {
        service.block_on(service.client.bytes_as(&self.query(size), form))
    }

    fn query(&self, size: Option<u64>) -> String {
        let entry = match self.leaf() {
            Some(index) => format!("index={index}"),
            None => format!(
                "entry_id={}",
                self.asked_digest().ok().flatten().map_or_else(String::new, |id| id.to_string())
            ),
        };
        let size = size.map_or_else(String::new, |size| format!("&size={size}"));
        format!("v1/proof/inclusion?{entry}{size}")
    }

    fn leaf(&self) -> Option<u64> {
        self.entry.parse().ok().filter(|_| self.entry.parse::<EntryDigest>().is_err())
    }

    /// Returns the digest of the named entry; `None` for a leaf index, whose entry the log determines and proves.
    fn asked_digest(&self) -> Result<Option<EntryDigest>, Failure> {
        if self.leaf().is_some() {
            return Ok(None);
        }
        match self.entry.parse() {
            Ok(entry) => Ok(Some(entry)),
            Err(_) => Ok(Some(statement::read(Path::new(&self.entry))?.digest())),
        }
    }

    fn digest(&self, service: &Service) -> Result<EntryDigest, Failure> {
        if let Some(digest) = self.asked_digest()? {
            return Ok(digest);
        }
        let served: ServedInclusionProof = service.block_on(service.client.json(&self.query(self.size)))?;
        self.must_be_requested(&served, served.entry_id.0)?;
        Ok(served.entry_id.0)
    }
}

/// The error of an answer about another leaf.
const OTHER_ENTRY: &str = "the answer is about another entry than the requested one";

fn mismatch(what: &str) -> Failure {
    Failure::new(Exit::VerificationFailed, verifier::Code::TlogProofMismatch.as_str(), what)
}
