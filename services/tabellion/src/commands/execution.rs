//! `tabellion execution`: creates and verifies execution receipts of a gateway (AgentROA), without a service.

mod order;
mod registered;
mod sign;
mod summary;
mod why;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use registration::Violation;

use super::gateway_keys::GatewayKeys;
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
        let gateway = GatewayKeys::find(&self.gateway_key, &statement)?;
        let gateway = gateway.ok_or_else(|| unknown_gateway(&self.file))?;
        let issuer = self.key.as_deref().map(keyfile::read_public).transpose()?;
        let record =
            gateway.verify(&statement, given.as_deref(), issuer).map_err(|violation| broken(&violation))?;
        let registration = self.log.verify(context, &self.file, &statement)?;
        match self.why.is_requested() {
            true => self.why.explain(context, record.receipt(), &self.log, registration.as_ref()),
            false => {
                let summary = ExecutionSummary::of(&statement, record.receipt());
                context.console.result(&summary.registered(self.log.are_required()))
            }
        }
    }
}

fn unknown_gateway(source: &Path) -> Failure {
    let what = format!("{} does not contain the key of its gateway", source.display());
    Failure::new(Exit::NotVerified, "no-gateway-key", what)
        .why("its issuer is not a did:key: the gateway's key must come from a source that you trust")
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
