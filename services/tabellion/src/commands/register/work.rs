//! Registration of one file, in steps shared by single and batch registration.

use std::path::{Path, PathBuf};
use std::time::Instant;

use bytes::Bytes;
use client::{Client, ClientError, RegisteredStatement};
use futures::stream::{self, StreamExt};
use scitt::{SignedStatement, transparent};
use verifier::{Check, CheckName, CheckState, StatementEvidence, StatementVerdict};

use super::{AT_ONCE, IssuerIdentity, Register, RegistrationMessage, RegistrationResult, now};
use crate::console::files::{self, Access, Existing, is_stream};
use crate::console::{Exit, Failure};
use crate::trust_file::TrustFile;

/// A file that is ready to be sent, or that an earlier run has registered.
pub(super) struct Prepared {
    file: PathBuf,
    pub message: RegistrationMessage,
    /// The receipt of an earlier run, if it still verifies.
    pub kept: Option<(StatementVerdict, Bytes)>,
    started: Instant,
}

/// The inputs shared by all files.
pub(super) struct RegistrationWork<'a> {
    pub flags: &'a Register,
    pub issuer: &'a IssuerIdentity,
    pub client: &'a Client,
    pub trust: &'a TrustFile,
}

impl RegistrationWork<'_> {
    pub async fn one_by_one(
        &self,
        files: &[PathBuf],
        tell: &impl Fn(&Result<RegistrationResult, Failure>),
    ) -> Vec<Result<RegistrationResult, Failure>> {
        let jobs = files.iter().map(|file| self.one(file));
        stream::iter(jobs).buffered(AT_ONCE).inspect(tell).collect().await
    }

    pub async fn one(&self, file: &Path) -> Result<RegistrationResult, Failure> {
        self.complete(self.prepare(file)?).await
    }

    /// Performs the steps that need no service. The statement is written to disk before it is sent.
    pub fn prepare(&self, file: &Path) -> Result<Prepared, Failure> {
        let started = Instant::now();
        let message = self.flags.message(file, self.issuer)?;
        let kept = receipt_file(file).and_then(|receipt| kept(&receipt, &message.statement, self.trust));
        if kept.is_some() {
            self.refuse_another_payload(&message, file)?;
        }
        Ok(Prepared { file: file.to_owned(), message, kept, started })
    }

    /// Refuses a detached payload other than the signed one. A statement that an earlier run registered is not sent
    /// again, so the service would not check it.
    fn refuse_another_payload(&self, message: &RegistrationMessage, file: &Path) -> Result<(), Failure> {
        let Some(payload) = message.payload.as_deref() else { return Ok(()) };
        let evidence = StatementEvidence {
            statement: &message.bytes,
            payload: Some(payload),
            ..StatementEvidence::default()
        };
        let verdict = verifier::verify(&evidence, &self.trust.store, now());
        let failed =
            |check: &Check| check.name == CheckName::IssuerSignature && check.state == CheckState::Failed;
        match verdict.checks.iter().any(failed) {
            true => Err(Failure::new(
                Exit::Exists,
                "payload-changed",
                format!("the payload given is not the one that {} was signed for", file.display()),
            )),
            false => Ok(()),
        }
    }

    /// Registers a prepared file, unless an earlier run has registered it.
    async fn complete(&self, prepared: Prepared) -> Result<RegistrationResult, Failure> {
        let RegistrationMessage { statement, bytes, payload } = &prepared.message;
        let store = &self.trust.store;
        let registered = match (&prepared.kept, payload) {
            (Some(_), _) => None,
            (None, Some(payload)) => {
                Some(self.client.register_detached(statement, bytes, payload, store, now()).await)
            }
            (None, None) => Some(self.client.register_message(statement, bytes, store, now()).await),
        };
        let registered = registered.transpose().map_err(failed)?;
        self.keep(prepared, registered)
    }

    /// Stores the receipt, of this run or an earlier one, and writes `FILE.transparent.cose`.
    pub fn keep(
        &self,
        prepared: Prepared,
        registered: Option<RegisteredStatement>,
    ) -> Result<RegistrationResult, Failure> {
        let Prepared { file, message, kept, started } = prepared;
        let fresh = registered.is_some();
        let (verdict, receipt) = match (registered, kept) {
            (Some(RegisteredStatement { receipt, verdict, .. }), _) => {
                if let Some(file) = receipt_file(&file) {
                    files::write(&file, &receipt, Access::Ordinary, Existing::Replace)?;
                }
                (verdict, receipt)
            }
            (None, Some(kept)) => kept,
            (None, None) => return Err(Failure::new(Exit::Failure, "io", "there is no receipt to keep")),
        };
        let transparent_file =
            self.flags.output.clone().unwrap_or_else(|| files::with_extension(&file, "transparent.cose"));
        let whole = transparent::attach(&message.bytes, &[receipt])
            .map_err(|error| Failure::new(Exit::Failure, "malformed", error.to_string()))?;
        files::write(&transparent_file, &whole, Access::Ordinary, Existing::Replace)?;
        let position = verdict.receipts.first().and_then(|receipt| receipt.position);
        Ok(RegistrationResult {
            file: file.display().to_string(),
            entry: message.statement.digest().to_string(),
            leaf_index: position.map(|position| position.leaf_index.get()),
            tree_size: position.map(|position| position.tree_size.get()),
            location: format!("{}entries/{}", self.client.base(), message.statement.digest()),
            wrote: transparent_file.display().to_string(),
            fresh,
            took: started.elapsed(),
        })
    }
}

/// Converts an error of a registration. A log that sent a receipt has registered the statement, as it says.
pub(super) fn failed(error: ClientError) -> Failure {
    let has_receipt = matches!(error, ClientError::Unverified(_));
    let failure = Failure::from(error);
    match has_receipt {
        true => {
            failure.why("the log says that the statement is registered; only its receipt was not written")
        }
        false => failure,
    }
}

/// Returns the path of a file's receipt; `None` for standard input.
fn receipt_file(file: &Path) -> Option<PathBuf> {
    (!is_stream(file)).then(|| files::with_extension(file, "receipt"))
}

/// Returns the receipt of an earlier run with its verdict, if it still verifies.
fn kept(file: &Path, statement: &SignedStatement, trust: &TrustFile) -> Option<(StatementVerdict, Bytes)> {
    let receipt = file.exists().then(|| files::read(file).ok()).flatten()?;
    let verdict = verifier::verify_receipt(statement, &receipt, &trust.store, now());
    verdict.is_verified().then(|| (verdict, receipt.into()))
}
