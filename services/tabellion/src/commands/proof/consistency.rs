//! `tabellion proof consistency`: fetches a consistency proof between two trees, as JSON or as a receipt (RFC 9942).
//!
//! The verification needs the older root from another source than the proof: a checkpoint stored earlier, or the root
//! itself.

use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args, ValueEnum};
use merkle::{EntryDigest, Hash, RootHash, TreeSize, verify};
use scitt::media::RECEIPT;
use serde::Deserialize;
use serde_json::Value as Json;
use tlog::checkpoint::Checkpoint;
use tlog::key::VerifierKey;
use tlog::note::Note;
use verifier::{Code, KnownTree, TrustStore, VerificationOutcome};

use super::{Hex, hand_over, tell, write_json};
use crate::commands::verify::{input, now};
use crate::console::{Exit, Failure};
use crate::context::Context;
use crate::service::{Service, ServiceArgs, nonsense};
use crate::trust_file::TrustFile;

#[derive(Debug, Args)]
#[command(
    before_help = "example:  tabellion proof consistency --known checkpoint --verify",
    mut_arg("timeout", |timeout| timeout.hide(true))
)]
#[command(group(ArgGroup::new("older").required(true).args(["known", "first"])))]
pub struct Consistency {
    /// A saved checkpoint: the older tree
    #[arg(long, value_name = "FILE")]
    known: Option<PathBuf>,
    /// The older size, without a checkpoint
    #[arg(long, value_name = "LEAVES")]
    first: Option<u64>,
    /// The older root in hex
    #[arg(long, value_name = "HASH", requires = "first")]
    root: Option<EntryDigest>,
    /// The newer size [default: the newest signed one]
    #[arg(long, value_name = "LEAVES")]
    second: Option<u64>,
    /// json or receipt
    #[arg(long, value_enum, default_value_t, value_name = "FORM", hide_possible_values = true)]
    form: ConsistencyFormat,
    /// Use this receipt instead of fetching one
    #[arg(long, value_name = "FILE", conflicts_with_all = ["second", "form"])]
    receipt: Option<PathBuf>,
    /// The output file
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// Verify the proof before writing it
    #[arg(long)]
    verify: bool,
    /// A verifier key of the log (vkey)
    #[arg(long, value_name = "VKEY")]
    key: Vec<VerifierKey>,
    /// The trust file
    #[arg(long, value_name = "FILE")]
    trust: Option<PathBuf>,
    #[command(flatten)]
    service: ServiceArgs,
}

/// How a proof is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum ConsistencyFormat {
    #[default]
    Json,
    Receipt,
}

/// The JSON of `GET /v1/proof/consistency`.
#[derive(Deserialize)]
struct ServedConsistencyProof {
    first: u64,
    second: u64,
    path: Vec<Hex>,
    checkpoint: Option<String>,
}

impl Consistency {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let trust = TrustFile::find(context, self.trust.as_deref())?;
        let (size, root) = self.older(&trust.store)?;
        let known = match (self.verify, root) {
            (false, _) => None,
            (true, Some(root)) => Some(KnownTree { size, root }),
            // The empty tree has only one root.
            (true, None) if size == TreeSize::EMPTY => Some(KnownTree { size, root: merkle::empty_root() }),
            (true, None) => return Err(nothing_known()),
        };
        if let Some(file) = &self.receipt {
            return self.by_receipt(context, &input::receipt_bytes(file)?, known, &trust.store);
        }
        let second = self.second.map_or_else(String::new, |second| format!("&second={second}"));
        let path = format!("v1/proof/consistency?first={size}{second}");
        let service = self.service.connect(context)?;
        match self.form {
            ConsistencyFormat::Receipt => {
                let receipt = service.block_on(service.client.bytes_as(&path, RECEIPT))?;
                self.by_receipt(context, &receipt, known, &trust.store)
            }
            ConsistencyFormat::Json => {
                let view: Json = service.block_on(service.client.json(&path))?;
                if let Some(known) = known {
                    self.by_checkpoint(context, &service, &view, &known, &trust.store)?;
                }
                write_json(context, &self.output, view)
            }
        }
    }

    /// Returns the size of the older tree, and its root, if known.
    fn older(&self, trust: &TrustStore) -> Result<(TreeSize, Option<RootHash>), Failure> {
        let Some(file) = &self.known else {
            let root = self.root.map(|root| RootHash::from_bytes(*root.as_bytes()));
            return Ok((TreeSize::new(self.first.unwrap_or_default()), root));
        };
        let bytes = input::checkpoint_bytes(file)?;
        if self.verify {
            let verdict = verifier::verify_checkpoint(&bytes, &self.key, None, trust);
            if verdict.outcome != VerificationOutcome::Verified {
                let code = verdict.reason.unwrap_or(Code::NotReached);
                let exit = crate::verification::exit(verdict.outcome);
                let what = format!("{} is not known to be the log's", file.display());
                let failure = Failure::new(exit, code.as_str(), what);
                return Err(failure.why(crate::verification::explanation(code)));
            }
        }
        let checkpoint =
            Note::parse(&bytes).map_err(|why| malformed(file, why.to_string())).and_then(|note| {
                Checkpoint::parse_text(note.text()).map_err(|why| malformed(file, why.to_string()))
            })?;
        Ok((checkpoint.size(), Some(checkpoint.root())))
    }

    fn by_receipt(
        &self,
        context: &Context,
        receipt: &[u8],
        known: Option<KnownTree>,
        trust: &TrustStore,
    ) -> Result<(), Failure> {
        let verified = known.is_some();
        if let Some(known) = known {
            let verdict = verifier::verify_consistency(receipt, &known, trust, now());
            tell(context, (verdict.outcome, verdict.reason), &verdict.checks)?;
            self.must_lead_to(verdict.newer)?;
            if self.receipt.is_some() {
                let verdict = serde_json::to_value(&verdict).unwrap_or_default();
                return write_json(context, &self.output, without_checks(verdict));
            }
        }
        hand_over(context, &self.output, RECEIPT, receipt, verified)
    }

    /// Refuses a proof to another newer size than the requested one; `None` is a size that the log did not sign.
    fn must_lead_to(&self, newer: Option<u64>) -> Result<(), Failure> {
        if self.second.is_none() || self.second == newer {
            return Ok(());
        }
        let size = |size: Option<u64>| size.map_or_else(|| "not signed".to_owned(), |size| size.to_string());
        let what = "the proof leads to another size than the requested one";
        Err(Failure::new(Exit::VerificationFailed, Code::ConsistencyMismatch.as_str(), what)
            .fact("requested", size(self.second))
            .fact("proven", size(newer)))
    }

    /// Verifies a proof in JSON with the checkpoint in it, or else with that of the same size, because JSON has no
    /// signature of its own.
    fn by_checkpoint(
        &self,
        context: &Context,
        service: &Service,
        view: &Json,
        known: &KnownTree,
        trust: &TrustStore,
    ) -> Result<(), Failure> {
        let served = ServedConsistencyProof::deserialize(view).map_err(nonsense)?;
        let note = match &served.checkpoint {
            Some(note) => note.clone().into_bytes(),
            None => {
                let path = format!("v1/checkpoints/{}", served.second);
                service.block_on(service.client.bytes(&path))?.to_vec()
            }
        };
        let verdict = verifier::verify_checkpoint(&note, &self.key, None, trust);
        tell(context, (verdict.outcome, verdict.reason), &verdict.checks)?;
        let newer = Note::parse(&note).ok().and_then(|note| Checkpoint::parse_text(note.text()).ok());
        let newer = newer.ok_or_else(|| nonsense("no checkpoint"))?;
        if newer.size().get() != served.second || served.first != known.size.get() {
            return Err(nonsense("the proof is of other sizes than were asked for"));
        }
        self.must_lead_to(Some(served.second))?;
        let path: Vec<Hash> = served.path.iter().map(|hash| hash.hash()).collect();
        let proven = match known.size {
            TreeSize::EMPTY => path.is_empty(),
            size => verify::consistency(size, newer.size(), known.root, newer.root(), &path).is_ok(),
        };
        if !proven {
            let code = Code::ConsistencyMismatch.as_str();
            let what = "the known tree is not a prefix of the tree that the log signed";
            return Err(Failure::new(Exit::VerificationFailed, code, what)
                .fact("known", format!("size {}, root {}", known.size, known.root))
                .fact("signed", format!("size {}, root {}", newer.size(), newer.root())));
        }
        let detail =
            format!("the tree of size {} is the beginning of that of size {}", known.size, newer.size());
        context.console.note(format!("ok    {:20}  {detail}", "consistency"));
        Ok(())
    }
}

fn without_checks(mut verdict: Json) -> Json {
    if let Json::Object(members) = &mut verdict {
        members.remove("checks");
    }
    verdict
}

fn nothing_known() -> Failure {
    let what = "there is no root to begin from";
    Failure::new(Exit::NotVerified, "no-known-root", what)
        .why("a root that comes with the proof proves nothing: name one that you verified before")
        .hint("tabellion proof consistency --known checkpoint --verify")
}

fn malformed(file: &Path, why: String) -> Failure {
    let what = format!("{} is not a checkpoint", file.display());
    Failure::new(Exit::Failure, Code::MalformedCheckpoint.as_str(), what).fact("found", why)
}
