//! Findings that are not known to be repaired.

use std::sync::{Mutex, MutexGuard, PoisonError};

use display::counted;

use crate::limits::{FSCK_FINDINGS, FSCK_NAMED};

/// The open findings, shared with `/readyz`.
#[derive(Debug, Default)]
pub struct OpenFindings(Mutex<FindingList>);

#[derive(Debug, Default)]
struct FindingList {
    listed: Vec<String>,
    /// The number of further findings, above `FSCK_FINDINGS`.
    omitted: u64,
}

impl OpenFindings {
    /// Restores the findings that the last process stored.
    pub fn restore(&self, findings: Vec<String>, omitted: u64) {
        *self.findings() = FindingList { listed: findings, omitted };
    }

    /// Adds findings and returns the new ones. Above `FSCK_FINDINGS` they are only counted.
    pub fn add<'a>(&self, findings: &'a [String]) -> Vec<&'a String> {
        let mut open = self.findings();
        let mut new = Vec::new();
        for finding in findings.iter().filter(|finding| !open.listed.contains(finding)).collect::<Vec<_>>() {
            match open.listed.len() < FSCK_FINDINGS {
                true => {
                    open.listed.push(finding.clone());
                    new.push(finding);
                }
                false => open.omitted += 1,
            }
        }
        new
    }

    /// Replaces all findings by those of a complete walk.
    pub fn replace(&self, mut findings: Vec<String>, omitted: u64) {
        let more = findings.len().saturating_sub(FSCK_FINDINGS) as u64;
        findings.truncate(FSCK_FINDINGS);
        *self.findings() = FindingList { listed: findings, omitted: omitted + more };
    }

    /// The findings, and the number of further ones that are only counted.
    pub fn all(&self) -> (Vec<String>, u64) {
        let open = self.findings();
        (open.listed.clone(), open.omitted)
    }

    /// The first findings as lines for `/readyz`, with a last line that counts the others.
    pub fn named(&self) -> Vec<String> {
        let open = self.findings();
        let mut lines: Vec<String> = open
            .listed
            .iter()
            .take(FSCK_NAMED)
            .map(|finding| format!("the stored log is damaged: {finding}"))
            .collect();
        let more = open.listed.len().saturating_sub(FSCK_NAMED) as u64 + open.omitted;
        if more > 0 {
            let more = counted(more, "more finding", "more findings");
            lines.push(format!("the stored log is damaged: and {more}"));
        }
        lines
    }

    fn findings(&self) -> MutexGuard<'_, FindingList> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_new_once_and_stands_until_a_walk_does_without_it() {
        let open = OpenFindings::default();
        let (one, two) = ("one".to_owned(), "two".to_owned());
        assert_eq!(open.add(std::slice::from_ref(&one)), [&one]);
        assert_eq!(open.add(&[one.clone(), two.clone()]), [&two]);
        open.replace(vec![two.clone()], 0);
        assert_eq!(open.all(), (vec![two], 0));
        open.replace(Vec::new(), 0);
        assert!(open.named().is_empty());
    }

    #[test]
    fn a_flood_of_findings_is_counted_and_not_kept() {
        let open = OpenFindings::default();
        let flood: Vec<String> = (0..10_000).map(|n| format!("finding {n}")).collect();
        assert_eq!(open.add(&flood).len(), FSCK_FINDINGS);
        assert_eq!(open.all().1, 10_000 - FSCK_FINDINGS as u64);
        assert_eq!(open.named().len(), FSCK_NAMED + 1);
    }
}
