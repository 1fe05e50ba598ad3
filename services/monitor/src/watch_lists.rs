//! Watch lists: alarms about the entries of selected issuers, agents and subjects.
//!
//! An entry concerns a list if its `iss`, its `sub`, or the agent in its facts is on the list. The alarms:
//!
//! * **unknown key**: the list names keys of the issuer, and the statement's `kid` is not among them;
//! * **chain fork**: two entries of one issuer about one subject have the same predecessor or the same position in the
//!   chain; first receipts have position 0;
//! * **gap**: a position of a chain or a number of a stream, from 0 to the largest on the log, is missing for longer
//!   than the log's `lag`;
//! * **open decision**: a gateway permitted a call, and its outcome is not on the log after `outcome_within`;
//! * **unclosed stream**: a stream of audit records is not closed, and nothing was added to it for longer than
//!   `closed_within`, if that is set;
//! * **verdict flip**: an object got a verdict different from the one before. An object is, under one subject, an
//!   output (`output_hash` of a VRF receipt) or an audit record (`audit_ref` of a VAP verdict);
//! * **refused**: the log reports that it refused a statement which conflicts with an entry of the same issuer, and the
//!   issuer's own signatures prove it; reported as a chain fork;
//! * **silence**: no entry was committed for longer than `silence`, by the log's times and the monitor's clock.
//!
//! The position of an erased entry is unknown: for each erased entry, one missing number and one open decision are
//! tolerated.
//!
//! All facts are read from statements that the audit has authenticated without findings; commit times are the log's
//! word. A list added later starts at the next leaf: numbers before that are not a gap. If the memory is lost or older
//! than the audit's state, both start over, and the lists are not checked until they have seen all entries.

mod facts;
mod memory;
mod recording_source;
mod refused_statements;
mod streams;

use merkle::LeafIndex;

use crate::alarm::{Alarm, AlarmKind, AlarmSubject};
use crate::check_name::CheckName;
use crate::config::{Watch, WatchedLog, Who};
use crate::limits::{MAX_NAMED, MAX_STATE_BYTES};
use crate::round_results::RoundResults;
use crate::state::{LogFolder, MonitorStateError};

use facts::{EntryPosition, WatchedFacts};
use memory::{ChangeMark, MissingNumber, OtherVerdict, WatchMemory};
pub use recording_source::RecordingSource;
pub use refused_statements::complete_evidence;
use streams::{DecisionWithoutOutcome, UnclosedStream};

/// File of the memory in the log's folder.
const FILE: &str = "watch.json";

/// Earlier entries that conflict with an entry.
struct EntryConflicts {
    /// An entry with the same predecessor or position in the chain.
    same_position: Option<EntryPosition>,
    /// An entry with another verdict on the same object.
    other_verdict: Option<OtherVerdict>,
}

/// Reasons for which the log's reports of refused statements were not all read.
#[derive(Debug)]
pub enum UnreadReports {
    /// The log does not serve them; with the reason.
    Failed(String),
    /// The time limit of the round was reached.
    OutOfTime,
}

/// The watch lists of a log: their memory, and their alarms.
pub struct WatchLists {
    memory: WatchMemory,
    /// Number of alarms beyond `MAX_NAMED` of one kind and party.
    omitted: usize,
    /// Mark of the last saved memory.
    saved: Option<ChangeMark>,
    now: u64,
}

impl WatchLists {
    /// Loads the memory; an empty one if it does not exist or has another format version.
    pub fn load(folder: &LogFolder, now: u64) -> Result<Self, MonitorStateError> {
        let unreadable = |why: serde_json::Error| MonitorStateError::Unreadable {
            path: folder.file(FILE),
            why: why.to_string(),
        };
        let (memory, saved) = match folder.read(FILE)? {
            Some(bytes) => {
                let memory: WatchMemory = serde_json::from_slice(&bytes).map_err(unreadable)?;
                let mark = memory.mark();
                match memory.has_current_version() {
                    true => (memory, Some(mark)),
                    false => (WatchMemory::new(now), None),
                }
            }
            None => (WatchMemory::new(now), None),
        };
        Ok(Self { memory, omitted: 0, saved, now })
    }

    /// Removes the findings after the sink has saved them: until then every round reports them again.
    pub fn mark_reported(folder: &LogFolder, now: u64) -> Result<(), MonitorStateError> {
        let mut lists = Self::load(folder, now)?;
        if !lists.memory.unreported.is_empty() {
            lists.memory.unreported.clear();
            lists.save(folder)?;
        }
        Ok(())
    }

    /// The next leaf to observe.
    pub fn next(&self) -> u64 {
        self.memory.next
    }

    /// Returns `true` if the audit is ahead of the watch lists, and there is a list.
    pub fn is_behind(&self, target: &WatchedLog, audited: u64) -> bool {
        !target.watches.is_empty() && self.memory.next < audited
    }

    /// Saves the memory if it has changed. Once `Ok`, it survives power loss and fits into [`MAX_STATE_BYTES`].
    pub fn save(&mut self, folder: &LogFolder) -> Result<(), MonitorStateError> {
        let mark = self.memory.mark();
        if self.saved != Some(mark) {
            folder.write(FILE, &self.memory.encode(MAX_STATE_BYTES as usize))?;
            self.saved = Some(mark);
        }
        Ok(())
    }

    /// Processes audited entries in order. Entries for which `agrees` returns `false` raise no alarm: the audit found that
    /// they differ from the log's description, and only that connects them to an issuer.
    pub fn observe(
        &mut self,
        target: &WatchedLog,
        entries: Vec<audit::EntryEvidence>,
        agrees: impl Fn(LeafIndex) -> bool,
    ) {
        for watch in &target.watches {
            self.memory.watch_from_here(&AlarmSubject::from(&watch.who).to_string(), self.now);
        }
        for entry in entries {
            self.memory.next = entry.index.get() + 1;
            self.memory.erased += u64::from(entry.statement.is_none());
            let Some(facts) = WatchedFacts::of(&entry) else { continue };
            if !agrees(entry.index) {
                for watch in target.watches.iter().filter(|watch| facts.concern(&watch.who)) {
                    self.memory.mark_present(&AlarmSubject::from(&watch.who).to_string(), &facts);
                }
                continue;
            }
            let lists: Vec<_> = target.watches.iter().filter(|watch| facts.concern(&watch.who)).collect();
            if lists.is_empty() {
                continue;
            }
            let conflicts = EntryConflicts {
                same_position: self.memory.claim_chain_position(&facts),
                other_verdict: self.memory.record_verdict(&facts),
            };
            for watch in lists {
                self.observe_entry(target, watch, &facts, &conflicts);
            }
        }
    }

    /// Processes an entry for a list.
    fn observe_entry(
        &mut self,
        target: &WatchedLog,
        watch: &Watch,
        facts: &WatchedFacts,
        conflicts: &EntryConflicts,
    ) {
        let about = AlarmSubject::from(&watch.who);
        self.memory.record_time(&about.to_string(), facts.at.unwrap_or(self.now).min(self.now));
        if !watch.keys.is_empty() && !facts.kid.as_ref().is_some_and(|kid| watch.keys.contains(kid)) {
            let kid = facts.kid.as_deref().unwrap_or("none");
            let words = format!("leaf {}: its kid is {kid}, which is not on the list", facts.leaf);
            self.alarm(target, AlarmKind::UnknownIssuerKey, &about, words, facts, None);
        }
        if let Some(other) = &conflicts.same_position {
            let words =
                format!("leaf {}: has the same position in its chain as leaf {}", facts.leaf, other.leaf);
            self.alarm(target, AlarmKind::ChainFork, &about, words, facts, Some(other));
        }
        if let Some(OtherVerdict { entry: other, verdict: before }) = &conflicts.other_verdict {
            let verdict = facts.verdict.as_deref().unwrap_or_default();
            let words = format!(
                "leaf {}: the verdict is {verdict}, and that of leaf {} on the same object was {before}",
                facts.leaf, other.leaf
            );
            self.alarm(target, AlarmKind::VerdictFlip, &about, words, facts, Some(other));
        }
        let list = about.to_string();
        self.memory.follow_chain(&list, facts, self.now);
        // An outcome names no agent, so an agent's list sees only a part of a stream.
        if !matches!(watch.who, Who::Agent(_)) {
            self.memory.follow_stream(&list, facts, self.now);
        }
    }

    fn alarm(
        &mut self,
        target: &WatchedLog,
        kind: AlarmKind,
        about: &AlarmSubject,
        words: String,
        facts: &WatchedFacts,
        other: Option<&EntryPosition>,
    ) {
        let evidence = facts.evidence(other);
        let alarm = Alarm::new(kind, &target.name, about.clone(), words, self.now);
        self.add(Alarm { evidence: Some(evidence), ..alarm.which(facts.entry.clone()) });
    }

    /// Records an alarm, unless there are `MAX_NAMED` of its kind and party already.
    fn add(&mut self, alarm: Alarm) {
        let alike = |other: &&Alarm| other.kind == alarm.kind && other.about == alarm.about;
        match self.memory.unreported.iter().filter(alike).count() < MAX_NAMED {
            true => self.memory.unreported.push(alarm),
            false => self.omitted += 1,
        }
    }

    /// The alarms that the sink has not saved yet.
    pub fn into_unreported(self) -> Vec<Alarm> {
        self.memory.unreported
    }

    /// Records the check [`CheckName::WatchLists`] and all current alarms, after all entries were read. Silence depends on
    /// the entries alone, so that the check counts as made also if reports are unread or the memory is full.
    pub fn record(
        self,
        target: &WatchedLog,
        results: &mut RoundResults,
        unread_reports: Option<&UnreadReports>,
    ) {
        if target.watches.is_empty() {
            results.not_checked(CheckName::WatchLists, "no watch list is configured");
            return;
        }
        results.count_as_made(CheckName::WatchLists);
        let Self { memory, omitted, now, .. } = self;
        let mut alarms = memory.unreported.clone();
        for watch in &target.watches {
            alarms.extend(memory.standing_alarms(target, watch, now));
        }
        let lists = target.watches.len();
        match unread_reports {
            Some(UnreadReports::Failed(why)) => {
                results.unanswered(CheckName::WatchLists, format!("reports of refused statements: {why}"));
            }
            Some(UnreadReports::OutOfTime) => results
                .not_checked(CheckName::WatchLists, "reports: out of time, the rest in the next rounds"),
            None => {}
        }
        match (alarms.len(), memory.is_full()) {
            (0, _) if unread_reports.is_some() => {}
            (0, false) => {
                results.ok(CheckName::WatchLists, format!("lists: {lists}, entries seen: {}", memory.next))
            }
            (0, true) => results.not_checked(
                CheckName::WatchLists,
                "more positions and verdicts than the memory holds: not all are compared",
            ),
            (count, _) => {
                let words = format!("alarms: {count}, not listed: {omitted}");
                results.failed(CheckName::WatchLists, words);
            }
        }
        results.alarms.append(&mut alarms);
    }
}

impl WatchMemory {
    /// Alarms that follow from a list's numbers and times at `now`.
    fn standing_alarms(&self, target: &WatchedLog, watch: &Watch, now: u64) -> Vec<Alarm> {
        let (about, mut found) = (AlarmSubject::from(&watch.who), Vec::new());
        let name = about.to_string();
        let erased = usize::try_from(self.erased).unwrap_or(usize::MAX);
        // The position of an erased entry is unknown: tolerate as many missing numbers and open decisions as erased
        // entries.
        let missing = self.missing(&name).nth(erased).map(|_| self.missing(&name));
        for MissingNumber { sequence, number, since } in missing.into_iter().flatten().take(MAX_NAMED) {
            if now.saturating_sub(since) >= target.lag.as_secs() {
                let words = format!("{sequence}: number {number} is missing, but later ones are on the log");
                let alarm = Alarm::new(AlarmKind::Gap, &target.name, about.clone(), words, now);
                found.push(alarm.which(format!("{sequence} {number}")));
            }
        }
        if let Some(streams) = self.streams(&name) {
            let open = || streams.open(now.saturating_sub(watch.outcome_within.as_secs()));
            let open = open().nth(erased).map(|_| open());
            for DecisionWithoutOutcome { stream, decision, since } in
                open.into_iter().flatten().take(MAX_NAMED)
            {
                let words =
                    format!("{stream}: decision {decision}, committed at {since}, has no outcome on the log");
                let alarm = Alarm::new(AlarmKind::OpenDecision, &target.name, about.clone(), words, now);
                found.push(alarm.which(decision));
            }
            let limit = watch.closed_within.map(|limit| now.saturating_sub(limit.as_secs()));
            let unclosed = limit.map(|before| streams.unclosed(before)).into_iter().flatten();
            for UnclosedStream { stream, newest } in unclosed.take(MAX_NAMED) {
                let words = format!("{stream}: not closed, and without a new record since {newest}");
                let alarm = Alarm::new(AlarmKind::UnclosedStream, &target.name, about.clone(), words, now);
                found.push(alarm.which(stream));
            }
        }
        let silent = now.saturating_sub(self.last_entry_time(&name));
        if watch.silence.is_some_and(|limit| silent > limit.as_secs()) {
            let words = format!("no entry on the log for {silent} s");
            let alarm = Alarm::new(AlarmKind::Silence, &target.name, about, words, now);
            found.push(alarm.found_by(CheckName::WatchLists));
        }
        found
    }
}

impl From<&Who> for AlarmSubject {
    fn from(who: &Who) -> Self {
        match who {
            Who::Issuer(name) => Self::Issuer(name.clone()),
            Who::Agent(name) => Self::Agent(name.clone()),
            Who::Subject(name) => Self::Subject(name.clone()),
        }
    }
}

#[cfg(test)]
mod tests;
