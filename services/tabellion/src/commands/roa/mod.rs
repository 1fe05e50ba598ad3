//! `tabellion roa`: envelopes and delegation chains of AgentROA, without a service.
//!
//! A chain is a file with a JSON array: the root envelope first, then one attestation for each delegation.

mod delegate;
mod inspect;
mod issue;
mod prove;
mod revoke;
mod verify;

use std::path::Path;

use clap::{Args, Subcommand};
use decimal::Decimal;
use jiff::SignedDuration;
use roa::capability::{Capabilities, Grant};
use roa::chain::Chain;
use roa::denial::Denial;
use roa::text::{NotOfForm, Sha256Digest, Text, UtcTime};

use super::agentroa::usage;
use super::verify::input;
use crate::console::files::{self, Access, Existing};
use crate::console::{Exit, Failure};
use crate::context::Context;

const ISSUE: &str = "example:  tabellion roa issue --key k.pem --signer acme:1 --agent aha:acme/ops/lead ...";
const DELEGATE: &str = "example:  tabellion roa delegate root.json --key lead.pem --to aha:acme/ops/one ...";
const VERIFY: &str = "example:  tabellion roa verify chain.json --registry r.json --registry-key op.pem";
const PROVE: &str = "example:  tabellion roa prove chain.json --key k.pem --call mcp:files.read ...";
const REVOKE: &str = "example:  tabellion roa revoke chain.json --registry registry.json --key operator.pem";

#[derive(Debug, Subcommand)]
#[command(before_help = "example:  tabellion roa inspect chain.json")]
pub enum Roa {
    /// Sign a root envelope: what one agent may do in one session
    #[command(before_help = ISSUE)]
    Issue(issue::Issue),
    /// Delegate a narrower scope to another agent
    #[command(before_help = DELEGATE)]
    Delegate(delegate::Delegate),
    /// Print what each hop of a chain declares, unverified
    #[command(before_help = "example:  tabellion roa inspect chain.json")]
    Inspect(inspect::Inspect),
    /// Verify a chain with a registry, offline
    #[command(before_help = VERIFY)]
    Verify(verify::Verify),
    /// Sign one call as the agent that presents a chain
    #[command(before_help = PROVE)]
    Prove(prove::Prove),
    /// Revoke the root envelope of a chain in a registry
    #[command(before_help = REVOKE)]
    Revoke(revoke::Revoke),
}

impl Roa {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Issue(issue) => issue.run(context),
            Self::Delegate(delegate) => delegate.run(context),
            Self::Inspect(inspect) => inspect.run(context),
            Self::Verify(verify) => verify.run(context),
            Self::Prove(prove) => prove.run(context),
            Self::Revoke(revoke) => revoke.run(context),
        }
    }
}

/// The parts of a scope that envelopes and delegations share.
#[derive(Debug, Args)]
pub struct ScopeArgs {
    /// A capability: mcp:SERVER.TOOL or mcp:SERVER.*
    #[arg(long, value_name = "CAPABILITY", required = true)]
    pub allow: Vec<Grant>,
    /// The highest amount that may be spent, with its unit: 10:USD
    #[arg(long, value_name = "AMOUNT:UNIT", value_parser = budget)]
    pub budget: Option<(Decimal, Text)>,
    /// The highest price class
    #[arg(long, value_name = "CLASS", hide = true)]
    pub price: Option<u32>,
    /// The lowest class of service level
    #[arg(long, value_name = "CLASS", hide = true)]
    pub slo: Option<u32>,
    /// The highest classification of data
    #[arg(long, value_name = "LABEL", hide = true)]
    pub classification: Option<Text>,
}

impl ScopeArgs {
    /// Returns the capabilities.
    pub fn capabilities(&self) -> Result<Capabilities, Failure> {
        Capabilities::try_from(self.allow.clone()).map_err(|error| usage(&error))
    }
}

fn budget(text: &str) -> Result<(Decimal, Text), String> {
    let (amount, unit) = text.split_once(':').ok_or("needed: an amount and its unit, like 10:USD")?;
    let amount = Decimal::read(amount).map_err(|error| error.to_string())?;
    Ok((amount, unit.parse().map_err(|error: NotOfForm| error.to_string())?))
}

/// Reads a chain from a file.
pub fn read_chain(file: &Path) -> Result<Chain, Failure> {
    parse_chain(file, &files::read(file)?).map_err(|failure| failure.ending_with(Exit::Failure))
}

/// Reads a chain to verify. A file that does not begin like one holds nothing to verify; everything else is damage.
fn read_chain_to_verify(file: &Path) -> Result<Chain, Failure> {
    let bytes = files::read(file)?;
    parse_chain(file, &bytes).map_err(|failure| failure.ending_with(input::damaged_json(&bytes, b'[')))
}

fn parse_chain(file: &Path, bytes: &[u8]) -> Result<Chain, Failure> {
    Chain::parse(bytes).map_err(|denial| denied("not-a-chain", &file.display().to_string(), &denial))
}

/// Writes a chain to a file, as canonical JSON.
fn write_chain(context: &Context, file: &Path, chain: &Chain) -> Result<(), Failure> {
    files::write(file, &chain.canonical(), Access::Ordinary, Existing::Keep)?;
    if files::is_stream(file) {
        return Ok(());
    }
    context.console.note(format!("wrote      {}", file.display()));
    context.console.result(&inspect::ChainTable::of(chain))
}

/// Returns the failure for a denial, with hop and dimension.
pub fn denied(code: &str, subject: &str, denial: &Denial) -> Failure {
    let mut failure = Failure::new(Exit::VerificationFailed, code, format!("{subject}: {}", denial.detail))
        .fact("reason", denial.reason.as_str())
        .fact("code", denial.code);
    if let Some(hop) = denial.hop {
        failure = failure.fact("hop", hop.to_string());
    }
    match denial.dimension {
        Some(dimension) => failure.fact("dimension", dimension.as_str()),
        None => failure,
    }
}

/// Returns a time after another one.
pub fn later(time: UtcTime, by: SignedDuration) -> Result<UtcTime, Failure> {
    let later = time.0.checked_add(by).map(UtcTime);
    later.map_err(|error| Failure::new(Exit::Usage, "usage", error.to_string()))
}

/// Returns a random identifier with this prefix.
pub fn random_id<T: TryFrom<String, Error = NotOfForm>>(prefix: &str) -> Result<T, Failure> {
    // A version 4 UUID has six fixed bits, so the digits are those of its hash.
    let digest = Sha256Digest::of(uuid::Uuid::new_v4().as_bytes()).to_string();
    let digits = digest.trim_start_matches("sha256:");
    T::try_from(format!("{prefix}{}", &digits[..16])).map_err(|error| usage(&error))
}
