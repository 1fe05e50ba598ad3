//! Watch lists: what issuers, agents and subjects do on the log, entry by entry.
//!
//! An entry concerns a list if its `iss`, its `sub` or the agent that its facts name is the list's. For those:
//!
//! * **unknown key**: the issuer's list names keys, and the statement's `kid` is none of them;
//! * **chain fork**: two entries of one issuer about one subject follow the same receipt, or take the same position of the
//!   chain; two first receipts take position 0;
//! * **gap**: a chain's position, or a stream's number, from 0 to the last that is on the log is missing for longer than the
//!   log's `lag`;
//! * **open decision**: a gateway let a call pass, and what came of it is not on the log after `outcome_within`;
//! * **unclosed stream**: a stream of audit records does not say that it has ended, and nothing was added to it for longer than
//!   `closed_within`, if that is set;
//! * **verdict flip**: the same thing was judged otherwise than before. The same thing is, under one subject: the same
//!   output (`output_hash` of a VRF receipt), or the same audit record (`audit_ref` of a VAP verdict);
//! * **refused**: the log reports that it refused a statement which goes against an entry of the same issuer, and the issuer's
//!   own signatures show it: a chain fork too;
//! * **silence**: nothing was committed for longer than the list allows, by the log's times and this machine's clock.
//!
//! Of an entry that was erased nobody can say where it stood: as many missing numbers and open decisions as there are such
//! entries accuse nobody.
//!
//! All of it is read from statements that the audit has authenticated and found nothing against; when they were committed is
//! the log's word. A list that is added later watches from then on: what is missing before is no gap. Where the memory is lost,
//! or older than the audit's state, both begin again, and the lists are not checked until they have seen everything.

mod facts;
mod memory;
mod reports;
mod streams;
mod tap;

use merkle::LeafIndex;

use crate::alarm::{About, Alarm, AlarmKind};
use crate::book::Book;
use crate::config::{Target, Watch, Who};
use crate::limits::{MAX_NAMED, MAX_STATE_BYTES};
use crate::round::CheckName;
use crate::state::{LogFolder, StateError};

use facts::{Facts, Place};
use memory::{Mark, Memory};
pub use reports::complete;
pub use tap::Tap;

/// Where the memory is.
const FILE: &str = "watch.json";

/// What the watch lists remember, and what they found in this round.
pub struct Watching {
    memory: Memory,
    /// Alarms that are not listed: there are many of their kind and name.
    omitted: usize,
    /// What of it is written down.
    kept: Option<Mark>,
    now: u64,
}

impl Watching {
    /// Goes on from what is remembered.
    pub fn load(folder: &LogFolder, now: u64) -> Result<Self, StateError> {
        let unreadable =
            |why: serde_json::Error| StateError::Unreadable { path: folder.file(FILE), why: why.to_string() };
        let (memory, kept) = match folder.read(FILE)? {
            Some(bytes) => {
                let memory: Memory = serde_json::from_slice(&bytes).map_err(unreadable)?;
                let mark = memory.mark();
                match memory.is_of_this_form() {
                    true => (memory, Some(mark)),
                    false => (Memory::begun(now), None),
                }
            }
            None => (Memory::begun(now), None),
        };
        Ok(Self { memory, omitted: 0, kept, now })
    }

    /// Forgets what was found, once somebody was told: until then it is found again in every round.
    pub fn told(folder: &LogFolder, now: u64) -> Result<(), StateError> {
        let mut watching = Self::load(folder, now)?;
        if !watching.memory.untold.is_empty() {
            watching.memory.untold.clear();
            watching.keep(folder)?;
        }
        Ok(())
    }

    /// The next leaf to see.
    pub fn next(&self) -> u64 {
        self.memory.next
    }

    /// Whether entries that were audited were never seen here, and somebody is watched.
    pub fn is_behind(&self, target: &Target, audited: u64) -> bool {
        !target.watches.is_empty() && self.memory.next < audited
    }

    /// Remembers, if there is anything new. Once `Ok`, it survives power loss, and can be read again.
    pub fn keep(&mut self, folder: &LogFolder) -> Result<(), StateError> {
        let mark = self.memory.mark();
        if self.kept != Some(mark) {
            folder.write(FILE, &self.memory.encode(MAX_STATE_BYTES as usize))?;
            self.kept = Some(mark);
        }
        Ok(())
    }

    /// Sees entries that were read, in order. Those that are not as told accuse nobody: it is the log that tells them so.
    pub fn observe(
        &mut self,
        target: &Target,
        entries: Vec<audit::Evidence>,
        is_as_told: impl Fn(LeafIndex) -> bool,
    ) {
        for watch in &target.watches {
            self.memory.watch_from_here(&About::from(&watch.who).to_string(), self.now);
        }
        for entry in entries {
            self.memory.next = entry.index.get() + 1;
            self.memory.erased += u64::from(entry.statement.is_none());
            let Some(facts) = Facts::of(&entry) else { continue };
            if !is_as_told(entry.index) {
                for watch in target.watches.iter().filter(|watch| facts.concern(&watch.who)) {
                    self.memory.excuse(&About::from(&watch.who).to_string(), &facts);
                }
                continue;
            }
            let lists: Vec<_> = target.watches.iter().filter(|watch| facts.concern(&watch.who)).collect();
            if lists.is_empty() {
                continue;
            }
            let (taken, otherwise) = (self.memory.claims(&facts), self.memory.judged(&facts));
            for watch in lists {
                self.one(target, watch, &facts, taken.as_ref(), otherwise.as_ref());
            }
        }
    }

    /// An entry that concerns a list: who has its place in the chain, and who judged the same thing otherwise.
    fn one(
        &mut self,
        target: &Target,
        watch: &Watch,
        facts: &Facts,
        taken: Option<&Place>,
        otherwise: Option<&(Place, String)>,
    ) {
        let about = About::from(&watch.who);
        self.memory.heard(&about.to_string(), facts.at.unwrap_or(self.now).min(self.now));
        if !watch.keys.is_empty() && !facts.kid.as_ref().is_some_and(|kid| watch.keys.contains(kid)) {
            let kid = facts.kid.as_deref().unwrap_or("none");
            let words = format!("leaf {}: its kid is {kid}, which is not on the list", facts.leaf);
            self.alarm(target, AlarmKind::UnknownIssuerKey, &about, words, facts, None);
        }
        if let Some(other) = taken {
            let words = format!(
                "leaf {}: takes the place in its chain that leaf {} has taken",
                facts.leaf, other.leaf
            );
            self.alarm(target, AlarmKind::ChainFork, &about, words, facts, Some(other));
        }
        if let Some((other, before)) = otherwise {
            let verdict = facts.verdict.as_deref().unwrap_or_default();
            let words = format!(
                "leaf {}: judged {verdict}, and leaf {} judged the same thing {before}",
                facts.leaf, other.leaf
            );
            self.alarm(target, AlarmKind::VerdictFlip, &about, words, facts, Some(other));
        }
        let list = about.to_string();
        self.memory.follow_chain(&list, facts, self.now);
        // An outcome names no agent: an agent's list sees a part of a stream only.
        if !matches!(watch.who, Who::Agent(_)) {
            self.memory.follow_stream(&list, facts, self.now);
        }
    }

    fn alarm(
        &mut self,
        target: &Target,
        kind: AlarmKind,
        about: &About,
        words: String,
        facts: &Facts,
        other: Option<&Place>,
    ) {
        let evidence = facts.evidence(other);
        let alarm = Alarm::new(kind, &target.name, about.clone(), words, self.now);
        self.found(Alarm { evidence: Some(evidence), ..alarm.which(facts.entry.clone()) });
    }

    /// One more, unless there are many of its kind and name.
    fn found(&mut self, alarm: Alarm) {
        let alike = |other: &&Alarm| other.kind == alarm.kind && other.about == alarm.about;
        match self.memory.untold.iter().filter(alike).count() < MAX_NAMED {
            true => self.memory.untold.push(alarm),
            false => self.omitted += 1,
        }
    }

    /// What was found and nobody was told of.
    pub fn into_found(self) -> Vec<Alarm> {
        self.memory.untold
    }

    /// What is wrong by now.
    pub fn judge(self, target: &Target, book: &mut Book) {
        if target.watches.is_empty() {
            book.not_checked(CheckName::WatchLists, "nobody is on a watch list");
            return;
        }
        let Self { memory, omitted, now, .. } = self;
        let mut found = memory.untold.clone();
        for watch in &target.watches {
            found.extend(memory.standing(target, watch, now));
        }
        let lists = target.watches.len();
        match (found.len(), memory.is_full()) {
            (0, false) => {
                book.ok(CheckName::WatchLists, format!("{lists} lists, {} entries seen", memory.next))
            }
            (0, true) => book.not_checked(
                CheckName::WatchLists,
                "more claims and verdicts than can be remembered: not all are compared",
            ),
            (count, _) => {
                let words = format!("{count} alarms, {omitted} more not listed");
                book.failed(CheckName::WatchLists, words);
            }
        }
        book.alarms.append(&mut found);
    }
}

impl Memory {
    /// What a list's numbers and times say by now.
    fn standing(&self, target: &Target, watch: &Watch, now: u64) -> Vec<Alarm> {
        let (about, mut found) = (About::from(&watch.who), Vec::new());
        let name = about.to_string();
        let erased = usize::try_from(self.erased).unwrap_or(usize::MAX);
        // What was erased says no more where it stood: no more than so many numbers and outcomes may be among it.
        let missing = self.missing(&name).nth(erased).map(|_| self.missing(&name));
        for (sequence, number, since) in missing.into_iter().flatten().take(MAX_NAMED) {
            if now.saturating_sub(since) >= target.lag.as_secs() {
                let words = format!("{sequence}: number {number} is missing, and later ones are on the log");
                let alarm = Alarm::new(AlarmKind::Gap, &target.name, about.clone(), words, now);
                found.push(alarm.which(format!("{sequence} {number}")));
            }
        }
        if let Some(streams) = self.streams(&name) {
            let open = || streams.open(now.saturating_sub(watch.outcome_within.as_secs()));
            let open = open().nth(erased).map(|_| open());
            for (stream, decision, since) in open.into_iter().flatten().take(MAX_NAMED) {
                let words = format!("{stream}: decision {decision} of {since} has no outcome on the log");
                let alarm = Alarm::new(AlarmKind::OpenDecision, &target.name, about.clone(), words, now);
                found.push(alarm.which(decision));
            }
            let limit = watch.closed_within.map(|limit| now.saturating_sub(limit.as_secs()));
            let unclosed = limit.map(|before| streams.unclosed(before)).into_iter().flatten();
            for (stream, newest) in unclosed.take(MAX_NAMED) {
                let words = format!("{stream}: it has not ended, and nothing was added to it since {newest}");
                let alarm = Alarm::new(AlarmKind::UnclosedStream, &target.name, about.clone(), words, now);
                found.push(alarm.which(stream));
            }
        }
        let silent = now.saturating_sub(self.last_heard(&name));
        if watch.silence.is_some_and(|limit| silent > limit.as_secs()) {
            let words = format!("nothing on the log for {silent} s");
            found.push(Alarm::new(AlarmKind::Silence, &target.name, about, words, now));
        }
        found
    }
}

impl From<&Who> for About {
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
