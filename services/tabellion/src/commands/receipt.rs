//! `tabellion receipt`: fetches, shows, verifies, attaches and detaches Receipts (RFC 9942).

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Subcommand;
use merkle::EntryDigest;
use scitt::receipt::LedgerStep;
use scitt::{Receipt as CoseReceipt, transparent};
use serde::Serialize;
use serde_json::{Value as Json, json};

use super::statement;
use super::verify::{self, Evidence};
use crate::cli::Context;
use crate::console::files::{self, Access, Existing};
use crate::console::{Exit, Failure, Report};
use crate::service::ServiceArgs;
use crate::show;

#[derive(Debug, Subcommand)]
#[command(before_help = "example:  tabellion receipt get s.cose -o s.receipt")]
pub enum Receipt {
    /// Fetch a fresh receipt from the log
    #[command(before_help = "example:  tabellion receipt get report.json.cose -o report.receipt")]
    Get {
        /// An entry ID, or a file that holds the statement
        entry: String,
        /// Where to write it
        #[arg(short, long, value_name = "FILE", default_value = "-")]
        output: PathBuf,
        #[command(flatten)]
        service: ServiceArgs,
    },
    /// Show what is inside, without verifying anything
    #[command(before_help = "example:  tabellion receipt inspect report.receipt")]
    Inspect {
        /// A receipt
        file: PathBuf,
    },
    /// Check a receipt against its statement and a trusted log
    #[command(before_help = "example:  tabellion receipt verify report.receipt --statement report.json.cose")]
    Verify {
        /// The receipt
        file: PathBuf,
        /// The statement it is for
        #[arg(long, value_name = "FILE")]
        statement: PathBuf,
        /// The trust file
        #[arg(long, value_name = "FILE")]
        trust: Option<PathBuf>,
    },
    /// Put receipts into a statement: a Transparent Statement
    #[command(
        before_help = "example:  tabellion receipt attach report.json.cose report.receipt -o report.transparent.cose"
    )]
    Attach {
        /// The statement
        statement: PathBuf,
        /// Its receipts
        #[arg(required = true)]
        receipts: Vec<PathBuf>,
        /// Where to write the Transparent Statement
        #[arg(short, long, value_name = "FILE", default_value = "-")]
        output: PathBuf,
    },
    /// Take the receipts out of a Transparent Statement
    #[command(before_help = "example:  tabellion receipt detach report.transparent.cose")]
    Detach {
        /// The Transparent Statement
        file: PathBuf,
        /// Receipts go to PREFIX.0.receipt, PREFIX.1.receipt …
        #[arg(short, long, value_name = "PREFIX")]
        output: Option<PathBuf>,
    },
}

impl Receipt {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Get { entry, output, service } => get(context, &entry, &output, &service),
            Self::Inspect { file } => context.console.result(&inspection(&read(&file)?)),
            Self::Verify { file, statement, trust } => {
                let evidence = Evidence { statement, receipts: vec![file], ..Evidence::default() };
                verify::run(context, &evidence, trust.as_deref())
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

fn get(context: &Context, entry: &str, output: &Path, service: &ServiceArgs) -> Result<(), Failure> {
    let entry = entry_named(entry)?;
    let service = service.connect(context)?;
    let receipt = service.block_on(service.client.receipt(&entry))?;
    files::write(output, &receipt, Access::Ordinary, Existing::Replace)
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
        let target = statement::beside(&prefix, &format!("{number}.receipt"));
        files::write(&target, receipt, Access::Ordinary, Existing::Keep)?;
        context.console.note(format!("wrote      {}", target.display()));
    }
    Ok(())
}

#[derive(Serialize)]
struct Inspection {
    protected: Json,
    structure: &'static str,
    proofs: Vec<Json>,
    attached_root: Option<String>,
    verified: bool,
}

fn inspection(receipt: &CoseReceipt) -> Inspection {
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
    Inspection {
        protected: show::header(receipt.header()),
        structure: receipt.structure().name(),
        proofs: inclusion.chain(consistency).chain(ledger).collect(),
        attached_root: receipt.attached_root().map(ToString::to_string),
        verified: false,
    }
}

impl Report for Inspection {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "protected")?;
        if let Json::Object(members) = &self.protected {
            show::lines(out, 2, members)?;
        }
        for proof in &self.proofs {
            writeln!(out, "proof ({})", self.structure)?;
            if let Json::Object(members) = proof {
                show::lines(out, 2, members)?;
            }
        }
        writeln!(out, "nothing was verified: `tabellion receipt verify` does that")
    }
}
