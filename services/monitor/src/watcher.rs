//! The checks of one log, in the order of a round.

use std::time::Duration;

use bytes::Bytes;
use client::tlog::{Options, TlogClient, TlogError};
use merkle::TreeSize;
use tracing::Instrument;
use verifier::TrustStore;

use crate::alarm::{AlarmKind, AlarmSubject};
use crate::book::Book;
use crate::clock::now;
use crate::config::{Depth, WatchedLog};
use crate::decisions::Decisions;
use crate::entries::EntriesCheck;
use crate::error::MonitorError;
use crate::evidence::{Evidence, Sighting};
use crate::extends::ConsistencyProver;
use crate::freshness::{self, FreshnessTimes};
use crate::growth::Growth;
use crate::index::{Attestor, IndexResults};
use crate::limits::{DEEP_GRACE, FETCH_ATTEMPTS, FETCH_PAUSE};
use crate::round::{CheckName, Cost, PresentedCheckpoint, Round};
use crate::scitt_service;
use crate::seen::{NotTheLogs, SeenCheckpoint};
use crate::spans;
use crate::state::{Because, Beginning, LogFolder, LogState, MonitorStateError, Verified};
use crate::vantage::{self, Comparison, View};
use crate::watch::Watching;

/// Trouble name (see `LogState::trouble`) of a log that does not answer.
const SILENCE: &str = "log";

/// Watches one log.
pub struct Watcher {
    target: WatchedLog,
    folder: LogFolder,
    prover: ConsistencyProver,
    roots: Option<Bytes>,
    token: Option<String>,
    trust: Option<TrustStore>,
    attestor: Option<Attestor>,
    state: LogState,
    deep_for: Option<Duration>,
    grace: Duration,
}

/// The log's verified checkpoint, and the `Date` of the response.
struct CheckpointResponse {
    seen: SeenCheckpoint,
    date: Option<String>,
    /// `true` if it was received with a consistency proof, not from the public `checkpoint` path.
    with_proof: bool,
}

/// A checkpoint's note as received.
struct ReceivedCheckpoint {
    note: Bytes,
    date: Option<String>,
    with_proof: bool,
}

impl Watcher {
    /// Loads the log's state, or creates it with the configured start.
    ///
    /// # Errors
    /// If the state is unreadable or that of another log, or the log cannot be watched as configured.
    pub fn new(target: WatchedLog, folder: LogFolder, now: u64) -> Result<Self, MonitorError> {
        let roots = target.ca_file.as_deref().map(std::fs::read).transpose();
        let roots =
            roots.map_err(|why| MonitorError::file(target.ca_file.as_deref(), &why))?.map(Bytes::from);
        let token = target.token_file.as_deref().map(std::fs::read_to_string).transpose();
        let token = token.map_err(|why| MonitorError::file(target.token_file.as_deref(), &why))?;
        let token = token.map(|token| token.trim().to_owned());
        let trust = target.trust.as_deref().map(scitt_service::trust).transpose();
        let trust =
            trust.map_err(|why| MonitorError::Target { log: target.name.clone(), why: why.to_string() })?;
        let key = target.index.as_ref().and_then(|index| index.attestation.as_ref());
        let attestor = key.map(|key| Attestor::open(&key.name, &key.file)).transpose();
        let attestor = attestor.map_err(|why| MonitorError::Target { log: target.name.clone(), why })?;
        let options = Options { extra_roots: roots.clone(), ..Options::default() };
        let client = TlogClient::new(target.url.as_str(), options)
            .map_err(|why| MonitorError::Target { log: target.name.clone(), why: why.to_string() })?;
        let state = match folder.load(&target)? {
            Some(state) => state,
            None => beginning(&target, now)?,
        };
        Ok(Self {
            prover: ConsistencyProver::of(client),
            target,
            folder,
            roots,
            token,
            trust,
            attestor,
            state,
            deep_for: None,
            grace: DEEP_GRACE,
        })
    }

    /// Limits the entries check and the decisions check to `deep_for` each in one round.
    pub fn limit(&mut self, deep_for: Duration) {
        self.deep_for = Some(deep_for);
    }

    /// Sets the additional time after which an unfinished check is cancelled.
    pub fn give_up_after(&mut self, grace: Duration) {
        self.grace = grace;
    }

    /// The log's state.
    pub fn state(&self) -> &LogState {
        &self.state
    }

    /// The log's name in the configuration.
    pub fn name(&self) -> &str {
        &self.target.name
    }

    /// Makes one round; `now` is the monitor's time in Unix seconds.
    pub async fn round(&mut self, now: u64) -> Round {
        let before = self.prover.cost();
        let mut book = Book::new(&self.target.name, now);
        let (answer, views) = self.ask(&mut book).await;
        let mut shown = None;
        if let Some(CheckpointResponse { seen, date, .. }) = answer {
            self.judge(&mut book, &seen, date.as_deref(), views).await;
            shown = Some(PresentedCheckpoint {
                size: seen.size.get(),
                root: seen.root.to_string(),
                cosigned_at: seen.cosigned_at,
                seen: seen.sighting,
            });
        }
        self.keep(&mut book);
        book.checks.sort_by_key(|check| check.name);
        Round {
            log: self.target.name.clone(),
            origin: self.target.origin.to_string(),
            at: now,
            shown,
            verified: self.state.verified.as_ref().map(|verified| verified.size),
            checks: book.checks,
            alarms: book.alarms,
            index: book.index,
            cost: self.prover.cost().since(before),
        }
    }

    /// Fetches the log's checkpoint, then those of the vantage points, at about the same time.
    async fn ask(&mut self, book: &mut Book) -> (Option<CheckpointResponse>, Vec<View>) {
        let answer = self.checkpoint(book).await;
        match answer {
            Some(answer) => {
                let views = vantage::fetch_all(&self.target, self.roots.as_ref(), book.now).await;
                (Some(answer), views)
            }
            None => (None, Vec::new()),
        }
    }

    /// Fetches the log's newest checkpoint and verifies its signature. A checkpoint smaller than the last verified one
    /// is fetched up to [`FETCH_ATTEMPTS`] times, because a cache may be behind.
    async fn checkpoint(&mut self, book: &mut Book) -> Option<CheckpointResponse> {
        let known = self.state.verified.as_ref().map_or(TreeSize::EMPTY, |last| TreeSize::new(last.size));
        let mut answer = None;
        for attempt in 0..FETCH_ATTEMPTS {
            if attempt > 0 {
                tokio::time::sleep(FETCH_PAUSE).await;
            }
            let ReceivedCheckpoint { note, date, with_proof } = match self.note(known).await {
                Ok(fetched) => fetched,
                Err(error) => {
                    self.silent(book, &error);
                    return None;
                }
            };
            let from = self.prover.client().base().to_string();
            match SeenCheckpoint::open(&note, &self.target, &from, book.now) {
                Ok(seen) => {
                    let enough = seen.size >= known;
                    answer = Some(CheckpointResponse { seen, date, with_proof });
                    if enough {
                        break;
                    }
                }
                Err(NotTheLogs { kind: None, words }) => {
                    let path = "checkpoint".to_owned();
                    self.silent(book, &TlogError::Nonsense { path, why: words });
                    return None;
                }
                Err(NotTheLogs { kind: Some(kind), words }) => {
                    self.state.works(SILENCE);
                    let evidence = self.not_the_logs(&note, from, book.now);
                    book.ok(CheckName::Reachable, "the log answers");
                    book.accuse(CheckName::Signature, kind, AlarmSubject::Log, words, evidence);
                    return None;
                }
            }
        }
        self.state.works(SILENCE);
        let words = match answer.as_ref().is_some_and(|answer| answer.with_proof) {
            true => {
                "the log answers; its checkpoint came with a proof, and what it serves as checkpoint was not read"
            }
            false => "the log answers",
        };
        book.ok(CheckName::Reachable, words);
        book.ok(CheckName::Signature, format!("signed by {}", self.target.vkey.name()));
        answer
    }

    /// Fetches a checkpoint: with a consistency proof if `lean` is set and the log supports it, otherwise alone.
    async fn note(&self, known: TreeSize) -> Result<ReceivedCheckpoint, TlogError> {
        if self.target.lean
            && let Some(note) = self.prover.checkpoint_with_proof(known).await?
        {
            return Ok(ReceivedCheckpoint { note, date: None, with_proof: true });
        }
        let fetched = self.prover.client().checkpoint().await?;
        Ok(ReceivedCheckpoint { note: fetched.note, date: fetched.date, with_proof: false })
    }

    /// A note that is not the log's, as evidence; `None` if it is not UTF-8.
    fn not_the_logs(&self, note: &Bytes, from: String, at: u64) -> Option<Evidence> {
        let note = std::str::from_utf8(note).ok()?.to_owned();
        let seen = Sighting { note, from, at };
        Some(Evidence::Checkpoint { vkey: self.target.vkey.to_string(), seen })
    }

    fn silent(&mut self, book: &mut Book, error: &TlogError) {
        let lasts = self.state.trouble(SILENCE, book.now);
        book.unanswered(CheckName::Reachable, error.to_string());
        if lasts >= self.target.unreachable_after.as_secs() {
            let words = format!("no checkpoint for {lasts} s: {error}");
            book.alarm(AlarmKind::Unreachable, AlarmSubject::Log, words, None);
        }
    }

    /// Makes all checks of a checkpoint.
    async fn judge(&mut self, book: &mut Book, seen: &SeenCheckpoint, date: Option<&str>, views: Vec<View>) {
        let Self { target, prover, state, folder, roots, token, trust, attestor, deep_for, grace } = self;
        let (at_most, grace) = (*deep_for, *grace);
        let span = spans::check(CheckName::Consistency);
        let mut growth = Growth { target, prover, state, book };
        let verified = growth.check(seen).instrument(span.clone()).await;
        spans::end_check(&span, CheckName::Consistency, book);
        let cosigned_at = views.iter().filter_map(|view| view.cosigned(seen)).chain(seen.cosigned_at).max();
        let times = FreshnessTimes { cosigned_at, quorum: seen.quorum, date };
        freshness::check(target, state, book, &times);
        book.show(AlarmKind::passes, || Evidence::Checkpoint {
            vkey: target.vkey.to_string(),
            seen: seen.sighting.clone(),
        });
        if verified {
            // Save the verified checkpoint now, in case the rest of the round is cancelled.
            let _ = folder.keep(state);
        }
        match (target.depth >= Depth::Entries, verified) {
            (false, _) => {
                book.not_checked(CheckName::Entries, "entries are not asked for: depth is checkpoints")
            }
            (true, false) => {
                book.not_checked(CheckName::Entries, "the tree they would be of is not verified")
            }
            (true, true) => {
                let kept = |state: &LogState| folder.keep(state).is_ok();
                let span = spans::check(CheckName::Entries);
                let mut entries = EntriesCheck { target, prover, state, book, at_most, grace };
                entries.check(seen, kept).instrument(span.clone()).await;
                spans::end_check(&span, CheckName::Entries, book);
            }
        }
        Comparison { target, prover, state, book, verified }.compare(seen, views).await;
        Decisions {
            target,
            folder,
            state,
            roots: roots.as_ref(),
            token: token.as_deref(),
            trust: trust.as_ref(),
            attestor: attestor.as_ref(),
            book,
            at_most,
            grace,
        }
        .check(verified.then_some(seen))
        .await;
    }

    /// Records that the sink has saved the last round, so that the watch lists and the index check do not report their
    /// findings again.
    pub fn mark_reported(&self) {
        if self.target.depth != Depth::Decisions {
            return;
        }
        let index = match &self.target.index {
            Some(_) => IndexResults::mark_reported(&self.folder),
            None => Ok(()),
        };
        if let Err(why) = Watching::mark_reported(&self.folder, now()).and(index) {
            tracing::warn!(log = %self.target.name, "the findings of this round will be reported again: {why}");
        }
    }

    fn keep(&mut self, book: &mut Book) {
        match self.folder.keep(&self.state) {
            Ok(()) => book.ok(CheckName::Kept, "the next round goes on from here"),
            Err(why) => {
                book.failed(CheckName::Kept, format!("the next round begins where this one did: {why}"))
            }
        }
    }
}

/// The initial state: the configured start checkpoint, or empty.
fn beginning(target: &WatchedLog, now: u64) -> Result<LogState, MonitorError> {
    let mut state = LogState::new(target);
    let Some(path) = &target.start else { return Ok(state) };
    let note = std::fs::read(path).map_err(|why| MonitorStateError::File { path: path.clone(), why })?;
    let seen = SeenCheckpoint::open(&note, target, &path.display().to_string(), now)
        .map_err(|why| MonitorError::Target { log: target.name.clone(), why: why.words })?;
    state.began = Some(Beginning { at: now, size: seen.size.get(), because: Because::Given });
    state.verified = Some(Verified::of(&seen));
    Ok(state)
}

impl View {
    /// Newest cosignature time, if the vantage point shows the same tree.
    fn cosigned(&self, same: &SeenCheckpoint) -> Option<u64> {
        let seen = self.seen.as_ref().ok()?.as_ref()?;
        seen.is_same_tree(same).then_some(seen.cosigned_at)?
    }
}

impl Cost {
    /// The cost added since `before`.
    fn since(self, before: Self) -> Self {
        Self {
            requests: self.requests - before.requests,
            bytes: self.bytes - before.bytes,
            hashes: self.hashes - before.hashes,
        }
    }
}
