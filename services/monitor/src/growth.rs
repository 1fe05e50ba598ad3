//! Growth: a log shows the tree that was verified last, or one that extends it, and never another.

use client::tlog::TlogError;

use crate::alarm::{About, AlarmKind};
use crate::book::Book;
use crate::config::Target;
use crate::evidence::{Evidence, Path};
use crate::extends::{Extends, Prover, TreeHead};
use crate::round::CheckName;
use crate::seen::Seen;
use crate::state::{Because, Beginning, LogState, Verified};

/// What stands in for a tile that is not served, among the troubles.
pub const MISSING: &str = "tiles";

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
        match shown.size < head.0 {
            true => self.shrunk(&last, head, shown).await,
            false => self.grown(&last, head, shown).await,
        }
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
                self.state.works(MISSING);
                self.book.ok(CheckName::Growth, format!("{} leaves, {} before", shown.size, head.0));
                self.book.ok(
                    CheckName::Consistency,
                    format!("the tree of {} leaves extends that of {}", shown.size, head.0),
                );
                self.adopt(shown);
                return true;
            }
            Extends::No(path) => self.forked(last, head, shown, path),
            Extends::Unproven(why) => self.unproven(head, shown, &why),
            Extends::Unanswered(error) => self.unanswered(&error),
        }
        false
    }

    /// Smaller than the last one. A cache may be behind; a log that still has the larger tree can show it.
    async fn shrunk(&mut self, last: &Verified, head: TreeHead, shown: &Seen) -> bool {
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
        match self.prover.extends((shown.size, shown.root), head).await {
            Extends::Yes => {
                let words = format!("{smaller} and still has: what it shows is old");
                self.book.accuse(
                    CheckName::Growth,
                    AlarmKind::Stale,
                    About::Log,
                    words,
                    Some(evidence.clone()),
                );
                self.book.not_checked(CheckName::Consistency, "nothing new is shown");
            }
            Extends::No(path) => self.forked_back(last, head, shown, path),
            Extends::Unanswered(error) if is_trouble(&error) => {
                self.book.failed(CheckName::Growth, smaller.clone());
                self.unanswered(&error);
            }
            Extends::Unanswered(why) => {
                rollback(self.book, format!("it cannot show that it still has them: {why}"))
            }
            Extends::Unproven(why) => {
                rollback(self.book, format!("what it shows of them is another tree: {why}"))
            }
        }
        false
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
        missing(self.target, self.state, self.book, CheckName::Consistency, error);
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
fn is_trouble(error: &TlogError) -> bool {
    match error {
        TlogError::Unreachable(_) => true,
        TlogError::Refused { status, .. } => status.is_server_error() || status.as_u16() == 429,
        _ => false,
    }
}

/// A part of what the log signed does not come: an alarm once that lasts.
pub fn missing(target: &Target, state: &mut LogState, book: &mut Book, check: CheckName, error: &TlogError) {
    let words = error.to_string();
    book.unanswered(check, words.clone());
    let lasts = state.trouble(MISSING, book.now);
    if lasts >= target.unreachable_after.as_secs() {
        let words = format!("{words}; so it has been for {lasts} s");
        book.alarm(AlarmKind::MissingTile, About::Log, words, None);
    }
}
