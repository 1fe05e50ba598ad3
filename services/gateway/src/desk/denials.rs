//! Denials that have no record of their own: how many, why, and since when. They are recorded together, once a minute.
//!
//! Under load a record for each would be more of what there is too much of, and callers of whom nobody knows who they are could
//! fill the log. What a process counted and had not recorded when it died is lost.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use admission::reason::Reason;

use crate::limits::{COUNTED_STREAMS, DENIALS_EVERY, STRANGERS_RECORDS};

/// What was counted since it was recorded last.
#[derive(Debug, Default)]
pub struct Denials(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    counted: HashMap<String, Counted>,
    /// When the minute of strangers' records began, in Unix seconds, and how many there were.
    strangers: (u64, u32),
}

/// What was denied in one stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    /// Since when, in milliseconds since the Unix epoch.
    pub since: u64,
    /// How often for each reason.
    pub denied: BTreeMap<Reason, u64>,
}

impl Denials {
    /// Counts a denial in a stream, or in the gateway's `own` if too many are counted apart.
    pub fn count(&self, stream: &str, own: &str, reason: Reason, now: u64) {
        let counted = &mut self.lock().counted;
        let is_apart = counted.contains_key(stream) || counted.len() < COUNTED_STREAMS;
        let stream = if is_apart { stream } else { own };
        let counted = counted
            .entry(stream.to_owned())
            .or_insert_with(|| Counted { since: now, denied: BTreeMap::new() });
        *counted.denied.entry(reason).or_default() += 1;
    }

    /// All that was counted, which begins anew.
    pub fn take(&self) -> HashMap<String, Counted> {
        std::mem::take(&mut self.lock().counted)
    }

    /// Whether the denial of a stranger has a record of its own: a few have, each minute.
    pub fn takes_a_stranger(&self, now: u64) -> bool {
        let (since, records) = &mut self.lock().strangers;
        if now.saturating_sub(*since) >= DENIALS_EVERY.as_secs() {
            (*since, *records) = (now, 0);
        }
        *records = records.saturating_add(1);
        *records <= STRANGERS_RECORDS
    }

    /// Whether the denial of a stranger would have a record of its own now.
    pub fn has_room_for_a_stranger(&self, now: u64) -> bool {
        let (since, records) = self.lock().strangers;
        now.saturating_sub(since) >= DENIALS_EVERY.as_secs() || records < STRANGERS_RECORDS
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
