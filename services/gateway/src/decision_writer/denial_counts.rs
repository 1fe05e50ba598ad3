//! Denials without a record of their own: counted by stream and reason, and recorded together once a minute.
//!
//! One record for each denial would make an overload worse, and unidentified callers could fill the log. Counts that a
//! process had not recorded when it died are lost.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use vap::reason::Reason;

use crate::limits::{COUNTED_STREAMS, DENIALS_EVERY, UNIDENTIFIED_RECORDS};

/// The denials counted since they were recorded last.
#[derive(Debug, Default)]
pub struct DenialCounts(Mutex<DenialCountsState>);

#[derive(Debug, Default)]
struct DenialCountsState {
    counted: HashMap<String, CountedDenials>,
    /// Start of the current period of recorded denials of unidentified callers, in Unix seconds, and their number.
    unidentified: (u64, u32),
}

/// The denials counted in one stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountedDenials {
    /// Time of the first one, in milliseconds since the Unix epoch.
    pub since: u64,
    /// Number of denials by reason.
    pub denied: BTreeMap<Reason, u64>,
}

impl DenialCounts {
    /// Counts a denial in `stream`, or in the gateway's `own` if [`COUNTED_STREAMS`] others have counts already.
    pub fn count(&self, stream: &str, own: &str, reason: Reason, now: u64) {
        let counted = &mut self.lock().counted;
        let is_apart = counted.contains_key(stream) || counted.len() < COUNTED_STREAMS;
        let stream = if is_apart { stream } else { own };
        let counted = counted
            .entry(stream.to_owned())
            .or_insert_with(|| CountedDenials { since: now, denied: BTreeMap::new() });
        *counted.denied.entry(reason).or_default() += 1;
    }

    /// Takes all counts, and starts anew.
    pub fn take(&self) -> HashMap<String, CountedDenials> {
        std::mem::take(&mut self.lock().counted)
    }

    /// Returns whether the denial of an unidentified caller gets a record of its own, and counts it: the first
    /// [`UNIDENTIFIED_RECORDS`] in each period of [`DENIALS_EVERY`] do.
    pub fn records_unidentified(&self, now: u64) -> bool {
        let (since, records) = &mut self.lock().unidentified;
        if now.saturating_sub(*since) >= DENIALS_EVERY.as_secs() {
            (*since, *records) = (now, 0);
        }
        *records = records.saturating_add(1);
        *records <= UNIDENTIFIED_RECORDS
    }

    /// Returns what [`records_unidentified`](Self::records_unidentified) would return now, without counting.
    pub fn can_record_unidentified(&self, now: u64) -> bool {
        let (since, records) = self.lock().unidentified;
        now.saturating_sub(since) >= DENIALS_EVERY.as_secs() || records < UNIDENTIFIED_RECORDS
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, DenialCountsState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
