//! `tabellion receipt`: fetches, shows, verifies, attaches and detaches Receipts (RFC 9942).

use std::path::{Path, PathBuf};

use bytes::Bytes;
use clap::Subcommand;
use merkle::EntryDigest;
use scitt::receipt::{LedgerStep, ReceiptError};
use scitt::{Receipt as CoseReceipt, transparent};
use serde_json::json;

use super::statement;
use super::verify::{self, VerificationFiles};
use crate::console::files::{self, Access, Existing};
use crate::console::{Exit, Failure, members};
use crate::context::Context;
use crate::service::{ServiceArgs, nonsense};
use crate::show;
use crate::trust_file::TrustFile;

#[derive(Debug, Subcommand)]
#[command(before_help = "example:  tabellion receipt get s.cose -o s.receipt")]
pub enum Receipt {
    /// Fetch a receipt from the log: that of the registration
    #[command(before_help = "example:  tabellion receipt get report.json.cose -o report.receipt")]
    Get {
        /// An entry ID, or a file that holds the statement
        entry: String,
        /// The output file
        #[arg(short, long, value_name = "FILE", default_value = "-")]
        output: PathBuf,
        /// Fetch a receipt of the newest tree
        #[arg(long)]
        fresh: bool,
        #[command(flatten)]
        service: ServiceArgs,
    },
    /// Show the contents without verifying them
    #[command(before_help = "example:  tabellion receipt inspect report.receipt")]
    Inspect {
        /// A receipt
        file: PathBuf,
    },
    /// Verify a receipt with its statement and a trusted log's key
    #[command(before_help = "example:  tabellion receipt verify report.receipt --statement report.json.cose")]
    Verify {
        /// The receipt
        file: PathBuf,
        /// The receipt's statement
        #[arg(long, value_name = "FILE")]
        statement: PathBuf,
        /// The trust file
        #[arg(long, value_name = "FILE")]
        trust: Option<PathBuf>,
    },
    /// Add receipts to a statement, which makes it a Transparent Statement
    #[command(
        before_help = "example:  tabellion receipt attach report.json.cose report.receipt -o report.transparent.cose"
    )]
    Attach {
        /// The statement
        statement: PathBuf,
        /// The receipts
        #[arg(required = true)]
        receipts: Vec<PathBuf>,
        /// The output file
        #[arg(short, long, value_name = "FILE", default_value = "-")]
        output: PathBuf,
    },
    /// Extract the receipts of a Transparent Statement
    #[command(before_help = "example:  tabellion receipt detach report.transparent.cose")]
    Detach {
        /// The Transparent Statement
        file: PathBuf,
        /// Write PREFIX.0.receipt, PREFIX.1.receipt …
        #[arg(short, long, value_name = "PREFIX")]
        output: Option<PathBuf>,
    },
}

impl Receipt {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Get { entry, output, fresh, service } => get(context, &entry, &output, fresh, &service),
            Self::Inspect { file } => inspect(context, &read(&file)?),
            Self::Verify { file, statement, trust } => {
                let evidence =
                    VerificationFiles { statement, receipts: vec![file], ..VerificationFiles::default() };
                verify::verify_receipt(context, &evidence, trust.as_deref())
            }
            Self::Attach { statement, receipts, output } => attach(&statement, &receipts, &output),
            Self::Detach { file, output } => detach(context, &file, output),
        }
    }
}

/// Returns the entry ID in an argument, or the digest of the statement in a file of that name; fails with
/// `not-an-entry`.
pub fn entry_named(argument: &str) -> Result<EntryDigest, Failure> {
    match argument.parse() {
        Ok(entry) => Ok(entry),
        Err(_) if Path::new(argument).exists() => Ok(statement::read(Path::new(argument))?.digest()),
        Err(_) => Err(Failure::new(
            Exit::Usage,
            "not-an-entry",
            format!("{argument} is neither an entry ID nor a file"),
        )
        .why("an entry ID is 64 lowercase hexadecimal digits: the SHA-256 of the statement")
        .hint("tabellion statement hash FILE")),
    }
}

/// Fetches the receipt of the registration; a fresh one if the service does not serve it. The fresh one is fetched first,
/// since this waits for a registration in progress.
fn get(
    context: &Context,
    entry: &str,
    output: &Path,
    is_fresh: bool,
    service: &ServiceArgs,
) -> Result<(), Failure> {
    let entry = entry_named(entry)?;
    let service = service.connect(context)?;
    let fresh = service.block_on(service.client.receipt(&entry))?;
    let of_batch = match is_fresh {
        true => None,
        false => service.drive(service.client.batch_receipt(&entry)).ok().flatten(),
    };
    let receipt = match of_batch {
        Some(of_batch) if !is_only_fresh_verified(context, entry, &of_batch, &fresh)? => of_batch,
        _ => fresh,
    };
    must_be_receipt(&receipt)?;
    files::write(output, &receipt, Access::Ordinary, Existing::Replace)
}

/// Returns whether the trust file verifies the fresh receipt and not that of the batch, for example because it does not
/// list the log's key of that time.
fn is_only_fresh_verified(
    context: &Context,
    entry: EntryDigest,
    of_batch: &[u8],
    fresh: &[u8],
) -> Result<bool, Failure> {
    let trust = TrustFile::find(context, None)?.store;
    let verifies =
        |receipt: &[u8]| verifier::verify_receipt_of(entry, receipt, &trust, verify::now()).is_verified();
    Ok(!verifies(of_batch) && verifies(fresh))
}

/// Refuses an answer that is no receipt, such as a page of a proxy. A receipt of a data structure that is not supported here
/// is one for other verifiers.
fn must_be_receipt(answer: &Bytes) -> Result<(), Failure> {
    match CoseReceipt::parse(answer.clone()) {
        Ok(_) | Err(ReceiptError::UnsupportedStructure(_)) => Ok(()),
        Err(ReceiptError::Malformed(error)) => Err(nonsense(format!("it is not a Receipt: {error}"))),
    }
}

fn read(file: &Path) -> Result<CoseReceipt, Failure> {
    CoseReceipt::parse(files::read(file)?).map_err(|error| {
        Failure::new(Exit::Failure, "malformed", format!("{} is not a Receipt", file.display()))
            .fact("found", error.to_string())
    })
}

fn attach(statement: &Path, receipts: &[PathBuf], output: &Path) -> Result<(), Failure> {
    let receipts =
        receipts.iter().map(|file| Ok(read(file)?.bytes().clone())).collect::<Result<Vec<_>, Failure>>()?;
    let transparent = transparent::attach(&files::read(statement)?, &receipts)
        .map_err(|error| Failure::new(Exit::Failure, "malformed", error.to_string()))?;
    files::write(output, &transparent, Access::Ordinary, Existing::Keep)
}

fn detach(context: &Context, file: &Path, prefix: Option<PathBuf>) -> Result<(), Failure> {
    let statement = statement::read(file)?;
    if statement.receipts().is_empty() {
        return Err(Failure::new(
            Exit::NotFound,
            "no-receipt",
            format!("{} carries no receipt", file.display()),
        ));
    }
    let prefix = prefix.unwrap_or_else(|| file.to_path_buf());
    for (number, receipt) in statement.receipts().iter().enumerate() {
        let target = files::with_extension(&prefix, &format!("{number}.receipt"));
        files::write(&target, receipt, Access::Ordinary, Existing::Keep)?;
        context.console.note(format!("wrote      {}", target.display()));
    }
    Ok(())
}

fn inspect(context: &Context, receipt: &CoseReceipt) -> Result<(), Failure> {
    let inclusion = receipt.inclusion_proofs().iter().map(|proof| {
        json!({ "kind": "inclusion", "tree_size": proof.tree_size.get(), "leaf_index": proof.leaf_index.get(),
                "path": proof.path.iter().map(ToString::to_string).collect::<Vec<_>>() })
    });
    let consistency = receipt.consistency_proofs().iter().map(|proof| {
        json!({ "kind": "consistency", "older": proof.older.get(), "newer": proof.newer.get(),
                "path": proof.path.iter().map(ToString::to_string).collect::<Vec<_>>() })
    });
    let ledger = receipt.ledger_proofs().iter().map(|proof| {
        let step = |step: &LedgerStep| format!("{} {}", if step.left { "left" } else { "right" }, step.hash);
        json!({ "kind": "inclusion", "statement": proof.leaf.data.to_string(),
                "transaction": proof.leaf.transaction.to_string(), "evidence": proof.leaf.evidence,
                "path": proof.path.iter().map(step).collect::<Vec<_>>() })
    });
    let (protected, structure) = (show::header(receipt.header()), receipt.structure().name());
    let proofs: Vec<_> = inclusion.chain(consistency).chain(ledger).collect();
    let attached_root = receipt.attached_root().map(ToString::to_string);
    let json = members! { protected, structure, proofs: &proofs, attached_root, verified: false };
    context.console.print(&json, |out| {
        writeln!(out, "protected")?;
        show::members(out, &protected)?;
        for proof in &proofs {
            writeln!(out, "proof ({structure})")?;
            show::members(out, proof)?;
        }
        writeln!(out, "nothing was verified: `tabellion receipt verify` does that")
    })
}
