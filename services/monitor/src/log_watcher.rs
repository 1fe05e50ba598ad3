//! Watches one log by its checkpoints and tiles: each round makes all checks of the log, in a fixed order.
//!
//! Not here: SCITT services that are watched by their receipts (`scitt_service`), and the checks themselves.

use std::time::Duration;

use bytes::Bytes;
use client::tlog::{Options, TlogClient, TlogError};
use merkle::TreeSize;
use tracing::Instrument;
use verifier::TrustStore;

use crate::alarm::{AlarmKind, AlarmSubject};
use crate::check_name::CheckName;
use crate::clock::now;
use crate::config::{Depth, WatchedLog};
use crate::consistency::ConsistencyProver;
use crate::decisions::DecisionsCheck;
use crate::entries::EntriesCheck;
use crate::error::MonitorError;
use crate::evidence::{Evidence, Sighting};
use crate::freshness::{self, FreshnessTimes};
use crate::growth::{GrowthCheck, remember_unproven};
use crate::index::{Attestor, IndexResults};
use crate::limits::{DEEP_GRACE, FETCH_ATTEMPTS, FETCH_PAUSE};
use crate::round::{Cost, PresentedCheckpoint, Round};
use crate::round_results::RoundResults;
use crate::scitt_service;
use crate::signed_checkpoint::{CheckpointRejection, SignedCheckpoint};
use crate::spans;
use crate::state::{LogFolder, LogState, MonitorStateError, SavedCheckpoint, TrustReason, WatchStart};
use crate::vantage::{self, VantageCheck, VantageResponse};
use crate::watch_lists::WatchLists;

/// Trouble name (see `LogState::record_trouble`) of a log that does not answer.
const SILENCE: &str = "log";

/// Watches one log by its checkpoints and tiles.
pub struct LogWatcher {
    target: WatchedLog,
    folder: LogFolder,
    prover: ConsistencyProver,
    roots: Option<Bytes>,
    token: Option<String>,
    trust: Option<TrustStore>,
    attestor: Option<Attestor>,
    state: LogState,
    deep_check_limit: Option<Duration>,
    grace: Duration,
}

/// A checkpoint of the log with a verified signature, and the `Date` of the response.
struct CheckpointResponse {
    seen: SignedCheckpoint,
    date: Option<String>,
    /// `true` if it was received with a consistency proof, not from the public `checkpoint` path.
    with_proof: bool,
}

/// A checkpoint as received, before its signature is verified.
struct ReceivedCheckpoint {
    note: Bytes,
    date: Option<String>,
    with_proof: bool,
}

impl LogWatcher {
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
            None => initial_state(&target, now)?,
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
            deep_check_limit: None,
            grace: DEEP_GRACE,
        })
    }

    /// Limits the entries check and the decisions check to `deep_check_limit` each in one round.
    pub fn limit_deep_checks(&mut self, deep_check_limit: Duration) {
        self.deep_check_limit = Some(deep_check_limit);
    }

    /// Sets the additional time after which an unfinished check is cancelled.
    pub fn set_grace(&mut self, grace: Duration) {
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
        self.state.contradicted = None;
        let mut results = RoundResults::new(&self.target.name, now);
        let (answer, responses) = self.fetch(&mut results).await;
        let mut shown = None;
        if let Some(CheckpointResponse { seen, date, .. }) = answer {
            self.check(&mut results, &seen, date.as_deref(), responses).await;
            shown = Some(PresentedCheckpoint {
                size: seen.size.get(),
                root: seen.root.to_string(),
                cosigned_at: seen.cosigned_at,
                seen: seen.sighting,
            });
        }
        self.save_state(&mut results);
        results.checks.sort_by_key(|check| check.name);
        Round {
            log: self.target.name.clone(),
            origin: self.target.origin.to_string(),
            at: now,
            shown,
            verified: self.state.verified.as_ref().map(|verified| verified.size),
            checks: results.checks,
            made: results.made,
            alarms: results.alarms,
            index: results.index,
            cost: self.prover.cost().since(before),
        }
    }

    /// Fetches the log's checkpoint, then those of the vantage points, at about the same time.
    async fn fetch(
        &mut self,
        results: &mut RoundResults,
    ) -> (Option<CheckpointResponse>, Vec<VantageResponse>) {
        let answer = self.fetch_checkpoint(results).await;
        match answer {
            Some(answer) => {
                let responses = vantage::fetch_all(&self.target, self.roots.as_ref(), results.now).await;
                (Some(answer), responses)
            }
            None => (None, Vec::new()),
        }
    }

    /// Fetches the log's newest checkpoint and verifies its signature. A checkpoint smaller than the last verified one
    /// is fetched up to [`FETCH_ATTEMPTS`] times, because a cache may be behind. One that a retry supersedes is compared
    /// with the verified tree later: the log signed it, too.
    async fn fetch_checkpoint(&mut self, results: &mut RoundResults) -> Option<CheckpointResponse> {
        let known = self.state.verified.as_ref().map_or(TreeSize::EMPTY, |last| TreeSize::new(last.size));
        let mut answer: Option<CheckpointResponse> = None;
        for attempt in 0..FETCH_ATTEMPTS {
            if attempt > 0 {
                tokio::time::sleep(FETCH_PAUSE).await;
            }
            let superseded = answer;
            answer = self.fetch_checkpoint_once(known, results).await;
            let head = answer.as_ref().map(|answer| answer.seen.head());
            if let Some(smaller) = superseded.filter(|smaller| head != Some(smaller.seen.head())) {
                remember_unproven(&self.target, &mut self.state, results, &smaller.seen);
            }
            if head.is_none_or(|head| head.size >= known) {
                break;
            }
        }
        let answer = answer?;
        self.state.end_trouble(SILENCE);
        let words = match answer.with_proof {
            true => {
                "the log answers; its checkpoint was received with a proof, and its public `checkpoint` was not read"
            }
            false => "the log answers",
        };
        results.ok(CheckName::Reachable, words);
        results.ok(CheckName::Signature, format!("signed by {}", self.target.vkey.name()));
        Some(answer)
    }

    /// Fetches the log's newest checkpoint and verifies its signature; records why there is none.
    async fn fetch_checkpoint_once(
        &mut self,
        known: TreeSize,
        results: &mut RoundResults,
    ) -> Option<CheckpointResponse> {
        let ReceivedCheckpoint { note, date, with_proof } = match self.fetch_note(known).await {
            Ok(fetched) => fetched,
            Err(error) => {
                self.record_silence(results, &error);
                return None;
            }
        };
        let from = self.prover.client().base().to_string();
        match SignedCheckpoint::open(&note, &self.target, &from, results.now) {
            Ok(seen) => return Some(CheckpointResponse { seen, date, with_proof }),
            Err(CheckpointRejection { kind: None, words }) => {
                let path = "checkpoint".to_owned();
                self.record_silence(results, &TlogError::Nonsense { path, why: words });
            }
            Err(CheckpointRejection { kind: Some(kind), words }) => {
                self.state.end_trouble(SILENCE);
                let evidence = self.rejected_note(&note, from, results.now);
                results.ok(CheckName::Reachable, "the log answers");
                results.accuse(CheckName::Signature, kind, AlarmSubject::Log, words, evidence);
            }
        }
        None
    }

    /// Fetches a checkpoint: with a consistency proof if `lean` is set and the log supports it, otherwise alone.
    async fn fetch_note(&self, known: TreeSize) -> Result<ReceivedCheckpoint, TlogError> {
        if self.target.lean
            && let Some(note) = self.prover.checkpoint_with_proof(known).await?
        {
            return Ok(ReceivedCheckpoint { note, date: None, with_proof: true });
        }
        let fetched = self.prover.client().checkpoint().await?;
        Ok(ReceivedCheckpoint { note: fetched.note, date: fetched.date, with_proof: false })
    }

    /// A note that is not the log's, as evidence; `None` if it is not UTF-8.
    fn rejected_note(&self, note: &Bytes, from: String, at: u64) -> Option<Evidence> {
        let note = std::str::from_utf8(note).ok()?.to_owned();
        Some(Evidence::checkpoint(&self.target, &Sighting { note, from, at }))
    }

    fn record_silence(&mut self, results: &mut RoundResults, error: &TlogError) {
        let lasts = self.state.record_trouble(SILENCE, results.now);
        results.unanswered(CheckName::Reachable, error.to_string());
        if lasts >= self.target.unreachable_after.as_secs() {
            let words = format!("no checkpoint for {lasts} s: {error}");
            results.alarm(CheckName::Reachable, AlarmKind::Unreachable, AlarmSubject::Log, words, None);
        }
    }

    /// Makes all checks of a checkpoint.
    async fn check(
        &mut self,
        results: &mut RoundResults,
        seen: &SignedCheckpoint,
        date: Option<&str>,
        responses: Vec<VantageResponse>,
    ) {
        let Self { target, prover, state, folder, roots, token, trust, attestor, deep_check_limit, grace } =
            self;
        let (at_most, grace) = (*deep_check_limit, *grace);
        let span = spans::check(CheckName::Consistency);
        let mut growth = GrowthCheck { target, prover, state, results };
        let verified = growth.check(seen).instrument(span.clone()).await;
        spans::end_check(&span, CheckName::Consistency, results);
        let cosigned_at =
            responses.iter().filter_map(|response| response.cosigned(seen)).chain(seen.cosigned_at).max();
        let times = FreshnessTimes { cosigned_at, quorum: seen.quorum, date };
        freshness::check(target, state, results, &times);
        results.attach_evidence(AlarmKind::passes, || Evidence::checkpoint(target, &seen.sighting));
        if verified {
            // Save the verified checkpoint now, in case the rest of the round is cancelled.
            let _ = folder.keep(state);
        }
        match (target.depth >= Depth::Entries, verified) {
            (false, _) => {
                results.not_checked(CheckName::Entries, "entries are not read: depth is checkpoints")
            }
            (true, false) => results.not_checked(CheckName::Entries, "the log's tree is not verified"),
            (true, true) => {
                let kept = |state: &LogState| folder.keep(state).is_ok();
                let span = spans::check(CheckName::Entries);
                let mut entries = EntriesCheck { target, prover, state, results, at_most, grace };
                entries.check(seen, kept).instrument(span.clone()).await;
                spans::end_check(&span, CheckName::Entries, results);
            }
        }
        VantageCheck { target, prover, state, results, verified }.check(seen, responses).await;
        DecisionsCheck {
            target,
            folder,
            prover,
            state,
            roots: roots.as_ref(),
            token: token.as_deref(),
            trust: trust.as_ref(),
            attestor: attestor.as_ref(),
            results,
            at_most,
            grace,
        }
        .check(verified.then_some(seen))
        .await;
    }

    /// Records that the sink has saved the last round, so that its findings are not reported again: a fork that an earlier
    /// checkpoint shows, and what the watch lists and the index check found.
    pub fn mark_reported(&mut self) {
        if let Err(why) = self.forget_reported() {
            tracing::warn!(log = %self.target.name, "the findings of this round will be reported again: {why}");
        }
    }

    fn forget_reported(&mut self) -> Result<(), MonitorStateError> {
        let fork = match self.state.forget_contradicted() {
            true => self.folder.keep(&self.state),
            false => Ok(()),
        };
        if self.target.depth != Depth::Decisions {
            return fork;
        }
        let index = match &self.target.index {
            Some(_) => IndexResults::mark_reported(&self.folder),
            None => Ok(()),
        };
        WatchLists::mark_reported(&self.folder, now()).and(index).and(fork)
    }

    fn save_state(&mut self, results: &mut RoundResults) {
        match self.folder.keep(&self.state) {
            Ok(()) => results.ok(CheckName::Kept, "the next round continues from here"),
            Err(why) => {
                results.failed(CheckName::Kept, format!("the next round starts where this one did: {why}"))
            }
        }
    }
}

/// The initial state: the configured start checkpoint, or empty.
fn initial_state(target: &WatchedLog, now: u64) -> Result<LogState, MonitorError> {
    let mut state = LogState::new(target);
    let Some(path) = &target.start else { return Ok(state) };
    let note = std::fs::read(path).map_err(|why| MonitorStateError::File { path: path.clone(), why })?;
    let seen = SignedCheckpoint::open(&note, target, &path.display().to_string(), now)
        .map_err(|why| MonitorError::Target { log: target.name.clone(), why: why.words })?;
    state.began = Some(WatchStart { at: now, size: seen.size.get(), because: TrustReason::Given });
    state.verified = Some(SavedCheckpoint::of(&seen));
    Ok(state)
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
