//! `tabellion execution sign`: creates a statement of an execution receipt in JSON.

use std::path::PathBuf;

use clap::Args;
use registration::aer::{AerRecord, AerStatement, VerifyingKeys};
use scitt::{SignedStatement, Signer};

use super::summary::ExecutionSummary;
use crate::commands::signed_output::SignedOutput;
use crate::console::{Failure, files};
use crate::context::Context;
use crate::keyfile;

#[derive(Debug, Args)]
pub struct Sign {
    /// The receipt (JSON); signed first if it has no `signatures`
    file: PathBuf,
    /// The gateway's Ed25519 key
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// The key's name in the receipt [default: its gateway_id]
    #[arg(long, value_name = "NAME")]
    signer: Option<String>,
    /// The statement's issuer [default: the key's did:key]
    #[arg(long, value_name = "URI")]
    iss: Option<String>,
    /// The key that signs the statement [default: the gateway's]
    #[arg(long, value_name = "FILE")]
    issuer_key: Option<PathBuf>,
    /// Use the session as the statement's subject
    #[arg(long)]
    about_session: bool,
    /// Sign the receipt's hash only; the receipt is written to FILE.disclosure
    #[arg(long)]
    redacted: bool,
    /// The output file [default: FILE.cose]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Sign {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let gateway = keyfile::read(&self.key)?;
        let statement = self.statement()?;
        let receipt = statement.receipt(&gateway).map_err(keyfile::cannot_sign)?;
        let issuer = self.issuer_key.as_deref().map(keyfile::read).transpose()?;
        let issuer = issuer.as_ref().unwrap_or(&gateway);
        let signed = statement.sign_with(&gateway, issuer).map_err(keyfile::cannot_sign)?;
        // Signatures already in the receipt are verified, too.
        let gateway = [gateway.public_key().clone(), issuer.public_key().clone()];
        let keys = VerifyingKeys { gateway: &gateway, issuer: issuer.public_key() };
        let disclosed = self.redacted.then_some(receipt.as_slice());
        let record =
            AerRecord::verify(&signed, disclosed, keys).map_err(|violation| super::broken(&violation))?;
        self.write(context, &signed, &receipt, &ExecutionSummary::of(&signed, record.receipt()))
    }

    fn statement(&self) -> Result<AerStatement, Failure> {
        let statement = AerStatement::new(files::read_json(&self.file)?);
        let statement = if self.about_session { statement.about_session() } else { statement };
        let statement = if self.redacted { statement.redacted() } else { statement };
        let statement = match &self.signer {
            Some(signer) => statement.signer(signer),
            None => statement,
        };
        Ok(match &self.iss {
            Some(iss) => statement.iss(iss),
            None => statement,
        })
    }

    fn write(
        &self,
        context: &Context,
        signed: &SignedStatement,
        receipt: &[u8],
        summary: &ExecutionSummary,
    ) -> Result<(), Failure> {
        let output = SignedOutput::of(&self.file, self.output.clone());
        if self.redacted {
            output.write_disclosure(context, receipt)?;
        }
        output.write(context, signed.bytes(), || context.console.result(summary))
    }
}
