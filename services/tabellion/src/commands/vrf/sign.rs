//! `tabellion vrf sign`: creates a statement of a verification receipt in JSON.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use clap::Args;
use registration::vrf::{Chain, VrfRecord, VrfRedacted, VrfStatement};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use scitt::header::X5Chain;
use scitt::{PublicKey, SignedStatement, Signer, SigningKey};

use super::broken;
use super::summary::{VrfInputs, VrfSummary};
use crate::commands::receipt::entry_named;
use crate::commands::signed_output::SignedOutput;
use crate::commands::statement;
use crate::console::{Exit, Failure, files};
use crate::context::Context;
use crate::keyfile;

#[derive(Debug, Args)]
pub struct Sign {
    /// The receipt (JSON)
    file: PathBuf,
    /// The verifier's Ed25519 key
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// The verifier [default: the key's did:key]
    #[arg(long, value_name = "URI")]
    iss: Option<String>,
    /// Certificates for the verifier (PEM), its own first
    #[arg(long, value_name = "FILE", requires = "iss")]
    certificates: Option<PathBuf>,
    /// The verified agent: a DID or URN
    #[arg(long, value_name = "DID")]
    sub: String,
    /// The previous statement of the chain
    #[arg(long, value_name = "STATEMENT", conflicts_with_all = ["after", "unchained"])]
    previous: Option<PathBuf>,
    /// Its entry ID instead, with --position N
    #[arg(long, value_name = "STATEMENT", requires = "position")]
    after: Option<String>,
    /// The position in the chain; 0 is the first
    #[arg(long, requires = "after", hide = true)]
    position: Option<u64>,
    /// Sign it outside any chain
    #[arg(long, conflicts_with = "after")]
    unchained: bool,
    /// Sign the receipt's hash only; the receipt is written to FILE.disclosure
    #[arg(long)]
    redacted: bool,
    /// The output file [default: FILE.cose]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Sign {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let key = keyfile::read(&self.key)?;
        let statement = self.issued(VrfStatement::new(files::read_json(&self.file)?, &self.sub))?;
        let statement = self.placed(statement, &key)?;
        let statement = if self.redacted { statement.redacted() } else { statement };
        let signed = statement.sign(&key).map_err(keyfile::cannot_sign)?;
        self.write(context, &statement, &signed, key.public_key())
    }

    /// Names the verifier, if it is not the did:key of the key.
    fn issued(&self, statement: VrfStatement) -> Result<VrfStatement, Failure> {
        let Some(iss) = &self.iss else { return Ok(statement) };
        let certificates = self.certificates.as_deref().map(certificates).transpose()?;
        Ok(statement.issued_by(iss, certificates))
    }

    fn placed(&self, statement: VrfStatement, key: &SigningKey) -> Result<VrfStatement, Failure> {
        if let Some(previous) = &self.previous {
            let (previous, position) = self.predecessor(previous, &statement.iss(key), key)?;
            return Ok(statement.after(previous.digest(), position + 1));
        }
        match (&self.after, self.position) {
            (Some(after), Some(position)) => Ok(statement.after(entry_named(after)?, position)),
            _ if self.unchained => Ok(statement.unchained()),
            _ => Ok(statement),
        }
    }

    fn write(
        &self,
        context: &Context,
        statement: &VrfStatement,
        signed: &SignedStatement,
        key: &PublicKey,
    ) -> Result<(), Failure> {
        let output = SignedOutput::of(&self.file, self.output.clone());
        let disclosure = self.redacted.then(|| statement.byte_string());
        let (disclosed, key) = (disclosure.clone(), Some(key.clone()));
        let given = VrfInputs { disclosed, key, ..VrfInputs::default() };
        let summary = VrfSummary::of(signed, &given)?;
        if let Some(disclosure) = disclosure {
            output.write_disclosure(context, &disclosure)?;
        }
        output.write(context, signed.bytes(), || context.console.result(&summary))
    }

    /// Reads the preceding statement, which must be by the same verifier about the same agent, and returns its position.
    fn predecessor(
        &self,
        file: &Path,
        issuer: &str,
        key: &SigningKey,
    ) -> Result<(SignedStatement, u64), Failure> {
        let (statement, key) = (statement::read(file)?, key.public_key());
        let chain = match statement.header().hash_envelope() {
            Some(_) => VrfRedacted::verify_with(&statement, None, key).map(|redacted| redacted.headers.chain),
            None => VrfRecord::verify_with(&statement, None, key).map(|record| record.chain),
        };
        let refuse = |what: &str, found: &str, needed: &str| {
            Failure::new(Exit::Failure, "not-its-predecessor", format!("{} {what}", file.display()))
                .fact("found", found)
                .fact("needed", needed)
        };
        let header = statement.header();
        let (iss, about) = (header.iss().unwrap_or_default(), header.sub().unwrap_or_default());
        if iss != issuer {
            return Err(refuse("is another verifier's, and starts another chain", iss, issuer));
        }
        if about != self.sub {
            return Err(refuse("is about another agent, and belongs to another chain", about, &self.sub));
        }
        match chain.map_err(|violation| broken(&violation))? {
            Chain::Genesis => Ok((statement, 0)),
            Chain::Link { position, .. } => Ok((statement, position)),
            Chain::Unchained => Err(refuse("stands outside any chain", "no position", "a chained receipt")),
        }
    }
}

/// Reads a chain of certificates in PEM.
fn certificates(file: &Path) -> Result<X5Chain, Failure> {
    let pem = files::read(file)?;
    let read: Result<Vec<Bytes>, _> = CertificateDer::pem_slice_iter(&pem)
        .map(|certificate| certificate.map(|der| Bytes::copy_from_slice(&der)))
        .collect();
    let chain = read.map_err(|error| error.to_string()).and_then(|read| {
        let count = read.len();
        X5Chain::new(read).ok_or_else(|| format!("certificates that it holds: {count}"))
    });
    chain.map_err(|why| {
        Failure::new(
            Exit::Failure,
            "certificate",
            format!("{} is not a chain of certificates", file.display()),
        )
        .fact("because", why)
    })
}
