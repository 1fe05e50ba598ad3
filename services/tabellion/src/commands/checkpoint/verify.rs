//! `tabellion checkpoint verify`: verifies offline that the log signed a checkpoint, and that enough witnesses cosigned
//! it.

use std::path::{Path, PathBuf};

use clap::Args;
use tlog::key::VerifierKey;
use tlog::policy::WitnessPolicy;
use verifier::{CheckpointVerdict, TrustStore, VerificationOutcome};

use super::VerifiedCheckpoint;
use crate::commands::verify::{input, witness_policy};
use crate::console::Failure;
use crate::context::Context;
use crate::trust_file::TrustFile;
use crate::verification::exit;

#[derive(Debug, Args)]
#[command(before_help = "example:  tabellion checkpoint verify checkpoint --policy witnesses.policy")]
pub struct Verify {
    /// A checkpoint
    file: PathBuf,
    #[command(flatten)]
    trust_options: CheckpointTrust,
}

/// Trusted keys and witness policy for a checkpoint.
#[derive(Debug, Args)]
pub struct CheckpointTrust {
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
        let verdict = self.trust_options.verify(context, &input::checkpoint_bytes(&self.file)?)?;
        context.console.result(&VerifiedCheckpoint { verdict: &verdict, note: None })?;
        match verdict.outcome {
            VerificationOutcome::Verified => Ok(()),
            outcome => Err(Failure::already_printed(exit(outcome))),
        }
    }
}

impl CheckpointTrust {
    /// Verifies a checkpoint with these keys, this policy and the trust file.
    pub fn verify(&self, context: &Context, note: &[u8]) -> Result<CheckpointVerdict, Failure> {
        Ok(self.read(context)?.verify(note))
    }

    /// Reads the policy and the trust file.
    pub fn read(&self, context: &Context) -> Result<CheckpointVerifier, Failure> {
        let trust = TrustFile::find(context, self.trust.as_deref())?.store;
        let policy = self.policy.as_deref().map(Path::new).map(witness_policy).transpose()?;
        Ok(CheckpointVerifier { keys: self.key.clone(), policy, trust })
    }
}

/// The keys and the policy that checkpoints are verified with.
#[derive(Debug)]
pub struct CheckpointVerifier {
    keys: Vec<VerifierKey>,
    policy: Option<WitnessPolicy>,
    /// The contents of the trust file.
    pub trust: TrustStore,
}

impl CheckpointVerifier {
    /// Verifies a checkpoint.
    pub fn verify(&self, note: &[u8]) -> CheckpointVerdict {
        verifier::verify_checkpoint(note, &self.keys, self.policy.as_ref(), &self.trust)
    }
}
