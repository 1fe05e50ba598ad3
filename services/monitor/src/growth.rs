//! The growth check: a log must show the last verified tree or one that extends it.

use client::tlog::TlogError;
use merkle::TreeSize;

use crate::alarm::{AlarmKind, AlarmSubject};
use crate::book::Book;
use crate::config::WatchedLog;
use crate::evidence::{Evidence, TwoRootPath};
use crate::extends::{ConsistencyProver, Extends, TreeHead};
use crate::round::CheckName;
use crate::seen::SeenCheckpoint;
use crate::state::{Because, Beginning, LogState, Verified};

/// Trouble name (see `LogState::trouble`) of a tree smaller than the verified one that the log proves to be a prefix of
/// it.
const BEHIND: &str = "behind";
/// Trouble name of a smaller tree without a proof.
const WITHHELD: &str = "withheld";

/// The growth and consistency checks of one round.
pub struct Growth<'a> {
    /// The log's configuration.
    pub target: &'a WatchedLog,
    /// Client and proof verifier for the log.
    pub prover: &'a ConsistencyProver,
    /// The log's state; the verified checkpoint advances if the shown tree extends it.
    pub state: &'a mut LogState,
    /// The round's checks and alarms.
    pub book: &'a mut Book,
}

impl Growth<'_> {
    /// Compares the shown checkpoint with the last verified one. Returns `true` if the shown one is now verified.
    pub async fn check(&mut self, shown: &SeenCheckpoint) -> bool {
        let Some(last) = self.state.verified.clone() else {
            self.begin(shown);
            return true;
        };
        let Some(head) = last.head() else { return false };
        if shown.size < head.0 {
            self.shrunk(&last, head, shown).await;
            return false;
        }
        self.state.works(BEHIND);
        self.state.works(WITHHELD);
        self.grown(&last, head, shown).await
    }

    /// Trusts the log's first checkpoint.
    fn begin(&mut self, shown: &SeenCheckpoint) {
        let because = match shown.size.get() {
            0 => Because::Empty,
            _ => Because::FirstShown,
        };
        self.state.began = Some(Beginning { at: self.book.now, size: shown.size.get(), because });
        self.adopt(shown);
        let words = format!(
            "nothing was verified before: watching begins anew at size {}, and what was before is believed as it is shown",
            shown.size
        );
        self.book.not_checked(CheckName::Growth, words.clone());
        self.book.not_checked(CheckName::Consistency, words);
    }

    /// Handles a tree at least as large as the verified one.
    async fn grown(&mut self, last: &Verified, head: TreeHead, shown: &SeenCheckpoint) -> bool {
        match self.prover.extends(head, (shown.size, shown.root)).await {
            Extends::Yes => {
                self.state.works(&tiles(CheckName::Consistency, ""));
                self.book.ok(CheckName::Growth, format!("size {}, {} before", shown.size, head.0));
                self.adopt(shown);
                if !self.is_contradicted(shown).await {
                    let words = format!("the tree of size {} extends that of size {}", shown.size, head.0);
                    self.book.ok(CheckName::Consistency, words);
                }
                return true;
            }
            Extends::No(path) => self.forked(last, head, shown, path),
            Extends::Unproven(why) => {
                self.state.doubt(shown);
                self.unproven(head, shown, &why);
            }
            Extends::Unanswered(error) => {
                self.state.doubt(shown);
                self.unanswered(&error);
            }
        }
        false
    }

    /// Compares the newly verified tree with all earlier checkpoints that could not be proven. Those that it contains
    /// are removed; a contradiction is an accusation, and the checkpoint stays. Returns `true` if there is a
    /// contradiction.
    async fn is_contradicted(&mut self, shown: &SeenCheckpoint) -> bool {
        let mut contradicted = false;
        let mut rest = std::mem::take(&mut self.state.unproven).into_iter();
        for doubted in rest.by_ref() {
            let Some(head) = doubted.head() else { continue };
            let (smaller, larger) = match head.0 <= shown.size {
                true => (head, (shown.size, shown.root)),
                false => ((shown.size, shown.root), head),
            };
            let outcome = self.prover.extends(smaller, larger).await;
            match outcome {
                Extends::Yes if head.0 <= shown.size => continue,
                Extends::No(path) if !contradicted => {
                    contradicted = true;
                    self.contradicted(&doubted, head, shown, path);
                }
                Extends::Unanswered(error) if is_trouble(&error) => {
                    // Retried in the next round, so that a log with a temporary problem does not block this one.
                    self.state.unproven.push(doubted);
                    break;
                }
                _ => {}
            }
            self.state.unproven.push(doubted);
        }
        self.state.unproven.extend(rest);
        contradicted
    }

    /// Accuses the log of a fork: an earlier unproven checkpoint and the verified tree exclude each other.
    fn contradicted(
        &mut self,
        doubted: &Verified,
        head: TreeHead,
        shown: &SeenCheckpoint,
        path: Option<TwoRootPath>,
    ) {
        let words = format!(
            "the log signed a tree of size {} that it did not prove, and now one of size {}: no log has both",
            head.0, shown.size
        );
        let (older, newer) = match head.0 <= shown.size {
            true => (&doubted.seen, &shown.sighting),
            false => (&shown.sighting, &doubted.seen),
        };
        self.contradiction(words, older.clone(), newer.clone(), path);
    }

    /// Handles a tree smaller than the verified one. A cache may serve an old checkpoint; an honest log can still prove
    /// the larger tree.
    async fn shrunk(&mut self, last: &Verified, head: TreeHead, shown: &SeenCheckpoint) {
        let smaller = format!("the log shows a tree of size {}, and it had {}", shown.size, head.0);
        let evidence = Evidence::Rollback {
            vkey: self.target.vkey.to_string(),
            larger: last.seen.clone(),
            smaller: shown.sighting.clone(),
        };
        let rollback = |book: &mut Book, why: String| {
            let words = format!("{smaller}: {why}");
            book.accuse(
                CheckName::Growth,
                AlarmKind::Rollback,
                AlarmSubject::Log,
                words,
                Some(evidence.clone()),
            );
            book.unanswered(CheckName::Consistency, "a smaller tree extends nothing");
        };
        if shown.size == TreeSize::EMPTY {
            // Every tree extends the empty one, so a proof would show nothing.
            return rollback(self.book, "all of them are gone".to_owned());
        }
        let outcome = self.prover.extends((shown.size, shown.root), head).await;
        if !matches!(&outcome, Extends::Unanswered(error) if is_trouble(error)) {
            self.state.works(WITHHELD);
        }
        match outcome {
            Extends::Yes => self.old(shown, &smaller, evidence),
            Extends::No(path) => self.forked_back(last, head, shown, path),
            Extends::Unanswered(error) if is_trouble(&error) => {
                self.state.doubt(shown);
                let lasts = self.state.trouble(WITHHELD, self.book.now);
                if lasts >= self.target.unreachable_after.as_secs() {
                    let why = format!("it has not shown for {lasts} s that it still has them: {error}");
                    return rollback(self.book, why);
                }
                self.book.failed(CheckName::Growth, smaller);
                self.unanswered(&error);
            }
            Extends::Unanswered(why) => {
                self.state.doubt(shown);
                rollback(self.book, format!("it cannot show that it still has them: {why}"))
            }
            Extends::Unproven(why) => {
                self.state.doubt(shown);
                rollback(self.book, format!("what it shows of them is another tree: {why}"))
            }
        }
    }

    /// Handles an old checkpoint of the verified tree. Caches may be behind for `lag`; after that the checkpoint is
    /// stale.
    fn old(&mut self, shown: &SeenCheckpoint, smaller: &str, evidence: Evidence) {
        let lasts = self.state.trouble(BEHIND, self.book.now);
        self.book.not_checked(CheckName::Consistency, "nothing new is shown");
        if lasts >= self.target.lag.as_secs() {
            let words = format!("{smaller} and still has: what it shows is old, for {lasts} s");
            self.book.accuse(CheckName::Growth, AlarmKind::Stale, AlarmSubject::Log, words, Some(evidence));
        } else {
            let words = format!(
                "{smaller} and still has: the tree of size {} is old, and a newer one may come",
                shown.size
            );
            self.book.not_checked(CheckName::Growth, words);
        }
    }

    fn forked(&mut self, last: &Verified, head: TreeHead, shown: &SeenCheckpoint, path: Option<TwoRootPath>) {
        let words = match head.0 == shown.size {
            true => format!(
                "the log signed two roots of size {}: {} before, and now {}",
                head.0, head.1, shown.root
            ),
            false => format!(
                "the log signed a tree of size {} that does not begin with the one of size {} that it signed before",
                shown.size, head.0
            ),
        };
        self.contradiction(words, last.seen.clone(), shown.sighting.clone(), path);
    }

    /// Accuses the log of a fork: the smaller tree now shown is not a prefix of the verified one.
    fn forked_back(
        &mut self,
        last: &Verified,
        head: TreeHead,
        shown: &SeenCheckpoint,
        path: Option<TwoRootPath>,
    ) {
        let words = format!(
            "the log shows a tree of size {} that is not the beginning of the one of size {} that it signed before",
            shown.size, head.0
        );
        self.contradiction(words, shown.sighting.clone(), last.seen.clone(), path);
    }

    fn contradiction(
        &mut self,
        words: String,
        older: crate::Sighting,
        newer: crate::Sighting,
        path: Option<TwoRootPath>,
    ) {
        let vkey = self.target.vkey.to_string();
        let evidence = Evidence::Contradiction { vkey, older, newer, path };
        self.book.failed(CheckName::Growth, words.clone());
        self.book.accuse(CheckName::Consistency, AlarmKind::Fork, AlarmSubject::Log, words, Some(evidence));
    }

    fn unproven(&mut self, head: TreeHead, shown: &SeenCheckpoint, why: &str) {
        let words = format!(
            "what the log serves does not show that its tree of size {} begins with the one of size {} that it had: {why}",
            shown.size, head.0
        );
        let vkey = self.target.vkey.to_string();
        let evidence = Evidence::Checkpoint { vkey, seen: shown.sighting.clone() };
        self.book.ok(CheckName::Growth, format!("size {}, {} before", shown.size, head.0));
        self.book.accuse(
            CheckName::Consistency,
            AlarmKind::Inconsistent,
            AlarmSubject::Log,
            words,
            Some(evidence),
        );
    }

    fn unanswered(&mut self, error: &TlogError) {
        missing(self.target, self.state, self.book, (CheckName::Consistency, ""), error);
    }

    /// Makes `shown` the last verified checkpoint.
    fn adopt(&mut self, shown: &SeenCheckpoint) {
        // For an unchanged tree, keep the first note unless the new one has a newer cosignature: the time of receipt is
        // evidence.
        let same = self.state.verified.as_ref().and_then(Verified::head) == Some((shown.size, shown.root));
        let newer = shown.cosigned_at > self.state.cosigned_at;
        self.state.cosigned_at = self.state.cosigned_at.max(shown.cosigned_at);
        if !same || newer {
            self.state.verified = Some(Verified::of(shown));
        }
    }
}

impl Verified {
    /// The checkpoint in the form kept in the state file.
    pub(crate) fn of(seen: &SeenCheckpoint) -> Self {
        Self { size: seen.size.get(), root: seen.root.to_string(), seen: seen.sighting.clone() }
    }
}

/// Returns `true` for errors that may be temporary: connection errors, HTTP 5xx and 429.
pub fn is_trouble(error: &TlogError) -> bool {
    match error {
        TlogError::Unreachable(_) => true,
        TlogError::Refused { status, .. } => status.is_server_error() || status.as_u16() == 429,
        _ => false,
    }
}

/// Trouble name of tiles that are not served for a check. One name for each check and place: success of one check does
/// not end the waiting of another.
pub fn tiles(check: CheckName, place: &str) -> String {
    format!("tiles {check} {place}").trim_end().to_owned()
}

/// Records data of the signed tree that is not served; raises [`AlarmKind::MissingTile`] after `unreachable_after`.
pub fn missing(
    target: &WatchedLog,
    state: &mut LogState,
    book: &mut Book,
    (check, place): (CheckName, &str),
    error: &TlogError,
) {
    let words = error.to_string();
    book.unanswered(check, words.clone());
    let lasts = state.trouble(&tiles(check, place), book.now);
    if lasts >= target.unreachable_after.as_secs() {
        let words = format!("{words}; so it has been for {lasts} s");
        book.alarm(AlarmKind::MissingTile, AlarmSubject::Log, words, None);
    }
}
