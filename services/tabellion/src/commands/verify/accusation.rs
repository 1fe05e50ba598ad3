//! `tabellion verify` for a file that accuses a log of a wrong search index.

use search_evidence::{AccusationFault, check_accusation};
use verifier::index::{AccusationRefused, IndexAccusationFile};

use super::{VerificationFiles, now};
use crate::console::{Exit, Failure};
use crate::trust_file::TrustFile;
use crate::verification;

/// Checks the accusation. The result is a failure in any case: misbehaviour of the log, or a file that shows none.
pub fn judge(given: &VerificationFiles, bytes: &[u8], trust: &TrustFile) -> Failure {
    if let Err(failure) = given.refuse_other_evidence("an accusation") {
        return failure;
    }
    let file = match IndexAccusationFile::decode(bytes) {
        Ok(file) => file,
        Err(why) => {
            return refused(given, Exit::VerificationFailed).fact("found", why.to_string());
        }
    };
    let kind = file.accusation.kind();
    match check_accusation(&file, &trust.store, now()) {
        Ok(()) => misbehaviour(kind),
        Err(fault) => {
            refused(given, exit(&fault)).fact("accusation", kind).fact("because", fault.to_string())
        }
    }
}

fn misbehaviour(kind: &'static str) -> Failure {
    let what = match kind {
        "index-omits" => "the log's index omits an entry that has the term",
        "index-adds" => "the log's index names an entry that does not have the term",
        _ => "the log signed heads of its index that break a rule",
    };
    Failure::new(Exit::LogMisbehaviour, kind, what)
        .security()
        .why("The log registered the head itself. Do not rely on searches of this log.")
        .hint(format!("tabellion help {kind}"))
}

fn refused(given: &VerificationFiles, exit: Exit) -> Failure {
    let what = format!("{} does not show that the log's index is wrong", given.statement.display());
    Failure::new(exit, "accusation-refused", what)
}

fn exit(fault: &AccusationFault) -> Exit {
    match fault {
        AccusationFault::Policy { outcome, .. } => verification::exit(*outcome),
        AccusationFault::Refused(AccusationRefused::Unreadable) => Exit::NotVerified,
        AccusationFault::NoIndex(_) | AccusationFault::Refused(_) => Exit::VerificationFailed,
    }
}
