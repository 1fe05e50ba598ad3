//! `tabellion vrf`: verification receipts (VRF), made and checked without a service.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Subcommand;
use registration::Violation;
use registration::vrf::{Chain, VrfRecord, VrfStatement};
use scitt::SignedStatement;
use serde::Serialize;

use super::statement::{self, beside};
use crate::cli::Context;
use crate::console::files::{self, Access, Existing};
use crate::console::{Exit, Failure, Report, safe};
use crate::keyfile;

#[derive(Debug, Subcommand)]
#[command(before_help = "example:  tabellion vrf verify receipt.cose")]
pub enum Vrf {
    /// Check a VRF statement against every rule of the format, and its verifier's signature
    #[command(before_help = "example:  tabellion vrf verify receipt.json.cose")]
    Verify {
        /// The statement, transparent or not
        file: PathBuf,
        /// The payload, when it is detached
        #[arg(long, value_name = "FILE")]
        payload: Option<PathBuf>,
    },
    /// Make a VRF statement of a verification receipt in JSON
    #[command(
        before_help = "example:  tabellion vrf sign --key verifier.pem --sub did:web:agent.example receipt.json"
    )]
    Sign {
        /// The receipt (JSON)
        file: PathBuf,
        /// The verifier's Ed25519 key
        #[arg(long, value_name = "FILE")]
        key: PathBuf,
        /// Whose work was checked: a DID or URN
        #[arg(long, value_name = "DID")]
        sub: String,
        /// The statement before it in the chain, or its entry ID
        #[arg(long, value_name = "STATEMENT", requires = "position")]
        after: Option<String>,
        /// Its place in the chain; 0 is the first
        #[arg(long, requires = "after")]
        position: Option<u64>,
        /// Where to write it; FILE.cose unless given
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

impl Vrf {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Verify { file, payload } => verify(context, &file, payload.as_deref()),
            Self::Sign { file, key, sub, after, position, output } => {
                let receipt = jose::json::parse_strict(&files::read(&file)?, jose::json::Limits::default())
                    .map_err(|error| {
                    Failure::new(Exit::Failure, "not-json", format!("{}: {error}", file.display()))
                })?;
                let statement = VrfStatement::new(receipt, sub);
                let statement = match (after, position) {
                    (Some(after), Some(position)) => {
                        statement.after(super::receipt::entry_named(&after)?, position)
                    }
                    _ => statement,
                };
                let signed = statement
                    .sign(&keyfile::read(&key)?)
                    .map_err(|error| Failure::new(Exit::Failure, "cannot-sign", error.to_string()))?;
                let stream = files::is_stream(&file).then(|| file.clone());
                let output = output.or(stream).unwrap_or_else(|| beside(&file, "cose"));
                let summary = Summary::of(&signed, None)?;
                files::write(&output, signed.bytes(), Access::Ordinary, Existing::Keep)?;
                if files::is_stream(&output) {
                    return Ok(());
                }
                context.console.note(format!("wrote      {}", output.display()));
                context.console.result(&summary)
            }
        }
    }
}

fn verify(context: &Context, file: &Path, payload: Option<&Path>) -> Result<(), Failure> {
    let statement = statement::read(file)?;
    let payload = payload.map(files::read).transpose()?;
    context.console.result(&Summary::of(&statement, payload.as_deref())?)
}

#[derive(Serialize)]
struct Summary {
    entry: String,
    issuer: String,
    agent: String,
    receipt_id: String,
    verdict: &'static str,
    tier: Option<i64>,
    passed: u64,
    total: u64,
    output: String,
    chain: String,
    verified: bool,
}

impl Summary {
    fn of(statement: &SignedStatement, payload: Option<&[u8]>) -> Result<Self, Failure> {
        let record = VrfRecord::verify(statement, payload).map_err(|violation| broken(&violation))?;
        let claims = statement.header().claims();
        let receipt = record.receipt;
        Ok(Self {
            entry: statement.digest().to_string(),
            issuer: claims.and_then(|claims| claims.iss()).unwrap_or_default().to_owned(),
            agent: claims.and_then(|claims| claims.sub()).unwrap_or_default().to_owned(),
            receipt_id: receipt.receipt_id,
            verdict: receipt.verdict.as_str(),
            tier: receipt.tier,
            passed: receipt.results.passed,
            total: receipt.results.total,
            output: receipt.output,
            chain: chain(&record.chain),
            verified: true,
        })
    }
}

fn chain(chain: &Chain) -> String {
    match chain {
        Chain::Unchained => "outside any chain".into(),
        Chain::Genesis => "first of its chain".into(),
        Chain::Link { position, previous } => format!("number {position}, after {previous} (not looked up)"),
    }
}

fn broken(violation: &Violation) -> Failure {
    Failure::new(Exit::VerificationFailed, violation.rule.as_str(), "this is not a conforming VRF statement")
        .fact("rule", violation.rule.as_str())
        .fact("where", violation.place.to_string())
        .fact("found", violation.detail.clone())
}

impl Report for Summary {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        let tier = self.tier.map_or_else(|| "none".into(), |tier| tier.to_string());
        writeln!(out, "ok    format and signature  {}", safe(&self.issuer))?;
        writeln!(out, "      agent                 {}", safe(&self.agent))?;
        writeln!(
            out,
            "      verdict               {} ({} of {}), tier {tier}",
            self.verdict, self.passed, self.total
        )?;
        writeln!(out, "      work                  {}", safe(&self.output))?;
        writeln!(out, "      receipt               {}", safe(&self.receipt_id))?;
        writeln!(out, "      chain                 {}", self.chain)?;
        writeln!(out, "      entry                 {}", self.entry)?;
        writeln!(out, "the verifier said so; whether a log has it, `tabellion verify` tells")
    }
}
