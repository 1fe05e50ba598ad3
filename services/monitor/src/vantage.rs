//! The vantage check: compares the log's checkpoint with those that others receive.
//!
//! Witnesses, other monitors and files provide checkpoints signed by the log. Each is compared with the verified one:
//! the smaller tree must be a prefix of the larger. A vantage point may be ahead for a while, because a log publishes a
//! checkpoint only after enough witnesses have cosigned it.

use ::tlog::MAX_NOTE_BYTES;
use bytes::Bytes;
use client::tlog::{self, Options, TlogError};
use client::witness::{self, WitnessClient};
use merkle::TreeSize;

use crate::alarm::{AlarmKind, AlarmSubject};
use crate::book::Book;
use crate::config::{Vantage, WatchedLog};
use crate::evidence::{Evidence, TwoRootPath};
use crate::extends::{ConsistencyProver, Extends, TreeHead};
use crate::growth::{is_trouble, missing, tiles};
use crate::round::CheckName;
use crate::seen::SeenCheckpoint;
use crate::state::LogState;

/// The vantage check of one round.
pub struct Comparison<'a> {
    /// The log's configuration.
    pub target: &'a WatchedLog,
    /// Client and proof verifier for the log.
    pub prover: &'a ConsistencyProver,
    /// The log's state, with the last agreed checkpoint of each vantage point.
    pub state: &'a mut LogState,
    /// The round's checks and alarms.
    pub book: &'a mut Book,
    /// `true` if the log's checkpoint of this round is verified.
    pub verified: bool,
}

/// Result of the comparison with one vantage point.
enum Compared {
    /// The vantage point shows the same log.
    Agrees,
    /// The comparison decides nothing; with the reason.
    Nothing(String),
    /// The result is recorded in [`Book`] already.
    Booked,
}

/// Response of a vantage point.
pub struct View {
    /// Name of the vantage point.
    pub name: String,
    /// The checkpoint; `None` if the vantage point does not know the log.
    pub seen: Result<Option<SeenCheckpoint>, String>,
}

/// Fetches the checkpoints of all vantage points concurrently.
pub async fn fetch_all(target: &WatchedLog, roots: Option<&Bytes>, now: u64) -> Vec<View> {
    let views = target.vantages.iter().map(|vantage| async move {
        let name = vantage.to_string();
        let note = fetch(vantage, target, roots).await;
        let seen = note.and_then(|note| match note {
            Some(note) => SeenCheckpoint::open(&note, target, &name, now).map(Some).map_err(|why| why.words),
            None => Ok(None),
        });
        View { name, seen }
    });
    futures::future::join_all(views).await
}

async fn fetch(
    vantage: &Vantage,
    target: &WatchedLog,
    roots: Option<&Bytes>,
) -> Result<Option<Vec<u8>>, String> {
    match vantage {
        Vantage::File(path) => durable::read(path, MAX_NOTE_BYTES as u64).map_err(|why| why.to_string()),
        Vantage::Url(url) => {
            let options = Options { extra_roots: roots.cloned(), ..Options::default() };
            let note = tlog::note_at(url, options).await.map_err(|why| why.to_string())?;
            Ok(Some(note.to_vec()))
        }
        Vantage::Witness(url) => {
            let options = witness::Options { extra_roots: roots.cloned(), ..witness::Options::default() };
            let client = WitnessClient::new(url.as_str(), options).map_err(|why| why.to_string())?;
            let note = client.latest(&target.origin).await.map_err(|why| why.to_string())?;
            Ok(note.map(|note| note.to_string().into_bytes()))
        }
    }
}

impl Comparison<'_> {
    /// Compares the vantage points' checkpoints with the log's.
    pub async fn compare(&mut self, here: &SeenCheckpoint, views: Vec<View>) {
        if views.is_empty() {
            self.book.not_checked(CheckName::Vantage, "no other place is configured to compare with");
            return;
        }
        let (mut agree, mut silent) = (0, Vec::new());
        let before = self.book.alarms.len();
        for View { name, seen } in views {
            match seen {
                Ok(Some(there)) => {
                    self.answers(&name);
                    match self.one(&name, here, &there).await {
                        Compared::Agrees => agree += 1,
                        Compared::Nothing(why) => silent.push(why),
                        Compared::Booked => {}
                    }
                }
                Ok(None) => silent.push(format!("{name} has not seen this log")),
                Err(why) => {
                    self.silent(&name, &why);
                    silent.push(format!("{name}: {why}"));
                }
            }
        }
        if self.book.alarms.len() > before || self.book.is_bad(CheckName::Vantage) {
            return;
        }
        match (agree, silent.is_empty()) {
            (0, _) => self.book.not_checked(CheckName::Vantage, silent.join("; ")),
            (_, true) => self.book.ok(CheckName::Vantage, format!("{agree} agree")),
            (_, false) => {
                self.book.ok(CheckName::Vantage, format!("{agree} agree; {}", silent.join("; ")));
            }
        }
    }

    /// Compares one vantage point's checkpoint with the log's.
    async fn one(&mut self, name: &str, here: &SeenCheckpoint, there: &SeenCheckpoint) -> Compared {
        self.state.caught_up(name);
        if there.size == TreeSize::EMPTY {
            return Compared::Nothing(format!("{name} is shown no leaf: there is nothing to compare"));
        }
        if here.size == TreeSize::EMPTY {
            return self.ahead(name, here, there, false);
        }
        match there.size > here.size {
            true => self.larger(name, here, there).await,
            false => self.not_larger(name, here, there).await,
        }
    }

    /// Handles a vantage point whose tree is not larger.
    async fn not_larger(&mut self, name: &str, here: &SeenCheckpoint, there: &SeenCheckpoint) -> Compared {
        let head = (there.size.get(), there.root.to_string());
        if self.verified && self.state.agreed.get(name) == Some(&head) {
            return Compared::Agrees;
        }
        match self.prover.extends(head_of(there), head_of(here)).await {
            Extends::Yes => {
                self.agreed(name, head);
                return Compared::Agrees;
            }
            Extends::No(path) => self.split(name, there, here, path),
            Extends::Unproven(why) => {
                let words = format!(
                    "{name} is shown a tree of size {} that the log's tree of size {} does not prove: {why}",
                    there.size, here.size
                );
                self.accuse(AlarmKind::Inconsistent, name, words, here, there);
            }
            Extends::Unanswered(error) => self.missing(name, there, &error),
        }
        Compared::Booked
    }

    /// Handles a vantage point whose tree is larger.
    async fn larger(&mut self, name: &str, here: &SeenCheckpoint, there: &SeenCheckpoint) -> Compared {
        match self.prover.extends(head_of(here), head_of(there)).await {
            Extends::Yes => {
                self.agreed(name, (there.size.get(), there.root.to_string()));
                return self.ahead(name, here, there, true);
            }
            Extends::No(path) => self.split(name, here, there, path),
            Extends::Unanswered(error) if is_trouble(&error) => self.missing(name, there, &error),
            Extends::Unproven(_) | Extends::Unanswered(_) => {
                self.state.doubt(there);
                return self.ahead(name, here, there, false);
            }
        }
        Compared::Booked
    }

    /// Remembers the agreement, but only if the log's own checkpoint is verified.
    fn agreed(&mut self, name: &str, head: (u64, String)) {
        self.state.works(&tiles(CheckName::Vantage, name));
        if self.verified {
            self.state.agreed.insert(name.to_owned(), head);
        }
    }

    /// Records that the proof is not available yet.
    fn missing(&mut self, name: &str, there: &SeenCheckpoint, error: &TlogError) {
        self.state.doubt(there);
        missing(self.target, self.state, self.book, (CheckName::Vantage, name), error);
    }

    /// Accuses the log of a split view.
    fn split(
        &mut self,
        name: &str,
        older: &SeenCheckpoint,
        newer: &SeenCheckpoint,
        path: Option<TwoRootPath>,
    ) {
        let words = match older.size == newer.size {
            true => format!("{name} is shown another tree of size {} than is shown here", older.size),
            false => format!(
                "what {name} is shown and what is shown here cannot be one log: sizes {} and {}",
                older.size, newer.size
            ),
        };
        let evidence = Evidence::Contradiction {
            vkey: self.target.vkey.to_string(),
            older: older.sighting.clone(),
            newer: newer.sighting.clone(),
            path,
        };
        let about = AlarmSubject::Vantage(name.to_owned());
        self.book.accuse(CheckName::Vantage, AlarmKind::SplitView, about, words, Some(evidence));
    }

    /// Handles a larger tree at a vantage point. That is normal for a while, since logs publish after cosigning; after
    /// `lag` the log's checkpoint counts as stale.
    fn ahead(
        &mut self,
        name: &str,
        here: &SeenCheckpoint,
        there: &SeenCheckpoint,
        is_proven: bool,
    ) -> Compared {
        let lasts = self.state.behind(name, there.size.get(), self.book.now);
        let words =
            format!("{name} is shown a tree of size {}, and here the log shows {}", there.size, here.size);
        if lasts >= self.target.lag.as_secs() {
            self.accuse(AlarmKind::Stale, name, format!("{words}, for {lasts} s"), here, there);
            return Compared::Booked;
        }
        match is_proven {
            true => Compared::Agrees,
            false => Compared::Nothing(format!("{words}: it may come")),
        }
    }

    fn accuse(
        &mut self,
        kind: AlarmKind,
        name: &str,
        words: String,
        here: &SeenCheckpoint,
        there: &SeenCheckpoint,
    ) {
        let (larger, smaller) = if there.size > here.size { (there, here) } else { (here, there) };
        let evidence = Evidence::Rollback {
            vkey: self.target.vkey.to_string(),
            larger: larger.sighting.clone(),
            smaller: smaller.sighting.clone(),
        };
        let about = AlarmSubject::Vantage(name.to_owned());
        self.book.accuse(CheckName::Vantage, kind, about, words, Some(evidence));
    }

    fn answers(&mut self, name: &str) {
        self.state.works(&silence(name));
    }

    /// Records that a vantage point does not answer, which says nothing about the log; an alarm after
    /// `unreachable_after`.
    fn silent(&mut self, name: &str, why: &str) {
        let lasts = self.state.trouble(&silence(name), self.book.now);
        if lasts >= self.target.unreachable_after.as_secs() {
            let words = format!("nothing usable from {name} for {lasts} s: {why}");
            self.book.alarm(AlarmKind::Unreachable, AlarmSubject::Vantage(name.to_owned()), words, None);
        }
    }
}

fn head_of(seen: &SeenCheckpoint) -> TreeHead {
    (seen.size, seen.root)
}

fn silence(name: &str) -> String {
    format!("silence {name}")
}

impl std::fmt::Display for Vantage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Witness(url) => write!(f, "witness {url}"),
            Self::Url(url) => write!(f, "{url}"),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}
