//! `tabellion execution`: creates and verifies execution receipts of a gateway (AgentROA), without a service.

mod registered;
mod sign;
mod summary;
mod why;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use registration::Violation;
use registration::aer::{AerRecord, VerifyingKeys};
use scitt::{PublicKey, SignedStatement};

use super::verify::input;
use crate::console::{Exit, Failure, files};
use crate::context::Context;
use crate::keyfile;
use registered::LogReceipts;
use sign::Sign;
use summary::ExecutionSummary;
use why::Why;

#[derive(Debug, Subcommand)]
#[command(before_help = "example:  tabellion execution verify aer.json.cose")]
pub enum Execution {
    /// Verify the format of an execution receipt, and its gateway's signatures
    #[command(before_help = "example:  tabellion execution verify --gateway-key gateway.pem aer.json.cose")]
    Verify(Verify),
    /// Sign a statement with an execution receipt in JSON
    #[command(before_help = "example:  tabellion execution sign --key gateway.pem aer.json")]
    Sign(Sign),
}

#[derive(Debug, Args)]
pub struct Verify {
    /// The statement, transparent or not
    file: PathBuf,
    /// Keys of the gateway: a file or a did:key each
    #[arg(long, value_name = "KEY")]
    gateway_key: Vec<String>,
    /// The statement's key [default: did:key, or gateway's]
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// The payload, if it is detached
    #[arg(long, value_name = "FILE", conflicts_with = "disclosed")]
    payload: Option<PathBuf>,
    /// The receipt of a redacted statement
    #[arg(long, value_name = "FILE")]
    disclosed: Option<PathBuf>,
    #[command(flatten)]
    why: Why,
    #[command(flatten)]
    log: LogReceipts,
}

impl Execution {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Verify(verify) => verify.run(context),
            Self::Sign(sign) => sign.run(context),
        }
    }
}

impl Verify {
    fn run(self, context: &Context) -> Result<(), Failure> {
        let statement = input::statement(&self.file)?;
        let given = self.payload.as_deref().or(self.disclosed.as_deref()).map(files::read).transpose()?;
        let gateway = self.gateway_keys(&statement)?;
        let issuer = match &self.key {
            Some(key) => keyfile::read_public(key)?,
            None => issuer_of(&statement, &gateway)?,
        };
        let keys = VerifyingKeys { gateway: &gateway, issuer: &issuer };
        let record =
            AerRecord::verify(&statement, given.as_deref(), keys).map_err(|violation| broken(&violation))?;
        self.log.verify(context, &self.file, &statement)?;
        match self.why.is_requested() {
            true => self.why.explain(context, record.receipt(), &self.log),
            false => {
                let summary = ExecutionSummary::of(&statement, record.receipt());
                context.console.result(&summary.registered(self.log.are_required()))
            }
        }
    }

    /// Returns the keys in `--gateway-key`, or else the key in the issuer's did:key.
    fn gateway_keys(&self, statement: &SignedStatement) -> Result<Vec<PublicKey>, Failure> {
        if !self.gateway_key.is_empty() {
            return self.gateway_key.iter().map(|key| keyfile::read_public(key)).collect();
        }
        did_key(statement).map(|key| vec![key]).ok_or_else(|| unknown_gateway(&self.file))
    }
}

/// Returns the key that signed the statement: that in the issuer's `did:key`, or else the gateway's key with this
/// `kid`, or else the gateway's first key.
fn issuer_of(statement: &SignedStatement, gateway: &[PublicKey]) -> Result<PublicKey, Failure> {
    if let Some(key) = did_key(statement) {
        return Ok(key);
    }
    let kid = statement.header().kid().map(|kid| kid.as_ref()).unwrap_or_default();
    let named = gateway.iter().find(|key| key.thumbprint() == kid).or(gateway.first());
    named.cloned().ok_or_else(|| unknown_gateway(Path::new("the statement")))
}

fn did_key(statement: &SignedStatement) -> Option<PublicKey> {
    let iss = statement.header().claims().and_then(|claims| claims.iss())?;
    PublicKey::from_did_key(iss).ok()
}

fn unknown_gateway(source: &Path) -> Failure {
    let what = format!("{} does not say by itself which key its gateway has", source.display());
    Failure::new(Exit::NotVerified, "no-gateway-key", what)
        .why("its issuer is no did:key, and a receipt is worth what its gateway's key is")
        .hint("tabellion execution verify --gateway-key gateway.pem aer.json.cose")
}

fn broken(violation: &Violation) -> Failure {
    Failure::new(
        Exit::VerificationFailed,
        violation.rule.as_str(),
        "this is not a conforming execution receipt",
    )
    .fact("rule", violation.rule.as_str())
    .fact("where", violation.place.to_string())
    .fact("found", violation.detail.clone())
}
