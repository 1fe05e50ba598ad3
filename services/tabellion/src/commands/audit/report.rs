//! The result of an audit.

use std::io::{self, Write};

use audit::{AuditFinding, AuditReport as Outcome, Explains, HeldFor, LogRule, OperatorAction};
use display::counted;
use serde::Serialize;

use crate::console::{Exit, Report, safe};

/// Maximum number of explanations in the text output; the others are counted there, and are all in the JSON.
const SHOWN: usize = 20;

#[derive(Serialize)]
pub struct Audited {
    clean: bool,
    size: u64,
    root: String,
    entries: u64,
    decided: u64,
    same: u64,
    differ: u64,
    undecided: u64,
    erased: u64,
    dropped: u64,
    without_policy: u64,
    unmatched: u64,
    unknown: u64,
    told_times: u64,
    untold_times: u64,
    explained: Vec<ExplainingEntry>,
    explained_otherwise: u64,
    heads: u64,
    signatures: u64,
    findings: Vec<AuditFinding>,
    omitted: u64,
    actions: Vec<OperatorAction>,
    actions_omitted: u64,
    held: Vec<HeldFor>,
}

/// An entry that explains why other entries cannot be decided again.
#[derive(Serialize)]
struct ExplainingEntry {
    leaf: u64,
    entry: String,
    kind: Explains,
    entries: u64,
}

impl Audited {
    pub fn of(outcome: Outcome) -> Self {
        let (clean, decided) = (outcome.is_clean(), outcome.decided());
        let Outcome { size, root, counts, explained, .. } = outcome;
        let explained = explained.into_iter().map(|(leaf, it)| ExplainingEntry {
            leaf: leaf.get(),
            entry: it.entry,
            kind: it.kind,
            entries: it.entries,
        });
        Self {
            clean,
            size: size.get(),
            root: root.to_string(),
            entries: counts.entries,
            decided,
            same: counts.same,
            differ: counts.differ,
            undecided: counts.undecided,
            erased: counts.erased,
            dropped: counts.dropped,
            without_policy: counts.without_policy,
            unmatched: outcome.unmatched,
            unknown: counts.unknown,
            told_times: counts.told_times,
            untold_times: counts.untold_times,
            explained: explained.collect(),
            explained_otherwise: outcome.explained_otherwise,
            heads: counts.heads,
            signatures: counts.signatures,
            findings: outcome.findings,
            omitted: outcome.omitted,
            actions: outcome.actions,
            actions_omitted: outcome.actions_omitted,
            held: outcome.held,
        }
    }

    /// Returns the exit code. Findings take precedence over entries that could not be decided.
    pub fn exit(&self) -> Exit {
        match self {
            Self { findings, .. } if !findings.is_empty() => Exit::VerificationFailed,
            Self { clean: false, .. } | Self { decided: 0, .. } => Exit::NotVerified,
            Self { undecided: 1.., .. } => Exit::TryAgain,
            _ => Exit::Success,
        }
    }

    fn conclusion(&self) -> &'static str {
        match self.exit() {
            Exit::VerificationFailed if self.findings.iter().all(|it| it.rule == LogRule::Receipt) => {
                "the log serves receipts that do not verify: keep them, and find out who changed them"
            }
            Exit::VerificationFailed => {
                "the log's content does not lead to its decisions: keep a copy, and find out who changed it"
            }
            Exit::NotVerified if self.unmatched > 0 => {
                "not verified: more statements are missing than this audit can match with erasures"
            }
            Exit::NotVerified => "nothing could be decided again",
            Exit::TryAgain => "the same decisions, as far as rules came to an answer: try again",
            _ => "the same decisions",
        }
    }
}

impl Audited {
    /// Prints the freezes, holds and releases of operators, and the holds in force.
    fn tell_actions(&self, out: &mut dyn Write) -> io::Result<()> {
        for action in self.actions.iter().take(SHOWN) {
            let OperatorAction { leaf, action, operator, entry, case, reason, .. } = action;
            let about = [entry, case, reason].into_iter().flatten().map(|text| safe(text));
            let about = about.collect::<Vec<_>>().join("  ");
            writeln!(out, "{action:8} {about}  (leaf {leaf}, by {})", safe(operator))?;
        }
        let more = self.actions.len().saturating_sub(SHOWN) as u64 + self.actions_omitted;
        if more > 0 {
            let more = counted(more, "more action", "more actions");
            writeln!(out, "         and {more} of operators")?;
        }
        for HeldFor { entry, case } in self.held.iter().take(SHOWN) {
            writeln!(out, "held     {}  {}", safe(entry), safe(case))?;
        }
        Ok(())
    }
}

impl Report for Audited {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        self.findings.iter().try_for_each(|finding| writeln!(out, "FAIL  {}", safe(&finding.to_string())))?;
        if self.omitted > 0 {
            writeln!(out, "      and {} more", self.omitted)?;
        }
        for ExplainingEntry { leaf, entry, kind, entries } in self.explained.iter().take(SHOWN) {
            let (what, why) = match kind {
                Explains::Erasure => ("without bytes", "says that they were erased"),
                Explains::Policy => ("without bytes", "is the policy, and keeps no such payloads"),
                Explains::Unread => ("that cannot be decided again", "is erased, and they depend on it"),
            };
            writeln!(out, "--    {entries} {what}: leaf {leaf} ({}) {why}", safe(entry))?;
        }
        let more: u64 = self.explained.iter().skip(SHOWN).map(|it| it.entries).sum();
        if more + self.explained_otherwise > 0 {
            writeln!(
                out,
                "--    {} more without bytes or decision, explained by other entries",
                more + self.explained_otherwise
            )?;
        }
        for (count, why) in [
            (self.undecided, "undecided: a rule came to no answer in its time"),
            (self.without_policy, "without a policy that can be read"),
            (self.unmatched, "without bytes: too many at once to search for their erasures"),
            (self.told_times, "admitted at a time that is not signed"),
            (self.untold_times, "without a time of admission: times were not checked"),
        ] {
            if count > 0 {
                writeln!(out, "--    {count} {why}")?;
            }
        }
        self.tell_actions(out)?;
        writeln!(out, "size     {}\nroot     {}", self.size, self.root)?;
        let Self { decided, entries, heads, signatures, .. } = self;
        writeln!(
            out,
            "decided  {decided} of {} again; {} and {} checked",
            counted(*entries, "entry", "entries"),
            counted(*heads, "root", "roots"),
            counted(*signatures, "signature", "signatures")
        )?;
        writeln!(out, "{}", self.conclusion())
    }
}

#[cfg(test)]
mod tests {
    use audit::AuditCounts;
    use merkle::TreeSize;

    use super::*;

    #[test]
    fn what_could_not_be_matched_is_not_verified() {
        let mut outcome = Outcome {
            size: TreeSize::new(2),
            root: merkle::empty_root(),
            counts: AuditCounts { entries: 2, same: 1, erased: 1, ..AuditCounts::default() },
            explained: Vec::new(),
            explained_otherwise: 0,
            unmatched: 0,
            findings: Vec::new(),
            omitted: 0,
            actions: Vec::new(),
            actions_omitted: 0,
            held: Vec::new(),
        };
        let audited = Audited::of(outcome.clone());
        assert_eq!((audited.exit(), audited.clean), (Exit::Success, true));
        outcome.unmatched = 1;
        let audited = Audited::of(outcome);
        assert_eq!((audited.exit(), audited.clean), (Exit::NotVerified, false));
        assert!(audited.conclusion().starts_with("not verified: "));
    }
}
