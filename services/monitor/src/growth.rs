//! The growth and consistency checks: the log's tree must be the last verified one, or extend it.

use client::tlog::TlogError;
use merkle::TreeSize;

use crate::alarm::{AlarmKind, AlarmSubject, FoundBy};
use crate::check_name::CheckName;
use crate::config::WatchedLog;
use crate::consistency::{ConsistencyProver, ConsistencyResult};
use crate::evidence::{Evidence, TwoRootPath};
use crate::round_results::RoundResults;
use crate::signed_checkpoint::{SignedCheckpoint, TreeHead};
use crate::state::{LogState, SavedCheckpoint, TrustReason, WatchStart};

/// Trouble name (see `LogState::record_trouble`) of a smaller tree, proven to be a prefix of the verified one.
const BEHIND: &str = "behind";
/// Trouble name of a smaller tree without a proof.
const WITHHELD: &str = "withheld";

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
                self.results.ok(CheckName::Growth, format!("size {}, {} before", shown.size, head.size));
                self.save_verified(shown);
                if !self.contradicts_unproven(shown).await {
                    let words = format!("the tree of size {} extends that of size {}", shown.size, head.size);
                    self.results.ok(CheckName::Consistency, words);
                }
                return true;
            }
            ConsistencyResult::Contradicted(path) => self.accuse_of_fork(last, head, shown, path),
            ConsistencyResult::Unproven(why) => {
                self.state.remember_unproven(shown);
                self.accuse_of_no_proof(head, shown, &why);
            }
            ConsistencyResult::Unanswered(error) => {
                self.state.remember_unproven(shown);
                self.record_unanswered(&error);
            }
        }
        false
    }

    /// Compares the newly verified tree with all earlier checkpoints that could not be proven. Those that it contains
    /// are removed; a contradiction is an accusation, and the checkpoint stays. Returns `true` if there is a
    /// contradiction.
    async fn contradicts_unproven(&mut self, shown: &SignedCheckpoint) -> bool {
        let mut contradicted = false;
        let mut rest = std::mem::take(&mut self.state.unproven).into_iter();
        for unproven in rest.by_ref() {
            let Some(head) = unproven.head() else { continue };
            let (smaller, larger) = match head.size <= shown.size {
                true => (head, shown.head()),
                false => (shown.head(), head),
            };
            let outcome = self.prover.extends(smaller, larger).await;
            match outcome {
                ConsistencyResult::Proven if head.size <= shown.size => continue,
                ConsistencyResult::Contradicted(path) if !contradicted => {
                    contradicted = true;
                    self.accuse_of_earlier_fork(&unproven, head, shown, path);
                }
                ConsistencyResult::Unanswered(error) if is_temporary(&error) => {
                    // Retried in the next round, so that a log with a temporary problem does not block this one.
                    self.state.unproven.push(unproven);
                    break;
                }
                _ => {}
            }
            self.state.unproven.push(unproven);
        }
        self.state.unproven.extend(rest);
        contradicted
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
        self.accuse_of_contradiction(words, older.clone(), newer.clone(), path);
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
                self.state.remember_unproven(shown);
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
                self.state.remember_unproven(shown);
                rollback(self.results, format!("it cannot prove that it still has the later entries: {why}"))
            }
            ConsistencyResult::Unproven(why) => {
                self.state.remember_unproven(shown);
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
        self.accuse_of_contradiction(words, last.seen.clone(), shown.sighting.clone(), path);
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
        self.accuse_of_contradiction(words, shown.sighting.clone(), last.seen.clone(), path);
    }

    fn accuse_of_contradiction(
        &mut self,
        words: String,
        older: crate::Sighting,
        newer: crate::Sighting,
        path: Option<TwoRootPath>,
    ) {
        let (vkey, origin) = (self.target.vkey.to_string(), self.target.stated_origin());
        let evidence = Evidence::Contradiction { vkey, origin, older, newer, path };
        self.results.failed(CheckName::Growth, words.clone());
        self.results.accuse(
            CheckName::Consistency,
            AlarmKind::Fork,
            AlarmSubject::Log,
            words,
            Some(evidence),
        );
    }

    fn accuse_of_no_proof(&mut self, head: TreeHead, shown: &SignedCheckpoint, why: &str) {
        let words = format!(
            "the log's hashes do not prove that its tree of size {} extends the one of size {} that it showed before: {why}",
            shown.size, head.size
        );
        let (vkey, origin) = (self.target.vkey.to_string(), self.target.stated_origin());
        let evidence = Evidence::Checkpoint { vkey, origin, seen: shown.sighting.clone() };
        self.results.ok(CheckName::Growth, format!("size {}, {} before", shown.size, head.size));
        self.results.accuse(
            CheckName::Consistency,
            AlarmKind::Inconsistent,
            AlarmSubject::Log,
            words,
            Some(evidence),
        );
    }

    fn record_unanswered(&mut self, error: &TlogError) {
        record_missing_tiles(self.target, self.state, self.results, (CheckName::Consistency, ""), error);
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
