//! `tabellion checkpoint get`: fetches the newest checkpoint of any C2SP log, or an older one of our service, and
//! verifies it before it is printed.

use std::path::{Path, PathBuf};

use clap::Args;
use verifier::{Code, VerificationOutcome};

use super::VerifiedCheckpoint;
use super::verify::CheckpointTrust;
use crate::console::files::{self, Access, Existing};
use crate::console::{Exit, Failure};
use crate::context::Context;
use crate::service::ServiceArgs;
use crate::verification::{exit, explanation};

#[derive(Debug, Args)]
#[command(before_help = "example:  tabellion checkpoint get --url https://log.example -o checkpoint")]
pub struct Get {
    /// The checkpoint of this size instead of the newest
    #[arg(long, value_name = "LEAVES")]
    size: Option<u64>,
    /// The output file
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// Write the checkpoint without verifying it
    #[arg(long, conflicts_with_all = ["key", "policy", "trust"])]
    no_verify: bool,
    #[command(flatten)]
    trust_options: CheckpointTrust,
    #[command(flatten)]
    service: ServiceArgs,
}

impl Get {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let path = match self.size {
            Some(size) => format!("v1/checkpoints/{size}"),
            None => "checkpoint".to_owned(),
        };
        let service = self.service.connect(context)?;
        let note = service.block_on(service.client.bytes(&path))?;
        if self.no_verify {
            return files::write(&self.output, &note, Access::Ordinary, Existing::Replace);
        }
        let verdict = self.trust_options.verify(context, &note)?;
        if verdict.outcome != VerificationOutcome::Verified {
            return Err(refused(&verdict));
        }
        if let (Some(size), Some(facts)) = (self.size, &verdict.checkpoint)
            && facts.tree_size != size
        {
            let what = format!("asked for the tree of size {size}, got that of size {}", facts.tree_size);
            return Err(Failure::new(Exit::Failure, "nonsense", what));
        }
        let to_stdout = self.output == Path::new("-");
        if !to_stdout || !context.console.json {
            files::write(&self.output, &note, Access::Ordinary, Existing::Replace)?;
        }
        if to_stdout && !context.console.json {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&note);
        context.console.result(&VerifiedCheckpoint { verdict: &verdict, note: to_stdout.then_some(&*text) })
    }
}

/// The failure for a checkpoint that does not verify.
fn refused(verdict: &verifier::CheckpointVerdict) -> Failure {
    let code = verdict.reason.unwrap_or(Code::NotReached);
    let failure = Failure::new(exit(verdict.outcome), code.as_str(), explanation(code));
    let undone = verdict.checks.iter().filter(|check| check.state != verifier::CheckState::Ok);
    let failure = undone.fold(failure, |failure, check| failure.fact(check.name.as_str(), &*check.detail));
    match code {
        Code::UnknownCheckpointKey => failure.hint("tabellion checkpoint get --no-verify"),
        _ => failure,
    }
}
