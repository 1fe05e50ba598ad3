//! `tabellion conformance`: tests a transparency service of any maker against SCRAPI and the specifications of receipts
//! and error bodies. One statement is registered; the rest of the requests register nothing.
//!
//! Not here: the checks (`conformance`).

mod run;

use std::io::{self, Write};
use std::path::PathBuf;

use clap::{ArgGroup, Args};
use conformance::{CheckConclusion, CheckResult, ConformanceCheck, ConformanceReport, Samples, checks};
use display::counted;
use owo_colors::OwoColorize;
use scitt::Signer;
use serde::Serialize;

use super::statement::{self, Form, Terms, malformed};
use super::verify::now;
use crate::console::files::{self, Access, Existing};
use crate::console::{Exit, Failure, Report, safe};
use crate::context::Context;
use crate::dev_files::{DEV_ISSUER, DEV_KEY};
use crate::keyfile;
use crate::service::ServiceArgs;
use run::observe;

/// The subject of the registered statement.
const SUBJECT: &str = "conformance";
/// Total seconds of retries of the client, which this command does not use: it sends each request once.
const NO_RETRIES: u64 = 0;

#[derive(Debug, Args)]
#[command(before_help = "example:  tabellion conformance http://127.0.0.1:7390 --dev --html report.html")]
#[command(group(ArgGroup::new("registered").required(true).args(["dev", "key", "statement"])))]
pub struct Conformance {
    /// The service
    url: String,
    /// Register a new statement of ./tabellion-dev's key
    #[arg(long, conflicts_with = "iss")]
    dev: bool,
    /// Register a new statement, signed with this key
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Its issuer [default: the key's did:key]
    #[arg(long, value_name = "URI", requires = "key")]
    iss: Option<String>,
    /// Its media type
    #[arg(long, value_name = "TYPE", default_value = "application/json")]
    content_type: String,
    /// Register this Signed Statement
    #[arg(long, value_name = "FILE")]
    statement: Option<PathBuf>,
    /// Decide only this check; may be repeated
    #[arg(long, value_name = "CHECK", value_parser = check)]
    only: Vec<&'static ConformanceCheck>,
    /// Write the report as JSON
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write the report as an HTML page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Additional trusted CA certificates (PEM)
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,
    /// A file with a bearer token
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

impl Conformance {
    /// Tests the service, writes the reports, and fails with [`Exit::VerificationFailed`] if it does not conform, or the
    /// run does not decide.
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let samples = self.samples()?;
        let service = self.service_args().connect(context)?;
        let checks = self.checks();
        let observations = service.drive(observe(&checks, &service.client, &samples, now()));
        if let Some(why) = observations.unreachable() {
            return Err(Failure::new(Exit::TryAgain, "unreachable", "cannot reach the service")
                .fact("because", why)
                .hint("tabellion help unreachable"));
        }
        let at = display::time(now());
        let report = ConformanceReport::of(&checks, &observations, service.client.base().as_str(), at);
        self.write_files(&report)?;
        context.console.result(&ConformanceResult(&report))?;
        match report.conforms {
            true => Ok(()),
            false => Err(Failure::already_printed(Exit::VerificationFailed)),
        }
    }

    /// Returns the selected checks in the order of the suite; all of them if none is selected.
    fn checks(&self) -> Vec<&'static ConformanceCheck> {
        let is_selected = |check: &&ConformanceCheck| self.only.iter().any(|only| only.name == check.name);
        checks().filter(|check| self.only.is_empty() || is_selected(check)).collect()
    }

    fn samples(&self) -> Result<Samples, Failure> {
        let Some(file) = &self.statement else { return self.sign() };
        Samples::of(files::read(file)?).map_err(|error| malformed(&file.display().to_string(), &error))
    }

    /// Signs a statement about a random number, so that each run registers a new one, and its hostile variants.
    fn sign(&self) -> Result<Samples, Failure> {
        let dev = PathBuf::from(DEV_KEY);
        let key = keyfile::read(self.key.as_ref().unwrap_or(&dev))?;
        let named = if self.dev { Some(DEV_ISSUER.to_owned()) } else { self.iss.clone() };
        let iss = named.unwrap_or_else(|| key.public_key().did_key());
        let terms = Terms { iss: &iss, sub: SUBJECT, content_type: &self.content_type };
        let payload = format!("{{\"conformance\":\"{}\"}}", uuid::Uuid::new_v4());
        let statement = statement::sign(&key, payload.into_bytes(), &terms, Form::Attached)?;
        let samples = Samples::of(statement.bytes().clone());
        let samples = samples.map_err(|error| malformed("the new statement", &error))?;
        samples.signed_by(&key).map_err(keyfile::cannot_sign)
    }

    fn service_args(&self) -> ServiceArgs {
        ServiceArgs {
            url: Some(self.url.clone()),
            cacert: self.cacert.clone(),
            token_file: self.token_file.clone(),
            timeout: NO_RETRIES,
        }
    }

    fn write_files(&self, report: &ConformanceReport) -> Result<(), Failure> {
        if let Some(file) = &self.output {
            let json = serde_json::to_vec_pretty(report).map_err(io::Error::from)?;
            files::write(file, &json, Access::Ordinary, Existing::Replace)?;
        }
        if let Some(file) = &self.html {
            files::write(file, report.to_html().as_bytes(), Access::Ordinary, Existing::Replace)?;
        }
        Ok(())
    }
}

fn check(name: &str) -> Result<&'static ConformanceCheck, String> {
    checks()
        .find(|check| check.name == name)
        .ok_or_else(|| format!("the suite has no check {name}: a run without --only names all of them"))
}

/// The report, as a command's result.
#[derive(Serialize)]
#[serde(transparent)]
struct ConformanceResult<'r>(&'r ConformanceReport);

impl Report for ConformanceResult<'_> {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        let ConformanceReport { checks, summary, undecided, conforms, .. } = self.0;
        checks.iter().try_for_each(|check| print_check(out, check))?;
        write!(
            out,
            "{} passed, {} failed, {}, {} not applicable, {} unsupported",
            summary.passed,
            summary.failed,
            counted(summary.warning, "warning", "warnings"),
            summary.not_applicable,
            summary.unsupported
        )?;
        match summary.not_selected {
            0 => writeln!(out)?,
            others => writeln!(out, ", {others} not selected")?,
        }
        match undecided {
            Some(why) => writeln!(out, "{}: no MUST is violated, but {why}", "undecided".yellow()),
            None if !conforms => writeln!(out, "{}: a MUST is violated", "does not conform".red()),
            None if summary.not_selected > 0 => writeln!(out, "no MUST of the selected checks is violated"),
            None => writeln!(out, "{}: no MUST is violated", "conforms".green()),
        }
    }
}

fn print_check(out: &mut dyn Write, check: &CheckResult) -> io::Result<()> {
    let name = check.conclusion.name();
    match check.conclusion {
        CheckConclusion::Passed => write!(out, "{:14}", name.green())?,
        CheckConclusion::Failed => write!(out, "{:14}", name.red())?,
        CheckConclusion::Warning => write!(out, "{:14}", name.yellow())?,
        CheckConclusion::NotApplicable | CheckConclusion::Unsupported => write!(out, "{name:14}")?,
    }
    writeln!(out, "  {:24}  {}", check.name, safe(&check.finding))?;
    if matches!(check.conclusion, CheckConclusion::Failed | CheckConclusion::Warning) {
        writeln!(out, "{:16}{} ({}, {})", "", check.expectation, check.source, check.level.name())?;
    }
    Ok(())
}
