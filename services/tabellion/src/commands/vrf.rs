//! `tabellion vrf`: checks work, once or as a service; creates, verifies and exports verification receipts (VRF); fetches
//! them from a log, and follows their chains there.

mod chain;
mod chained_receipt;
mod check;
mod check_request;
mod evidence_summary;
mod export;
mod fetch;
mod recheck;
mod run_checks;
mod serve;
mod sign;
mod summary;

use std::path::{Path, PathBuf};

use clap::Subcommand;
use registration::Violation;
use registration::vrf::{VRF_CBOR, VrfOptions};

use super::verify::input;
use crate::console::{Exit, Failure, files};
use crate::context::Context;
use crate::keyfile;
use chain::Chain;
use check::Check;
use export::Export;
use fetch::Fetch;
use recheck::Recheck;
use serve::Serve;
use sign::Sign;
use summary::{VrfInputs, VrfSummary};

#[derive(Debug, Subcommand)]
#[command(before_help = "example:  tabellion vrf verify receipt.cose")]
pub enum Vrf {
    /// Check a VRF statement against every rule of the format, and its verifier's signature
    #[command(before_help = "example:  tabellion vrf verify receipt.json.cose")]
    Verify {
        /// The statement, transparent or not
        file: PathBuf,
        /// The payload, if it is detached
        #[arg(long, value_name = "FILE")]
        payload: Option<PathBuf>,
        /// The receipt of a redacted statement
        #[arg(long, value_name = "FILE")]
        disclosed: Option<PathBuf>,
        /// A policy that must also accept the receipt
        #[arg(long, value_name = "FILE")]
        policy: Option<PathBuf>,
        /// The verifier's key [default: in its did:key]
        #[arg(long, value_name = "KEY")]
        key: Option<String>,
    },
    /// Sign a VRF statement with a verification receipt in JSON
    #[command(before_help = "example:  tabellion vrf sign --key key.pem --sub did:web:a.example check.json")]
    Sign(Sign),
    /// Check a verifier's receipt chains for gaps and forks
    #[command(before_help = "example:  tabellion vrf chain did:key:z6Mk…")]
    Chain(Chain),
    /// Check an agent's work and write a receipt; exit 3: failed, 4: not run
    #[command(before_help = "example:  tabellion vrf check --request check.json")]
    Check(Check),
    /// Run the checks of a receipt again, and list what differs
    #[command(
        before_help = "example:  tabellion vrf recheck main.py.receipt.json --artifact main.py --tests tests.json"
    )]
    Recheck(Recheck),
    /// Run batches of untrusted work: for `vrf check` and the verification service
    #[command(hide = true)]
    RunChecks,
    /// Fetch a receipt from the log by its identifier, and verify it
    #[command(before_help = "example:  tabellion vrf fetch 7d0fae86-3a5c-4b0e-9c55-0f6a1c1d2e3f")]
    Fetch(Fetch),
    /// Write a receipt as other protocols carry it
    #[command(before_help = "example:  tabellion vrf export --for a2a check.json.transparent.cose")]
    Export(Export),
    /// Run a service that checks the work of agents and registers receipts
    Serve(Serve),
}

impl Vrf {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Verify { file, payload, disclosed, policy, key } => {
                let statement = input::statement(&file)?;
                let given = VrfInputs {
                    payload: payload.as_deref().map(files::read).transpose()?,
                    disclosed: disclosed.as_deref().map(files::read).transpose()?,
                    options: policy.as_deref().map(options).transpose()?,
                    key: key.as_deref().map(keyfile::read_public).transpose()?,
                };
                context.console.result(&VrfSummary::of(&statement, &given)?)
            }
            Self::Sign(sign) => sign.run(context),
            Self::Chain(chain) => chain.run(context),
            Self::Check(check) => check.run(context),
            Self::Recheck(recheck) => recheck.run(context),
            Self::RunChecks => run_checks::run(),
            Self::Fetch(fetch) => fetch.run(context),
            Self::Export(export) => export.run(context),
            Self::Serve(serve) => serve.run(context),
        }
    }
}

/// Reads the options of a policy for `application/vrf+cbor`.
fn options(policy: &Path) -> Result<VrfOptions, Failure> {
    let read = super::policy::read(policy)?;
    match read.rule_for(&VRF_CBOR.into()).and_then(|rule| rule.profile.options_as::<VrfOptions>()) {
        Some(options) => Ok(options.clone()),
        None => Err(Failure::new(
            Exit::Failure,
            "content-type-not-admitted",
            format!("{} takes no {VRF_CBOR}", policy.display()),
        )),
    }
}

fn broken(violation: &Violation) -> Failure {
    Failure::new(Exit::VerificationFailed, violation.rule.as_str(), "this is not a conforming VRF statement")
        .fact("rule", violation.rule.as_str())
        .fact("where", violation.place.to_string())
        .fact("found", violation.detail.clone())
}
