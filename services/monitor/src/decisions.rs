//! The decisions check: recomputes every admission decision from the log's public data.
//!
//! The crate `audit` makes the decisions again. Its tree head is the one verified in this round, so that the leaves it
//! reads are those that the log signed. Each entry is then passed to the watch lists. Missing bytes without an
//! explanation become an accusation only after `lag`: the log commits the statement that explains an erasure first, and
//! the audit may be between the two.

use std::time::{Duration, Instant};

use audit::{
    Audit, AuditError, AuditFinding, AuditReport, AuditState, AuditStateError, LogRule, SourceError,
};
use bytes::Bytes;
use client::{Client, ClientError, Options};
use verifier::TrustStore;

use crate::alarm::{Alarm, AlarmKind, AlarmSubject};
use crate::config::{Depth, WatchedLog};
use crate::evidence::{EntrySeen, Evidence};
use crate::index::{Attestor, IndexCheck, IndexCheckError, IndexResults};
use crate::limits::{AUDIT_KEPT_EVERY, PATIENCE};
use crate::remote_audit_source::RemoteAuditSource;
use crate::round::CheckName;
use crate::round_results::RoundResults;
use crate::signed_checkpoint::SignedCheckpoint;
use crate::state::{LogFolder, LogState, MonitorStateError};
use crate::watch_lists::{RecordingSource, WatchLists, complete_evidence};

/// File of the audit's state in the log's folder.
const AUDIT: &str = "audit.json";
/// Trouble name (see `LogState::record_trouble`) of a source that does not answer.
const UNANSWERED: &str = "evidence";
/// Trouble name of missing bytes without an explanation.
const UNEXPLAINED: &str = "erasures";

/// The decisions check of one round.
pub struct DecisionsCheck<'a> {
    /// The log's configuration.
    pub target: &'a WatchedLog,
    /// The log's folder, which holds the audit's state.
    pub folder: &'a LogFolder,
    /// The log's state, for its list of troubles.
    pub state: &'a mut LogState,
    /// Additional root certificates for TLS, in PEM.
    pub roots: Option<&'a Bytes>,
    /// Bearer token for statement bodies with restricted access.
    pub token: Option<&'a str>,
    /// Trust store with the log's receipt keys, which prove commit times.
    pub trust: Option<&'a TrustStore>,
    /// The signer of attestations.
    pub attestor: Option<&'a Attestor>,
    /// The round's checks and alarms.
    pub results: &'a mut RoundResults,
    /// Time limit; unlimited if `None`.
    pub at_most: Option<Duration>,
    /// Additional time for a request in flight after `at_most`.
    pub grace: Duration,
}

/// The results of an audit up to the verified head.
struct CompletedAudit {
    report: AuditReport,
    watch_lists: WatchLists,
    /// `None` if the index is not watched.
    index: Option<IndexResults>,
}

/// Reasons for which the audit did not complete.
enum AuditStop {
    Audit(AuditError),
    /// The time limit was reached; the number of entries decided so far.
    OutOfTime(u64),
    RefusedStatements(ClientError),
    Index(IndexCheckError),
    State(MonitorStateError),
    Setup(String),
}

impl DecisionsCheck<'_> {
    /// Runs the audit up to `verified`, or records why it is not run.
    pub async fn check(&mut self, verified: Option<&SignedCheckpoint>) {
        let why = match (self.target.depth, verified) {
            (Depth::Decisions, Some(seen)) => return self.audit_in_time(seen).await,
            (Depth::Decisions, None) => "the log's tree is not verified",
            _ => "statements are not read: depth is not decisions",
        };
        for name in [CheckName::Decisions, CheckName::Index, CheckName::WatchLists] {
            self.results.not_checked(name, why);
        }
    }

    async fn audit_in_time(&mut self, seen: &SignedCheckpoint) {
        let Some(at_most) = self.at_most else { return self.audit(seen).await };
        if tokio::time::timeout(at_most + self.grace, self.audit(seen)).await.is_ok() {
            return;
        }
        for name in [CheckName::Decisions, CheckName::Index, CheckName::WatchLists] {
            if !self.results.checks.iter().any(|check| check.name == name) {
                self.results.not_checked(name, "out of time: the rest in the next rounds");
            }
        }
        self.report_saved_alarms();
    }

    /// Adds the alarms that the watch lists and the index check found before the audit stopped; they are saved already.
    fn report_saved_alarms(&mut self) {
        if self.target.index.is_some()
            && let Ok(index) = IndexResults::load(self.folder)
        {
            self.results.alarms.extend(index.into_unreported());
        }
        if let Ok(watch_lists) = WatchLists::load(self.folder, self.results.now) {
            self.results.alarms.extend(watch_lists.into_unreported());
        }
    }

    async fn audit(&mut self, seen: &SignedCheckpoint) {
        let options = Options {
            patience: PATIENCE,
            extra_roots: self.roots.cloned(),
            token: self.token.map(str::to_owned),
            ..Options::default()
        };
        let outcome = match Client::new(self.target.url.as_str(), options) {
            Ok(client) => self.run_audit(seen, &client).await.map(|completed| (client, completed)),
            Err(why) => Err(AuditStop::Setup(why.to_string())),
        };
        match outcome {
            Ok((client, CompletedAudit { report, watch_lists, index })) => {
                self.state.end_trouble(UNANSWERED);
                let before = self.results.alarms.len();
                self.record_report(&report);
                complete_evidence(&mut self.results.alarms[before..], &seen.sighting, &client).await;
                watch_lists.record(self.target, self.results);
                match index {
                    Some(index) => index.record(self.results),
                    None => {
                        self.results.not_checked(CheckName::Index, "the index is not watched: no [log.index]")
                    }
                }
            }
            Err(stopped) => {
                for name in [CheckName::Index, CheckName::WatchLists] {
                    self.results.not_checked(name, "not all entries were read");
                }
                self.report_saved_alarms();
                self.record_stop(stopped);
            }
        }
    }

    /// Runs the audit up to the verified head, and passes its entries to the index check and the watch lists.
    async fn run_audit(&self, seen: &SignedCheckpoint, client: &Client) -> Result<CompletedAudit, AuditStop> {
        let remote = RemoteAuditSource::with_verified_head(client, seen.head(), self.trust);
        let mut watch_lists = WatchLists::load(self.folder, self.results.now).map_err(AuditStop::State)?;
        let mut index = self.index_check(client, seen)?;
        let index_next = index.as_ref().map_or(u64::MAX, IndexCheck::next);
        let lists_next = watch_lists.next();
        let source = RecordingSource::new(&remote, lists_next.min(index_next));
        let mut state = self.load_state()?;
        if watch_lists.is_behind(self.target, state.audited()) || index_next < state.audited() {
            // The memory of the watch lists or the index is lost or older than the audit's state: all start over.
            state = AuditState::default();
        }
        let before = state.audited();
        let mut audit = Audit::begin(&source, state).await.map_err(AuditStop::Audit)?;
        let (started, mut kept) = (Instant::now(), Instant::now());
        loop {
            let more = audit.step().await.map_err(|why| AuditStop::Audit(why.into()))?;
            let mut rows = source.take_rows();
            if let Some(index) = &mut index {
                let agreed = rows.iter().map(|row| row.index).filter(|leaf| audit.agrees(*leaf)).collect();
                let read = index.read(&source, rows.clone(), audit.state().audited(), &agreed).await;
                read.map_err(AuditStop::Index)?;
            }
            rows.retain(|row| row.index.get() >= lists_next);
            watch_lists.observe(self.target, rows, |leaf| audit.agrees(leaf));
            if !more && !self.target.watches.is_empty() {
                watch_lists
                    .read_refused_statements(self.target, client)
                    .await
                    .map_err(AuditStop::RefusedStatements)?;
                complete_evidence(watch_lists.unreported_mut(), &seen.sighting, client).await;
            }
            if !more || kept.elapsed() > AUDIT_KEPT_EVERY {
                // The watch lists and the index are saved first: they may be ahead of the audit, never behind it.
                watch_lists.save(self.folder).map_err(AuditStop::State)?;
                if let Some(index) = &mut index {
                    index.keep().map_err(AuditStop::Index)?;
                }
                if audit.state().audited() > before {
                    self.folder.write(AUDIT, audit.state().to_json().as_bytes()).map_err(AuditStop::State)?;
                }
                kept = Instant::now();
                if more && self.at_most.is_some_and(|most| started.elapsed() > most) {
                    return Err(AuditStop::OutOfTime(audit.progress().entries));
                }
            }
            if !more {
                return Ok(CompletedAudit {
                    report: audit.report(),
                    watch_lists,
                    index: index.map(IndexCheck::into_results),
                });
            }
        }
    }

    fn index_check<'c>(
        &'c self,
        client: &'c Client,
        seen: &SignedCheckpoint,
    ) -> Result<Option<IndexCheck<'c>>, AuditStop> {
        let open = || {
            let place = (self.target, self.folder);
            IndexCheck::open(place, (self.trust, self.attestor), client, seen, self.results.now)
        };
        self.target.index.as_ref().map(|_| open()).transpose().map_err(AuditStop::Index)
    }

    fn load_state(&self) -> Result<AuditState, AuditStop> {
        let Some(bytes) = self.folder.read(AUDIT).map_err(AuditStop::State)? else {
            return Ok(AuditState::default());
        };
        AuditState::from_json(&String::from_utf8_lossy(&bytes)).map_err(|why| AuditStop::Audit(why.into()))
    }

    fn record_report(&mut self, report: &AuditReport) {
        let before = self.results.alarms.len();
        let unexplained = report.findings.iter().any(is_unexplained) || report.unmatched > 0;
        let lasts = match unexplained {
            true => self.state.record_trouble(UNEXPLAINED, self.results.now),
            false => {
                self.state.end_trouble(UNEXPLAINED);
                0
            }
        };
        let patient = lasts < self.target.lag.as_secs();
        for finding in &report.findings {
            if !(patient && is_unexplained(finding)) {
                self.results.alarms.push(alarm(finding, self.results));
            }
        }
        let counts = format!(
            "entries decided again: {} of {}, {}",
            report.decided(),
            report.size,
            commit_times(report)
        );
        let (found, omitted) = (self.results.alarms.len() - before, report.omitted);
        match (found, unexplained) {
            (0, false) => self.results.ok(CheckName::Decisions, counts),
            (0, true) => {
                let words =
                    format!("{counts}; statements are missing, but a statement of erasure may follow");
                self.results.not_checked(CheckName::Decisions, words);
            }
            _ => self
                .results
                .failed(CheckName::Decisions, format!("{counts}; findings: {found}, not listed: {omitted}")),
        }
    }

    fn record_stop(&mut self, stopped: AuditStop) {
        let name = CheckName::Decisions;
        match stopped {
            AuditStop::Audit(AuditError::Source(error)) => self.record_source_error(&error),
            AuditStop::Audit(AuditError::State(why @ AuditStateError::Ahead { .. })) => {
                self.results.not_checked(name, format!("{why}: these entries were decided again before"));
            }
            AuditStop::Audit(AuditError::State(
                why @ (AuditStateError::AnotherLog { .. }
                | AuditStateError::AnotherHistory { .. }
                | AuditStateError::Policy { .. }),
            )) => self.results.accuse(name, AlarmKind::Decision, AlarmSubject::Log, why.to_string(), None),
            AuditStop::Audit(AuditError::State(why)) => self.results.failed(name, why.to_string()),
            AuditStop::Index(IndexCheckError::Source(error)) => self.record_source_error(&error),
            AuditStop::Index(why) => self.results.failed(CheckName::Index, why.to_string()),
            AuditStop::OutOfTime(entries) => {
                let words = format!("entries decided again so far: {entries}; the rest in the next rounds");
                self.results.not_checked(name, words);
            }
            AuditStop::RefusedStatements(why) => {
                self.results.unanswered(name, format!("reports of refused statements: {why}"))
            }
            AuditStop::State(why) => self.results.failed(name, why.to_string()),
            AuditStop::Setup(why) => self.results.failed(name, why),
        }
    }

    fn record_source_error(&mut self, error: &SourceError) {
        let name = CheckName::Decisions;
        if let SourceError::Damaged(_) = error {
            self.results.accuse(name, AlarmKind::Inconsistent, AlarmSubject::Log, error.to_string(), None);
            return;
        }
        if let SourceError::Closed(_) = error {
            return self.results.not_checked(name, error.to_string());
        }
        let lasts = self.state.record_trouble(UNANSWERED, self.results.now);
        self.results.unanswered(name, error.to_string());
        if lasts >= self.target.unreachable_after.as_secs() {
            let words = format!("no evidence of its decisions for {lasts} s: {error}");
            self.results.alarm(AlarmKind::Unreachable, AlarmSubject::Log, words, None);
        }
    }
}

/// Describes how many commit times a signed receipt proves.
fn commit_times(report: &AuditReport) -> String {
    match report.counts.told_times + report.counts.untold_times {
        0 => "all commit times are signed by the log".to_owned(),
        unsigned => format!("{unsigned} commit times are not signed"),
    }
}

fn is_unexplained(finding: &AuditFinding) -> bool {
    matches!(finding.rule, LogRule::ErasedUnexplained | LogRule::PayloadUnexplained)
}

fn alarm(finding: &AuditFinding, results: &RoundResults) -> Alarm {
    let which = match (finding.leaf, finding.batch) {
        (Some(leaf), _) => format!("{} at leaf {leaf}", finding.rule),
        (None, Some(batch)) => format!("{} in batch {batch}", finding.rule),
        (None, None) => finding.rule.to_string(),
    };
    let alarm =
        Alarm::new(AlarmKind::Decision, &results.log, AlarmSubject::Log, finding.to_string(), results.now);
    let entry =
        finding.entry.clone().map(|entry_id| EntrySeen { index: finding.leaf, entry_id, statement: None });
    let evidence = entry.map(|entry| Evidence::Entries { checkpoint: None, entries: vec![entry] });
    Alarm { evidence, ..alarm.which(which) }
}
