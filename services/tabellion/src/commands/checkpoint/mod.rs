//! `tabellion checkpoint`: fetches, verifies and compares checkpoints of any C2SP log.

mod diff;
mod get;
mod verify;

use std::io::{self, Write};

use clap::Subcommand;
use owo_colors::OwoColorize;
use serde::Serialize;
use verifier::{CheckpointVerdict, VerificationOutcome};

use super::verify::{in_words, line};
use crate::cli::Context;
use crate::console::{Failure, Report, safe};

#[derive(Debug, Subcommand)]
#[command(before_help = "example:  tabellion checkpoint get --url https://log.example -o checkpoint")]
pub enum Checkpoint {
    /// Fetch a log's checkpoint and verify it
    Get(get::Get),
    /// Verify a checkpoint, and its cosignatures against a policy
    Verify(verify::Verify),
    /// Compare two checkpoints, or check the evidence of an alarm: do they belong to one history?
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
struct Verified<'v> {
    #[serde(flatten)]
    verdict: &'v CheckpointVerdict,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'v str>,
}

impl Report for Verified<'_> {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        if let Some(facts) = &self.verdict.checkpoint {
            writeln!(out, "log   {}", safe(&facts.origin))?;
            writeln!(out, "size  {}", facts.tree_size)?;
            writeln!(out, "root  {}", facts.root)?;
        }
        self.verdict.checks.iter().try_for_each(|check| line(out, check))?;
        match (self.verdict.outcome, self.verdict.reason) {
            (VerificationOutcome::Verified, _) => writeln!(out, "{}", "verified".green()),
            (_, Some(reason)) => writeln!(out, "{}: {}  [{reason}]", "not verified".red(), in_words(reason)),
            (_, None) => writeln!(out, "{}", "not verified".red()),
        }
    }
}
