//! The growth and consistency checks: the log's tree must be the last verified one, or extend it.

use std::collections::VecDeque;

use client::tlog::TlogError;
use merkle::TreeSize;

use crate::alarm::{Alarm, AlarmKind, AlarmSubject, FoundBy};
use crate::check_name::CheckName;
use crate::config::WatchedLog;
use crate::consistency::{ConsistencyProver, ConsistencyResult};
use crate::evidence::{Evidence, Sighting, TwoRootPath};
use crate::limits::MAX_UNPROVEN;
use crate::round_results::RoundResults;
use crate::signed_checkpoint::{SignedCheckpoint, TreeHead};
use crate::state::{LogState, SavedCheckpoint, TrustReason, WatchStart};

/// Trouble name (see `LogState::record_trouble`) of a smaller tree, proven to be a prefix of the verified one.
const BEHIND: &str = "behind";
/// Trouble name of a smaller tree without a proof.
const WITHHELD: &str = "withheld";
/// Part of the consistency check: the comparison with earlier checkpoints that could not be proven.
const EARLIER: &str = "earlier checkpoints";
/// Part of the consistency check: checkpoints for which there was no room. It is never counted as made, so that its
/// alarms stand until they are reset.
const NOT_REMEMBERED: &str = "checkpoints that are not remembered";

/// The growth and consistency checks of one round.
pub struct GrowthCheck<'a> {
    /// The log's configuration.
    pub target: &'a WatchedLog,
    /// Client and proof verifier for the log.
    pub prover: &'a ConsistencyProver,
    /// The log's state; the verified checkpoint advances if the shown tree extends it.
    pub state: &'a mut LogState,
    /// The round's checks and alarms.
    pub results: &'a mut RoundResults,
}

/// An earlier checkpoint that the verified tree is not proven to contain, and the result of comparing the two.
struct OpenComparison {
    earlier: SavedCheckpoint,
    head: TreeHead,
    result: ConsistencyResult,
}

impl GrowthCheck<'_> {
    /// Compares the shown checkpoint with the last verified one. Returns `true` if the shown one is now verified.
    pub async fn check(&mut self, shown: &SignedCheckpoint) -> bool {
        let Some(last) = self.state.verified.clone() else {
            self.trust_first(shown);
            return true;
        };
        let Some(head) = last.head() else { return false };
        if shown.size < head.size {
            self.check_smaller(&last, head, shown).await;
            return false;
        }
        self.state.end_trouble(BEHIND);
        self.state.end_trouble(WITHHELD);
        self.check_not_smaller(&last, head, shown).await
    }

    /// Trusts the log's first checkpoint.
    fn trust_first(&mut self, shown: &SignedCheckpoint) {
        let because = match shown.size.get() {
            0 => TrustReason::Empty,
            _ => TrustReason::FirstShown,
        };
        self.state.began = Some(WatchStart { at: self.results.now, size: shown.size.get(), because });
        self.save_verified(shown);
        let words = format!(
            "nothing was verified before: watching begins at size {}, and the tree up to there is trusted without proof",
            shown.size
        );
        self.results.not_checked(CheckName::Growth, words.clone());
        self.results.not_checked(CheckName::Consistency, words);
    }

    /// Handles a tree at least as large as the verified one.
    async fn check_not_smaller(
        &mut self,
        last: &SavedCheckpoint,
        head: TreeHead,
        shown: &SignedCheckpoint,
    ) -> bool {
        match self.prover.extends(head, shown.head()).await {
            ConsistencyResult::Proven => {
                self.state.end_trouble(&tiles_trouble(CheckName::Consistency, ""));
                self.results.count_as_made(CheckName::Consistency);
                self.results.ok(CheckName::Growth, format!("size {}, {} before", shown.size, head.size));
                self.save_verified(shown);
                if self.agrees_with_unproven(shown).await {
                    let words = format!("the tree of size {} extends that of size {}", shown.size, head.size);
                    self.results.ok(CheckName::Consistency, words);
                }
                return true;
            }
            ConsistencyResult::Contradicted(path) => self.accuse_of_fork(last, head, shown, path),
            ConsistencyResult::Unproven(why) => {
                self.remember_unproven(shown);
                self.results.ok(CheckName::Growth, format!("size {}, {} before", shown.size, head.size));
                self.accuse_of_no_proof((head, shown.head()), &shown.sighting, &why);
            }
            ConsistencyResult::Unanswered(error) => {
                self.remember_unproven(shown);
                self.record_unanswered(&error);
            }
        }
        false
    }

    /// Compares the newly verified tree with all earlier checkpoints that could not be proven. Returns `true` if nothing
    /// contradicts it, and nothing that the log owes is missing.
    async fn agrees_with_unproven(&mut self, shown: &SignedCheckpoint) -> bool {
        let (mut is_forked, mut is_unproven, mut missing) = (false, false, None);
        let (open, is_complete) = self.compare_unproven(shown).await;
        for OpenComparison { earlier, head, result } in open {
            let is_owed = self.owes_proof(&earlier, shown);
            match result {
                ConsistencyResult::Contradicted(path) if !is_forked => {
                    is_forked = true;
                    self.state.contradicted = Some(head);
                    self.accuse_of_earlier_fork(&earlier, head, shown, path);
                }
                ConsistencyResult::Unproven(why) if is_owed && !is_unproven => {
                    is_unproven = true;
                    self.accuse_of_no_proof(by_size(head, shown.head()), &earlier.seen, &why);
                }
                ConsistencyResult::Unanswered(error) if is_owed || is_silent(&error) => {
                    missing.get_or_insert(error);
                }
                _ => {}
            }
        }
        match &missing {
            Some(error) => self.record_missing(EARLIER, error),
            None if !is_complete => {}
            None => {
                self.state.end_trouble(&tiles_trouble(CheckName::Consistency, EARLIER));
                self.results.count_as_made(FoundBy::at(CheckName::Consistency, EARLIER));
            }
        }
        !is_forked && !is_unproven && missing.is_none() && is_complete
    }

    /// Compares the verified tree with the earlier checkpoints, forgets those that it contains, and returns the others, and
    /// whether all were compared. A log that does not answer at all, or proves none of [`MAX_UNPROVEN`], is not asked for
    /// the rest: they come first in the next round.
    async fn compare_unproven(&mut self, shown: &SignedCheckpoint) -> (Vec<OpenComparison>, bool) {
        let (mut kept, mut open) = (Vec::new(), Vec::new());
        let mut rest = VecDeque::from(self.state.unproven.clone());
        while let Some(earlier) = rest.pop_front() {
            let Ok(head) = earlier.signed_head(self.target) else {
                kept.push(earlier);
                continue;
            };
            let (smaller, larger) = by_size(head, shown.head());
            let result = self.prover.extends(smaller, larger).await;
            if matches!(result, ConsistencyResult::Proven) && head.size <= shown.size {
                continue;
            }
            let is_over = matches!(&result, ConsistencyResult::Unanswered(error) if is_silent(error));
            open.push(OpenComparison { earlier, head, result });
            if is_over || open.len() == MAX_UNPROVEN {
                break;
            }
        }
        let (is_complete, compared) = (rest.is_empty(), open.iter().map(|open| open.earlier.clone()));
        self.state.unproven = rest.into_iter().chain(kept).chain(compared).collect();
        (open, is_complete)
    }

    /// Returns `true` if the log must be able to prove its tree against this checkpoint: the tree is at least as large, or
    /// the log has shown the checkpoint itself. A larger one of a vantage point may be published later.
    fn owes_proof(&self, earlier: &SavedCheckpoint, shown: &SignedCheckpoint) -> bool {
        earlier.size <= shown.size.get() || earlier.seen.from == self.prover.client().base().as_str()
    }

    /// Remembers a checkpoint that is not proven, or raises an alarm if there is no room.
    fn remember_unproven(&mut self, shown: &SignedCheckpoint) {
        remember_unproven(self.target, self.state, self.results, shown);
    }

    /// Accuses the log of a fork: an earlier unproven checkpoint and the verified tree exclude each other.
    fn accuse_of_earlier_fork(
        &mut self,
        unproven: &SavedCheckpoint,
        head: TreeHead,
        shown: &SignedCheckpoint,
        path: Option<TwoRootPath>,
    ) {
        let words = format!(
            "the log signed a tree of size {} without a proof, and now one of size {} that contradicts it",
            head.size, shown.size
        );
        let (older, newer) = match head.size <= shown.size {
            true => (&unproven.seen, &shown.sighting),
            false => (&shown.sighting, &unproven.seen),
        };
        // An alarm of its own: the evidence of another fork does not have this checkpoint, which is forgotten then.
        self.accuse_of_contradiction(tree_name(head), words, (older, newer), path);
    }

    /// Handles a tree smaller than the verified one. A cache may serve an old checkpoint; an honest log can still prove
    /// the larger tree.
    async fn check_smaller(&mut self, last: &SavedCheckpoint, head: TreeHead, shown: &SignedCheckpoint) {
        let smaller = format!("the log shows a tree of size {}, after one of size {}", shown.size, head.size);
        let evidence = Evidence::Rollback {
            vkey: self.target.vkey.to_string(),
            origin: self.target.stated_origin(),
            larger: last.seen.clone(),
            smaller: shown.sighting.clone(),
        };
        let rollback = |results: &mut RoundResults, why: String| {
            let words = format!("{smaller}: {why}");
            results.accuse(
                CheckName::Growth,
                AlarmKind::Rollback,
                AlarmSubject::Log,
                words,
                Some(evidence.clone()),
            );
            results.unanswered(CheckName::Consistency, "a smaller tree extends nothing");
        };
        if shown.size == TreeSize::EMPTY {
            // Every tree extends the empty one, so a proof would show nothing.
            return rollback(self.results, "all entries are gone".to_owned());
        }
        let outcome = self.prover.extends(shown.head(), head).await;
        if !matches!(&outcome, ConsistencyResult::Unanswered(error) if is_temporary(error)) {
            self.state.end_trouble(WITHHELD);
        }
        match outcome {
            ConsistencyResult::Proven => self.record_old_checkpoint(shown, &smaller, evidence),
            ConsistencyResult::Contradicted(path) => self.accuse_of_smaller_fork(last, head, shown, path),
            ConsistencyResult::Unanswered(error) if is_temporary(&error) => {
                self.remember_unproven(shown);
                let lasts = self.state.record_trouble(WITHHELD, self.results.now);
                if lasts >= self.target.unreachable_after.as_secs() {
                    let why = format!(
                        "for {lasts} s it has not proven that it still has the later entries: {error}"
                    );
                    return rollback(self.results, why);
                }
                self.results.failed(CheckName::Growth, smaller);
                self.record_unanswered(&error);
            }
            ConsistencyResult::Unanswered(why) => {
                self.remember_unproven(shown);
                rollback(self.results, format!("it cannot prove that it still has the later entries: {why}"))
            }
            ConsistencyResult::Unproven(why) => {
                self.remember_unproven(shown);
                rollback(self.results, format!("the hashes that it serves belong to another tree: {why}"))
            }
        }
    }

    /// Handles an old checkpoint of the verified tree. Caches may be behind for `lag`; after that the checkpoint is
    /// stale.
    fn record_old_checkpoint(&mut self, shown: &SignedCheckpoint, smaller: &str, evidence: Evidence) {
        let lasts = self.state.record_trouble(BEHIND, self.results.now);
        self.results.not_checked(CheckName::Consistency, "the log shows no newer tree");
        if lasts >= self.target.lag.as_secs() {
            let words = format!("{smaller}, which it still has: the checkpoint has been old for {lasts} s");
            self.results.accuse(
                CheckName::Growth,
                AlarmKind::Stale,
                AlarmSubject::Log,
                words,
                Some(evidence),
            );
        } else {
            let words = format!(
                "{smaller}, which it still has: the checkpoint of size {} is old, a newer one may follow",
                shown.size
            );
            self.results.not_checked(CheckName::Growth, words);
        }
    }

    fn accuse_of_fork(
        &mut self,
        last: &SavedCheckpoint,
        head: TreeHead,
        shown: &SignedCheckpoint,
        path: Option<TwoRootPath>,
    ) {
        let words = match head.size == shown.size {
            true => format!(
                "the log signed two roots of size {}: {} before, and now {}",
                head.size, head.root, shown.root
            ),
            false => format!(
                "the log signed a tree of size {} that does not begin with the one of size {} that it signed before",
                shown.size, head.size
            ),
        };
        self.accuse_of_contradiction(String::new(), words, (&last.seen, &shown.sighting), path);
    }

    /// Accuses the log of a fork: the smaller tree now shown is not a prefix of the verified one.
    fn accuse_of_smaller_fork(
        &mut self,
        last: &SavedCheckpoint,
        head: TreeHead,
        shown: &SignedCheckpoint,
        path: Option<TwoRootPath>,
    ) {
        let words = format!(
            "the log shows a tree of size {} that is not the beginning of the one of size {} that it signed before",
            shown.size, head.size
        );
        self.accuse_of_contradiction(String::new(), words, (&shown.sighting, &last.seen), path);
    }

    /// Raises the alarm of a fork; `which` tells it from others, if there can be several.
    fn accuse_of_contradiction(
        &mut self,
        which: String,
        words: String,
        trees: (&Sighting, &Sighting),
        path: Option<TwoRootPath>,
    ) {
        self.results.failed(CheckName::Growth, words.clone());
        self.results.failed(CheckName::Consistency, words.clone());
        let alarm =
            Alarm::new(AlarmKind::Fork, &self.results.log, AlarmSubject::Log, words, self.results.now)
                .found_by(CheckName::Consistency)
                .which(which);
        let evidence = Some(Evidence::contradiction(self.target, trees, path));
        self.results.alarms.push(Alarm { evidence, ..alarm });
    }

    /// Accuses the log of hashes that do not prove that its larger tree extends its smaller one; `seen` is evidence.
    fn accuse_of_no_proof(&mut self, (smaller, larger): (TreeHead, TreeHead), seen: &Sighting, why: &str) {
        let words = format!(
            "the log's hashes do not prove that its tree of size {} extends its tree of size {}: {why}",
            larger.size, smaller.size
        );
        let evidence = Some(Evidence::checkpoint(self.target, seen));
        let (kind, about) = (AlarmKind::Inconsistent, AlarmSubject::Log);
        self.results.accuse(CheckName::Consistency, kind, about, words, evidence);
    }

    fn record_unanswered(&mut self, error: &TlogError) {
        self.record_missing("", error);
    }

    fn record_missing(&mut self, part: &str, error: &TlogError) {
        record_missing_tiles(self.target, self.state, self.results, (CheckName::Consistency, part), error);
    }

    /// Makes `shown` the last verified checkpoint.
    fn save_verified(&mut self, shown: &SignedCheckpoint) {
        // For an unchanged tree, keep the first note unless the new one has a newer cosignature: the time of receipt is
        // evidence.
        let same = self.state.verified.as_ref().and_then(SavedCheckpoint::head) == Some(shown.head());
        let newer = shown.cosigned_at > self.state.cosigned_at;
        self.state.cosigned_at = self.state.cosigned_at.max(shown.cosigned_at);
        if !same || newer {
            self.state.verified = Some(SavedCheckpoint::of(shown));
        }
    }
}

/// Returns `true` for errors that may be temporary: connection errors, HTTP 5xx and 429.
pub fn is_temporary(error: &TlogError) -> bool {
    match error {
        TlogError::Unreachable(_) => true,
        TlogError::Refused { status, .. } => status.is_server_error() || status.as_u16() == 429,
        _ => false,
    }
}

/// Returns `true` if the log did not answer at all, so that each further request may take as long.
fn is_silent(error: &TlogError) -> bool {
    matches!(error, TlogError::Unreachable(_))
}

/// The smaller tree, and the larger one.
fn by_size(one: TreeHead, other: TreeHead) -> (TreeHead, TreeHead) {
    if one.size <= other.size { (one, other) } else { (other, one) }
}

/// Remembers a checkpoint of the log that is not proven. If there is no room, the log has shown many trees without a proof:
/// the earlier ones stay, and an alarm has this one as evidence.
pub fn remember_unproven(
    target: &WatchedLog,
    state: &mut LogState,
    results: &mut RoundResults,
    shown: &SignedCheckpoint,
) {
    let from = &shown.sighting.from;
    if state.remember_unproven(shown)
        || state.forget_unreadable(target, from) && state.remember_unproven(shown)
    {
        return;
    }
    let words = format!(
        "the log signed a tree of size {} without a proof, after {MAX_UNPROVEN} others: this one is not compared later",
        shown.size
    );
    let alarm = Alarm::new(AlarmKind::MissingTile, &results.log, AlarmSubject::Log, words, results.now)
        .found_by(FoundBy::at(CheckName::Consistency, NOT_REMEMBERED))
        .which(tree_name(shown.head()));
    let evidence = Some(Evidence::checkpoint(target, &shown.sighting));
    results.alarms.push(Alarm { evidence, ..alarm });
}

/// The tree that an alarm is about, if there can be several of one kind.
fn tree_name(head: TreeHead) -> String {
    format!("size {}, root {}", head.size, head.root)
}

/// Trouble name of tiles that are not served for a check. One name for each check and place: success of one check does
/// not end the waiting of another.
pub fn tiles_trouble(check: CheckName, place: &str) -> String {
    format!("tiles {check} {place}").trim_end().to_owned()
}

/// Records data of the signed tree that is not served; raises [`AlarmKind::MissingTile`] after `unreachable_after`.
pub fn record_missing_tiles(
    target: &WatchedLog,
    state: &mut LogState,
    results: &mut RoundResults,
    (check, place): (CheckName, &str),
    error: &TlogError,
) {
    let words = error.to_string();
    results.unanswered(check, words.clone());
    let lasts = state.record_trouble(&tiles_trouble(check, place), results.now);
    if lasts >= target.unreachable_after.as_secs() {
        let words = format!("{words}; this has lasted for {lasts} s");
        let found_by = FoundBy { check, part: Some(place.to_owned()).filter(|place| !place.is_empty()) };
        results.alarm(found_by, AlarmKind::MissingTile, AlarmSubject::Log, words, None);
    }
}
