//! Results of the verifier as the program reports them: exit codes, failures and lines of text.

use std::io::{self, Write};

use owo_colors::OwoColorize;
use verifier::{Check, CheckState, Code, StatementVerdict, VerificationOutcome};

use crate::console::{Exit, Failure, safe};

/// The description of a failure to verify what a command gathered for a file.
pub const UNVERIFIED: &str = "the gathered evidence does not verify, so nothing was written";

/// Adds the checks that failed or were not done, except those that nothing requires.
pub fn with_open_checks(failure: Failure, checks: &[Check]) -> Failure {
    let is_required = |check: &&Check| !matches!(check.code, Some(Code::NoWitness | Code::NoMonitor));
    let open = checks.iter().filter(|check| check.state != CheckState::Ok).filter(is_required);
    open.fold(failure, |failure, check| failure.fact(check.name.as_str(), &*check.detail))
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

/// Prints a check in one line.
pub fn print_check(out: &mut dyn Write, check: &Check) -> io::Result<()> {
    let name = check.name.label();
    let detail = safe(&check.detail);
    match check.state {
        CheckState::Ok => writeln!(out, "{}    {name:20}  {detail}", "ok".green()),
        CheckState::Failed => writeln!(out, "{}  {name:20}  {detail}", "FAIL".red()),
        CheckState::NotDone => writeln!(out, "--    {name:20}  not checked: {detail}"),
    }
}

/// Returns the explanation of a code, in one line.
pub fn explanation(reason: Code) -> &'static str {
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
        Code::StatementExpired => "the statement has expired, and nothing proves that a log registered it",
        Code::StatementNotYetValid => "the statement was not valid yet when it was registered",
        Code::RegistrationTimeUnknown => {
            "it ended before the time of the receipt, and may have been registered before that"
        }
        Code::PayloadMissing | Code::PayloadNotGiven => "the payload is needed: name it with --payload",
        Code::PayloadDigestMismatch => "the payload was changed after signing",
        Code::UnsupportedHash => "the payload's hash algorithm is not one we compute",
        Code::ContentRuleBroken => "the statement breaks a rule of its content type",
        Code::ContentMissing => "the rules of the content were not checked: it was not shown",
        Code::InnerSignatureInvalid => "no key of the gateway signed the execution receipt",
        Code::NoGatewayKey => "the gateway's signatures were not verified: name its key with --gateway-key",
        Code::TooOld => "the work was verified longer ago than --max-age allows",
        Code::AgeUnknown => "nothing here says when the work was verified",
        Code::TraceMetadataMismatch => "the unsigned header next to the record contradicts the record",
        Code::TraceMetadataNotCompared => "the unsigned header was not compared with the record",
        Code::NoReceipt => "there is no receipt: nothing says that any log has it",
        Code::MalformedReceipt => "the receipt cannot be read",
        Code::UnsupportedStructure => "the receipt is from a kind of log that we do not read",
        Code::ReceiptIncomplete => "the receipt lacks a field that this log's receipts must have",
        Code::ReceiptSubjectMismatch | Code::UnknownLog => "no log that is trusted here issued this receipt",
        Code::UnknownLogKey => "the log is trusted, but not with the key that signed",
        Code::LogKeyRetired => "the log had replaced the key that signed this tree",
        Code::LogKeyCompromised => "another party may have signed this: the key was compromised",
        Code::ReceiptProofInvalid => "the proof fits no tree",
        Code::ReceiptRootMismatch => "this receipt is not for this statement",
        Code::ReceiptSignatureInvalid => "the log did not sign this",
        Code::ReceiptExpired | Code::ReceiptNotYetValid => "the receipt is not valid now",
        Code::NoTrustAnchors => "there is nothing to trust: tabellion help trust",
        Code::NoCheckpoint => "witnesses are required: give their cosignatures with --proof or --checkpoint",
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
        Code::ConsistencyMismatch => "the known tree is not a prefix of the tree that the log signed",
        Code::PolicyMissing => "the policy that admitted the entry is not in the bundle",
        Code::PolicyTooLate => "the policy was registered after the entry",
        Code::EntryMissing => "the bundle lacks an entry that it lists",
        Code::IndexContradicted => "the log's index names an entry for a term that it does not have",
        Code::EntryUnneeded => "the file has an entry that is not part of the answer",
        Code::NoMonitor => "that the log's index is right is its claim",
        Code::MalformedAttestation => "the attestation of a monitor cannot be read",
        Code::AttestationInvalid => "the monitor did not sign this attestation",
        Code::NotAttested => "too few monitors attest the head of the log's index",
        Code::EmptyBundle => "there is no entry in the bundle",
        Code::MalformedIndexHead => "the head of the log's index cannot be read",
        Code::IndexHeadMismatch => "the statement is not a head of this log's index",
        Code::IndexBeyondHead => "the head does not index all leaves of the search",
        Code::IndexRunsWrong => "the log signed an index head with other runs than its size requires",
        Code::IndexProofInvalid => "nothing proves that the answer is complete",
        Code::IndexNotProven => "nothing proves that the bundle lists every entry",
        Code::LeftToLog | Code::NoWitness | Code::NotReached => "not everything could be checked",
    }
}

/// Prints the line for a statement or checkpoint that was not verified.
pub fn print_not_verified(out: &mut dyn Write, reason: Option<Code>) -> io::Result<()> {
    match reason {
        Some(reason) => writeln!(out, "{}: {}  [{reason}]", "not verified".red(), explanation(reason)),
        None => writeln!(out, "{}", "not verified".red()),
    }
}
