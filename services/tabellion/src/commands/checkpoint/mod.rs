//! `tabellion checkpoint`: fetches, verifies and compares checkpoints of any C2SP log.

mod diff;
mod get;
pub mod verify;

use std::io::{self, Write};

use clap::Subcommand;
use owo_colors::OwoColorize;
use serde::Serialize;
use verifier::{CheckpointVerdict, VerificationOutcome};

use crate::console::{Failure, Report, safe};
use crate::context::Context;
use crate::verification::{print_check, print_not_verified};

#[derive(Debug, Subcommand)]
#[command(before_help = "example:  tabellion checkpoint get --url https://log.example -o checkpoint")]
pub enum Checkpoint {
    /// Fetch a log's checkpoint and verify it
    Get(get::Get),
    /// Verify a checkpoint, and its cosignatures against a policy
    Verify(verify::Verify),
    /// Check whether two checkpoints are consistent, or check the evidence of an alarm
    Diff(diff::Diff),
}

impl Checkpoint {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Get(command) => command.run(context),
            Self::Verify(command) => command.run(context),
            Self::Diff(command) => command.run(context),
        }
    }
}

/// A checkpoint with the result of its verification.
#[derive(Serialize)]
struct VerifiedCheckpoint<'v> {
    #[serde(flatten)]
    verdict: &'v CheckpointVerdict,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'v str>,
}

impl Report for VerifiedCheckpoint<'_> {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        if let Some(facts) = &self.verdict.checkpoint {
            writeln!(out, "log   {}", safe(&facts.origin))?;
            writeln!(out, "size  {}", facts.tree_size)?;
            writeln!(out, "root  {}", facts.root)?;
        }
        self.verdict.checks.iter().try_for_each(|check| print_check(out, check))?;
        match self.verdict.outcome {
            VerificationOutcome::Verified => writeln!(out, "{}", "verified".green()),
            _ => print_not_verified(out, self.verdict.reason),
        }
    }
}
