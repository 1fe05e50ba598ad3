//! `tabellion vrf recheck`: runs the checks of a receipt again, and compares. What the receipt states (task, subject, tier,
//! limits) need not be given.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use checks::{ReceiptDifference, Stamp, differences, receipt};
use clap::Args;
use registration::vrf::VrfRecord;
use serde::Serialize;
use serde_json::Value;

use super::broken;
use super::check_request::{self, RequestArgs};
use crate::commands::verify::input;
use crate::console::{Exit, Failure, Report, files, safe};
use crate::context::Context;

#[derive(Debug, Args)]
#[command(mut_arg("sub", |sub| sub.hide(true)))]
pub struct Recheck {
    /// The receipt: JSON, or a VRF statement (.cose)
    receipt: PathBuf,
    #[command(flatten)]
    request: RequestArgs,
}

impl Recheck {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let first = read_receipt(&self.receipt)?;
        let request = self.request.read_again(&first)?;
        let report = check_request::run(&request)?;
        let verifier = first.pointer("/metadata/verifier").and_then(Value::as_str);
        let stamp = Stamp {
            receipt_id: String::new(),
            verified_at: String::new(),
            verifier: verifier.map_or_else(check_request::verifier, str::to_owned),
        };
        let second = receipt(&request, &report, stamp);
        let result = RecheckResult::of(report.verdict().as_str(), &differences(&first, &second));
        context.console.result(&result)?;
        match result.differences.is_empty() {
            true => Ok(()),
            false => Err(Failure::already_printed(Exit::VerificationFailed)),
        }
    }
}

/// Reads a receipt in JSON, or the one in a statement whose rules and signature are verified.
fn read_receipt(file: &Path) -> Result<Value, Failure> {
    if file.extension().is_some_and(|ending| ending == "cose") {
        let record = VrfRecord::verify(&input::statement(file)?, None);
        return Ok(record.map_err(|violation| broken(&violation))?.json().clone());
    }
    let receipt = files::read_json(file).map_err(|failure| failure.ending_with(Exit::NotVerified))?;
    match receipt["verdict"].is_string() {
        true => Ok(receipt),
        false => {
            let what = format!("{} holds no verification receipt", file.display());
            Err(Failure::new(Exit::NotVerified, "no-receipt", what))
        }
    }
}

/// The result of a repetition.
#[derive(Serialize)]
struct RecheckResult {
    verdict: &'static str,
    reproduced: bool,
    differences: Vec<Place>,
}

#[derive(Serialize)]
struct Place {
    pointer: String,
    receipt: Option<Value>,
    again: Option<Value>,
}

impl RecheckResult {
    fn of(verdict: &'static str, differences: &[ReceiptDifference]) -> Self {
        let place = |difference: &ReceiptDifference| Place {
            pointer: difference.pointer.clone(),
            receipt: difference.first.clone(),
            again: difference.second.clone(),
        };
        Self {
            verdict,
            reproduced: differences.is_empty(),
            differences: differences.iter().map(place).collect(),
        }
    }
}

impl Report for RecheckResult {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.reproduced {
            return writeln!(out, "ok        the same result again: {}", self.verdict);
        }
        writeln!(out, "differs   places: {}", self.differences.len())?;
        let text = |value: &Option<Value>| value.as_ref().map_or("absent".to_owned(), Value::to_string);
        for Place { pointer, receipt, again } in &self.differences {
            writeln!(
                out,
                "{}\n  receipt   {}\n  again     {}",
                safe(pointer),
                safe(&text(receipt)),
                safe(&text(again))
            )?;
        }
        Ok(())
    }
}
