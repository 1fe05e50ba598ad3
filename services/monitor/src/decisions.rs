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
use crate::book::Book;
use crate::config::{Depth, WatchedLog};
use crate::evidence::{EntrySeen, Evidence};
use crate::index::{Attestor, IndexCheck, IndexCheckError, IndexResults};
use crate::limits::{AUDIT_KEPT_EVERY, PATIENCE};
use crate::outside::Outside;
use crate::round::CheckName;
use crate::seen::SeenCheckpoint;
use crate::state::{LogFolder, LogState, MonitorStateError};
use crate::watch::{RecordingSource, Watching, complete};

/// File of the audit's state in the log's folder.
const AUDIT: &str = "audit.json";
/// Trouble name (see `LogState::trouble`) of a source that does not answer.
const SILENT: &str = "evidence";
/// Trouble name of missing bytes without an explanation.
const UNEXPLAINED: &str = "erasures";

/// The decisions check of one round.
pub struct Decisions<'a> {
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
    pub book: &'a mut Book,
    /// Time limit; unlimited if `None`.
    pub at_most: Option<Duration>,
    /// Additional time for a request in flight after `at_most`.
    pub grace: Duration,
}

/// The results of an audit up to the verified head.
struct WalkResult {
    report: AuditReport,
    watching: Watching,
    /// `None` if the index is not watched.
    index: Option<IndexResults>,
}

/// Reasons for which the audit did not complete.
enum AuditStop {
    Audit(AuditError),
    /// The time limit was reached; the number of entries decided so far.
    Later(u64),
    Reports(ClientError),
    Index(IndexCheckError),
    Kept(MonitorStateError),
    Setup(String),
}

impl Decisions<'_> {
    /// Runs the audit up to `verified`, or records why it is not run.
    pub async fn check(&mut self, verified: Option<&SeenCheckpoint>) {
        let why = match (self.target.depth, verified) {
            (Depth::Decisions, Some(seen)) => return self.decide_in_time(seen).await,
            (Depth::Decisions, None) => "the tree they would be of is not verified",
            _ => "statements are not asked for: depth is not decisions",
        };
        for name in [CheckName::Decisions, CheckName::Index, CheckName::WatchLists] {
            self.book.not_checked(name, why);
        }
    }

    async fn decide_in_time(&mut self, seen: &SeenCheckpoint) {
        let Some(at_most) = self.at_most else { return self.decide(seen).await };
        if tokio::time::timeout(at_most + self.grace, self.decide(seen)).await.is_ok() {
            return;
        }
        for name in [CheckName::Decisions, CheckName::Index, CheckName::WatchLists] {
            if !self.book.checks.iter().any(|check| check.name == name) {
                self.book.not_checked(name, "out of time: the rest in the next rounds");
            }
        }
        self.tell_found();
    }

    /// Adds the alarms that the watch lists and the index check found before the audit stopped; they are saved already.
    fn tell_found(&mut self) {
        if self.target.index.is_some()
            && let Ok(index) = IndexResults::load(self.folder)
        {
            self.book.alarms.extend(index.into_found());
        }
        if let Ok(watching) = Watching::load(self.folder, self.book.now) {
            self.book.alarms.extend(watching.into_found());
        }
    }

    async fn decide(&mut self, seen: &SeenCheckpoint) {
        let options = Options {
            patience: PATIENCE,
            extra_roots: self.roots.cloned(),
            token: self.token.map(str::to_owned),
            ..Options::default()
        };
        let outcome = match Client::new(self.target.url.as_str(), options) {
            Ok(client) => self.walk(seen, &client).await.map(|found| (client, found)),
            Err(why) => Err(AuditStop::Setup(why.to_string())),
        };
        match outcome {
            Ok((client, WalkResult { report, watching, index })) => {
                self.state.works(SILENT);
                let before = self.book.alarms.len();
                self.report(&report);
                complete(&mut self.book.alarms[before..], &seen.sighting, &client).await;
                watching.judge(self.target, self.book);
                match index {
                    Some(index) => index.judge(self.book),
                    None => {
                        self.book.not_checked(CheckName::Index, "the index is not watched: no [log.index]")
                    }
                }
            }
            Err(stopped) => {
                for name in [CheckName::Index, CheckName::WatchLists] {
                    self.book.not_checked(name, "entries were not all read");
                }
                self.tell_found();
                self.stopped(stopped);
            }
        }
    }

    /// Runs the audit up to the verified head and passes the entries to the watch lists.
    async fn walk(&self, seen: &SeenCheckpoint, client: &Client) -> Result<WalkResult, AuditStop> {
        let outside = Outside::at(client, seen.size, seen.root, self.trust);
        let mut watching = Watching::load(self.folder, self.book.now).map_err(AuditStop::Kept)?;
        let mut index = self.index_check(client, seen)?;
        let index_next = index.as_ref().map_or(u64::MAX, IndexCheck::next);
        let watching_next = watching.next();
        let tap = RecordingSource::of(&outside, watching_next.min(index_next));
        let mut state = self.load()?;
        if watching.is_behind(self.target, state.audited()) || index_next < state.audited() {
            // The memory of the watch lists or the index is lost or older than the audit's state: all start over.
            state = AuditState::default();
        }
        let before = state.audited();
        let mut audit = Audit::begin(&tap, state).await.map_err(AuditStop::Audit)?;
        let (started, mut kept) = (Instant::now(), Instant::now());
        loop {
            let more = audit.step().await.map_err(|why| AuditStop::Audit(why.into()))?;
            let mut rows = tap.drain();
            if let Some(index) = &mut index {
                let agreed = rows.iter().map(|row| row.index).filter(|leaf| audit.agrees(*leaf)).collect();
                let read = index.read(&tap, rows.clone(), audit.state().audited(), &agreed).await;
                read.map_err(AuditStop::Index)?;
            }
            rows.retain(|row| row.index.get() >= watching_next);
            watching.observe(self.target, rows, |leaf| audit.agrees(leaf));
            if !more && !self.target.watches.is_empty() {
                watching.read_reports(self.target, client).await.map_err(AuditStop::Reports)?;
                complete(watching.found_mut(), &seen.sighting, client).await;
            }
            if !more || kept.elapsed() > AUDIT_KEPT_EVERY {
                // The watch lists and the index are saved first: they may be ahead of the audit, never behind it.
                watching.keep(self.folder).map_err(AuditStop::Kept)?;
                if let Some(index) = &mut index {
                    index.keep().map_err(AuditStop::Index)?;
                }
                if audit.state().audited() > before {
                    self.folder.write(AUDIT, audit.state().to_json().as_bytes()).map_err(AuditStop::Kept)?;
                }
                kept = Instant::now();
                if more && self.at_most.is_some_and(|most| started.elapsed() > most) {
                    return Err(AuditStop::Later(audit.progress().entries));
                }
            }
            if !more {
                return Ok(WalkResult {
                    report: audit.report(),
                    watching,
                    index: index.map(IndexCheck::into_results),
                });
            }
        }
    }

    fn index_check<'c>(
        &'c self,
        client: &'c Client,
        seen: &SeenCheckpoint,
    ) -> Result<Option<IndexCheck<'c>>, AuditStop> {
        let open = || {
            let place = (self.target, self.folder);
            IndexCheck::open(place, (self.trust, self.attestor), client, seen, self.book.now)
        };
        self.target.index.as_ref().map(|_| open()).transpose().map_err(AuditStop::Index)
    }

    fn load(&self) -> Result<AuditState, AuditStop> {
        let Some(bytes) = self.folder.read(AUDIT).map_err(AuditStop::Kept)? else {
            return Ok(AuditState::default());
        };
        AuditState::from_json(&String::from_utf8_lossy(&bytes)).map_err(|why| AuditStop::Audit(why.into()))
    }

    fn report(&mut self, report: &AuditReport) {
        let before = self.book.alarms.len();
        let unexplained = report.findings.iter().any(is_unexplained) || report.unmatched > 0;
        let lasts = match unexplained {
            true => self.state.trouble(UNEXPLAINED, self.book.now),
            false => {
                self.state.works(UNEXPLAINED);
                0
            }
        };
        let patient = lasts < self.target.lag.as_secs();
        for finding in &report.findings {
            if !(patient && is_unexplained(finding)) {
                self.book.alarms.push(alarm(finding, self.book));
            }
        }
        let counts =
            format!("entries decided again: {} of {}, {}", report.decided(), report.size, times(report));
        let (found, omitted) = (self.book.alarms.len() - before, report.omitted);
        match (found, unexplained) {
            (0, false) => self.book.ok(CheckName::Decisions, counts),
            (0, true) => {
                let words = format!("{counts}; bytes are gone, and what explains it may come");
                self.book.not_checked(CheckName::Decisions, words);
            }
            _ => self
                .book
                .failed(CheckName::Decisions, format!("{counts}; findings: {found}, not listed: {omitted}")),
        }
    }

    fn stopped(&mut self, stopped: AuditStop) {
        let name = CheckName::Decisions;
        match stopped {
            AuditStop::Audit(AuditError::Source(error)) => self.unanswered(&error),
            AuditStop::Audit(AuditError::State(why @ AuditStateError::Ahead { .. })) => {
                self.book.not_checked(name, format!("{why}: decided again before"));
            }
            AuditStop::Audit(AuditError::State(
                why @ (AuditStateError::AnotherLog { .. }
                | AuditStateError::AnotherHistory { .. }
                | AuditStateError::Policy { .. }),
            )) => self.book.accuse(name, AlarmKind::Decision, AlarmSubject::Log, why.to_string(), None),
            AuditStop::Audit(AuditError::State(why)) => self.book.failed(name, why.to_string()),
            AuditStop::Index(IndexCheckError::Source(error)) => self.unanswered(&error),
            AuditStop::Index(why) => self.book.failed(CheckName::Index, why.to_string()),
            AuditStop::Later(entries) => {
                let words = format!("entries decided again so far: {entries}; the rest in the next rounds");
                self.book.not_checked(name, words);
            }
            AuditStop::Reports(why) => {
                self.book.unanswered(name, format!("reports of refused statements: {why}"))
            }
            AuditStop::Kept(why) => self.book.failed(name, why.to_string()),
            AuditStop::Setup(why) => self.book.failed(name, why),
        }
    }

    fn unanswered(&mut self, error: &SourceError) {
        let name = CheckName::Decisions;
        if let SourceError::Damaged(_) = error {
            self.book.accuse(name, AlarmKind::Inconsistent, AlarmSubject::Log, error.to_string(), None);
            return;
        }
        if let SourceError::Closed(_) = error {
            return self.book.not_checked(name, error.to_string());
        }
        let lasts = self.state.trouble(SILENT, self.book.now);
        self.book.unanswered(name, error.to_string());
        if lasts >= self.target.unreachable_after.as_secs() {
            let words = format!("no evidence of its decisions for {lasts} s: {error}");
            self.book.alarm(AlarmKind::Unreachable, AlarmSubject::Log, words, None);
        }
    }
}

/// Describes how many commit times are proven by a signed receipt.
fn times(report: &AuditReport) -> String {
    match report.counts.told_times + report.counts.untold_times {
        0 => "at times that the log signed".to_owned(),
        unsigned => format!("{unsigned} of them at times that nobody signed"),
    }
}

fn is_unexplained(finding: &AuditFinding) -> bool {
    matches!(finding.rule, LogRule::ErasedUnexplained | LogRule::PayloadUnexplained)
}

fn alarm(finding: &AuditFinding, book: &Book) -> Alarm {
    let which = match (finding.leaf, finding.batch) {
        (Some(leaf), _) => format!("{} at leaf {leaf}", finding.rule),
        (None, Some(batch)) => format!("{} in batch {batch}", finding.rule),
        (None, None) => finding.rule.to_string(),
    };
    let alarm = Alarm::new(AlarmKind::Decision, &book.log, AlarmSubject::Log, finding.to_string(), book.now);
    let entry =
        finding.entry.clone().map(|entry_id| EntrySeen { index: finding.leaf, entry_id, statement: None });
    let evidence = entry.map(|entry| Evidence::Entries { checkpoint: None, entries: vec![entry] });
    Alarm { evidence, ..alarm.which(which) }
}
