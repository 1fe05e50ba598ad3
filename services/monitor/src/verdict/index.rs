//! Verification of evidence against the search index of a log.

use data_encoding::{BASE64, BASE64URL_NOPAD};
use scitt::SignedStatement;
use search_evidence::check_accusation;
use verifier::TrustStore;
use verifier::index::IndexAccusationFile;

use super::{Verdict, VerificationResult};
use crate::alarm::Alarm;
use crate::evidence::ComputedRun;

/// Verifies an accusation with the log's receipt keys in `trust`, as of the time of the alarm.
pub fn judge_accusation(alarm: &Alarm, file: &str, trust: Option<&TrustStore>) -> VerificationResult {
    let mut finding = VerificationResult::begin();
    let file = match read_file(file) {
        Ok(file) => file,
        Err(why) => {
            finding.failed("accusation", why);
            return finding.ends(Verdict::Wrong, "the evidence cannot be read");
        }
    };
    let kind = file.accusation.kind();
    if kind != alarm.kind.name() {
        finding.failed("accusation", format!("it is {kind}"));
        return finding.ends(Verdict::Wrong, "the evidence is of another kind than the alarm");
    }
    let Some(trust) = trust else {
        finding.not_checked("log keys", "give a trust file with the log's receipt keys with --trust");
        return finding.ends(Verdict::Unknown, "the log's key was not checked");
    };
    match check_accusation(&file, trust, alarm.first_seen) {
        Ok(()) => {
            finding.ok("accusation", format!("{}: statement, head, paths and run proof verify", alarm.kind));
            finding.ends(Verdict::Contradiction, "the log registered a head of its index that is wrong")
        }
        Err(why) => {
            finding.failed("accusation", why.to_string());
            finding.ends(Verdict::Wrong, "the evidence does not show it")
        }
    }
}

/// Verifies a head that differs from what the monitor computed. That the monitor's runs are right is its word.
pub fn judge_head(
    statement: &str,
    receipt: Option<&str>,
    runs: &[ComputedRun],
    trust: Option<&TrustStore>,
    at: u64,
) -> VerificationResult {
    let mut finding = VerificationResult::begin();
    let statement = BASE64URL_NOPAD.decode(statement.as_bytes()).ok();
    let Some(statement) = statement.and_then(|bytes| SignedStatement::parse(bytes).ok()) else {
        finding.failed("head", "it is not a statement");
        return finding.ends(Verdict::Wrong, "the evidence cannot be read");
    };
    let receipt = receipt.and_then(|receipt| BASE64URL_NOPAD.decode(receipt.as_bytes()).ok());
    match (receipt, trust) {
        (Some(receipt), Some(trust)) => {
            let verdict = verifier::verify_receipt(&statement, &receipt, trust, at);
            if !verdict.is_verified() {
                finding.failed("receipt", verdict.why().to_owned());
                return finding.ends(Verdict::Wrong, "the log did not register this head");
            }
            finding.ok("receipt", format!("entry {}", statement.digest()));
        }
        _ => finding.not_checked("receipt", "none, or no trust file with the log's receipt keys (--trust)"),
    }
    for run in runs {
        let ComputedRun { level, number, from, to, root, .. } = run;
        let words = format!("compute run ({level}, {number}) of leaves [{from}, {to}) again: root {root}");
        finding.not_checked("run", words);
    }
    finding.ends(Verdict::OnWord, "only the monitor states that the runs of the head are wrong")
}

fn read_file(file: &str) -> Result<IndexAccusationFile, String> {
    let bytes = BASE64.decode(file.as_bytes()).map_err(|why| why.to_string())?;
    IndexAccusationFile::decode(&bytes).map_err(|why| why.to_string())
}
