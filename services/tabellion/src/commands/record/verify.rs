//! `tabellion record verify`: checks a signed record without a service.
//!
//! The issuer's signature, the rules of the profile and the trace-metadata are required. Receipts are verified if
//! there are any; `tabellion verify` requires one.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use display::counted;
use registration::conversation::{
    AGENT_CONVERSATION, ConversationRecord, TraceMetadata, check_trace_metadata,
};
use registration::policy::essence;
use scitt::SignedStatement;
use scitt::header::ContentType;
use serde::Serialize;
use verifier::{Check, CheckName, CheckState, Code, IssuerSignature, StatementEvidence, StatementVerdict};

use super::document;
use super::sign::broken;
use crate::commands::statement;
use crate::commands::verify::{input, now};
use crate::console::{Exit, Failure, Report, files, safe};
use crate::context::Context;
use crate::trust_file::TrustFile;
use crate::verification::print_check;

#[derive(Debug, Args)]
pub struct Verify {
    /// The signed record, transparent or not
    file: PathBuf,
    /// The record, if it is detached or registered by its hash
    #[arg(long, value_name = "FILE")]
    payload: Option<PathBuf>,
    /// The trust file [default: ./trust.toml, then ./tabellion-dev/trust.toml]
    #[arg(long, value_name = "FILE")]
    trust: Option<PathBuf>,
}

impl Verify {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let bytes = input::statement_bytes(&self.file)?;
        let statement = statement::parse(bytes.clone(), &self.file.display().to_string())
            .map_err(|failure| failure.ending_with(Exit::VerificationFailed))?;
        let payload = self.payload.as_deref().map(files::read).transpose()?;
        let verdict = verdict(context, &bytes, payload.as_deref(), self.trust.as_deref())?;
        let receipts = statement.receipts().len();
        if let Some(check) = unmet(&verdict, receipts) {
            return Err(unverified(check));
        }
        let record = self.record(&statement, payload.as_deref())?;
        let trace =
            check_trace_metadata(&statement, payload.as_deref()).map_err(|violation| broken(&violation))?;
        context.console.result(&RecordSummary::of(&statement, &record, trace, receipts, verdict.checks))
    }

    /// Reads the record by the rules of the profile.
    fn record(
        &self,
        statement: &SignedStatement,
        payload: Option<&[u8]>,
    ) -> Result<ConversationRecord, Failure> {
        let header = statement.header();
        let envelope = header.hash_envelope();
        let stated =
            envelope.map_or(header.content_type(), |envelope| envelope.preimage_content_type.as_ref());
        if stated.and_then(ContentType::as_text).map(essence).as_deref() != Some(AGENT_CONVERSATION) {
            let found = format!("its content type is not {AGENT_CONVERSATION}");
            return Err(document::no_record(&self.file, found).ending_with(Exit::NotVerified));
        }
        let attached = statement.payload().filter(|_| envelope.is_none());
        let Some(bytes) = payload.or(attached) else {
            return Err(Failure::new(Exit::NotVerified, "payload-missing", "the record itself is needed")
                .hint("name it with --payload"));
        };
        let sound = |record: ConversationRecord| record.soundness().map(|()| record);
        ConversationRecord::read(header, bytes).and_then(sound).map_err(|violation| broken(&violation))
    }
}

/// Verifies the statement. A `did:key` contains its key, so it needs no entry in the trust file. The signature of any
/// other issuer must verify with a key from there, whatever the file leaves to logs.
fn verdict(
    context: &Context,
    statement: &[u8],
    payload: Option<&[u8]>,
    trust: Option<&Path>,
) -> Result<StatementVerdict, Failure> {
    let mut store = TrustFile::find(context, trust)?.store;
    store.self_certified = true;
    store.issuer_signature = IssuerSignature::Required;
    let evidence = StatementEvidence { statement, payload, receipts: &[] };
    Ok(verifier::verify(&evidence, &store, now()))
}

/// Returns the check that is missing. Without receipts the checks of receipts are not required.
fn unmet(verdict: &StatementVerdict, receipts: usize) -> Option<&Check> {
    if receipts > 0 {
        return verdict.decisive();
    }
    let of_statement =
        [CheckName::Statement, CheckName::Headers, CheckName::IssuerSignature, CheckName::StatementDates];
    verdict.checks.iter().find(|check| match check.state {
        CheckState::Ok => false,
        CheckState::Failed => true,
        CheckState::NotDone => of_statement.contains(&check.name),
    })
}

fn unverified(check: &Check) -> Failure {
    let code = check.code.map_or("not-verified", Code::as_str);
    let exit = if check.state == CheckState::Failed { Exit::VerificationFailed } else { Exit::NotVerified };
    Failure::new(exit, code, "the record does not verify").fact(check.name.as_str(), &*check.detail)
}

#[derive(Serialize)]
struct RecordSummary {
    entry: String,
    recorder: String,
    session: String,
    /// Number of entries, children included.
    entries: u64,
    /// Inconsistencies that break no rule.
    warnings: Vec<String>,
    trace_metadata: &'static str,
    receipts: usize,
    checks: Vec<Check>,
    verified: bool,
}

impl RecordSummary {
    fn of(
        statement: &SignedStatement,
        record: &ConversationRecord,
        trace: TraceMetadata,
        receipts: usize,
        checks: Vec<Check>,
    ) -> Self {
        RecordSummary {
            entry: statement.digest().to_string(),
            recorder: statement.header().iss().unwrap_or_default().to_owned(),
            session: record.session.id.to_string(),
            entries: record.entries.values().sum(),
            warnings: record.warnings.listed().to_vec(),
            trace_metadata: match trace {
                TraceMetadata::Absent => "absent",
                TraceMetadata::Agrees => "agrees",
                TraceMetadata::NotCompared => "not compared",
            },
            receipts,
            checks,
            verified: true,
        }
    }
}

impl Report for RecordSummary {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        let done = self.checks.iter().filter(|check| check.state == CheckState::Ok);
        done.into_iter().try_for_each(|check| print_check(out, check))?;
        writeln!(out, "ok    rules                 {}", counted(self.entries, "entry", "entries"))?;
        writeln!(out, "      trace-metadata        {}", self.trace_metadata)?;
        writeln!(out, "      recorder              {}", safe(&self.recorder))?;
        writeln!(out, "      session               {}", safe(&self.session))?;
        for warning in &self.warnings {
            writeln!(out, "      warning               {}", safe(warning))?;
        }
        writeln!(out, "      entry                 {}", self.entry)?;
        match self.receipts {
            0 => writeln!(out, "the recorder said so; it has no receipt of a log"),
            receipts => writeln!(out, "verified, with {}", counted(receipts, "receipt", "receipts")),
        }
    }
}
