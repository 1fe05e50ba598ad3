//! Growth: a log shows the tree that was verified last, or one that extends it, and never another.

use client::tlog::TlogError;
use merkle::TreeSize;

use crate::alarm::{About, AlarmKind};
use crate::book::Book;
use crate::config::Target;
use crate::evidence::{Evidence, Path};
use crate::extends::{Extends, Prover, TreeHead};
use crate::round::CheckName;
use crate::seen::Seen;
use crate::state::{Because, Beginning, LogState, Verified};

/// What stands for a smaller tree than was verified that the log proves to be its own, among the troubles.
const BEHIND: &str = "behind";
/// What stands for a smaller tree that the log does not answer for.
const WITHHELD: &str = "withheld";

/// One look at how a log has grown.
pub struct Growth<'a> {
    /// The log.
    pub target: &'a Target,
    /// What it is asked with.
    pub prover: &'a Prover,
    /// What was verified; goes on when what is shown extends it.
    pub state: &'a mut LogState,
    /// The round.
    pub book: &'a mut Book,
}

impl Growth<'_> {
    /// Checks what is shown against what was verified last. Whether it is verified now.
    pub async fn check(&mut self, shown: &Seen) -> bool {
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

    /// The first checkpoint of this log.
    fn begin(&mut self, shown: &Seen) {
        let because = match shown.size.get() {
            0 => Because::Empty,
            _ => Because::FirstShown,
        };
        self.state.began = Some(Beginning { at: self.book.now, size: shown.size.get(), because });
        self.adopt(shown);
        let words = format!(
            "nothing was verified before: watching begins anew at {} leaves, and what was before is believed as it is shown",
            shown.size
        );
        self.book.not_checked(CheckName::Growth, words.clone());
        self.book.not_checked(CheckName::Consistency, words);
    }

    /// As large as the last one, or larger.
    async fn grown(&mut self, last: &Verified, head: TreeHead, shown: &Seen) -> bool {
        match self.prover.extends(head, (shown.size, shown.root)).await {
            Extends::Yes => {
                self.state.works(&tiles(CheckName::Consistency, ""));
                self.book.ok(CheckName::Growth, format!("{} leaves, {} before", shown.size, head.0));
                self.adopt(shown);
                if !self.is_contradicted(shown).await {
                    let words = format!("the tree of {} leaves extends that of {}", shown.size, head.0);
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

    /// Compares what is verified now with all that was shown and could not be proven. What the verified tree contains is
    /// forgotten; what contradicts it is an accusation, and stays.
    async fn is_contradicted(&mut self, shown: &Seen) -> bool {
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
                    // It is asked again in the next round: a log in trouble holds up this one no longer.
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

    /// What was shown once cannot be of the tree that is verified now.
    fn contradicted(&mut self, doubted: &Verified, head: TreeHead, shown: &Seen, path: Option<Path>) {
        let words = format!(
            "the log signed a tree of {} leaves that it did not prove, and now one of {} leaves: no log has both",
            head.0, shown.size
        );
        let (older, newer) = match head.0 <= shown.size {
            true => (&doubted.seen, &shown.sighting),
            false => (&shown.sighting, &doubted.seen),
        };
        self.contradiction(words, older.clone(), newer.clone(), path);
    }

    /// Smaller than the last one. A cache may be behind; a log that still has the larger tree can show it.
    async fn shrunk(&mut self, last: &Verified, head: TreeHead, shown: &Seen) {
        let smaller = format!("the log shows {} leaves, and it had {}", shown.size, head.0);
        let evidence = Evidence::Rollback {
            vkey: self.target.vkey.to_string(),
            larger: last.seen.clone(),
            smaller: shown.sighting.clone(),
        };
        let rollback = |book: &mut Book, why: String| {
            let words = format!("{smaller}: {why}");
            book.accuse(CheckName::Growth, AlarmKind::Rollback, About::Log, words, Some(evidence.clone()));
            book.unanswered(CheckName::Consistency, "a smaller tree extends nothing");
        };
        if shown.size == TreeSize::EMPTY {
            // Every tree extends the empty one: that it does shows nothing.
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

    /// An older checkpoint of the tree that the log still has. A cache may be behind for a while.
    fn old(&mut self, shown: &Seen, smaller: &str, evidence: Evidence) {
        let lasts = self.state.trouble(BEHIND, self.book.now);
        self.book.not_checked(CheckName::Consistency, "nothing new is shown");
        if lasts >= self.target.lag.as_secs() {
            let words = format!("{smaller} and still has: what it shows is old, for {lasts} s");
            self.book.accuse(CheckName::Growth, AlarmKind::Stale, About::Log, words, Some(evidence));
        } else {
            let words = format!(
                "{smaller} and still has: the tree of {} leaves is old, and a newer one may come",
                shown.size
            );
            self.book.not_checked(CheckName::Growth, words);
        }
    }

    fn forked(&mut self, last: &Verified, head: TreeHead, shown: &Seen, path: Option<Path>) {
        let words = match head.0 == shown.size {
            true => format!(
                "the log signed two roots of {} leaves: {} before, and now {}",
                head.0, head.1, shown.root
            ),
            false => format!(
                "the log signed a tree of {} leaves that does not begin with the {} leaves that it signed before",
                shown.size, head.0
            ),
        };
        self.contradiction(words, last.seen.clone(), shown.sighting.clone(), path);
    }

    /// The smaller tree that is shown is not the beginning of the one that was verified.
    fn forked_back(&mut self, last: &Verified, head: TreeHead, shown: &Seen, path: Option<Path>) {
        let words = format!(
            "the log shows a tree of {} leaves with which the {} leaves that it signed before do not begin",
            shown.size, head.0
        );
        self.contradiction(words, shown.sighting.clone(), last.seen.clone(), path);
    }

    fn contradiction(
        &mut self,
        words: String,
        older: crate::Sighting,
        newer: crate::Sighting,
        path: Option<Path>,
    ) {
        let vkey = self.target.vkey.to_string();
        let evidence = Evidence::Contradiction { vkey, older, newer, path };
        self.book.failed(CheckName::Growth, words.clone());
        self.book.accuse(CheckName::Consistency, AlarmKind::Fork, About::Log, words, Some(evidence));
    }

    fn unproven(&mut self, head: TreeHead, shown: &Seen, why: &str) {
        let words = format!(
            "what the log serves does not show that its {} leaves begin with the {} it had: {why}",
            shown.size, head.0
        );
        let vkey = self.target.vkey.to_string();
        let evidence = Evidence::Checkpoint { vkey, seen: shown.sighting.clone() };
        self.book.ok(CheckName::Growth, format!("{} leaves, {} before", shown.size, head.0));
        self.book.accuse(CheckName::Consistency, AlarmKind::Inconsistent, About::Log, words, Some(evidence));
    }

    fn unanswered(&mut self, error: &TlogError) {
        missing(self.target, self.state, self.book, (CheckName::Consistency, ""), error);
    }

    /// Goes on from here.
    fn adopt(&mut self, shown: &Seen) {
        // Of one tree the first note is kept unless the new one has a newer cosignature: the time it was seen is evidence.
        let same = self.state.verified.as_ref().and_then(Verified::head) == Some((shown.size, shown.root));
        let newer = shown.cosigned_at > self.state.cosigned_at;
        self.state.cosigned_at = self.state.cosigned_at.max(shown.cosigned_at);
        if !same || newer {
            self.state.verified = Some(Verified::of(shown));
        }
    }
}

impl Verified {
    /// What is seen, once it is verified.
    pub(crate) fn of(seen: &Seen) -> Self {
        Self { size: seen.size.get(), root: seen.root.to_string(), seen: seen.sighting.clone() }
    }
}

/// Whether it may be the network or load that kept an answer away.
pub fn is_trouble(error: &TlogError) -> bool {
    match error {
        TlogError::Unreachable(_) => true,
        TlogError::Refused { status, .. } => status.is_server_error() || status.as_u16() == 429,
        _ => false,
    }
}

/// What stands for tiles that are not served for a check, among the troubles: what one check gets does not end what another
/// one waits for.
pub fn tiles(check: CheckName, place: &str) -> String {
    format!("tiles {check} {place}").trim_end().to_owned()
}

/// A part of what the log signed does not come: an alarm once that lasts.
pub fn missing(
    target: &Target,
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
        book.alarm(AlarmKind::MissingTile, About::Log, words, None);
    }
}
