//! `tabellion vrf`: verification receipts (VRF), made and checked without a service, and a log's chains of them.

mod chain;
mod sign;
mod summary;

use std::path::{Path, PathBuf};

use clap::Subcommand;
use registration::Violation;

use super::statement;
use crate::cli::Context;
use crate::console::{Exit, Failure, files};
use chain::Chain;
use sign::Sign;
use summary::Summary;

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
        /// What a redacted statement holds the hash of: the receipt's byte string, as `vrf sign --redacted` kept it
        #[arg(long, value_name = "FILE")]
        disclosed: Option<PathBuf>,
    },
    /// Make a VRF statement of a verification receipt in JSON
    #[command(
        before_help = "example:  tabellion vrf sign --key key.pem --sub did:web:agent.example check.json"
    )]
    Sign(Sign),
    /// Walk a verifier's receipts in the log, and say what is missing or forks
    #[command(before_help = "example:  tabellion vrf chain did:key:z6Mk…")]
    Chain(Chain),
}

impl Vrf {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Verify { file, payload, disclosed } => {
                verify(context, &file, payload.as_deref(), disclosed.as_deref())
            }
            Self::Sign(sign) => sign.run(context),
            Self::Chain(chain) => chain.run(context),
        }
    }
}

fn verify(
    context: &Context,
    file: &Path,
    payload: Option<&Path>,
    disclosed: Option<&Path>,
) -> Result<(), Failure> {
    let statement = statement::read(file)?;
    let payload = payload.map(files::read).transpose()?;
    let disclosed = disclosed.map(files::read).transpose()?;
    context.console.result(&Summary::of(&statement, payload.as_deref(), disclosed.as_deref())?)
}

fn broken(violation: &Violation) -> Failure {
    Failure::new(Exit::VerificationFailed, violation.rule.as_str(), "this is not a conforming VRF statement")
        .fact("rule", violation.rule.as_str())
        .fact("where", violation.place.to_string())
        .fact("found", violation.detail.clone())
}
