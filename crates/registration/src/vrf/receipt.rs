//! Parsed verification receipts (section 4; readings 12 to 20).
//!
//! These rules apply to the receipt alone. Unknown members are kept and ignored, because the bytes were signed, and
//! section 8.2 announces members that no table lists.

use std::fmt;

use serde_json::Value;

use super::members::{Members, count, open_text};
use super::rule::VrfRule;
use crate::stated_time::StatedTime;
use crate::violation::Violation;

/// A verification receipt that keeps every rule about its own contents.
#[derive(Clone, Debug, PartialEq)]
pub struct Receipt {
    /// The receipt's identifier, a lower-case UUID of version 4.
    pub receipt_id: String,
    /// The time at which the verification was completed.
    pub verified_at: StatedTime,
    /// The tier: 0 to 3 for a structural receipt, absent or negative otherwise.
    pub tier: Option<i64>,
    /// The outcome of the verification.
    pub verdict: Verdict,
    /// The numbers of checks by result.
    pub results: Results,
    /// The hash of the verified output (`hashes.output`).
    pub output: String,
    /// True if the verification was deterministic (`metadata.structural`).
    pub structural: bool,
    /// The verification software (`metadata.verifier`).
    pub verifier: String,
    /// An external reference, such as a job's identifier.
    pub task_id: Option<String>,
    /// The category of the verified work.
    pub task_type: Option<String>,
    /// Our extension: the agent whose work was verified, equal to the statement's `sub`.
    pub subject: Option<String>,
}

/// The outcome of a verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every check that ran passed.
    Pass,
    /// A check failed.
    Fail,
    /// Some checks passed, some failed.
    Partial,
    /// A check could not be run, or there were no checks.
    Error,
}

/// The numbers of checks by result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Results {
    /// The number of all checks, including skipped ones.
    pub total: u64,
    /// The number of checks that passed.
    pub passed: u64,
    /// The number of checks that failed.
    pub failed: u64,
    /// The number of checks that could not be run.
    pub errors: u64,
}

impl fmt::Display for Results {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Results { total, passed, failed, errors } = self;
        write!(f, "{total} in total, {passed} passed, {failed} failed, {errors} could not be run")
    }
}

impl Receipt {
    /// Parses a receipt from canonical JSON.
    pub fn read(json: &Value) -> Result<Receipt, Violation> {
        let top = Members::of(json, "")?;
        version(&top)?;
        let metadata = top.object("metadata")?;
        let (structural, tier) = tier(&top, &metadata)?;
        let results = Results::read(&top.object("results")?)?;
        let task = top.optional_object("task")?;
        check_metadata(&metadata)?;
        Ok(Receipt {
            receipt_id: receipt_id(&top)?,
            verified_at: read_verified_at(&top)?,
            tier,
            verdict: Verdict::read(&top, &results)?,
            results,
            output: output_hash(&top)?,
            structural,
            verifier: metadata.text("verifier")?.to_owned(),
            task_id: task.as_ref().map(task_id).transpose()?.flatten(),
            task_type: task.as_ref().map(task_type).transpose()?.flatten(),
            subject: top.optional_text("subject")?.map(str::to_owned),
        })
    }
}

impl Verdict {
    /// The value of `verdict`.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Pass => "pass",
            Verdict::Fail => "fail",
            Verdict::Partial => "partial",
            Verdict::Error => "error",
        }
    }

    fn read(top: &Members<'_>, results: &Results) -> Result<Verdict, Violation> {
        let verdict = match top.text("verdict")? {
            "pass" => Verdict::Pass,
            "fail" => Verdict::Fail,
            "partial" => Verdict::Partial,
            "error" => Verdict::Error,
            other => {
                return Err(top.unfit(VrfRule::Verdict, "verdict", other, "pass, fail, partial or error"));
            }
        };
        match verdict.agrees_with(results) {
            true => Ok(verdict),
            false => {
                let detail = format!("the counters do not bear out \"{}\": {results}", verdict.as_str());
                Err(top.broken(VrfRule::VerdictMeaning, "verdict", detail))
            }
        }
    }

    /// Returns whether the counters agree with the verdict (reading 15, from the draft's predecessor).
    fn agrees_with(self, results: &Results) -> bool {
        let Results { total, passed, failed, errors } = *results;
        match self {
            Verdict::Pass => failed == 0 && errors == 0 && passed >= 1,
            Verdict::Fail => failed >= 1,
            Verdict::Partial => passed >= 1 && failed >= 1,
            Verdict::Error => errors >= 1 || total == 0,
        }
    }
}

impl Results {
    fn read(results: &Members<'_>) -> Result<Results, Violation> {
        let counts = Results {
            total: count(results, "total")?,
            passed: count(results, "passed")?,
            failed: count(results, "failed")?,
            errors: count(results, "errors")?,
        };
        let ended = counts.passed.saturating_add(counts.failed).saturating_add(counts.errors);
        let skipped = counts.total.checked_sub(ended);
        let skipped = skipped
            .ok_or_else(|| results.broken(VrfRule::Totals, "total", "less than passed + failed + errors"))?;
        counts.check_details(results, skipped)?;
        Ok(counts)
    }

    fn check_details(&self, results: &Members<'_>, skipped: u64) -> Result<(), Violation> {
        let Some(details) = results.get("details") else { return Ok(()) };
        let details = details
            .as_array()
            .ok_or_else(|| results.broken(VrfRule::Member, "details", "an array is needed here"))?;
        let mut seen = [0u64; 4];
        for (index, detail) in details.iter().enumerate() {
            seen[detail_status(&Members::of(detail, format!("/results/details/{index}"))?)?] += 1;
        }
        let allowed = [self.passed, self.failed, self.errors, skipped];
        match seen.iter().zip(allowed).position(|(seen, allowed)| *seen > allowed) {
            None => Ok(()),
            Some(status) => {
                let detail = format!(
                    "{} details say \"{}\", the counters allow {}",
                    seen[status], STATUSES[status], allowed[status]
                );
                Err(results.broken(VrfRule::Details, "details", detail))
            }
        }
    }
}

/// The values of a detail's `status`, in the order of the counters; the rest of the total was skipped.
const STATUSES: [&str; 4] = ["pass", "fail", "error", "skip"];

fn detail_status(detail: &Members<'_>) -> Result<usize, Violation> {
    detail.text("name")?;
    for text in ["expected", "actual", "message"] {
        detail.optional_text(text)?;
    }
    detail.optional_integer("elapsed_ms")?;
    let status = detail.text("status")?;
    STATUSES
        .iter()
        .position(|known| *known == status)
        .ok_or_else(|| detail.unfit(VrfRule::DetailStatus, "status", status, "pass, fail, error or skip"))
}

fn version(top: &Members<'_>) -> Result<(), Violation> {
    match top.text("vrf_version")? {
        super::VERSION => Ok(()),
        other => Err(top.unfit(VrfRule::Version, "vrf_version", other, "\"1.0\"")),
    }
}

fn receipt_id(top: &Members<'_>) -> Result<String, Violation> {
    let id = top.text("receipt_id")?;
    match is_uuid_v4(id) {
        true => Ok(id.to_owned()),
        false => Err(top.unfit(VrfRule::ReceiptId, "receipt_id", id, "a UUID of version 4 in lower case")),
    }
}

/// Returns whether an identifier is a UUID of version 4 (RFC 9562) in its canonical spelling: 8-4-4-4-12 lower-case
/// hexadecimal digits.
pub(super) fn is_uuid_v4(id: &str) -> bool {
    let shape = |(at, byte): (usize, u8)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        14 => byte == b'4',
        19 => matches!(byte, b'8' | b'9' | b'a' | b'b'),
        _ => is_lower_hex(byte),
    };
    id.len() == 36 && id.bytes().enumerate().all(shape)
}

fn is_lower_hex(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

/// Parses `structural` and `tier`, which must be one of the two combinations in reading 13.
fn tier(top: &Members<'_>, metadata: &Members<'_>) -> Result<(bool, Option<i64>), Violation> {
    let structural = metadata
        .get("structural")
        .and_then(Value::as_bool)
        .ok_or_else(|| metadata.broken(VrfRule::Structural, "structural", "a boolean is required here"))?;
    let tier = top.optional_integer("tier")?;
    match (structural, tier) {
        (true, Some(0..=3)) | (false, None | Some(..=-1)) => Ok((structural, tier)),
        (true, _) => {
            Err(top.broken(VrfRule::TierStructural, "tier", "a structural receipt has a tier from 0 to 3"))
        }
        (false, _) => Err(top.broken(
            VrfRule::TierStructural,
            "tier",
            "a receipt that is not structural has no tier of 0 or more",
        )),
    }
}

fn check_metadata(metadata: &Members<'_>) -> Result<(), Violation> {
    metadata.optional_integer("execution_ms")?;
    open_text(metadata, "sandbox").map(drop)
}

fn task_id(task: &Members<'_>) -> Result<Option<String>, Violation> {
    Ok(task.optional_text("task_id")?.map(str::to_owned))
}

fn task_type(task: &Members<'_>) -> Result<Option<String>, Violation> {
    task.optional_text("description")?;
    Ok(open_text(task, "task_type")?.map(str::to_owned))
}

fn output_hash(top: &Members<'_>) -> Result<String, Violation> {
    let hashes = top.object("hashes")?;
    if hashes.get("output").is_none() {
        return Err(hashes.broken(VrfRule::OutputHash, "output", "this hash is required"));
    }
    for name in ["output", "specification", "tests"] {
        hashes.optional_text(name)?;
    }
    // "All hashes use the format" (section 4.2.4) includes extensions, if they are text.
    let texts = hashes.iter().filter_map(|(name, value)| Some((name, value.as_str()?)));
    for (name, hash) in texts {
        if !is_hash(hash) {
            return Err(hashes.unfit(
                VrfRule::Hash,
                name,
                hash,
                "sha256:, sha384: or sha512: and its lower-case hex digits",
            ));
        }
    }
    hashes.text("output").map(str::to_owned)
}

/// Returns whether a text is `algorithm:hex-digest` (section 4.2.4) with an algorithm of reading 16.
pub(super) fn is_hash(text: &str) -> bool {
    let digits = match text.split_once(':') {
        Some(("sha256", hex)) => (hex, 64),
        Some(("sha384", hex)) => (hex, 96),
        Some(("sha512", hex)) => (hex, 128),
        _ => return false,
    };
    digits.0.len() == digits.1 && digits.0.bytes().all(is_lower_hex)
}

/// Parses `verified_at` (section 4.2.1, reading 17).
fn read_verified_at(top: &Members<'_>) -> Result<StatedTime, Violation> {
    let text = top.text("verified_at")?;
    StatedTime::parse(text).ok_or_else(|| {
        top.unfit(VrfRule::VerifiedAt, "verified_at", text, "YYYY-MM-DDThh:mm:ssZ, a time that exists")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_written_in_words() {
        let results = Results { total: 3, passed: 1, failed: 1, errors: 1 };
        assert_eq!(results.to_string(), "3 in total, 1 passed, 1 failed, 1 could not be run");
    }
}
