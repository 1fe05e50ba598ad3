//! Results of the index check: counts, and alarms that the sink has not saved yet.

use serde::{Deserialize, Serialize};

use crate::alarm::Alarm;
use crate::check_name::CheckName;
use crate::limits::MAX_NAMED;
use crate::round::IndexHeads;
use crate::round_results::RoundResults;
use crate::state::{LogFolder, MonitorStateError};

/// File of the results in the log's folder.
const FILE: &str = "index.json";

/// Results of the check, stored with its state.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct IndexResults {
    /// Counts of heads.
    pub heads: IndexHeads,
    /// Alarms that the sink has not saved.
    #[serde(rename = "found")]
    unreported: Vec<Alarm>,
}

impl IndexResults {
    /// Loads the results; empty ones if there is no file.
    pub fn load(folder: &LogFolder) -> Result<Self, MonitorStateError> {
        let Some(bytes) = folder.read(FILE)? else { return Ok(Self::default()) };
        serde_json::from_slice(&bytes)
            .map_err(|why| MonitorStateError::Unreadable { path: folder.file(FILE), why: why.to_string() })
    }

    /// Saves the results. Once `Ok`, they survive power loss.
    pub fn save(&self, folder: &LogFolder) -> Result<(), MonitorStateError> {
        folder.write(FILE, &serde_json::to_vec(self).unwrap_or_default())
    }

    /// Removes the alarms after the sink has saved them.
    pub fn mark_reported(folder: &LogFolder) -> Result<(), MonitorStateError> {
        let mut results = Self::load(folder)?;
        if results.unreported.is_empty() {
            return Ok(());
        }
        results.unreported.clear();
        results.save(folder)
    }

    /// Adds an alarm, unless one of the same identity waits, or `MAX_NAMED` of its kind.
    pub fn add(&mut self, alarm: Alarm) {
        let key = alarm.key();
        let alike = self.unreported.iter().filter(|other| other.kind == alarm.kind);
        if alike.clone().all(|other| other.key() != key) && alike.count() < MAX_NAMED {
            self.unreported.push(alarm);
        }
    }

    /// Returns `true` if evidence for an alarm with this `which` is worth a search: none waits so far, and fewer than
    /// `MAX_NAMED` of all alarms.
    pub fn wants(&self, which: &str) -> bool {
        self.unreported.len() < MAX_NAMED && self.unreported.iter().all(|alarm| alarm.which != which)
    }

    /// The alarms that the sink has not saved yet.
    pub fn into_unreported(self) -> Vec<Alarm> {
        self.unreported
    }

    /// Records the check [`CheckName::Index`] and the alarms.
    pub fn record(self, results: &mut RoundResults) {
        results.index = Some(self.heads.clone());
        let IndexHeads { right, wrong, uncompared, other_table, newest, why_uncompared } = self.heads;
        match (right, wrong, uncompared) {
            _ if !self.unreported.is_empty() => {
                results.failed(CheckName::Index, format!("wrong heads: {wrong}, right ones: {right}"));
            }
            (0, 0, 0) if other_table > 0 => {
                let words = format!("heads under an unknown table of terms: {other_table}");
                results.not_checked(CheckName::Index, words);
            }
            (0, 0, 0) => results.not_checked(CheckName::Index, "the log has no heads of its index so far"),
            (0, _, _) => {
                results.not_checked(CheckName::Index, why_uncompared.unwrap_or("no head is right".into()))
            }
            _ => {
                let words = format!("heads computed again: {right}, the newest of size {newest}");
                results.ok(CheckName::Index, words);
            }
        }
        results.alarms.extend(self.unreported);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alarm::{AlarmKind, AlarmSubject};

    fn alarm(which: &str) -> Alarm {
        Alarm::new(AlarmKind::IndexDiffers, "ours", AlarmSubject::Log, "other runs", 1).which(which)
    }

    #[test]
    fn evidence_is_searched_once_for_a_run_and_for_no_more_runs_than_are_reported() {
        let mut results = IndexResults::default();
        for number in 0..MAX_NAMED {
            let which = format!("run (0, {number})");
            assert!(results.wants(&which));
            results.add(alarm(&which));
            assert!(!results.wants(&which));
        }
        assert!(!results.wants("run tail"));
    }
}
