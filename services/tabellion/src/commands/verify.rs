//! `tabellion verify`: verifies offline that a statement is authentic and that a trusted log registered it. Any missing
//! evidence fails the verification.

pub mod input;
mod trace_metadata;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use owo_colors::OwoColorize;
use serde::Serialize;
use tlog::policy::{NotAPolicy, WitnessPolicy};
use verifier::{
    Check, CheckState, CheckpointEvidence, Code, StatementVerdict, TreeProof, VerificationOutcome,
};

use crate::cli::Context;
use crate::console::{Exit, Failure, Report, files, safe};
use crate::trust_file::TrustFile;

#[derive(Debug, Args)]
#[command(before_help = "example:  tabellion verify hello.json.transparent.cose --payload hello.json")]
pub struct Verify {
    /// A Transparent Statement, or a Signed Statement with --receipt
    file: PathBuf,
    /// A receipt beside those attached
    #[arg(long, value_name = "FILE")]
    receipt: Vec<PathBuf>,
    /// The payload, or the preimage of a hash envelope, to compare
    #[arg(long, value_name = "FILE")]
    payload: Option<PathBuf>,
    /// A tlog-proof of the statement, with the checkpoint that witnesses cosigned
    #[arg(long, value_name = "FILE")]
    proof: Option<PathBuf>,
    /// The checkpoint of the tree that the receipt is of
    #[arg(long, value_name = "FILE", conflicts_with = "proof")]
    checkpoint: Option<PathBuf>,
    /// Require the quorum of this policy (C2SP tlog-policy)
    #[arg(long, alias = "policy", value_name = "FILE")]
    witness_policy: Option<PathBuf>,
    /// Whom to believe [default: ./trust.toml, then ./tabellion-dev/trust.toml]
    #[arg(long, value_name = "FILE")]
    trust: Option<PathBuf>,
}

impl Verify {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let evidence = Evidence {
            statement: self.file,
            receipts: self.receipt,
            payload: self.payload,
            needs_issuer: true,
            proof: self.proof,
            checkpoint: self.checkpoint,
            witness_policy: self.witness_policy,
        };
        run(context, &evidence, self.trust.as_deref())
    }
}

/// The files to verify.
#[derive(Default)]
pub struct Evidence {
    /// The path of the Transparent or Signed Statement.
    pub statement: PathBuf,
    /// Receipts in addition to those attached to the statement.
    pub receipts: Vec<PathBuf>,
    /// The payload, or the preimage of a hash envelope.
    pub payload: Option<PathBuf>,
    /// False to verify the receipt without the issuer's signature.
    pub needs_issuer: bool,
    /// A tlog-proof of the statement (`--proof`).
    pub proof: Option<PathBuf>,
    /// The checkpoint of the receipt's tree (`--checkpoint`).
    pub checkpoint: Option<PathBuf>,
    /// The witness policy (C2SP tlog-policy) whose quorum is required (`--witness-policy`).
    pub witness_policy: Option<PathBuf>,
}

/// Verifies the files, prints every check, and fails with the exit code of the outcome.
pub fn run(context: &Context, evidence: &Evidence, trust: Option<&Path>) -> Result<(), Failure> {
    evidence.refuse_two_streams()?;
    let trust = TrustFile::find(context, trust)?;
    let verdict =
        if evidence.needs_issuer { whole(evidence, &trust)? } else { receipt_only(evidence, &trust)? };
    context.console.result(&Verified(&verdict))?;
    match verdict.outcome {
        VerificationOutcome::Verified => Ok(()),
        outcome => Err(Failure::told(exit(outcome))),
    }
}

impl Evidence {
    /// Rejects more than one `-`, because standard input can be read once. This precedes errors about its contents.
    fn refuse_two_streams(&self) -> Result<(), Failure> {
        let beside = [&self.payload, &self.proof, &self.checkpoint].into_iter().flatten();
        let files = std::iter::once(&self.statement).chain(&self.receipts).chain(beside);
        let streams = files.filter(|file| files::is_stream(file)).count();
        if streams > 1 { Err(files::stdin_twice()) } else { Ok(()) }
    }
}

fn whole(evidence: &Evidence, trust: &TrustFile) -> Result<StatementVerdict, Failure> {
    let statement = input::statement_bytes(&evidence.statement)?;
    let receipts =
        evidence.receipts.iter().map(|file| input::receipt_bytes(file)).collect::<Result<Vec<_>, _>>()?;
    let receipts: Vec<&[u8]> = receipts.iter().map(Vec::as_slice).collect();
    let payload = evidence.payload.as_deref().map(files::read).transpose()?;
    let question = verifier::StatementEvidence {
        statement: &statement,
        receipts: &receipts,
        payload: payload.as_deref(),
    };
    let proof = evidence.proof.as_deref().map(input::tlog_proof_bytes).transpose()?;
    let checkpoint = evidence.checkpoint.as_deref().map(input::checkpoint_bytes).transpose()?;
    let tree = match (&proof, &checkpoint) {
        (Some(proof), _) => TreeProof::Proof(proof),
        (None, Some(checkpoint)) => TreeProof::Checkpoint(checkpoint),
        (None, None) => TreeProof::NotShown,
    };
    let policy = evidence.witness_policy.as_deref().map(witness_policy).transpose()?;
    let shown = CheckpointEvidence { tree, policy: policy.as_ref() };
    let mut verdict = verifier::verify_with_checkpoint(&question, &shown, &trust.store, now());
    trace_metadata::check(&mut verdict, &question);
    Ok(verdict)
}

/// Reads a witness policy (C2SP tlog-policy) from a file.
pub fn witness_policy(file: &Path) -> Result<WitnessPolicy, Failure> {
    files::read_text(file)?.parse().map_err(|error: NotAPolicy| {
        Failure::new(
            Exit::Usage,
            "witness-policy-unusable",
            format!("{} is no witness policy", file.display()),
        )
        .fact("because", error.to_string())
        .hint("tabellion help formats")
    })
}

fn receipt_only(evidence: &Evidence, trust: &TrustFile) -> Result<StatementVerdict, Failure> {
    let statement = input::statement(&evidence.statement)?;
    let receipt = input::receipt_bytes(evidence.receipts.first().map_or(Path::new("-"), PathBuf::as_path))?;
    Ok(verifier::verify_receipt(&statement, &receipt, &trust.store, now()))
}

/// Returns the current time in Unix seconds.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Converts a verdict to a failure, for commands whose result is not the verdict itself.
pub fn failure(verdict: &StatementVerdict) -> Failure {
    let code = verdict.reason.map_or("not-verified", Code::as_str);
    let failure = Failure::new(exit(verdict.outcome), code, "the receipt does not verify");
    let undone = verdict.checks.iter().filter(|check| check.state != CheckState::Ok);
    undone.fold(failure, |failure, check| failure.fact(check.name.as_str(), &*check.detail))
}

/// Returns the exit code of an outcome; [`Exit::NotVerified`] if something was missing.
pub fn exit(outcome: VerificationOutcome) -> Exit {
    match outcome {
        VerificationOutcome::Verified => Exit::Success,
        VerificationOutcome::Failed => Exit::VerificationFailed,
        VerificationOutcome::NotVerified => Exit::NotVerified,
    }
}

#[derive(Serialize)]
#[serde(transparent)]
struct Verified<'v>(&'v StatementVerdict);

impl Report for Verified<'_> {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        self.0.checks.iter().try_for_each(|check| line(out, check))?;
        match (self.0.outcome, self.0.reason) {
            (VerificationOutcome::Verified, _) => writeln!(out, "{} (offline)", "verified".green()),
            (_, Some(reason)) => writeln!(out, "{}: {}  [{reason}]", "not verified".red(), in_words(reason)),
            (_, None) => writeln!(out, "{}", "not verified".red()),
        }
    }
}

/// Prints a check in one line.
pub fn line(out: &mut dyn Write, check: &Check) -> io::Result<()> {
    let name = check.name.label();
    let detail = safe(&check.detail);
    match check.state {
        CheckState::Ok => writeln!(out, "{}    {name:20}  {detail}", "ok".green()),
        CheckState::Failed => writeln!(out, "{}  {name:20}  {detail}", "FAIL".red()),
        CheckState::NotDone => writeln!(out, "--    {name:20}  not checked: {detail}"),
    }
}

/// Explains a code in one line.
pub fn in_words(reason: Code) -> &'static str {
    match reason {
        Code::MalformedStatement => "this is not a Signed Statement",
        Code::MissingHeader => "the statement lacks a header that RFC 9943 requires",
        Code::UnknownIssuer => "nothing here says whose key may sign for this issuer",
        Code::UnknownIssuerKey => "the issuer is trusted, but not with the key that signed",
        Code::IssuerSignatureInvalid => "the statement was changed after signing, or another key signed it",
        Code::CertificatePathInvalid | Code::CertificateMissing => {
            "the issuer's certificate leads to no trusted root"
        }
        Code::IssuerNotBound => "the certificate does not speak for this issuer",
        Code::StatementExpired | Code::StatementNotYetValid => {
            "the statement was not valid when it was registered"
        }
        Code::PayloadMissing | Code::PayloadNotGiven => "the payload is needed: name it with --payload",
        Code::PayloadDigestMismatch => "the payload was changed after signing",
        Code::UnsupportedHash => "the payload's hash algorithm is not one we compute",
        Code::TraceMetadataMismatch => "what stands beside the record, unsigned, is not what the record says",
        Code::TraceMetadataNotCompared => "what stands unsigned in the header was not compared",
        Code::NoReceipt => "there is no receipt: nothing says that any log has it",
        Code::MalformedReceipt => "the receipt cannot be read",
        Code::UnsupportedStructure => "the receipt is from a kind of log that we do not read",
        Code::ReceiptIncomplete => "the receipt lacks what this log's receipts must carry",
        Code::ReceiptSubjectMismatch | Code::UnknownLog => "no log that is trusted here issued this receipt",
        Code::UnknownLogKey => "the log is trusted, but not with the key that signed",
        Code::LogKeyRetired => "the log had replaced the key that signed this tree",
        Code::LogKeyCompromised => "somebody else may have signed this: the key was compromised",
        Code::ReceiptProofInvalid => "the proof fits no tree",
        Code::ReceiptRootMismatch => "this receipt is not for this statement",
        Code::ReceiptSignatureInvalid => "the log did not sign this",
        Code::ReceiptExpired | Code::ReceiptNotYetValid => "the receipt is not valid now",
        Code::NoTrustAnchors => "there is nothing to trust: tabellion help trust",
        Code::NoCheckpoint => "witnesses are required: show what they signed with --proof or --checkpoint",
        Code::MalformedCheckpoint => "the checkpoint cannot be read",
        Code::MalformedTlogProof => "the tlog-proof cannot be read",
        Code::UnknownCheckpointKey => "no key that is trusted here signed the checkpoint",
        Code::CheckpointSignatureInvalid => "the log did not sign this checkpoint",
        Code::CheckpointOtherTree => "the checkpoint is of another tree than the receipt",
        Code::CheckpointRootMismatch => "the log has signed two different trees of one size",
        Code::TlogProofMismatch => "this tlog-proof is not for this statement",
        Code::QuorumNotMet => "too few witnesses have cosigned",
        Code::NoConsistencyProof => "the receipt does not prove consistency",
        Code::ConsistencyOtherSize => "the proof starts from another size than the tree that is known",
        Code::ConsistencyMismatch => "the tree that is known is not the beginning of what the log signed",
        Code::LeftToLog | Code::NoWitness | Code::NotReached => "not everything could be checked",
    }
}
