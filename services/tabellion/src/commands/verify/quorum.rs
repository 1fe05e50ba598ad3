//! `tabellion verify --require`: N verifiers of a list have passed the same work (VRF, section 8.1).

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use owo_colors::OwoColorize;
use serde::Serialize;
use verifier::{StatementEvidence, VerificationOutcome};
use vrf_evidence::{
    EvidenceFault, QuorumReport, QuorumSyntaxError, VerifierQuorum, VrfEvidence, VrfVerifier,
};

use super::max_age::MaxAge;
use super::{input, now};
use crate::console::{Exit, Failure, Report, files, safe};
use crate::context::Context;
use crate::trust_file::TrustFile;

/// The flags that require several verifiers.
#[derive(Debug, Args)]
pub struct Quorum {
    /// Require VRF passes of N of these, of --artifact
    #[arg(
        long,
        num_args = 2,
        value_names = ["N-of", "DIDS"],
        conflicts_with_all = [
            "receipt",
            "payload",
            "proof",
            "checkpoint",
            "witness_policy",
            "gateway_key",
            "attested_by",
            "attestation",
        ]
    )]
    require: Vec<String>,
    /// The output that they passed
    #[arg(long, value_name = "FILE", requires = "require", hide = true)]
    artifact: Option<PathBuf>,
}

impl Quorum {
    /// Returns whether `--require` was given.
    pub fn is_required(&self) -> bool {
        !self.require.is_empty()
    }

    /// Verifies the statements, prints whether and why each verifier counts, and fails if too few do: with exit code 3 if
    /// a statement is wrong, otherwise with 4.
    pub fn decide(
        &self,
        context: &Context,
        files: &[PathBuf],
        trust: Option<&Path>,
        max_age: Option<MaxAge>,
    ) -> Result<(), Failure> {
        let quorum = self.require.join(" ").parse::<VerifierQuorum>().map_err(|error| unusable(&error))?;
        let quorum = match max_age {
            Some(max_age) => quorum.not_before(max_age.earliest(now())),
            None => quorum,
        };
        let inputs = files.iter().chain(&self.artifact).filter(|file| files::is_stream(file));
        if inputs.count() > 1 {
            return Err(files::stdin_twice());
        }
        let artifact = self.artifact.as_deref().map(files::read).transpose()?;
        let statements = VerifiedFiles::read(files, &TrustFile::find(context, trust)?)?;
        let report = quorum.decide(&statements.evidence, artifact.as_deref());
        let exit = match (report.met, statements.is_any_wrong()) {
            (true, _) => Exit::Success,
            (false, true) => Exit::VerificationFailed,
            (false, false) => Exit::NotVerified,
        };
        context.console.result(&QuorumOutput { report, unusable: statements.unusable })?;
        match exit {
            Exit::Success => Ok(()),
            exit => Err(Failure::already_printed(exit)),
        }
    }
}

fn unusable(error: &QuorumSyntaxError) -> Failure {
    Failure::new(Exit::Usage, "usage", "--require does not name verifiers")
        .fact("because", error.to_string())
        .hint("tabellion verify --require 2-of did:key:a,did:key:b,did:key:c FILE…")
}

/// Statements read from files.
struct VerifiedFiles {
    evidence: Vec<VrfEvidence>,
    unusable: Vec<UnusableFile>,
}

/// A file that holds no VRF statement that keeps the rules.
#[derive(Serialize)]
struct UnusableFile {
    file: String,
    #[serde(flatten)]
    fault: EvidenceFault,
}

impl VerifiedFiles {
    fn read(files: &[PathBuf], trust: &TrustFile) -> Result<Self, Failure> {
        let (verifier, now) = (VrfVerifier::new(&trust.store), now());
        let mut read = Self { evidence: Vec::new(), unusable: Vec::new() };
        for file in files {
            let statement = input::statement_bytes(file)?;
            let evidence = StatementEvidence { statement: &statement, ..StatementEvidence::default() };
            match verifier.verify(&evidence, now) {
                Ok(evidence) => read.evidence.push(evidence),
                Err(fault) => read.unusable.push(UnusableFile { file: file.display().to_string(), fault }),
            }
        }
        Ok(read)
    }

    fn is_any_wrong(&self) -> bool {
        let failed = |evidence: &VrfEvidence| evidence.outcome == VerificationOutcome::Failed;
        !self.unusable.is_empty() || self.evidence.iter().any(failed)
    }
}

#[derive(Serialize)]
struct QuorumOutput {
    #[serde(flatten)]
    report: QuorumReport,
    unusable: Vec<UnusableFile>,
}

impl Report for QuorumOutput {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        let report = &self.report;
        for verifier in &report.verifiers {
            let (name, reason) = (safe(&verifier.verifier), safe(&verifier.reason));
            match verifier.counts {
                true => writeln!(out, "{}    {name}  {reason}", "ok".green())?,
                false => writeln!(out, "--    {name}  does not count: {reason}")?,
            }
        }
        for other in &report.unlisted {
            writeln!(out, "--    {}  is not on the list", safe(&other.verifier))?;
        }
        for file in &self.unusable {
            writeln!(out, "{}  {}  {}", "FAIL".red(), safe(&file.file), safe(&file.fault.to_string()))?;
        }
        if let Some(work) = &report.work {
            let task =
                work.task_id.as_deref().map(|task| format!(", task {}", safe(task))).unwrap_or_default();
            writeln!(out, "      work  {} of {}{task}", safe(&work.output), safe(&work.agent))?;
        }
        let QuorumReport { counted, needed, .. } = report;
        match report.met {
            true => {
                writeln!(out, "{}: verifiers that count: {counted}, required: {needed}", "verified".green())
            }
            false => {
                writeln!(out, "{}: verifiers that count: {counted}, required: {needed}", "not verified".red())
            }
        }
    }
}
