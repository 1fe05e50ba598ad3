//! `tabellion execution verify --trust`: requires that a log has registered the receipt, and the documents that explain it.

use std::path::{Path, PathBuf};

use clap::Args;
use merkle::LeafIndex;
use scitt::SignedStatement;
use verifier::{ReceiptFacts, VerificationOutcome};

use crate::commands::verify::{input, now};
use crate::console::{Exit, Failure};
use crate::context::Context;
use crate::trust_file::TrustFile;
use crate::verification;

/// The log whose receipts are required.
#[derive(Debug, Args)]
pub struct LogReceipts {
    /// Require receipts of a log in this trust file
    #[arg(long, value_name = "FILE")]
    trust: Option<PathBuf>,
    /// The log's receipt [default: in the statement]
    #[arg(long, value_name = "FILE", requires = "trust")]
    receipt: Option<PathBuf>,
}

/// The registration of a statement, as its receipts prove it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// The name of the log.
    pub log: Option<String>,
    /// The index of the entry; `None` if the log did not sign it.
    pub index: Option<LeafIndex>,
    /// The earliest time, in Unix seconds, at which a receipt shows the entry in the log.
    pub at: Option<i64>,
}

impl Registration {
    fn of(facts: &ReceiptFacts) -> Self {
        let position = facts.position.filter(|position| position.signed);
        Self { log: facts.log.clone(), index: position.map(|position| position.leaf_index), at: facts.iat }
    }
}

impl LogReceipts {
    /// Returns whether receipts are required.
    pub fn are_required(&self) -> bool {
        self.trust.is_some()
    }

    /// Verifies a receipt of the execution receipt's statement, if receipts are required.
    pub fn verify(
        &self,
        context: &Context,
        file: &Path,
        statement: &SignedStatement,
    ) -> Result<Option<Registration>, Failure> {
        let given = self.receipt.as_deref().map(input::receipt_bytes).transpose()?;
        self.verify_one(context, file, statement, given)
    }

    /// Verifies an attached receipt of a document's statement, if receipts are required.
    pub fn verify_attached(
        &self,
        context: &Context,
        file: &Path,
        statement: &SignedStatement,
    ) -> Result<Option<Registration>, Failure> {
        self.verify_one(context, file, statement, None)
    }

    /// Verifies that one of the receipts proves the registration, and returns the earliest one that a receipt proves.
    fn verify_one(
        &self,
        context: &Context,
        file: &Path,
        statement: &SignedStatement,
        given: Option<Vec<u8>>,
    ) -> Result<Option<Registration>, Failure> {
        let Some(trust) = &self.trust else { return Ok(None) };
        let trust = TrustFile::find(context, Some(trust))?;
        let attached = statement.receipts().iter().map(|receipt| receipt.as_ref().to_vec());
        let (mut failure, mut proven) = (without_receipt(file), Vec::new());
        for receipt in given.into_iter().chain(attached) {
            let verdict = verifier::verify_receipt(statement, &receipt, &trust.store, now());
            match verdict.outcome {
                VerificationOutcome::Verified => proven.extend(verdict.receipts.iter().map(Registration::of)),
                _ => failure = verification::failure(&verdict).fact("statement", file.display().to_string()),
            }
        }
        let earliest = proven.into_iter().min_by_key(|registration| registration.at.unwrap_or(i64::MAX));
        earliest.map(Some).ok_or(failure)
    }
}

fn without_receipt(file: &Path) -> Failure {
    let what = format!("{} has no receipt: nothing says that a log has it", file.display());
    Failure::new(Exit::NotVerified, "no-receipt", what)
        .hint("tabellion register FILE writes a transparent statement, which has its receipt")
}
