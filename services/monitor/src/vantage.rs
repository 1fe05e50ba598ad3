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

use crate::alarm::{AlarmKind, AlarmSubject, FoundBy};
use crate::check_name::CheckName;
use crate::config::{Vantage, WatchedLog};
use crate::consistency::{ConsistencyProver, ConsistencyResult};
use crate::evidence::{Evidence, TwoRootPath};
use crate::growth::{is_temporary, record_missing_tiles, tiles_trouble};
use crate::round_results::RoundResults;
use crate::signed_checkpoint::SignedCheckpoint;
use crate::state::LogState;

/// The vantage check of one round.
pub struct VantageCheck<'a> {
    /// The log's configuration.
    pub target: &'a WatchedLog,
    /// Client and proof verifier for the log.
    pub prover: &'a ConsistencyProver,
    /// The log's state, with the last agreed checkpoint of each vantage point.
    pub state: &'a mut LogState,
    /// The round's checks and alarms.
    pub results: &'a mut RoundResults,
    /// `true` if the log's checkpoint of this round is verified.
    pub verified: bool,
}

/// Result of the comparison with one vantage point.
enum VantageOutcome {
    /// The vantage point shows the same log.
    Agrees,
    /// The vantage point shows a larger tree, which the log may publish soon; in words.
    Ahead(String),
    /// There is nothing to compare; with the reason.
    Nothing(String),
    /// An accusation, which is recorded in [`RoundResults`] already.
    Accused,
    /// The log does not serve what the comparison needs, which is recorded already.
    Missing,
}

/// Response of a vantage point.
pub struct VantageResponse {
    /// Name of the vantage point.
    pub name: String,
    /// The checkpoint; `None` if the vantage point does not know the log.
    pub seen: Result<Option<SignedCheckpoint>, String>,
}

impl VantageResponse {
    /// Time of the newest cosignature, if the vantage point shows the same tree.
    pub fn cosigned(&self, same: &SignedCheckpoint) -> Option<u64> {
        let seen = self.seen.as_ref().ok()?.as_ref()?;
        (seen.head() == same.head()).then_some(seen.cosigned_at)?
    }
}

/// Fetches the checkpoints of all vantage points concurrently.
pub async fn fetch_all(target: &WatchedLog, roots: Option<&Bytes>, now: u64) -> Vec<VantageResponse> {
    let views = target.vantages.iter().map(|vantage| async move {
        let name = vantage.to_string();
        let note = fetch(vantage, target, roots).await;
        let seen = note.and_then(|note| match note {
            Some(note) => {
                SignedCheckpoint::open(&note, target, &name, now).map(Some).map_err(|why| why.words)
            }
            None => Ok(None),
        });
        VantageResponse { name, seen }
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

impl VantageCheck<'_> {
    /// Compares the vantage points' checkpoints with the log's.
    pub async fn check(&mut self, here: &SignedCheckpoint, responses: Vec<VantageResponse>) {
        if responses.is_empty() {
            self.results.not_checked(CheckName::Vantage, "no vantage point is configured");
            return;
        }
        let (mut agree, mut silent) = (0, Vec::new());
        let before = self.results.alarms.len();
        for VantageResponse { name, seen } in responses {
            match seen {
                Ok(Some(there)) => {
                    self.record_answer(&name);
                    let outcome = self.compare_one(&name, here, &there).await;
                    if !matches!(outcome, VantageOutcome::Nothing(_) | VantageOutcome::Missing) {
                        self.results.count_as_made(FoundBy::at(CheckName::Vantage, &name));
                    }
                    match outcome {
                        VantageOutcome::Agrees => agree += 1,
                        VantageOutcome::Ahead(why) | VantageOutcome::Nothing(why) => silent.push(why),
                        VantageOutcome::Accused | VantageOutcome::Missing => {}
                    }
                }
                Ok(None) => {
                    self.record_answer(&name);
                    silent.push(format!("{name} has not seen this log"));
                }
                Err(why) => {
                    self.record_silence(&name, &why);
                    silent.push(format!("{name}: {why}"));
                }
            }
        }
        if self.results.alarms.len() > before || self.results.is_bad(CheckName::Vantage) {
            return;
        }
        match (agree, silent.is_empty()) {
            (0, _) => self.results.not_checked(CheckName::Vantage, silent.join("; ")),
            (_, true) => self.results.ok(CheckName::Vantage, format!("{agree} agree")),
            (_, false) => {
                self.results.ok(CheckName::Vantage, format!("{agree} agree; {}", silent.join("; ")));
            }
        }
    }

    /// Compares one vantage point's checkpoint with the log's.
    async fn compare_one(
        &mut self,
        name: &str,
        here: &SignedCheckpoint,
        there: &SignedCheckpoint,
    ) -> VantageOutcome {
        self.state.forget_larger_tree(name);
        if there.size == TreeSize::EMPTY {
            return VantageOutcome::Nothing(format!(
                "{name} is shown an empty tree: there is nothing to compare"
            ));
        }
        if here.size == TreeSize::EMPTY {
            return self.record_ahead(name, here, there, false);
        }
        match there.size > here.size {
            true => self.compare_larger(name, here, there).await,
            false => self.compare_not_larger(name, here, there).await,
        }
    }

    /// Handles a vantage point whose tree is not larger.
    async fn compare_not_larger(
        &mut self,
        name: &str,
        here: &SignedCheckpoint,
        there: &SignedCheckpoint,
    ) -> VantageOutcome {
        let head = (there.size.get(), there.root.to_string());
        if self.verified && self.state.agreed.get(name) == Some(&head) {
            return VantageOutcome::Agrees;
        }
        match self.prover.extends(there.head(), here.head()).await {
            ConsistencyResult::Proven => {
                self.record_agreement(name, head);
                return VantageOutcome::Agrees;
            }
            ConsistencyResult::Contradicted(path) => self.accuse_of_split_view(name, there, here, path),
            ConsistencyResult::Unproven(why) => {
                let words = format!(
                    "{name} is shown a tree of size {} that the log's tree of size {} does not prove: {why}",
                    there.size, here.size
                );
                self.accuse(AlarmKind::Inconsistent, name, words, here, there);
            }
            ConsistencyResult::Unanswered(error) => return self.record_missing(name, there, &error),
        }
        VantageOutcome::Accused
    }

    /// Handles a vantage point whose tree is larger.
    async fn compare_larger(
        &mut self,
        name: &str,
        here: &SignedCheckpoint,
        there: &SignedCheckpoint,
    ) -> VantageOutcome {
        match self.prover.extends(here.head(), there.head()).await {
            ConsistencyResult::Proven => {
                self.state.end_trouble(&tiles_trouble(CheckName::Vantage, name));
                // No agreement yet: the log's next tree may extend this one and still contradict the larger one.
                self.state.remember_unproven(there);
                return self.record_ahead(name, here, there, true);
            }
            ConsistencyResult::Contradicted(path) => self.accuse_of_split_view(name, here, there, path),
            ConsistencyResult::Unanswered(error) if is_temporary(&error) => {
                return self.record_missing(name, there, &error);
            }
            ConsistencyResult::Unproven(_) | ConsistencyResult::Unanswered(_) => {
                self.state.remember_unproven(there);
                return self.record_ahead(name, here, there, false);
            }
        }
        VantageOutcome::Accused
    }

    /// Remembers the agreement, but only if the log's own checkpoint is verified.
    fn record_agreement(&mut self, name: &str, head: (u64, String)) {
        self.state.end_trouble(&tiles_trouble(CheckName::Vantage, name));
        if self.verified {
            self.state.agreed.insert(name.to_owned(), head);
        }
    }

    /// Records that the proof is not available yet.
    fn record_missing(&mut self, name: &str, there: &SignedCheckpoint, error: &TlogError) -> VantageOutcome {
        self.state.remember_unproven(there);
        record_missing_tiles(self.target, self.state, self.results, (CheckName::Vantage, name), error);
        VantageOutcome::Missing
    }

    /// Accuses the log of a split view.
    fn accuse_of_split_view(
        &mut self,
        name: &str,
        older: &SignedCheckpoint,
        newer: &SignedCheckpoint,
        path: Option<TwoRootPath>,
    ) {
        let words = match older.size == newer.size {
            true => format!("{name} is shown another tree of size {} than is shown here", older.size),
            false => format!(
                "the trees of sizes {} and {} that {name} and this monitor are shown cannot be of one log",
                older.size, newer.size
            ),
        };
        let evidence = Evidence::contradiction(self.target, (&older.sighting, &newer.sighting), path);
        let about = AlarmSubject::Vantage(name.to_owned());
        self.results.accuse(CheckName::Vantage, AlarmKind::SplitView, about, words, Some(evidence));
    }

    /// Handles a larger tree at a vantage point. That is normal for a while, since logs publish after cosigning; after
    /// `lag` the log's checkpoint counts as stale.
    fn record_ahead(
        &mut self,
        name: &str,
        here: &SignedCheckpoint,
        there: &SignedCheckpoint,
        is_proven: bool,
    ) -> VantageOutcome {
        let lasts = self.state.record_larger_tree(name, there.size.get(), self.results.now);
        let words = format!(
            "{name} is shown a tree of size {}, and this monitor one of size {}",
            there.size, here.size
        );
        if lasts >= self.target.lag.as_secs() {
            self.accuse(AlarmKind::Stale, name, format!("{words}, for {lasts} s"), here, there);
            return VantageOutcome::Accused;
        }
        match is_proven {
            true => VantageOutcome::Agrees,
            false => VantageOutcome::Ahead(format!("{words}: the log may publish it soon")),
        }
    }

    fn accuse(
        &mut self,
        kind: AlarmKind,
        name: &str,
        words: String,
        here: &SignedCheckpoint,
        there: &SignedCheckpoint,
    ) {
        let (larger, smaller) = if there.size > here.size { (there, here) } else { (here, there) };
        let evidence = Evidence::Rollback {
            vkey: self.target.vkey.to_string(),
            origin: self.target.stated_origin(),
            larger: larger.sighting.clone(),
            smaller: smaller.sighting.clone(),
        };
        let about = AlarmSubject::Vantage(name.to_owned());
        self.results.failed(CheckName::Vantage, words.clone());
        self.results.alarm(FoundBy::at(CheckName::Vantage, name), kind, about, words, Some(evidence));
    }

    fn record_answer(&mut self, name: &str) {
        self.state.end_trouble(&silence_trouble(name));
        self.results.count_as_made(FoundBy::at(CheckName::Reachable, name));
    }

    /// Records that a vantage point does not answer, which says nothing about the log; an alarm after
    /// `unreachable_after`.
    fn record_silence(&mut self, name: &str, why: &str) {
        let lasts = self.state.record_trouble(&silence_trouble(name), self.results.now);
        if lasts >= self.target.unreachable_after.as_secs() {
            let words = format!("nothing usable from {name} for {lasts} s: {why}");
            let (found_by, about) =
                (FoundBy::at(CheckName::Reachable, name), AlarmSubject::Vantage(name.to_owned()));
            self.results.alarm(found_by, AlarmKind::Unreachable, about, words, None);
        }
    }
}

fn silence_trouble(name: &str) -> String {
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
