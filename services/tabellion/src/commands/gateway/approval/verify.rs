//! `tabellion gateway approval verify`: verifies a signed answer offline.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use admission::approval::{Question, SignedApproval};
use clap::Args;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use vap::audit::AuditRecord;

use crate::commands::verify::input;
use crate::console::{Exit, Failure, Report, files, safe};
use crate::context::Context;
use crate::keyfile;

#[derive(Debug, Args)]
#[command(
    before_help = "example:  tabellion gateway approval verify approval.json --key approver.pub.json --statement decision.cose"
)]
pub struct Verify {
    /// Question and answer: of `approval answer --output` or `approval show --json`, or `approval` of a decision in `gateway replay
    /// --json`
    file: PathBuf,
    /// The approver's public key
    #[arg(long, value_name = "KEY")]
    key: String,
    /// The registered decision that the answer permitted
    #[arg(long, value_name = "FILE")]
    statement: Option<PathBuf>,
}

/// The members of the file that are used; others are ignored.
#[derive(Deserialize)]
struct ApprovalEvidence {
    question: Question,
    answer: String,
}

#[derive(Serialize)]
struct ApprovalCheckResult {
    checks: Vec<ApprovalCheck>,
    approver: String,
    decision: &'static str,
    verified: bool,
}

#[derive(Serialize)]
struct ApprovalCheck {
    what: &'static str,
    ok: bool,
    detail: String,
}

impl Verify {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let ApprovalEvidence { question, answer } = read(&self.file)?;
        let signed = SignedApproval::parse(&answer)
            .map_err(|error| no_approval(&self.file, error.to_string(), Exit::VerificationFailed))?;
        let key = keyfile::read_public(&self.key)?;
        let says = signed.approval();
        let mut checks = Vec::new();
        let mut check = |what, ok, detail: String| checks.push(ApprovalCheck { what, ok, detail });
        check("signature", signed.check_signature(&key).is_ok(), format!("key {}", signed.kid()));
        check("question", says.question == question.id, says.question.clone());
        let digest = question.subject.digest();
        check("digest", says.digest == digest, digest.to_string());
        let outlives = says.expires > question.expires;
        check(
            "expires",
            !outlives,
            Timestamp::from_second(says.expires).map_or_else(|_| "-".into(), |at| at.to_string()),
        );
        if let Some(path) = &self.statement {
            let joined = joined(&input::statement_bytes(path)?, &signed);
            let (ok, detail) = joined.map_or_else(|why| (false, why), |detail| (true, detail));
            check("record", ok, detail);
        }
        let verified = checks.iter().all(|check| check.ok);
        let result = ApprovalCheckResult {
            checks,
            approver: says.approver.clone(),
            decision: says.decision.as_str(),
            verified,
        };
        context.console.result(&result)?;
        if verified { Ok(()) } else { Err(Failure::already_printed(Exit::VerificationFailed)) }
    }
}

/// Reads question and answer. JSON without them is something else; with members of these names in another form, or cut
/// off, it is damaged.
fn read(file: &Path) -> Result<ApprovalEvidence, Failure> {
    let bytes = files::read(file)?;
    let json: Value = jose::json::read_bytes(&bytes)
        .map_err(|error| no_approval(file, error.to_string(), input::damaged_json(&bytes, b'{')))?;
    let exit = match ["question", "answer"].iter().all(|name| json.get(name).is_some()) {
        true => Exit::VerificationFailed,
        false => Exit::NotVerified,
    };
    ApprovalEvidence::deserialize(json).map_err(|error| no_approval(file, error.to_string(), exit))
}

fn no_approval(file: &Path, why: String, exit: Exit) -> Failure {
    let what = format!("{} holds no question with its signed answer", file.display());
    Failure::new(exit, "no-approval", what).fact("because", why)
}

/// Checks that the record of a decision names this answer, and was made before it expired. `tabellion verify` checks
/// the statement's own signature and receipt.
fn joined(statement: &[u8], signed: &SignedApproval) -> Result<String, String> {
    let statement = scitt::SignedStatement::parse(statement.to_vec()).map_err(|error| error.to_string())?;
    let payload = statement.payload().ok_or("the statement has no payload of its own")?;
    let record = AuditRecord::read(payload).map_err(|violation| violation.to_string())?;
    let confirmation =
        serde_json::json!(record.kind.decided().and_then(|decided| decided.confirmation.as_ref()));
    let says = signed.approval();
    let answer = match says.decision {
        admission::approval::Decision::Approve => "confirmed",
        admission::approval::Decision::Deny => "declined",
    };
    let expected = [
        ("by", "approver"),
        ("answer", answer),
        ("approver", says.approver.as_str()),
        ("kid", signed.kid()),
        ("question", says.question.as_str()),
        ("approval", signed.digest().as_str()),
    ];
    if let Some((name, _)) = expected.iter().find(|(name, value)| confirmation[*name] != **value) {
        return Err(format!("its record has another {name}"));
    }
    match i64::try_from(record.at).is_ok_and(|at| at < says.expires) {
        true => Ok(format!("{} {} of stream {}", record.kind.as_str(), record.seq, record.stream)),
        false => Err("its record was made after the approval expired".to_owned()),
    }
}

impl Report for ApprovalCheckResult {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        for ApprovalCheck { what, ok, detail } in &self.checks {
            writeln!(out, "{}  {what:12}{}", if *ok { "ok  " } else { "FAIL" }, safe(detail))?;
        }
        let word = if self.verified { "verified (offline)" } else { "not verified" };
        writeln!(out, "{word}: {}, signed as {}", self.decision, safe(&self.approver))
    }
}
