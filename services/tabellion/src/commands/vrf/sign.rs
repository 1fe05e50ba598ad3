//! `tabellion vrf sign`: creates a statement of a verification receipt in JSON.

use std::path::{Path, PathBuf};

use clap::Args;
use registration::vrf::{Chain, VrfRecord, VrfRedacted, VrfStatement};
use scitt::{SignedStatement, Signer};

use super::broken;
use super::summary::{VrfInputs, VrfSummary};
use crate::commands::receipt::entry_named;
use crate::commands::statement::{self, with_extension};
use crate::console::files::{self, Access, Existing};
use crate::console::{Exit, Failure};
use crate::context::Context;
use crate::keyfile;

#[derive(Debug, Args)]
pub struct Sign {
    /// The receipt (JSON)
    file: PathBuf,
    /// The verifier's Ed25519 key
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// The verified agent: a DID or URN
    #[arg(long, value_name = "DID")]
    sub: String,
    /// The previous statement of the chain
    #[arg(long, value_name = "STATEMENT", conflicts_with_all = ["after", "unchained"])]
    previous: Option<PathBuf>,
    /// The previous statement by entry ID, with --position N
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
        let statement = VrfStatement::new(self.receipt()?, &self.sub);
        let statement = self.placed(statement, &key.public_key().did_key())?;
        let statement = if self.redacted { statement.redacted() } else { statement };
        let signed = statement
            .sign(&key)
            .map_err(|error| Failure::new(Exit::Failure, "cannot-sign", error.to_string()))?;
        self.write(context, &statement, &signed)
    }

    fn receipt(&self) -> Result<serde_json::Value, Failure> {
        jose::json::parse_strict(&files::read(&self.file)?, jose::json::Limits::default()).map_err(|error| {
            Failure::new(Exit::Failure, "not-json", format!("{}: {error}", self.file.display()))
        })
    }

    fn placed(&self, statement: VrfStatement, issuer: &str) -> Result<VrfStatement, Failure> {
        if let Some(previous) = &self.previous {
            let (previous, position) = predecessor(previous, issuer, &self.sub)?;
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
    ) -> Result<(), Failure> {
        let stream = files::is_stream(&self.file).then(|| self.file.clone());
        let output = self.output.clone().or(stream).unwrap_or_else(|| with_extension(&self.file, "cose"));
        let disclosure = self.redacted.then(|| statement.byte_string());
        let given = VrfInputs { disclosed: disclosure.clone(), ..VrfInputs::default() };
        let summary = VrfSummary::of(signed, &given)?;
        if let Some(disclosure) = disclosure {
            let kept = self.disclosure_file(&output)?;
            files::write(&kept, &disclosure, Access::Secret, Existing::Keep)?;
            context.console.note(format!("wrote      {}", kept.display()));
        }
        files::write(&output, signed.bytes(), Access::Ordinary, Existing::Keep)?;
        if files::is_stream(&output) {
            return Ok(());
        }
        context.console.note(format!("wrote      {}", output.display()));
        context.console.result(&summary)
    }

    fn disclosure_file(&self, output: &Path) -> Result<PathBuf, Failure> {
        let files = [self.file.as_path(), output].into_iter().find(|file| !files::is_stream(file));
        files.map(|file| with_extension(file, "disclosure")).ok_or_else(|| {
            Failure::new(
                Exit::Usage,
                "no-place-for-the-disclosure",
                "standard input and output leave no name for the disclosure",
            )
            .hint("name a file with --output")
        })
    }
}

/// Reads the preceding statement, which must be by the same verifier about the same agent, and returns its position.
fn predecessor(file: &Path, issuer: &str, sub: &str) -> Result<(SignedStatement, u64), Failure> {
    let statement = statement::read(file)?;
    let chain = match statement.header().hash_envelope() {
        Some(_) => VrfRedacted::verify(&statement, None).map(|redacted| redacted.headers.chain),
        None => VrfRecord::verify(&statement, None).map(|record| record.chain),
    };
    let refuse = |what: &str, found: &str, needed: &str| {
        Failure::new(Exit::Failure, "not-its-predecessor", format!("{} {what}", file.display()))
            .fact("found", found)
            .fact("needed", needed)
    };
    let claims = statement.header().claims();
    let claimed = |claim: Option<&str>| claim.unwrap_or_default().to_owned();
    let (iss, about) =
        (claimed(claims.and_then(|claims| claims.iss())), claimed(claims.and_then(|claims| claims.sub())));
    if iss != issuer {
        return Err(refuse("is another verifier's, and starts another chain", &iss, issuer));
    }
    if about != sub {
        return Err(refuse("is about another agent, and belongs to another chain", &about, sub));
    }
    match chain.map_err(|violation| broken(&violation))? {
        Chain::Genesis => Ok((statement, 0)),
        Chain::Link { position, .. } => Ok((statement, position)),
        Chain::Unchained => Err(refuse("stands outside any chain", "no position", "a chained receipt")),
    }
}
