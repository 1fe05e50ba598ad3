//! `tabellion checkpoint verify`: verifies offline that the log signed a checkpoint, and that enough witnesses cosigned
//! it.

use std::path::{Path, PathBuf};

use clap::Args;
use tlog::key::VerifierKey;
use verifier::{CheckpointVerdict, VerificationOutcome};

use super::Verified;
use crate::cli::Context;
use crate::commands::verify::{exit, input, witness_policy};
use crate::console::Failure;
use crate::trust_file::TrustFile;

#[derive(Debug, Args)]
#[command(before_help = "example:  tabellion checkpoint verify checkpoint --policy witnesses.policy")]
pub struct Verify {
    /// A checkpoint
    file: PathBuf,
    #[command(flatten)]
    believed: Believed,
}

/// Whose checkpoints and cosignatures are believed.
#[derive(Debug, Args)]
pub struct Believed {
    /// A verifier key of the log (vkey)
    #[arg(long, value_name = "VKEY")]
    pub key: Vec<VerifierKey>,
    /// Require the quorum of this policy (C2SP tlog-policy)
    #[arg(long, alias = "witness-policy", value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// The trust file
    #[arg(long, value_name = "FILE")]
    pub trust: Option<PathBuf>,
}

impl Verify {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let verdict = self.believed.verify(context, &input::checkpoint_bytes(&self.file)?)?;
        context.console.result(&Verified { verdict: &verdict, note: None })?;
        match verdict.outcome {
            VerificationOutcome::Verified => Ok(()),
            outcome => Err(Failure::told(exit(outcome))),
        }
    }
}

impl Believed {
    /// Verifies a checkpoint with these keys, this policy and the trust file.
    pub fn verify(&self, context: &Context, note: &[u8]) -> Result<CheckpointVerdict, Failure> {
        let trust = TrustFile::find(context, self.trust.as_deref())?;
        let policy = self.policy.as_deref().map(Path::new).map(witness_policy).transpose()?;
        Ok(verifier::verify_checkpoint(note, &self.key, policy.as_ref(), &trust.store))
    }
}
