//! `tabellion audit session`: shows what a session of the gateway declared, why, and what was decided, with each text
//! proven against the record on the log.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use display::counted;
use gateway::audit_trail::{self, DisclosedRecord, DisclosedText, Disclosure, DisclosureError, TextProof};
use serde::Serialize;
use verifier::{StatementEvidence, TrustStore, VerificationOutcome};

use crate::commands::gateway::{config_file, replay};
use crate::commands::verify::{input, now};
use crate::console::files::{self, Access, Existing};
use crate::console::{Exit, Failure, Report, safe};
use crate::context::Context;
use crate::runtime;
use crate::service::ServiceArgs;
use crate::trust_file::TrustFile;

#[derive(Debug, Args)]
#[command(
    before_help = "example:  tabellion audit session session-1 --config gateway.toml",
    mut_arg("url", |url| url.help("Fetch missing receipts from this log"))
)]
pub struct Session {
    /// The session, by its VAP session_id
    #[arg(required_unless_present = "opened")]
    session: Option<String>,
    /// Read disclosed records instead of the evidence
    #[arg(long, value_name = "FILE", conflicts_with = "session")]
    opened: Option<PathBuf>,
    /// Show only the calls of this turn
    #[arg(long, value_name = "TURN_ID")]
    turn: Option<String>,
    /// Write the records with texts and keys
    #[arg(long, value_name = "FILE")]
    disclose: Option<PathBuf>,
    /// Disclose only this text, such as goal; may be repeated
    #[arg(long, value_name = "MEMBER", requires = "disclose")]
    member: Vec<String>,
    /// The trust file with the gateway and the log
    #[arg(long, value_name = "FILE")]
    trust: Option<PathBuf>,
    #[command(flatten)]
    service: ServiceArgs,
}

impl Session {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let trust = TrustFile::find(&context.without_config(), self.trust.as_deref())?;
        let disclosures = self.with_receipts(context, self.disclosures(context)?)?;
        let records = disclosures.iter().map(|disclosure| AuditedRecord::of(disclosure, &trust.store));
        let records = records.collect::<Result<Vec<_>, _>>().map_err(malformed)?;
        check_is_one_session(self.session.as_deref(), &records)?;
        let numbers = numbers(&records)?;
        let chosen = of_turn(self.turn.as_deref(), &records);
        if !chosen.contains(&true) {
            return Err(no_records());
        }
        if let Some(path) = &self.disclose {
            let disclosed = disclosures.iter().zip(&chosen).filter(|(_, chosen)| **chosen);
            self.write(context, path, disclosed.map(|(disclosure, _)| disclosure.clone()).collect())?;
        }
        let gaps = gaps(&numbers);
        let closed = records.iter().any(|record| record.opened.kind == CLOSED);
        let selected =
            records.into_iter().zip(chosen).filter(|(_, chosen)| *chosen).map(|(record, _)| record);
        let trail = Trail { records: selected.collect(), gaps, closed };
        context.console.result(&trail)?;
        match trail.exit() {
            Exit::Success => Ok(()),
            exit => Err(Failure::already_printed(exit)),
        }
    }

    /// Reads the disclosures: disclosed ones from a file, or else those of the gateway's evidence.
    fn disclosures(&self, context: &Context) -> Result<Vec<Disclosure>, Failure> {
        match (&self.opened, &self.session) {
            (Some(file), _) => {
                let bytes = files::read(file)?;
                jose::json::read_bytes(&bytes).map_err(|error| {
                    let exit = input::damaged_json(&bytes, b'[');
                    Failure::new(exit, "not-a-disclosure", format!("{}: {error}", file.display()))
                        .hint("tabellion audit session SESSION --disclose FILE")
                })
            }
            (None, session) => {
                let config = config_file::read_or_dev(context)?;
                let session = session.as_deref().unwrap_or_default();
                let runtime = runtime::multi_threaded()?;
                runtime.block_on(audit_trail::disclosures(&config, session)).map_err(replay::failed)
            }
        }
    }

    /// Adds missing receipts from the log, if `--url` names one.
    fn with_receipts(
        &self,
        context: &Context,
        disclosures: Vec<Disclosure>,
    ) -> Result<Vec<Disclosure>, Failure> {
        if self.service.url.is_none() {
            return Ok(disclosures);
        }
        let service = self.service.connect(&context.without_config())?;
        let complete = |disclosure: Disclosure| {
            if disclosure.receipt.is_some() {
                return Ok(disclosure);
            }
            let entry = disclosure.signed_statement().map_err(malformed)?.digest();
            match service.block_on(service.client.receipt(&entry)) {
                Ok(receipt) => Ok(disclosure.with_receipt(&receipt)),
                Err(failure) if failure.exit == Exit::NotFound => Ok(disclosure),
                Err(failure) => Err(failure),
            }
        };
        disclosures.into_iter().map(complete).collect()
    }

    fn write(&self, context: &Context, path: &Path, disclosures: Vec<Disclosure>) -> Result<(), Failure> {
        let disclosures: Vec<Disclosure> = match self.member.is_empty() {
            true => disclosures,
            false => {
                disclosures.into_iter().map(|disclosure| disclosure.with_members(&self.member)).collect()
            }
        };
        let text = serde_json::to_vec_pretty(&disclosures).map_err(io::Error::from)?;
        files::write(path, &text, Access::Secret, Existing::Keep)?;
        context.console.note(format!(
            "wrote {} with the texts of {}",
            path.display(),
            counted(disclosures.len(), "record", "records")
        ));
        Ok(())
    }
}

/// Returns which records belong to a turn: its decisions, and the outcomes of these; all records without a turn.
fn of_turn(turn: Option<&str>, records: &[AuditedRecord]) -> Vec<bool> {
    let Some(turn) = turn else { return vec![true; records.len()] };
    let is_of_turn = |record: &&AuditedRecord| record.opened.turn_id.as_deref() == Some(turn);
    let entries: BTreeSet<&str> =
        records.iter().filter(is_of_turn).map(|record| record.opened.entry_id.as_str()).collect();
    let belongs = |record: &AuditedRecord| {
        let decision = record.opened.decision.as_deref().unwrap_or(&record.opened.entry_id);
        entries.contains(decision)
    };
    records.iter().map(belongs).collect()
}

fn malformed(error: DisclosureError) -> Failure {
    Failure::new(Exit::VerificationFailed, "not-a-disclosure", error.to_string())
}

/// The kind of the record that ends a stream.
const CLOSED: &str = "closed";

/// The records of a session.
#[derive(Serialize)]
struct Trail {
    records: Vec<AuditedRecord>,
    /// The numbers without a record, also with `--turn`: what was left out of the session.
    gaps: Vec<Gap>,
    /// True if a record ends the session; else records after the last one may be missing.
    closed: bool,
}

/// Consecutive numbers without a record.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Gap {
    from: u64,
    to: u64,
}

/// Returns the numbers below the highest one that are not among the given ones.
fn gaps(numbers: &BTreeSet<u64>) -> Vec<Gap> {
    let mut gaps = Vec::new();
    let mut next = 0;
    for &number in numbers {
        if next < number {
            gaps.push(Gap { from: next, to: number - 1 });
        }
        next = number.saturating_add(1);
    }
    gaps
}

/// A record, with the result of verifying its statement and the log's receipt.
#[derive(Serialize)]
struct AuditedRecord {
    #[serde(flatten)]
    opened: DisclosedRecord,
    registered: bool,
    #[serde(skip)]
    outcome: VerificationOutcome,
    /// The reason, if the statement or the receipt is not verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    because: Option<&'static str>,
}

impl AuditedRecord {
    fn of(disclosure: &Disclosure, trust: &TrustStore) -> Result<Self, DisclosureError> {
        let (statement, receipt) = (disclosure.signed_statement()?, disclosure.receipt_bytes()?);
        let receipts: Vec<&[u8]> = receipt.iter().map(Vec::as_slice).collect();
        let evidence = StatementEvidence {
            statement: statement.bytes(),
            receipts: &receipts,
            ..StatementEvidence::default()
        };
        let verdict = verifier::verify(&evidence, trust, now());
        Ok(Self {
            opened: disclosure.open()?,
            registered: verdict.outcome == VerificationOutcome::Verified,
            outcome: verdict.outcome,
            because: verdict.reason.map(|code| code.as_str()),
        })
    }

    fn is_contradicted(&self) -> bool {
        self.outcome == VerificationOutcome::Failed || self.opened.contradictions().next().is_some()
    }
}

/// Refuses that there are no records, and records of several sessions, which would hide that some are missing.
fn check_is_one_session(session: Option<&str>, records: &[AuditedRecord]) -> Result<(), Failure> {
    let first = &records.first().ok_or_else(no_records)?.opened;
    let stream = session.unwrap_or(&first.stream);
    let mut opened = records.iter().map(|record| &record.opened);
    match opened.find(|opened| opened.stream != stream || opened.gateway != first.gateway) {
        None => Ok(()),
        Some(other) => {
            let what = "the records are of several sessions or gateways";
            Err(Failure::new(Exit::VerificationFailed, "not-a-disclosure", what)
                .fact("stream", &other.stream)
                .fact("gateway", &other.gateway))
        }
    }
}

/// Returns the numbers of the records. Refuses two records with one number: a gateway uses each number once.
fn numbers(records: &[AuditedRecord]) -> Result<BTreeSet<u64>, Failure> {
    let mut numbers = BTreeSet::new();
    match records.iter().map(|record| record.opened.seq).find(|seq| !numbers.insert(*seq)) {
        None => Ok(numbers),
        Some(seq) => {
            let what = "two of the records have the same number";
            Err(Failure::new(Exit::VerificationFailed, "not-a-disclosure", what)
                .fact("number", seq.to_string()))
        }
    }
}

fn no_records() -> Failure {
    Failure::new(Exit::NotFound, "no-session", "there are no such records")
}

impl Trail {
    fn exit(&self) -> Exit {
        match self.records.iter().any(AuditedRecord::is_contradicted) {
            true => Exit::VerificationFailed,
            false if self.records.iter().all(|record| record.registered) => Exit::Success,
            false => Exit::NotVerified,
        }
    }
}

impl Report for Trail {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        if let Some(AuditedRecord { opened, .. }) = self.records.first() {
            writeln!(out, "session {} of gateway {}", safe(&opened.stream), safe(&opened.gateway))?;
        }
        self.records.iter().try_for_each(|record| lines(out, record))?;
        for Gap { from, to } in &self.gaps {
            writeln!(out, "missing  {from} to {to}")?;
        }
        if !self.closed {
            writeln!(out, "not closed: its end may be missing")?;
        }
        let registered = self.records.iter().filter(|record| record.registered).count();
        let contradicted = self.records.iter().filter(|record| record.is_contradicted()).count();
        writeln!(
            out,
            "{}: {registered} proven to be on the log, {contradicted} contradicted",
            counted(self.records.len(), "record", "records")
        )
    }
}

fn lines(out: &mut dyn Write, record: &AuditedRecord) -> io::Result<()> {
    let opened = &record.opened;
    let words = [opened.tool.as_deref(), opened.verdict, opened.reason.as_deref(), opened.status];
    let words: Vec<_> = words.into_iter().flatten().map(safe).collect();
    writeln!(out, "{:>4}  {}  {}  {}", opened.seq, opened.at, opened.kind, words.join("  "))?;
    if let Some(turn) = &opened.turn_id {
        writeln!(out, "      turn  {}  (as the client asserts)", safe(turn))?;
    }
    let known = opened.committed.iter().filter(|(_, opened)| opened.proof != TextProof::Withheld);
    known.into_iter().try_for_each(|(member, opened)| text(out, member, opened))?;
    match record.because {
        Some(because) => writeln!(out, "      NOT PROVEN to be on the log: {because}"),
        None => Ok(()),
    }
}

fn text(out: &mut dyn Write, member: &str, opened: &DisclosedText) -> io::Result<()> {
    let value = match &opened.value {
        Some(serde_json::Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    };
    let mark = match opened.proof {
        TextProof::Contradicted => "  CONTRADICTS THE RECORD",
        TextProof::Partial => "  (only its beginning was kept: not proven)",
        TextProof::Proven | TextProof::Withheld => "",
    };
    writeln!(out, "      {}  {}{mark}", safe(member), safe(&value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_without_a_record_are_gaps() {
        assert!(gaps(&BTreeSet::from([0, 1, 2])).is_empty());
        let expected = [Gap { from: 0, to: 1 }, Gap { from: 4, to: 4 }];
        assert_eq!(gaps(&BTreeSet::from([2, 3, 5])), expected);
        assert!(gaps(&BTreeSet::new()).is_empty());
    }
}
