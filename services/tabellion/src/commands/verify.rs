//! `tabellion verify`: verifies offline that a statement is authentic and that a trusted log registered it, all that an
//! evidence bundle holds, that the answer of a search is complete, or that a file shows misbehaviour of a log. Any missing
//! evidence fails the verification.

mod accusation;
mod bundle;
pub mod input;
mod max_age;
mod quorum;
pub mod search_answer;
mod siblings;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use owo_colors::OwoColorize;
use serde::Serialize;
use tlog::policy::{NotAPolicy, WitnessPolicy};
use verifier::index::IndexAccusationFile;
use verifier::{
    CheckpointEvidence, StatementEvidence, StatementVerdict, TreeProof, TrustStore, VerificationOutcome,
};

use crate::console::{Exit, Failure, Report, files};
use crate::context::Context;
use crate::keyfile;
use crate::trust_file::TrustFile;
use crate::verification::{exit, print_check, print_not_verified};
use bundle::VerifiedBundle;
use max_age::MaxAge;
use quorum::Quorum;
use search_answer::VerifiedAnswer;

#[derive(Debug, Args)]
#[command(before_help = "example:  tabellion verify hello.json")]
pub struct Verify {
    /// A statement, bundle, search answer, or registered file
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// An additional receipt
    #[arg(long, value_name = "FILE")]
    receipt: Vec<PathBuf>,
    /// The payload, or the preimage of a hash
    #[arg(long, value_name = "FILE")]
    payload: Option<PathBuf>,
    /// A tlog-proof with a cosigned checkpoint
    #[arg(long, value_name = "FILE")]
    proof: Option<PathBuf>,
    /// The checkpoint of the receipt's tree
    #[arg(long, value_name = "FILE", conflicts_with = "proof")]
    checkpoint: Option<PathBuf>,
    /// Require the quorum of this tlog-policy
    #[arg(long, alias = "policy", value_name = "FILE")]
    witness_policy: Option<PathBuf>,
    #[command(flatten)]
    quorum: Quorum,
    /// Require that VRF verified the work not longer ago
    #[arg(long, value_name = "30d|12h")]
    max_age: Option<MaxAge>,
    /// Keys of the gateway within an AgentROA receipt
    #[arg(long, value_name = "KEY")]
    gateway_key: Vec<String>,
    /// Require a monitor's --attestation of a search
    #[arg(long, value_name = "VKEY")]
    attested_by: Vec<String>,
    /// An attestation of the index head of a search answer
    #[arg(long, value_name = "FILE", hide = true)]
    attestation: Vec<PathBuf>,
    /// The trust file [default: trust.toml or dev's]
    #[arg(long, value_name = "FILE")]
    trust: Option<PathBuf>,
}

impl Verify {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        if self.quorum.is_required() {
            return self.quorum.decide(context, &self.files, self.trust.as_deref(), self.max_age);
        }
        conclude(context, &self.verify(context)?)
    }

    /// Verifies a statement, a bundle or the answer of a search. A file that shows misbehaviour of a log is a failure.
    pub fn verify(mut self, context: &Context) -> Result<VerifiedFile, Failure> {
        let statement = self.files.swap_remove(0);
        if !self.files.is_empty() {
            let what = "several statements are verified together only with --require";
            return Err(Failure::new(Exit::Usage, "usage", what));
        }
        let mut evidence = VerificationFiles {
            statement,
            receipts: self.receipt,
            payload: self.payload,
            proof: self.proof,
            checkpoint: self.checkpoint,
            witness_policy: self.witness_policy,
            max_age: self.max_age,
            gateway_keys: self.gateway_key,
            attestations: self.attestation,
            monitors: self.attested_by,
        };
        evidence.refuse_two_streams()?;
        let trust = TrustFile::find(context, self.trust.as_deref())?;
        let bytes = siblings::complete(context, &mut evidence)?;
        verify_kind(&evidence, bytes, &trust)
    }
}

/// Verifies the bytes of the named file, whose beginning determines the kind.
fn verify_kind(
    evidence: &VerificationFiles,
    bytes: Vec<u8>,
    trust: &TrustFile,
) -> Result<VerifiedFile, Failure> {
    if search_evidence::starts_like_an_answer(&bytes) {
        let answer = search_answer::verify(evidence, &bytes, trust)?;
        return Ok(VerifiedFile::SearchAnswer(Box::new(answer)));
    }
    evidence.refuse_attestations()?;
    if IndexAccusationFile::is_start_of(&bytes) {
        return Err(accusation::judge(evidence, &bytes, trust));
    }
    match ::bundle::starts_like_a_bundle(&bytes) {
        true => Ok(VerifiedFile::Bundle(Box::new(bundle::verify(evidence, &bytes, trust)?))),
        false => Ok(VerifiedFile::Statement(Box::new(whole(evidence, bytes, trust)?))),
    }
}

/// The result of a verification, in JSON as the crates `verifier`, `bundle` and `search-evidence` give it.
#[derive(Serialize)]
#[serde(untagged)]
pub enum VerifiedFile {
    /// The checks of a statement.
    Statement(Box<StatementVerdict>),
    /// The checks of all parts of a bundle.
    Bundle(Box<VerifiedBundle>),
    /// The checks of the answer of a search, and what it leaves open.
    SearchAnswer(Box<VerifiedAnswer>),
}

impl VerifiedFile {
    /// The outcome of all checks.
    pub fn outcome(&self) -> VerificationOutcome {
        match self {
            Self::Statement(verdict) => verdict.outcome,
            Self::Bundle(bundle) => bundle.outcome(),
            Self::SearchAnswer(answer) => answer.outcome(),
        }
    }

    /// The exit code of a verification with this result.
    fn exit(&self) -> Exit {
        match self {
            Self::SearchAnswer(answer) => answer.exit(),
            _ => exit(self.outcome()),
        }
    }
}

impl Report for VerifiedFile {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Self::Statement(verdict) => print_verdict(out, verdict),
            Self::Bundle(bundle) => bundle.human(out),
            Self::SearchAnswer(answer) => answer.human(out),
        }
    }
}

/// The files to verify.
#[derive(Default)]
pub struct VerificationFiles {
    /// The path of the Transparent or Signed Statement.
    pub statement: PathBuf,
    /// Receipts in addition to those attached to the statement.
    pub receipts: Vec<PathBuf>,
    /// The payload, or the preimage of a hash envelope.
    pub payload: Option<PathBuf>,
    /// A tlog-proof of the statement (`--proof`).
    pub proof: Option<PathBuf>,
    /// The checkpoint of the receipt's tree (`--checkpoint`).
    pub checkpoint: Option<PathBuf>,
    /// The witness policy (C2SP tlog-policy) whose quorum is required (`--witness-policy`).
    pub witness_policy: Option<PathBuf>,
    /// The maximum age of a VRF verification (`--max-age`).
    pub max_age: Option<MaxAge>,
    /// Keys of the gateway that signed within an execution receipt (`--gateway-key`).
    pub gateway_keys: Vec<String>,
    /// Attestations of the index head of a search answer (`--attestation`).
    pub attestations: Vec<PathBuf>,
    /// Keys of the monitors that must have attested it (`--attested-by`).
    pub monitors: Vec<String>,
}

/// Verifies the first receipt without the issuer's signature, prints every check, and fails with the exit code of the
/// outcome.
pub fn verify_receipt(
    context: &Context,
    evidence: &VerificationFiles,
    trust: Option<&Path>,
) -> Result<(), Failure> {
    evidence.refuse_two_streams()?;
    let trust = TrustFile::find(context, trust)?;
    conclude(context, &VerifiedFile::Statement(Box::new(receipt_only(evidence, &trust)?)))
}

/// Prints every check, and fails with the exit code of the outcome.
fn conclude(context: &Context, verified: &VerifiedFile) -> Result<(), Failure> {
    context.console.result(verified)?;
    match verified.exit() {
        Exit::Success => Ok(()),
        exit => Err(Failure::already_printed(exit)),
    }
}

impl VerificationFiles {
    /// Rejects more than one `-`, because standard input can be read once. This precedes errors about its contents.
    fn refuse_two_streams(&self) -> Result<(), Failure> {
        let others = [&self.payload, &self.proof, &self.checkpoint].into_iter().flatten();
        let files = std::iter::once(&self.statement).chain(&self.receipts).chain(others);
        let streams = files.filter(|file| files::is_stream(file)).count();
        if streams > 1 { Err(files::stdin_twice()) } else { Ok(()) }
    }

    /// Rejects attestations of an index for a file that is not the answer of a search.
    fn refuse_attestations(&self) -> Result<(), Failure> {
        match self.attestations.is_empty() && self.monitors.is_empty() {
            true => Ok(()),
            false => {
                let what = "--attested-by and --attestation are for the answer of a search";
                Err(Failure::new(Exit::Usage, "usage", what))
            }
        }
    }

    /// Rejects further evidence for a file that holds its own, and requirements that only a statement can meet.
    fn refuse_other_evidence(&self, kind: &str) -> Result<(), Failure> {
        let others = [&self.payload, &self.proof, &self.checkpoint];
        if !self.receipts.is_empty() || others.iter().any(|other| other.is_some()) {
            let what = format!("{kind} holds its own receipts, payloads and proofs");
            return Err(Failure::new(Exit::Usage, "usage", what)
                .why("of other evidence, only --trust and --witness-policy go with it"));
        }
        if self.max_age.is_some() || !self.gateway_keys.is_empty() {
            let what = format!("--max-age and --gateway-key are for a statement, and this is {kind}");
            return Err(Failure::new(Exit::Usage, "usage", what)
                .why("they are not checked for the statements in it")
                .hint("verify the statement on its own"));
        }
        Ok(())
    }
}

fn whole(
    evidence: &VerificationFiles,
    bytes: Vec<u8>,
    trust: &TrustFile,
) -> Result<StatementVerdict, Failure> {
    let statement = input::checked_statement(&evidence.statement, bytes)?;
    let receipts =
        evidence.receipts.iter().map(|file| input::receipt_bytes(file)).collect::<Result<Vec<_>, _>>()?;
    let receipts: Vec<&[u8]> = receipts.iter().map(Vec::as_slice).collect();
    let payload = evidence.payload.as_deref().map(files::read).transpose()?;
    let question =
        StatementEvidence { statement: &statement, receipts: &receipts, payload: payload.as_deref() };
    let proof = evidence.proof.as_deref().map(input::tlog_proof_bytes).transpose()?;
    let checkpoint = evidence.checkpoint.as_deref().map(input::checkpoint_bytes).transpose()?;
    let tree = match (&proof, &checkpoint) {
        (Some(proof), _) => TreeProof::Proof(proof),
        (None, Some(checkpoint)) => TreeProof::Checkpoint(checkpoint),
        (None, None) => TreeProof::NotShown,
    };
    let policy = evidence.witness_policy.as_deref().map(witness_policy).transpose()?;
    let shown = CheckpointEvidence { tree, policy: policy.as_ref() };
    let terms = VerificationTerms { max_age: evidence.max_age, gateway_keys: &evidence.gateway_keys };
    checked(&question, &shown, &trust.store, &terms)
}

/// Verifies a Transparent Statement by itself, as `verify FILE` does.
///
/// # Errors
/// If a check needs a gateway's key that cannot be read.
#[cfg(feature = "browse")]
pub fn verify_statement(statement: &[u8], trust: &TrustStore) -> Result<VerifiedFile, Failure> {
    let question = StatementEvidence { statement, ..StatementEvidence::default() };
    let verdict = checked(&question, &CheckpointEvidence::default(), trust, &VerificationTerms::default())?;
    Ok(VerifiedFile::Statement(Box::new(verdict)))
}

/// What a verification requires in addition to the rules of receipts and statements.
#[derive(Default)]
struct VerificationTerms<'a> {
    max_age: Option<MaxAge>,
    gateway_keys: &'a [String],
}

fn checked(
    question: &StatementEvidence<'_>,
    shown: &CheckpointEvidence<'_>,
    trust: &TrustStore,
    terms: &VerificationTerms<'_>,
) -> Result<StatementVerdict, Failure> {
    let now = now();
    let gateway_keys =
        terms.gateway_keys.iter().map(|key| keyfile::read_public(key)).collect::<Result<Vec<_>, _>>()?;
    let mut verdict = verifier::verify_with_checkpoint(question, shown, trust, now);
    content_rules::check_statement(&mut verdict, question, &gateway_keys);
    if let Some(max_age) = terms.max_age {
        max_age.check(&mut verdict, question, trust, now);
    }
    Ok(verdict)
}

/// Reads a witness policy (C2SP tlog-policy) from a file.
pub fn witness_policy(file: &Path) -> Result<WitnessPolicy, Failure> {
    files::read_text(file)?.parse().map_err(|error: NotAPolicy| {
        Failure::new(
            Exit::Usage,
            "witness-policy-unusable",
            format!("{} is not a witness policy", file.display()),
        )
        .fact("because", error.to_string())
        .hint("tabellion help formats")
    })
}

fn receipt_only(evidence: &VerificationFiles, trust: &TrustFile) -> Result<StatementVerdict, Failure> {
    let statement = input::statement(&evidence.statement)?;
    let receipt = input::receipt_bytes(evidence.receipts.first().map_or(Path::new("-"), PathBuf::as_path))?;
    Ok(verifier::verify_receipt(&statement, &receipt, &trust.store, now()))
}

/// Returns the current time in Unix seconds.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn print_verdict(out: &mut dyn Write, verdict: &StatementVerdict) -> io::Result<()> {
    verdict.checks.iter().try_for_each(|check| print_check(out, check))?;
    match verdict.outcome {
        VerificationOutcome::Verified => writeln!(out, "{} (offline)", "verified".green()),
        _ => print_not_verified(out, verdict.reason),
    }
}
