//! `tabellion execution sign`: creates a statement of an execution receipt in JSON.

use std::path::{Path, PathBuf};

use clap::Args;
use registration::aer::{AerRecord, AerStatement, BuildAerError, VerifyingKeys};
use scitt::{SignedStatement, Signer};
use serde_json::Value;

use super::summary::ExecutionSummary;
use crate::commands::statement::with_extension;
use crate::console::files::{self, Access, Existing};
use crate::console::{Exit, Failure};
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
        let receipt = statement.receipt(&gateway).map_err(cannot_sign)?;
        let issuer = self.issuer_key.as_deref().map(keyfile::read).transpose()?;
        let issuer = issuer.as_ref().unwrap_or(&gateway);
        let signed = statement.sign_with(&gateway, issuer).map_err(cannot_sign)?;
        // Signatures already in the receipt are verified, too.
        let gateway = [gateway.public_key().clone(), issuer.public_key().clone()];
        let keys = VerifyingKeys { gateway: &gateway, issuer: issuer.public_key() };
        let disclosed = self.redacted.then_some(receipt.as_slice());
        let record =
            AerRecord::verify(&signed, disclosed, keys).map_err(|violation| super::broken(&violation))?;
        self.write(context, &signed, &receipt, &ExecutionSummary::of(&signed, record.receipt()))
    }

    fn statement(&self) -> Result<AerStatement, Failure> {
        let statement = AerStatement::new(self.receipt()?);
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

    fn receipt(&self) -> Result<Value, Failure> {
        jose::json::parse_strict(&files::read(&self.file)?, jose::json::Limits::default()).map_err(|error| {
            Failure::new(Exit::Failure, "not-json", format!("{}: {error}", self.file.display()))
        })
    }

    fn write(
        &self,
        context: &Context,
        signed: &SignedStatement,
        receipt: &[u8],
        summary: &ExecutionSummary,
    ) -> Result<(), Failure> {
        let stream = files::is_stream(&self.file).then(|| self.file.clone());
        let output = self.output.clone().or(stream).unwrap_or_else(|| with_extension(&self.file, "cose"));
        if self.redacted {
            let kept = self.disclosure_file(&output)?;
            files::write(&kept, receipt, Access::Secret, Existing::Keep)?;
            context.console.note(format!("wrote      {}", kept.display()));
        }
        files::write(&output, signed.bytes(), Access::Ordinary, Existing::Keep)?;
        if files::is_stream(&output) {
            return Ok(());
        }
        context.console.note(format!("wrote      {}", output.display()));
        context.console.result(summary)
    }

    fn disclosure_file(&self, output: &Path) -> Result<PathBuf, Failure> {
        let named = [self.file.as_path(), output].into_iter().find(|file| !files::is_stream(file));
        named.map(|file| with_extension(file, "disclosure")).ok_or_else(|| {
            Failure::new(
                Exit::Usage,
                "no-place-for-the-disclosure",
                "standard input and output leave no name for the disclosure",
            )
            .hint("name a file with --output")
        })
    }
}

fn cannot_sign(error: BuildAerError) -> Failure {
    Failure::new(Exit::Failure, "cannot-sign", error.to_string())
}
