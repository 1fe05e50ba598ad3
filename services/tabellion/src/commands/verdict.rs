//! `tabellion verdict`: shows a gateway's Verdicts, and verifies them offline.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use gateway::check::CheckOutcome;
use gateway::proof::{self, Proof, VerdictInputs};
use gateway::replay::VerdictWords;
use serde::Serialize;
use serde_json::Value;

use super::verify::input;
use crate::console::{Exit, Failure, Report, files, safe};
use crate::context::Context;

#[derive(Debug, Subcommand)]
#[command(before_help = "example:  tabellion verdict verify --jwks jwks.json answer.json")]
pub enum Verdict {
    /// Show a Verdict without verifying it
    #[command(before_help = "example:  tabellion verdict show answer.json")]
    Show(Show),
    /// Verify a Verdict's signature, and that the log's record is about it
    #[command(before_help = "example:  tabellion verdict verify --jwks jwks.json answer.json")]
    Verify(Verify),
}

#[derive(Debug, Args)]
pub struct Show {
    /// The Verdict, or a tool's answer that contains it (JSON)
    file: PathBuf,
}

#[derive(Debug, Args)]
pub struct Verify {
    /// The Verdict, or a tool's answer that contains it (JSON)
    file: PathBuf,
    /// The gateway's public keys: a JWK set from `gateway jwks`
    #[arg(long, value_name = "FILE")]
    jwks: Option<PathBuf>,
    /// The statement named by `audit_ref`
    #[arg(long, value_name = "FILE")]
    statement: Option<PathBuf>,
    /// The key that opens that statement's commitments: `key` of what came with the Verdict
    #[arg(long, value_name = "KEY", requires = "statement", allow_hyphen_values = true)]
    record_key: Option<String>,
}

impl Verdict {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Show(command) => command.run(context),
            Self::Verify(command) => command.run(context),
        }
    }
}

impl Show {
    fn run(self, context: &Context) -> Result<(), Failure> {
        context.console.result(&VerdictView::of(read(&self.file)?))?;
        context.console.note("nothing was checked: tabellion verdict verify");
        Ok(())
    }
}

impl Verify {
    fn run(self, context: &Context) -> Result<(), Failure> {
        let verdict = read(&self.file)?;
        let jwks = self.jwks.as_deref().map(files::read).transpose()?;
        let statement = self.statement.as_deref().map(input::statement_bytes).transpose()?;
        let given = VerdictInputs {
            jwks: jwks.as_deref(),
            statement: statement.as_deref(),
            record_key: self.record_key.as_deref(),
        };
        let checked = VerdictCheckResult::of(proof::prove(verdict, given));
        context.console.result(&checked)?;
        match checked.exit() {
            Exit::Success => Ok(()),
            exit => Err(Failure::already_printed(exit)),
        }
    }
}

fn read(path: &Path) -> Result<Value, Failure> {
    let bytes = files::read(path)?;
    std::str::from_utf8(&bytes).ok().and_then(proof::find).ok_or_else(|| {
        Failure::new(exit_without(&bytes), "no-verdict", format!("there is no Verdict in {}", path.display()))
            .why("a gateway answers with one in `_meta`, under `vap` or `dev.tabellion/vap`")
    })
}

/// Returns the exit code for a file without a Verdict: damage if it begins like JSON and is none.
fn exit_without(bytes: &[u8]) -> Exit {
    match jose::json::read_bytes::<Value>(bytes) {
        Ok(_) => Exit::NotVerified,
        Err(_) => input::damaged_json(bytes, b'{'),
    }
}

/// A Verdict for display.
#[derive(Serialize)]
struct VerdictView {
    verdict: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    because: Option<&'static str>,
}

impl VerdictView {
    fn of(verdict: Value) -> Self {
        let reason = verdict.pointer("/verification/reason").and_then(Value::as_str).map(str::to_owned);
        Self { because: VerdictWords::of("", reason).because, verdict }
    }
}

fn text<'a>(value: &'a Value, at: &str) -> &'a str {
    value.pointer(at).and_then(Value::as_str).unwrap_or("-")
}

fn lines(out: &mut dyn Write, verdict: &Value, because: Option<&str>) -> io::Result<()> {
    writeln!(
        out,
        "verdict   {}   for {}",
        safe(text(verdict, "/verdict")),
        safe(text(verdict, "/in_response_to"))
    )?;
    writeln!(out, "session   {}", safe(text(verdict, "/session_id")))?;
    if verdict.pointer("/verification/reason").is_some() {
        writeln!(out, "reason    {}", safe(text(verdict, "/verification/reason")))?;
    }
    if let Some(because) = because {
        writeln!(out, "          {because}")?;
    }
    let checks = verdict.pointer("/verification/checks").and_then(Value::as_array);
    let checks: Vec<&str> = checks.into_iter().flatten().filter_map(Value::as_str).collect();
    writeln!(out, "checks    {}", safe(&checks.join(", ")))?;
    writeln!(out, "record    {}", safe(text(verdict, "/audit_ref")))
}

impl Report for VerdictView {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        lines(out, &self.verdict, self.because)
    }
}

/// A Verdict with the results of its checks.
#[derive(Serialize)]
struct VerdictCheckResult {
    #[serde(flatten)]
    proof: Proof,
    verified: bool,
}

impl VerdictCheckResult {
    fn of(proof: Proof) -> Self {
        let held = |what: &str| {
            proof.checks.iter().any(|check| check.what == what && check.outcome == CheckOutcome::Ok)
        };
        let failed = proof.checks.iter().any(|check| check.outcome == CheckOutcome::Failed);
        let verified = held("form") && held("signature") && !failed;
        Self { verified, proof }
    }

    /// Returns the exit code. A missing statement is not a failure; a signature that could not be checked is not a success.
    fn exit(&self) -> Exit {
        match (self.verified, self.proof.checks.iter().any(|check| check.outcome == CheckOutcome::Failed)) {
            (true, _) => Exit::Success,
            (false, true) => Exit::VerificationFailed,
            (false, false) => Exit::NotVerified,
        }
    }
}

impl Report for VerdictCheckResult {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        for check in &self.proof.checks {
            let mark = match check.outcome {
                CheckOutcome::Ok => "ok  ",
                CheckOutcome::Warning => "warn",
                CheckOutcome::NotChecked => "--  ",
                CheckOutcome::Failed => "FAIL",
            };
            writeln!(out, "{mark}  {:12}{}", check.what, safe(&check.detail))?;
        }
        writeln!(out, "{}", if self.verified { "verified (offline)" } else { "not verified" })
    }
}
