//! `tabellion verify` for an evidence bundle: every check of every entry and policy, with the reader's own trust.

use std::io::{self, Write};

use bundle::BundleVerdict;
use owo_colors::OwoColorize;
use serde::Serialize;
use verifier::{StatementVerdict, VerificationOutcome};

use super::{VerificationFiles, input, now, witness_policy};
use crate::console::{Failure, Report, safe};
use crate::trust_file::TrustFile;
use crate::verification::{print_check, print_not_verified};

/// Verifies all parts of a bundle.
pub fn verify(given: &VerificationFiles, bytes: &[u8], trust: &TrustFile) -> Result<VerifiedBundle, Failure> {
    given.refuse_other_evidence("a bundle")?;
    let bundle = input::parsed_bundle(&given.statement, bytes)?;
    let witnesses = given.witness_policy.as_deref().map(witness_policy).transpose()?;
    let mut verdict = bundle.verify(&trust.store, witnesses.as_ref(), now());
    content_rules::check_bundle(&bundle, &mut verdict);
    Ok(VerifiedBundle { verdict })
}

/// The result for a bundle, in JSON as the crate `bundle` gives it.
#[derive(Serialize)]
pub struct VerifiedBundle {
    #[serde(flatten)]
    verdict: BundleVerdict,
}

impl Report for VerifiedBundle {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        let verdict = &self.verdict;
        for (kind, parts) in [("policy", &verdict.policies), ("entry", &verdict.entries)] {
            parts.iter().try_for_each(|part| print_part(out, kind, part))?;
        }
        writeln!(out, "bundle")?;
        let checks = verdict.checkpoint.checks.iter().chain(&verdict.checks);
        checks.into_iter().try_for_each(|check| print_check(out, check))?;
        match verdict.outcome {
            VerificationOutcome::Verified => self.print_summary(out),
            _ => print_not_verified(out, verdict.reason),
        }
    }
}

impl VerifiedBundle {
    /// The outcome of all checks.
    pub fn outcome(&self) -> VerificationOutcome {
        self.verdict.outcome
    }

    fn print_summary(&self, out: &mut dyn Write) -> io::Result<()> {
        let BundleVerdict { entries, policies, checkpoint, .. } = &self.verdict;
        let log = checkpoint.checkpoint.as_ref().map_or("", |facts| &facts.origin);
        let (entries, policies) = (entries.len(), policies.len());
        writeln!(
            out,
            "{} (offline): entries {entries}, policies {policies}, of {}",
            "verified".green(),
            safe(log)
        )
    }
}

/// Prints the checks of an entry or policy.
pub fn print_part(out: &mut dyn Write, kind: &str, part: &StatementVerdict) -> io::Result<()> {
    match &part.statement {
        Some(facts) => {
            let [iss, sub] = [&facts.iss, &facts.sub].map(|text| safe(text.as_deref().unwrap_or("-")));
            writeln!(out, "{kind} {}  {iss}  {sub}", facts.entry)?;
        }
        None => writeln!(out, "{kind}")?,
    }
    part.checks.iter().try_for_each(|check| print_check(out, check))
}
