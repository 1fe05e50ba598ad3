//! Watch lists: what issuers, agents and subjects do on the log, entry by entry.
//!
//! An entry concerns a list if its `iss`, its `sub` or the agent that its facts name is the list's. For those:
//!
//! * **unknown key**: the issuer's list names keys, and the statement's `kid` is none of them;
//! * **chain fork**: two entries of one issuer about one subject follow the same receipt, or take the same position of the
//!   chain; two first receipts take position 0;
//! * **gap**: a chain's position, or a stream's number, between the first and the last that are on the log is missing for longer
//!   than the log's `lag`; a chain's first is 0, a stream's is the first that was seen;
//! * **verdict flip**: the same thing was judged otherwise than before. The same thing is, under one subject: the same
//!   output (`output_hash` of a VRF receipt), or else the same message or session that a VAP verdict answers;
//! * **silence**: nothing was committed for longer than the list allows, by the log's times and this machine's clock.
//!
//! All of it is read from statements that the audit has authenticated; when they were committed is the log's word.

mod facts;
mod memory;
mod tap;

use crate::alarm::{About, Alarm, AlarmKind};
use crate::book::Book;
use crate::config::{Target, Watch, Who};
use crate::limits::MAX_NAMED;
use crate::round::CheckName;
use crate::state::{LogFolder, StateError};

use facts::Facts;
use memory::Memory;
pub use tap::Tap;

/// Where the memory is.
const FILE: &str = "watch.json";

/// What the watch lists remember, and what they found in this round.
pub struct Watching {
    memory: Memory,
    found: Vec<Alarm>,
    now: u64,
}

impl Watching {
    /// Goes on from what is remembered.
    pub fn load(folder: &LogFolder, now: u64) -> Result<Self, StateError> {
        let unreadable =
            |why: serde_json::Error| StateError::Unreadable { path: folder.file(FILE), why: why.to_string() };
        let memory = match folder.read(FILE)? {
            Some(bytes) => serde_json::from_slice(&bytes).map_err(unreadable)?,
            None => Memory::begun(now),
        };
        Ok(Self { memory, found: Vec::new(), now })
    }

    /// The next leaf to see.
    pub fn next(&self) -> u64 {
        self.memory.next
    }

    /// Remembers. Once `Ok`, it survives power loss.
    pub fn keep(&self, folder: &LogFolder) -> Result<(), StateError> {
        folder.write(FILE, &serde_json::to_vec(&self.memory).unwrap_or_default())
    }

    /// Sees entries that were read, in order.
    pub fn observe(&mut self, target: &Target, entries: Vec<audit::Evidence>) {
        for entry in entries {
            self.memory.next = entry.index.get() + 1;
            let Some(facts) = Facts::of(&entry) else { continue };
            for watch in target.watches.iter().filter(|watch| facts.concern(&watch.who)) {
                self.one(target, watch, &facts);
            }
        }
    }

    /// An entry that concerns a list.
    fn one(&mut self, target: &Target, watch: &Watch, facts: &Facts) {
        let about = About::from(&watch.who);
        self.memory.heard(&about.to_string(), facts.at.unwrap_or(self.now).min(self.now));
        let mut alarm = |kind, words: String| {
            let named = self.found.iter().filter(|alarm| alarm.kind == kind && alarm.about == about).count();
            if named < MAX_NAMED {
                let alarm = Alarm::new(kind, &target.name, about.clone(), words, self.now);
                self.found
                    .push(Alarm { evidence: Some(facts.evidence()), ..alarm.which(facts.entry.clone()) });
            }
        };
        if !watch.keys.is_empty() && !facts.kid.as_ref().is_some_and(|kid| watch.keys.contains(kid)) {
            let kid = facts.kid.as_deref().unwrap_or("none");
            alarm(
                AlarmKind::UnknownIssuerKey,
                format!("leaf {}: its kid is {kid}, which is not on the list", facts.leaf),
            );
        }
        if let Some(other) = self.memory.claims(facts) {
            alarm(
                AlarmKind::ChainFork,
                format!("leaf {}: takes the place in its chain that entry {other} has taken", facts.leaf),
            );
        }
        if let Some((other, before)) = self.memory.judged(facts) {
            let verdict = facts.verdict.as_deref().unwrap_or_default();
            alarm(
                AlarmKind::VerdictFlip,
                format!(
                    "leaf {}: judged {verdict}, and entry {other} judged the same thing {before}",
                    facts.leaf
                ),
            );
        }
        self.memory.number(&about.to_string(), facts, self.now);
    }

    /// What is wrong by now.
    pub fn judge(self, target: &Target, book: &mut Book) {
        if target.watches.is_empty() {
            book.not_checked(CheckName::WatchLists, "nobody is on a watch list");
            return;
        }
        let Self { memory, mut found, now } = self;
        for watch in &target.watches {
            let about = About::from(&watch.who);
            let name = about.to_string();
            for (sequence, number, since) in memory.missing(&name).take(MAX_NAMED) {
                if now.saturating_sub(since) >= target.lag.as_secs() {
                    let words =
                        format!("{sequence}: number {number} is missing, and later ones are on the log");
                    let alarm = Alarm::new(AlarmKind::Gap, &target.name, about.clone(), words, now);
                    found.push(alarm.which(format!("{sequence} {number}")));
                }
            }
            let silent = now.saturating_sub(memory.last_heard(&name));
            if watch.silence.is_some_and(|limit| silent > limit.as_secs()) {
                let words = format!("nothing on the log for {silent} s");
                found.push(Alarm::new(AlarmKind::Silence, &target.name, about, words, now));
            }
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
            (count, _) => book.failed(CheckName::WatchLists, format!("{count} alarms")),
        }
        book.alarms.append(&mut found);
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
