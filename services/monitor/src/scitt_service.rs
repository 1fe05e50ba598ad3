//! A SCITT transparency service, watched by its receipts for selected entries.
//!
//! Each round fetches a receipt of every entry (SCRAPI: `GET entries/{id}`) and verifies it offline with configured
//! keys: RFC 9942 receipts of Tabellion's structure (vds 1) and of CCF ledgers (vds 2). The signed data is compared:
//! one root for a tree size ("tree-size", signed by Tabellion logs) or for a ledger's transaction (`txid`). Two roots
//! are a fork, shown by both receipts. A tree size that decreases for an entry is a rollback, and an entry that had a
//! receipt and is no longer served has vanished; both are alarms only if they last, because a replica may be behind. An
//! unknown key is an alarm; a response that is not a receipt counts as no answer.
//!
//! Not here: consistency between receipts. Receipts of vds 1 without a signed size, and those of a ledger, say nothing
//! about other trees: two of different sizes cannot be related. To prove that, watch the log's tiles instead.

mod files;
mod memory;

use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use client::{Client, ClientError};
use merkle::EntryDigest;
use scitt::SignedStatement;
use verifier::{Code, ReceiptFacts, StatementVerdict, TrustStore, VerificationOutcome};

use crate::alarm::{Alarm, AlarmKind, AlarmSubject};
use crate::check_name::CheckName;
use crate::config::{ServiceTarget, WatchedEntry, WatchedStatement};
use crate::evidence::{Evidence, ReceiptSeen};
use crate::limits::{DOUBT_SIGHTINGS, MAX_RECEIPT_KEPT, SERVICE_EXCHANGE};
use crate::round::{Cost, Round};
use crate::round_results::RoundResults;
use crate::state::{LogFolder, MonitorStateDir, MonitorStateError};

pub(crate) use files::trust;
use memory::{LagObservation, SavedReceipt, ServiceMemory};

/// Errors of opening a service.
#[derive(Debug, thiserror::Error)]
pub enum BadService {
    /// A file is missing or invalid.
    #[error("{}: {why}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Reason for the rejection.
        why: String,
    },
    /// The HTTP client cannot be created.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The saved state cannot be used.
    #[error(transparent)]
    State(#[from] MonitorStateError),
}

/// Watches one SCITT service.
#[derive(Debug)]
pub struct ServiceWatcher {
    name: String,
    unreachable_after: Duration,
    lag: Duration,
    client: Client,
    trust: TrustStore,
    entries: Vec<Entry>,
    folder: LogFolder,
    memory: ServiceMemory,
}

#[derive(Debug)]
struct Entry {
    id: String,
    digest: EntryDigest,
    statement: Option<SignedStatement>,
}

/// Results of a round, in addition to its checks.
#[derive(Default)]
struct RoundTally {
    asked: u64,
    bytes: u64,
    verified: u64,
    unanswered: Vec<String>,
    unseen: Vec<String>,
    /// Descriptions of alarms-to-be that have not lasted long enough, with the check that they leave undecided.
    doubtful: Vec<(CheckName, String)>,
    largest: Option<u64>,
}

impl ServiceWatcher {
    /// Reads the target's files and the saved state.
    ///
    /// # Errors
    /// [`BadService`] if a file or the saved state cannot be used.
    pub fn open(target: &ServiceTarget, state: &MonitorStateDir) -> Result<Self, BadService> {
        let options = client::Options {
            patience: SERVICE_EXCHANGE,
            extra_roots: target.ca_file.as_deref().map(files::read).transpose()?.map(Bytes::from),
            ..client::Options::default()
        };
        let entries = target.entries.iter().map(Entry::open).collect::<Result<_, _>>()?;
        let folder = state.log(&target.name)?;
        Ok(Self {
            memory: ServiceMemory::load(&folder)?,
            name: target.name.clone(),
            unreachable_after: target.unreachable_after,
            lag: target.lag,
            client: Client::new(target.url.as_str(), options)?,
            trust: trust(&target.trust)?,
            entries,
            folder,
        })
    }

    /// The service's name in the configuration.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Fetches and judges a receipt of every entry.
    pub async fn round(&mut self, now: u64) -> Round {
        let mut results = RoundResults::new(&self.name, now);
        let mut tally = RoundTally::default();
        for place in 0..self.entries.len() {
            tally.asked += 1;
            let answer = self.client.receipt_named(&self.entries[place].id).await;
            self.take_answer(place, answer, &mut results, &mut tally);
        }
        self.reach(&tally, &mut results);
        Self::conclude(&tally, &mut results);
        match self.memory.keep(&self.folder) {
            Ok(()) => results.ok(CheckName::Kept, "the next round continues from here"),
            Err(why) => {
                results.failed(CheckName::Kept, format!("the next round starts where this one did: {why}"))
            }
        }
        results.checks.sort_by_key(|check| check.name);
        Round {
            log: self.name.clone(),
            origin: self.client.base().to_string(),
            at: now,
            shown: None,
            verified: tally.largest,
            checks: results.checks,
            index: None,
            made: results.made,
            alarms: results.alarms,
            cost: Cost { requests: tally.asked, bytes: tally.bytes, hashes: 0 },
        }
    }

    fn take_answer(
        &mut self,
        place: usize,
        answer: Result<Bytes, ClientError>,
        results: &mut RoundResults,
        tally: &mut RoundTally,
    ) {
        let id = self.entries[place].id.clone();
        match answer {
            Ok(receipt) => {
                tally.bytes += receipt.len() as u64;
                self.judge(place, &receipt, results, tally);
            }
            Err(error) if is_gone(&error) => match self.memory.last(&id) {
                Some(kept) => {
                    let words = format!("entry {id} had a receipt, and is no longer served");
                    let evidence = self.evidence([kept.seen.clone()]);
                    match self.lasts(LagObservation::Gone, &id, results.now) {
                        true => accuse(results, AlarmKind::Vanished, &id, words, evidence),
                        false => tally.doubtful.push((CheckName::Entries, words)),
                    }
                }
                None => tally.unseen.push(id),
            },
            Err(error) => tally.unanswered.push(format!("{id}: {error}")),
        }
    }

    fn judge(&mut self, place: usize, receipt: &[u8], results: &mut RoundResults, tally: &mut RoundTally) {
        let Entry { id, digest, statement } = &self.entries[place];
        let statement = statement.as_ref();
        let seen = ReceiptSeen::of(*digest, statement, receipt, self.client.base(), results.now);
        let verdict = verify(*digest, statement, receipt, &self.trust, results.now);
        if let Some(why) = no_receipt(receipt, &verdict) {
            return tally.unanswered.push(format!("{id}: {why}"));
        }
        let Some(facts) = verdict.receipts.first().filter(|facts| facts.verified) else {
            let (kind, words) = refusal(&verdict);
            return accuse(results, kind, id, format!("entry {id}: {words}"), self.evidence([seen]));
        };
        tally.verified += 1;
        let place = ReceiptPosition::of(facts);
        let kept = SavedReceipt {
            seen,
            place: place.as_ref().map(ReceiptPosition::to_string),
            root: facts.root.clone(),
        };
        if let Some(other) = self.memory.contradiction(&kept) {
            let name = kept.place.clone().unwrap_or_default();
            let words = format!("two roots were signed for {name}");
            let evidence = self.evidence([other.seen.clone(), kept.seen.clone()]);
            return accuse(results, AlarmKind::Fork, &name, words, evidence);
        }
        let id = id.clone();
        self.memory.settled(LagObservation::Gone, &id);
        if let Some(ReceiptPosition::Size { size, .. }) = place {
            tally.largest = tally.largest.max(Some(size));
            if let Some(before) = self.larger_before(&id, size) {
                let words = format!("entry {id}: a receipt of tree size {}, then one of {size}", before.0);
                let evidence = self.evidence([before.1.seen.clone(), kept.seen.clone()]);
                return match self.lasts(LagObservation::Older, &id, results.now) {
                    true => accuse(results, AlarmKind::Rollback, &id, words, evidence),
                    false => tally.doubtful.push((CheckName::Growth, words)),
                };
            }
        }
        self.memory.settled(LagObservation::Older, &id);
        self.memory.remember(&id, kept);
    }

    /// Records a sighting of a doubt. Returns `true` if it has lasted for `lag` and at least [`DOUBT_SIGHTINGS`] sightings.
    fn lasts(&mut self, doubt: LagObservation, id: &str, now: u64) -> bool {
        let (sightings, since) = self.memory.doubted(doubt, id, now);
        sightings >= DOUBT_SIGHTINGS && now.saturating_sub(since) >= self.lag.as_secs()
    }

    /// The last receipt, if it was for a larger tree: a receipt may be as old as the last one, but not older.
    fn larger_before(&self, id: &str, size: u64) -> Option<(u64, &SavedReceipt)> {
        let last = self.memory.last(id)?;
        let before = last.signed_size(&self.trust)?;
        (before > size).then_some((before, last))
    }

    fn evidence<const N: usize>(&self, receipts: [ReceiptSeen; N]) -> Evidence {
        let trust = TrustStore { logs: self.trust.logs.clone(), ..TrustStore::default() };
        Evidence::Receipts { trust: trust.to_toml(), receipts: receipts.into() }
    }

    /// Records the reachability check; [`AlarmKind::Unreachable`] only after `unreachable_after`, because networks fail
    /// temporarily.
    fn reach(&mut self, tally: &RoundTally, results: &mut RoundResults) {
        match tally.unanswered.first() {
            None => {
                self.memory.unreachable_since = None;
                results.ok(CheckName::Reachable, format!("entries requested: {}", tally.asked));
            }
            Some(why) => {
                let since = *self.memory.unreachable_since.get_or_insert(results.now);
                results.unanswered(CheckName::Reachable, why.clone());
                if results.now.saturating_sub(since) > self.unreachable_after.as_secs() {
                    results.alarm(
                        CheckName::Reachable,
                        AlarmKind::Unreachable,
                        AlarmSubject::Log,
                        why.clone(),
                        None,
                    );
                }
            }
        }
    }

    /// Records the remaining checks according to [`CONCLUSIONS`].
    fn conclude(tally: &RoundTally, results: &mut RoundResults) {
        for (name, kinds, words) in CONCLUSIONS {
            let bad = |alarm: &Alarm| kinds.contains(&alarm.kind);
            match results.alarms.iter().find(|alarm| bad(alarm)).map(|alarm| alarm.words.clone()) {
                Some(words) => results.failed(*name, words),
                None if tally.doubtful.iter().any(|(of, _)| of == name) => {
                    let doubtful = tally.doubtful.iter().find(|(of, _)| of == name);
                    let words = doubtful.map_or("", |(_, words)| words);
                    results.not_checked(
                        *name,
                        format!("{words}; a replica may be behind: checked again in the next round"),
                    );
                }
                None if *name == CheckName::Entries && !tally.unseen.is_empty() => {
                    let unseen = &tally.unseen;
                    results.not_checked(
                        *name,
                        format!("entries never served: {}, such as {}", unseen.len(), unseen[0]),
                    );
                }
                None if tally.verified == 0 => results.not_checked(*name, "no receipt was received"),
                None => match tally.unanswered.first() {
                    Some(why) => results.unanswered(*name, why.clone()),
                    None => results.ok(*name, format!("receipts: {}; {words}", tally.verified)),
                },
            }
        }
    }
}

/// The checks, the alarms that make each fail, and the description of success.
const CONCLUSIONS: &[(CheckName, &[AlarmKind], &str)] = &[
    (
        CheckName::Signature,
        &[
            AlarmKind::UnknownKey,
            AlarmKind::RetiredKey,
            AlarmKind::BadSignature,
            AlarmKind::Inconsistent,
            AlarmKind::OtherLog,
            AlarmKind::Clock,
        ],
        "each verifies with a pinned key",
    ),
    (CheckName::Growth, &[AlarmKind::Rollback], "no signed tree size decreased"),
    (CheckName::Consistency, &[AlarmKind::Fork], "one root for each signed tree"),
    (CheckName::Entries, &[AlarmKind::Vanished], "all entries are still served"),
];

impl Entry {
    fn open(watched: &WatchedEntry) -> Result<Self, BadService> {
        let (digest, statement) = match &watched.what {
            WatchedStatement::Digest(digest) => (*digest, None),
            WatchedStatement::File(path) => {
                let statement = files::statement(path)?;
                (statement.digest(), Some(statement))
            }
        };
        Ok(Self { id: watched.id.clone().unwrap_or_else(|| digest.to_string()), digest, statement })
    }
}

/// The signed position of a verified receipt: two different roots for one position are a fork.
pub(crate) enum ReceiptPosition {
    /// A tree size.
    Size {
        /// The log's issuer name.
        log: String,
        /// Tree size: the number of leaves.
        size: u64,
    },
    /// A transaction of a CCF ledger.
    Transaction {
        /// The ledger's issuer name.
        log: String,
        /// The transaction's `txid`.
        id: String,
    },
}

impl ReceiptPosition {
    pub(crate) fn of(facts: &ReceiptFacts) -> Option<Self> {
        let log = facts.log.clone().unwrap_or_default();
        match (facts.position.filter(|position| position.signed), &facts.transaction) {
            (Some(position), _) => Some(Self::Size { log, size: position.tree_size.get() }),
            // Only a receipt without a position is one of a ledger; for others the label has no meaning.
            (None, Some(id)) if facts.position.is_none() => Some(Self::Transaction { log, id: id.clone() }),
            _ => None,
        }
    }
}

impl std::fmt::Display for ReceiptPosition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Size { log, size } => write!(f, "{log}, size {size}"),
            Self::Transaction { log, id } => write!(f, "{log}, transaction {id}"),
        }
    }
}

pub(crate) fn verify(
    entry: EntryDigest,
    statement: Option<&SignedStatement>,
    receipt: &[u8],
    trust: &TrustStore,
    now: u64,
) -> StatementVerdict {
    match statement {
        Some(statement) => verifier::verify_receipt(statement, receipt, trust, now),
        None => verifier::verify_receipt_of(entry, receipt, trust, now),
    }
}

/// The reason why a response is not a receipt: an error page, an unsupported structure, or larger than
/// [`MAX_RECEIPT_KEPT`].
fn no_receipt(received: &[u8], verdict: &StatementVerdict) -> Option<String> {
    match verdict.reason {
        Some(Code::MalformedReceipt | Code::UnsupportedStructure) => {
            let why = verdict.why();
            Some(format!("the answer is not a receipt: {why}"))
        }
        _ if received.len() > MAX_RECEIPT_KEPT => {
            Some(format!("a receipt of {} bytes, and {MAX_RECEIPT_KEPT} are kept", received.len()))
        }
        _ => None,
    }
}

/// The alarm for a receipt that does not verify.
fn refusal(verdict: &StatementVerdict) -> (AlarmKind, String) {
    let words = verdict.why().to_owned();
    let kind = match verdict.reason {
        Some(Code::UnknownLog | Code::UnknownLogKey) => AlarmKind::UnknownKey,
        Some(Code::ReceiptSubjectMismatch) => AlarmKind::OtherLog,
        Some(Code::ReceiptSignatureInvalid) => AlarmKind::BadSignature,
        Some(Code::LogKeyRetired | Code::LogKeyCompromised) => AlarmKind::RetiredKey,
        Some(Code::ReceiptExpired | Code::ReceiptNotYetValid) => AlarmKind::Clock,
        _ => AlarmKind::Inconsistent,
    };
    debug_assert!(verdict.outcome != VerificationOutcome::Verified, "a verified receipt is not a refusal");
    (kind, words)
}

fn accuse(results: &mut RoundResults, kind: AlarmKind, which: &str, words: String, evidence: Evidence) {
    let alarm =
        Alarm::new(kind, &results.log, AlarmSubject::Log, words, results.now).which(which).shown_by(evidence);
    let found_by =
        CONCLUSIONS.iter().find(|(_, kinds, _)| kinds.contains(&kind)).map(|(name, ..)| (*name).into());
    results.alarms.push(Alarm { found_by, ..alarm });
}

/// Returns `true` if the service answers that the entry does not exist (404) or no longer exists (410).
fn is_gone(error: &ClientError) -> bool {
    match error {
        ClientError::NotFound(_) => true,
        ClientError::Refused { status, .. } => status.as_u16() == 410,
        _ => false,
    }
}
