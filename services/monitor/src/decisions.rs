//! The decisions check: recomputes every admission decision from the log's public data.
//!
//! The crate `audit` makes the decisions again. Its tree head is the one verified in this round, so that the leaves it
//! reads are those that the log signed. Each entry is then passed to the watch lists. Progress is saved only after a proof
//! that the leaves read so far are the first ones of that tree; without one, the next round reads them again. Missing bytes
//! without an explanation become an accusation only after `lag`: the log commits the statement that explains an erasure
//! first, and the audit may be between the two.

use std::time::{Duration, Instant};

use audit::limits::MAX_AUDIT_STATE_BYTES;
use audit::{
    Audit, AuditError, AuditFinding, AuditReport, AuditState, AuditStateError, LogRule, SourceError,
};
use bytes::Bytes;
use client::{Client, Options};
use merkle::TreeSize;
use verifier::TrustStore;

use crate::alarm::{Alarm, AlarmKind, AlarmSubject, FoundBy};
use crate::check_name::CheckName;
use crate::config::{Depth, WatchedLog};
use crate::consistency::{ConsistencyProver, ConsistencyResult};
use crate::evidence::{EntrySeen, Evidence};
use crate::index::{Attestor, IndexCheck, IndexCheckError, IndexResults};
use crate::limits::{AUDIT_KEPT_EVERY, PATIENCE};
use crate::remote_audit_source::RemoteAuditSource;
use crate::round_results::RoundResults;
use crate::signed_checkpoint::{SignedCheckpoint, TreeHead};
use crate::state::{LogFolder, LogState, MonitorStateError};
use crate::watch_lists::{RecordingSource, UnreadReports, WatchLists, complete_evidence};

/// File of the audit's state in the log's folder.
const AUDIT: &str = "audit.json";
/// Trouble name (see `LogState::record_trouble`) of a source that does not answer.
const UNANSWERED: &str = "evidence";
/// Trouble name of reports of refused statements that are not served, and the part of the check that reads them.
const REPORTS: &str = "reports";
/// Trouble name of missing bytes without an explanation.
const UNEXPLAINED: &str = "erasures";

/// The decisions check of one round.
pub struct DecisionsCheck<'a> {
    /// The log's configuration.
    pub target: &'a WatchedLog,
    /// The log's folder, which holds the audit's state.
    pub folder: &'a LogFolder,
    /// Client and proof verifier for the log.
    pub prover: &'a ConsistencyProver,
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

/// An audit that began: what it found so far, and why it did not reach the verified head.
struct AuditResult {
    report: AuditReport,
    watch_lists: WatchLists,
    /// `None` if the index is not watched.
    index: Option<IndexResults>,
    /// `None` if the head was reached.
    stopped: Option<AuditStop>,
    /// `true` if at least one page was decided, and the progress is saved.
    has_advanced: bool,
    /// `true` if all leaves that were read are proven to be those of the verified tree.
    is_proven: bool,
    /// Reason why the reports of refused statements were not read.
    unread_reports: Option<UnreadReports>,
}

/// Reasons for which the audit did not complete.
enum AuditStop {
    Audit(AuditError),
    /// The time limit was reached; the number of entries decided so far.
    OutOfTime(u64),
    Index(IndexCheckError),
    /// The leaves read so far, as many as given, are not the first ones of the verified tree.
    OtherTree(TreeSize),
    State(MonitorStateError),
    Setup(String),
}

/// The ends of the time for an audit; unlimited if `None`.
#[derive(Clone, Copy)]
struct Deadlines {
    /// For reading entries and reports.
    reading: Option<tokio::time::Instant>,
    /// For the statements that complete the evidence.
    evidence: Option<tokio::time::Instant>,
}

/// An audit in progress, and the readers of its entries.
struct AuditRun<'a> {
    target: &'a WatchedLog,
    folder: &'a LogFolder,
    prover: &'a ConsistencyProver,
    /// The verified tree.
    head: TreeHead,
    source: &'a RecordingSource<'a>,
    audit: Audit<'a>,
    watch_lists: WatchLists,
    index: Option<IndexCheck<'a>>,
    /// The first leaf that the watch lists have not observed.
    lists_next: u64,
    /// Number of entries that the saved state has decided.
    saved: u64,
    /// Number of leaves that are proven to be the first ones of the verified tree.
    proven: u64,
    /// `true` while the audit has decided a page that the index check and the watch lists have not read.
    in_page: bool,
}

impl DecisionsCheck<'_> {
    /// Runs the audit up to `verified`, or records why it is not run.
    pub async fn check(&mut self, verified: Option<&SignedCheckpoint>) {
        let why = match (self.target.depth, verified) {
            (Depth::Decisions, Some(seen)) => return self.audit(seen).await,
            (Depth::Decisions, None) => "the log's tree is not verified",
            _ => "statements are not read: depth is not decisions",
        };
        for name in [CheckName::Decisions, CheckName::Index, CheckName::WatchLists] {
            self.results.not_checked(name, why);
        }
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
        let deadlines = Deadlines::new(self.at_most, self.grace);
        let options = Options {
            patience: PATIENCE,
            extra_roots: self.roots.cloned(),
            token: self.token.map(str::to_owned),
            ..Options::default()
        };
        let outcome = match Client::new(self.target.url.as_str(), options) {
            Ok(client) => self.run_audit(seen, &client, deadlines).await.map(|result| (client, result)),
            Err(why) => Err(AuditStop::Setup(why.to_string())),
        };
        match outcome {
            Ok((client, result)) => self.record(result, seen, &client, deadlines).await,
            Err(stopped) => {
                self.lists_not_checked();
                self.report_saved_alarms();
                self.record_stop(stopped, seen);
            }
        }
    }

    /// Runs the audit towards the verified head, and passes its entries to the index check and the watch lists. Fails only
    /// if it cannot begin: what was found before it stopped is part of the result.
    async fn run_audit(
        &self,
        seen: &SignedCheckpoint,
        client: &Client,
        deadlines: Deadlines,
    ) -> Result<AuditResult, AuditStop> {
        let remote = RemoteAuditSource::with_verified_head(client, seen.head(), self.trust);
        let watch_lists = WatchLists::load(self.folder, self.results.now).map_err(AuditStop::State)?;
        let index = self.index_check(client, seen)?;
        let index_next = index.as_ref().map_or(u64::MAX, IndexCheck::next);
        let lists_next = watch_lists.next();
        let source = RecordingSource::new(&remote, lists_next.min(index_next));
        let mut state = self.load_state()?;
        if watch_lists.is_behind(self.target, state.audited()) || index_next < state.audited() {
            // The memory of the watch lists or the index is lost or older than the audit's state: all start over.
            state = AuditState::default();
        }
        let saved = state.audited();
        let begun = within(deadlines.reading, Audit::begin(&source, state)).await;
        let audit = begun.ok_or(AuditStop::OutOfTime(saved))?.map_err(AuditStop::Audit)?;
        let run = AuditRun {
            target: self.target,
            folder: self.folder,
            prover: self.prover,
            head: seen.head(),
            source: &source,
            audit,
            watch_lists,
            index,
            lists_next,
            saved,
            proven: saved,
            in_page: false,
        };
        Ok(run.finish(seen, client, self.at_most, deadlines).await)
    }

    /// Records the result of an audit that began.
    async fn record(
        &mut self,
        result: AuditResult,
        seen: &SignedCheckpoint,
        client: &Client,
        deadlines: Deadlines,
    ) {
        let AuditResult { report, watch_lists, index, stopped, has_advanced, is_proven, unread_reports } =
            result;
        let (before, is_complete) = (self.results.alarms.len(), stopped.is_none());
        if has_advanced || is_complete {
            self.state.end_trouble(UNANSWERED);
        }
        if has_advanced {
            self.results.count_as_made(CheckName::Decisions);
            if index.is_some() {
                self.results.count_as_made(CheckName::Index);
            }
        }
        match stopped {
            None => self.record_report(&report),
            Some(stopped) => {
                self.record_report_so_far(&report);
                self.record_stop(stopped, seen);
            }
        }
        let alarms = &mut self.results.alarms[before..];
        within(deadlines.evidence, complete_evidence(alarms, &seen.sighting, client)).await;
        if is_complete {
            self.record_watch_lists(watch_lists, unread_reports);
            match index {
                Some(index) => index.record(self.results),
                None => {
                    self.results.not_checked(CheckName::Index, "the index is not watched: no [log.index]")
                }
            }
            return;
        }
        self.lists_not_checked();
        if is_proven {
            self.results.alarms.extend(index.into_iter().flat_map(IndexResults::into_unreported));
            self.results.alarms.extend(watch_lists.into_unreported());
        } else {
            self.report_saved_alarms();
        }
    }

    fn lists_not_checked(&mut self) {
        for name in [CheckName::Index, CheckName::WatchLists] {
            self.results.not_checked(name, "not all entries were read");
        }
    }

    /// Records the watch lists after a complete audit. Reports that the log does not serve for `unreachable_after` are an
    /// alarm of their own, which ends when they were read.
    fn record_watch_lists(&mut self, watch_lists: WatchLists, unread_reports: Option<UnreadReports>) {
        watch_lists.record(self.target, self.results, unread_reports.as_ref());
        let part = FoundBy::at(CheckName::WatchLists, REPORTS);
        let why = match unread_reports {
            Some(UnreadReports::Failed(why)) => why,
            Some(UnreadReports::OutOfTime) => return self.state.end_trouble(REPORTS),
            None => {
                self.state.end_trouble(REPORTS);
                return self.results.count_as_made(part);
            }
        };
        let lasts = self.state.record_trouble(REPORTS, self.results.now);
        if lasts >= self.target.unreachable_after.as_secs() {
            let words = format!("no reports of refused statements for {lasts} s: {why}");
            let (kind, about) = (AlarmKind::Unreachable, AlarmSubject::Log);
            let alarm = Alarm::new(kind, &self.results.log, about, words, self.results.now);
            self.results.alarms.push(alarm.which(REPORTS).found_by(part));
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
        let read = self.folder.read_within(AUDIT, MAX_AUDIT_STATE_BYTES);
        let Some(bytes) = read.map_err(AuditStop::State)? else {
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
        self.raise(report.findings.iter().filter(|finding| !(patient && is_unexplained(finding))));
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

    /// Raises the findings of an audit that did not reach the head. Missing bytes wait, since a statement that explains
    /// them may follow.
    fn record_report_so_far(&mut self, report: &AuditReport) {
        let before = self.results.alarms.len();
        self.raise(report.findings.iter().filter(|finding| !is_unexplained(finding)));
        let (found, omitted) = (self.results.alarms.len() - before, report.omitted);
        if found > 0 {
            let words = format!(
                "entries decided again so far: {} of {}; findings: {found}, not listed: {omitted}",
                report.decided(),
                report.size
            );
            self.results.failed(CheckName::Decisions, words);
        }
    }

    fn raise<'f>(&mut self, findings: impl Iterator<Item = &'f AuditFinding>) {
        for finding in findings {
            self.results.alarms.push(alarm(finding, self.results));
        }
    }

    fn record_stop(&mut self, stopped: AuditStop, seen: &SignedCheckpoint) {
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
            AuditStop::Audit(AuditError::State(why)) => self.record_own_fault(name, why.to_string()),
            AuditStop::Index(IndexCheckError::Source(error)) => self.record_source_error(&error),
            AuditStop::Index(why) => self.record_own_fault(CheckName::Index, why.to_string()),
            AuditStop::OutOfTime(entries) => {
                let words = format!("entries decided again so far: {entries}; the rest in the next rounds");
                self.results.not_checked(name, words);
            }
            AuditStop::OtherTree(size) => self.accuse_of_other_tree(size, seen),
            AuditStop::State(why) => self.record_own_fault(name, why.to_string()),
            AuditStop::Setup(why) => self.results.failed(name, why),
        }
    }

    fn accuse_of_other_tree(&mut self, size: TreeSize, seen: &SignedCheckpoint) {
        let words = format!(
            "the first {size} leaves that it serves are not those of the tree that it signed; they are read again in the next round"
        );
        let evidence = Evidence::checkpoint(self.target, &seen.sighting);
        let (kind, about) = (AlarmKind::Inconsistent, AlarmSubject::Log);
        self.results.accuse(CheckName::Decisions, kind, about, words, Some(evidence));
    }

    /// Raises an alarm about the monitor's own files, without which it does not make the check.
    fn record_own_fault(&mut self, name: CheckName, why: String) {
        self.results.not_checked(name, why.clone());
        self.results.alarm(name, AlarmKind::OwnState, AlarmSubject::Log, why, None);
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
            self.results.alarm(name, AlarmKind::Unreachable, AlarmSubject::Log, words, None);
        }
    }
}

impl AuditRun<'_> {
    /// Reads until the head or a reason to stop, saves what was read, and then reads the reports of refused statements.
    async fn finish(
        mut self,
        seen: &SignedCheckpoint,
        client: &Client,
        at_most: Option<Duration>,
        deadlines: Deadlines,
    ) -> AuditResult {
        let saved_before = self.saved;
        let read = within(deadlines.reading, self.read(at_most)).await;
        let read = read.unwrap_or_else(|| Err(AuditStop::OutOfTime(self.audit.progress().entries)));
        let saved = within(deadlines.evidence, self.save()).await;
        let saved = saved.unwrap_or(Err(AuditStop::OutOfTime(self.saved)));
        let mut stopped = saved.and(read).err();
        let mut unread_reports = None;
        if stopped.is_none() && !self.target.watches.is_empty() {
            let reports = self.watch_lists.read_refused_statements(self.target, client);
            unread_reports = match within(deadlines.reading, reports).await {
                Some(read) => read.err().map(|why| UnreadReports::Failed(why.to_string())),
                None => Some(UnreadReports::OutOfTime),
            };
            stopped = self.save().await.err();
        }
        let alarms = self.watch_lists.unreported_mut();
        within(deadlines.evidence, complete_evidence(alarms, &seen.sighting, client)).await;
        AuditResult {
            report: self.audit.report(),
            watch_lists: self.watch_lists,
            has_advanced: self.saved > saved_before,
            is_proven: self.proven == self.audit.state().audited(),
            index: self.index.map(IndexCheck::into_results),
            stopped,
            unread_reports,
        }
    }

    /// Reads pages up to the head.
    async fn read(&mut self, at_most: Option<Duration>) -> Result<(), AuditStop> {
        let (started, mut kept) = (Instant::now(), Instant::now());
        while self.read_page().await? {
            if kept.elapsed() <= AUDIT_KEPT_EVERY {
                continue;
            }
            self.save().await?;
            kept = Instant::now();
            if at_most.is_some_and(|most| started.elapsed() > most) {
                return Err(AuditStop::OutOfTime(self.audit.progress().entries));
            }
        }
        Ok(())
    }

    /// Decides a page, and passes it to the index check and the watch lists. Returns `false` if there is none.
    async fn read_page(&mut self) -> Result<bool, AuditStop> {
        let more = self.audit.step().await.map_err(|why| AuditStop::Audit(why.into()))?;
        self.in_page = true;
        let audit = &self.audit;
        let mut rows = self.source.take_rows();
        if let Some(index) = &mut self.index {
            let agreed = rows.iter().map(|row| row.index).filter(|leaf| audit.agrees(*leaf)).collect();
            let read = index.read(self.source, rows.clone(), audit.state().audited(), &agreed).await;
            read.map_err(AuditStop::Index)?;
        }
        rows.retain(|row| row.index.get() >= self.lists_next);
        self.watch_lists.observe(self.target, rows, |leaf| audit.agrees(leaf));
        self.in_page = false;
        Ok(more)
    }

    /// Saves the progress. The watch lists and the index are saved first: they may be ahead of the audit, never behind it.
    /// After a page that they have not read, and without a proof, nothing is saved: the next round decides it again.
    async fn save(&mut self) -> Result<(), AuditStop> {
        self.prove().await?;
        if self.in_page {
            return Ok(());
        }
        self.watch_lists.save(self.folder).map_err(AuditStop::State)?;
        if let Some(index) = &mut self.index {
            index.keep().map_err(AuditStop::Index)?;
        }
        let audited = self.audit.state().audited();
        if audited > self.saved {
            let state = self.audit.state().to_json().map_err(|why| AuditStop::Audit(why.into()))?;
            self.folder.write(AUDIT, state.as_bytes()).map_err(AuditStop::State)?;
            self.saved = audited;
        }
        Ok(())
    }

    /// Proves that the leaves of the audit, and those of the index, are the first ones of the verified tree.
    async fn prove(&mut self) -> Result<(), AuditStop> {
        let tree = self.audit.tree();
        if tree.size().get() == self.proven {
            return Ok(());
        }
        let read = TreeHead { size: tree.size(), root: tree.root() };
        let index = self.index.as_ref().map(IndexCheck::tree);
        let is_other = |index: &TreeHead| index.size == read.size && index.root != read.root;
        match self.prover.extends(read, self.head).await {
            ConsistencyResult::Proven if !index.as_ref().is_some_and(is_other) => {
                self.proven = read.size.get();
                Ok(())
            }
            ConsistencyResult::Unanswered(error) => {
                let why = format!("proof of the leaves up to size {}: {error}", read.size);
                Err(AuditStop::Audit(SourceError::Unavailable(why).into()))
            }
            _ => Err(AuditStop::OtherTree(read.size)),
        }
    }
}

impl Deadlines {
    /// Half of the grace is reserved for the evidence.
    fn new(at_most: Option<Duration>, grace: Duration) -> Self {
        let now = tokio::time::Instant::now();
        Self {
            reading: at_most.map(|most| now + most + grace / 2),
            evidence: at_most.map(|most| now + most + grace),
        }
    }
}

/// Completes `work` until the deadline; `None` if that is too late.
async fn within<T>(deadline: Option<tokio::time::Instant>, work: impl Future<Output = T>) -> Option<T> {
    match deadline {
        Some(deadline) => tokio::time::timeout_at(deadline, work).await.ok(),
        None => Some(work.await),
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
