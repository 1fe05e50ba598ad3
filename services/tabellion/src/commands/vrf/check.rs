//! `tabellion vrf check`: checks an agent's work once, without a service, and writes the receipt.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use checks::{CheckRequest, Report, Stamp, Status, receipt};
use clap::Args;
use display::counted;
use jiff::{Timestamp, Unit};
use registration::vrf::VrfStatement;
use serde::Serialize;

use super::check_request::{self, RequestArgs};
use crate::console::files::{self, Access, Existing};
use crate::console::{self, Exit, Failure, safe};
use crate::context::Context;
use crate::keyfile;

#[derive(Debug, Args)]
pub struct Check {
    #[command(flatten)]
    request: RequestArgs,
    /// The verifier's Ed25519 key; signs the receipt
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// The receipt's file [default: FILE.receipt.json]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Check {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let request = self.request.read()?;
        let statement_file = self.statement_file();
        if self.key.is_some() && request.subject().is_none() {
            let what = "a signed receipt says whose work was checked";
            return Err(
                Failure::new(Exit::Usage, "no-subject", what).hint("--sub DID, or subject in the request")
            );
        }
        let report = check_request::run(&request)?;
        let receipt = receipt(&request, &report, stamp());
        let signed = self.signed(&request, &receipt)?;
        write(context, &self.output(), &jose::jcs::canonical(&receipt))?;
        if let Some(bytes) = signed {
            write(context, &statement_file, &bytes)?;
        }
        context.console.result(&CheckResult::of(&request, &report))?;
        ended(&report)
    }

    fn output(&self) -> PathBuf {
        self.output
            .clone()
            .unwrap_or_else(|| files::with_extension(self.request.named_after(), "receipt.json"))
    }

    fn statement_file(&self) -> PathBuf {
        files::with_extension(&self.output(), "cose")
    }

    fn signed(
        &self,
        request: &CheckRequest,
        receipt: &serde_json::Value,
    ) -> Result<Option<Vec<u8>>, Failure> {
        let Some(key) = &self.key else { return Ok(None) };
        let key = keyfile::read(key)?;
        let statement = VrfStatement::new(receipt.clone(), request.subject().unwrap_or_default()).unchained();
        let signed = statement.sign(&key).map_err(keyfile::cannot_sign)?;
        Ok(Some(signed.bytes().to_vec()))
    }
}

fn write(context: &Context, file: &Path, bytes: &[u8]) -> Result<(), Failure> {
    files::write(file, bytes, Access::Ordinary, Existing::Replace)?;
    context.console.note(format!("wrote      {}", file.display()));
    Ok(())
}

/// Returns the stamp of a receipt that is made now.
fn stamp() -> Stamp {
    let now = Timestamp::now();
    Stamp {
        receipt_id: uuid::Uuid::new_v4().to_string(),
        verified_at: now.round(Unit::Second).unwrap_or(now).to_string(),
        verifier: check_request::verifier(),
    }
}

/// The exit code of a verdict: 0 for pass, 3 for fail and partial, 4 for error.
fn ended(report: &Report) -> Result<(), Failure> {
    let results = report.results();
    match (results.failed, results.errors, results.passed) {
        (0, 0, 1..) => Ok(()),
        (1.., ..) => Err(Failure::already_printed(Exit::VerificationFailed)),
        _ => Err(Failure::already_printed(Exit::NotVerified)),
    }
}

/// The result of checks, for display.
#[derive(Serialize)]
struct CheckResult {
    verdict: &'static str,
    tier: u8,
    total: u64,
    passed: u64,
    failed: u64,
    errors: u64,
    output: String,
    engine: String,
    /// The checks that did not pass.
    not_passed: Vec<NotPassed>,
}

#[derive(Serialize)]
struct NotPassed {
    name: String,
    status: &'static str,
    message: String,
}

impl CheckResult {
    fn of(request: &CheckRequest, report: &Report) -> Self {
        let results = report.results();
        let not_passed = report.details.iter().filter(|detail| detail.status != Status::Pass);
        Self {
            verdict: report.verdict().as_str(),
            tier: request.tier(),
            total: results.total,
            passed: results.passed,
            failed: results.failed,
            errors: results.errors,
            output: request.hashes().output.clone(),
            engine: format!("{} {}", report.engine.name, report.engine.version),
            not_passed: not_passed
                .map(|detail| NotPassed {
                    name: detail.name.clone(),
                    status: detail.status.as_str(),
                    message: detail.message.clone().unwrap_or_default(),
                })
                .collect(),
        }
    }
}

impl console::Report for CheckResult {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(
            out,
            "{:8}  {} of {} passed, tier {}",
            self.verdict,
            self.passed,
            counted(self.total, "check", "checks"),
            self.tier
        )?;
        for check in &self.not_passed {
            writeln!(out, "{:8}  {}: {}", check.status, safe(&check.name), safe(&check.message))?;
        }
        writeln!(out, "work      {}", self.output)?;
        writeln!(out, "engine    {}", safe(&self.engine))
    }
}
