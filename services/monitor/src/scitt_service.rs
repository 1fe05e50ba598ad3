//! A SCITT transparency service, watched by what it says of entries that somebody cares about.
//!
//! Each round fetches a receipt of every entry (SCRAPI: `GET entries/{id}`) and verifies it offline with keys that were
//! given beforehand: RFC 9942 receipts of our structure (vds 1) and of CCF ledgers (vds 2). What is compared is what the
//! service signed: one root for a tree size ("tree-size", which our logs sign) or for a ledger's transaction (`txid`). Two
//! are a fork, and both receipts show it. A size that goes back for one entry is a rollback, and an entry that had a receipt
//! and is not there any more has vanished, once that lasts: a replica that is behind shows both for a while. A key that
//! nobody pinned is an alarm; an answer that is no receipt is none.
//!
//! Not here: growth between receipts. A receipt of vds 1 without a signed size, and one of a ledger, say nothing of other
//! trees: two of different sizes cannot be joined. Whoever wants that proven watches the log's tiles instead.

mod file;
mod memory;

use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use client::{Client, ClientError};
use merkle::EntryDigest;
use scitt::SignedStatement;
use url::Url;
use verifier::{Code, Outcome, ReceiptFacts, TrustStore, Verdict};

use crate::alarm::{About, Alarm, AlarmKind};
use crate::book::Book;
use crate::evidence::{Evidence, ReceiptSeen};
use crate::limits::{LAG, LOOKS, MAX_RECEIPT_KEPT, SERVICE_EXCHANGE, UNREACHABLE_AFTER};
use crate::round::{CheckName, Cost, Round};
use crate::state::{LogFolder, StateDir, StateError};

pub(crate) use file::{Service as ServiceText, trust};
use memory::{Doubt, Kept, Memory};

/// A service that is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceTarget {
    /// What it is called here; also the name of its folder.
    pub name: String,
    /// Where it serves SCRAPI, with a slash at its end.
    pub url: Url,
    /// Whose receipts are believed: a `trust.toml`.
    pub trust: PathBuf,
    /// Certificates to believe besides the system's: a PEM file.
    pub ca_file: Option<PathBuf>,
    /// Silence of the network that lasts longer is an alarm.
    pub unreachable_after: Duration,
    /// How long a replica may be behind: older receipts, and entries that are not there, are an alarm after that.
    pub lag: Duration,
    /// The entries.
    pub entries: Vec<WatchedEntry>,
}

/// An entry whose receipts are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedEntry {
    /// What the service calls it; its digest in hexadecimal unless said otherwise.
    pub id: Option<String>,
    /// What it is.
    pub what: Watched,
}

/// What is known of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Watched {
    /// SHA-256 of its statement.
    Digest(EntryDigest),
    /// The statement, in a file.
    File(PathBuf),
}

/// Why a service cannot be watched.
#[derive(Debug, thiserror::Error)]
pub enum BadService {
    /// A file is not there, or not what it should be.
    #[error("{}: {why}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// It cannot be asked.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// What was remembered cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
}

/// Watches one service.
#[derive(Debug)]
pub struct ServiceWatcher {
    name: String,
    unreachable_after: Duration,
    lag: Duration,
    client: Client,
    trust: TrustStore,
    entries: Vec<Entry>,
    folder: LogFolder,
    memory: Memory,
}

#[derive(Debug)]
struct Entry {
    id: String,
    digest: EntryDigest,
    statement: Option<SignedStatement>,
}

/// What a round found, beside its checks.
#[derive(Default)]
struct Tally {
    asked: u64,
    bytes: u64,
    verified: u64,
    unanswered: Vec<String>,
    unseen: Vec<String>,
    /// What would be an alarm if it lasted, by the check that it leaves open.
    doubtful: Vec<(CheckName, String)>,
    largest: Option<u64>,
}

impl ServiceWatcher {
    /// Reads what the target names, and what was remembered.
    ///
    /// # Errors
    /// If a file cannot be used.
    pub fn open(target: &ServiceTarget, state: &StateDir) -> Result<Self, BadService> {
        let options = client::Options {
            patience: SERVICE_EXCHANGE,
            extra_roots: target.ca_file.as_deref().map(file::read).transpose()?.map(Bytes::from),
            ..client::Options::default()
        };
        let entries = target.entries.iter().map(Entry::open).collect::<Result<_, _>>()?;
        let folder = state.log(&target.name)?;
        Ok(Self {
            memory: Memory::load(&folder)?,
            name: target.name.clone(),
            unreachable_after: target.unreachable_after,
            lag: target.lag,
            client: Client::new(target.url.as_str(), options)?,
            trust: trust(&target.trust)?,
            entries,
            folder,
        })
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Asks for a receipt of every entry, and judges what comes.
    pub async fn round(&mut self, now: u64) -> Round {
        let mut book = Book::new(&self.name, now);
        let mut tally = Tally::default();
        for place in 0..self.entries.len() {
            tally.asked += 1;
            let answer = self.client.receipt_named(&self.entries[place].id).await;
            self.hear(place, answer, &mut book, &mut tally);
        }
        self.reach(&tally, &mut book);
        Self::conclude(&tally, &mut book);
        match self.memory.keep(&self.folder) {
            Ok(()) => book.ok(CheckName::Kept, "the next round goes on from here"),
            Err(why) => {
                book.failed(CheckName::Kept, format!("the next round begins where this one did: {why}"))
            }
        }
        book.checks.sort_by_key(|check| check.name);
        Round {
            log: self.name.clone(),
            origin: self.client.base().to_string(),
            at: now,
            shown: None,
            verified: tally.largest,
            checks: book.checks,
            alarms: book.alarms,
            cost: Cost { requests: tally.asked, bytes: tally.bytes, hashes: 0 },
        }
    }

    fn hear(&mut self, place: usize, answer: Result<Bytes, ClientError>, book: &mut Book, tally: &mut Tally) {
        let id = self.entries[place].id.clone();
        match answer {
            Ok(receipt) => {
                tally.bytes += receipt.len() as u64;
                self.judge(place, &receipt, book, tally);
            }
            Err(error) if is_gone(&error) => match self.memory.last(&id) {
                Some(kept) => {
                    let words = format!("entry {id} had a receipt, and is not there any more");
                    let evidence = self.evidence([kept.seen.clone()]);
                    match self.lasts(Doubt::Gone, &id, book.now) {
                        true => accuse(book, AlarmKind::Vanished, &id, words, evidence),
                        false => tally.doubtful.push((CheckName::Entries, words)),
                    }
                }
                None => tally.unseen.push(id),
            },
            Err(error) => tally.unanswered.push(format!("{id}: {error}")),
        }
    }

    fn judge(&mut self, place: usize, receipt: &[u8], book: &mut Book, tally: &mut Tally) {
        let Entry { id, digest, statement } = &self.entries[place];
        let statement = statement.as_ref();
        let seen = ReceiptSeen::of(*digest, statement, receipt, self.client.base(), book.now);
        let verdict = verify(*digest, statement, receipt, &self.trust, book.now);
        if let Some(why) = no_receipt(receipt, &verdict) {
            return tally.unanswered.push(format!("{id}: {why}"));
        }
        let Some(facts) = verdict.receipts.first().filter(|facts| facts.verified) else {
            let (kind, words) = refusal(&verdict);
            return accuse(book, kind, id, format!("entry {id}: {words}"), self.evidence([seen]));
        };
        tally.verified += 1;
        let place = Place::of(facts);
        let kept = Kept { seen, place: place.as_ref().map(Place::to_string), root: facts.root.clone() };
        if let Some(other) = self.memory.contradiction(&kept) {
            let name = kept.place.clone().unwrap_or_default();
            let words = format!("two roots were signed for {name}");
            let evidence = self.evidence([other.seen.clone(), kept.seen.clone()]);
            return accuse(book, AlarmKind::Fork, &name, words, evidence);
        }
        let id = id.clone();
        self.memory.settled(Doubt::Gone, &id);
        if let Some(Place::Size { size, .. }) = place {
            tally.largest = tally.largest.max(Some(size));
            if let Some(before) = self.larger_before(&id, size) {
                let words = format!("entry {id}: a receipt of tree size {}, then one of {size}", before.0);
                let evidence = self.evidence([before.1.seen.clone(), kept.seen.clone()]);
                return match self.lasts(Doubt::Older, &id, book.now) {
                    true => accuse(book, AlarmKind::Rollback, &id, words, evidence),
                    false => tally.doubtful.push((CheckName::Growth, words)),
                };
            }
        }
        self.memory.settled(Doubt::Older, &id);
        self.memory.remember(&id, kept);
    }

    /// Whether what a replica that is behind shows, too, has been shown for longer than one may be behind.
    fn lasts(&mut self, doubt: Doubt, id: &str, now: u64) -> bool {
        let (looks, since) = self.memory.doubted(doubt, id, now);
        looks >= LOOKS && now.saturating_sub(since) >= self.lag.as_secs()
    }

    /// A receipt may be as old as the last one, not older: the log has shown that it signed more.
    fn larger_before(&self, id: &str, size: u64) -> Option<(u64, &Kept)> {
        let last = self.memory.last(id)?;
        let before = last.signed_size(&self.trust)?;
        (before > size).then_some((before, last))
    }

    fn evidence<const N: usize>(&self, receipts: [ReceiptSeen; N]) -> Evidence {
        let trust = TrustStore { logs: self.trust.logs.clone(), ..TrustStore::default() };
        Evidence::Receipts { trust: trust.to_toml(), receipts: receipts.into() }
    }

    /// Silence is for a while what networks do.
    fn reach(&mut self, tally: &Tally, book: &mut Book) {
        match tally.unanswered.first() {
            None => {
                self.memory.unreachable_since = None;
                book.ok(CheckName::Reachable, format!("{} entries asked for", tally.asked));
            }
            Some(why) => {
                let since = *self.memory.unreachable_since.get_or_insert(book.now);
                book.unanswered(CheckName::Reachable, why.clone());
                if book.now.saturating_sub(since) > self.unreachable_after.as_secs() {
                    book.alarm(AlarmKind::Unreachable, About::Log, why.clone(), None);
                }
            }
        }
    }

    /// What the alarms mean for each check.
    fn conclude(tally: &Tally, book: &mut Book) {
        for (name, kinds, words) in CONCLUSIONS {
            let bad = |alarm: &Alarm| kinds.contains(&alarm.kind);
            match book.alarms.iter().find(|alarm| bad(alarm)).map(|alarm| alarm.words.clone()) {
                Some(words) => book.failed(*name, words),
                None if tally.doubtful.iter().any(|(of, _)| of == name) => {
                    let doubtful = tally.doubtful.iter().find(|(of, _)| of == name);
                    let words = doubtful.map_or("", |(_, words)| words);
                    book.not_checked(*name, format!("{words}; a replica may be behind: looked at again"));
                }
                None if *name == CheckName::Entries && !tally.unseen.is_empty() => {
                    let unseen = &tally.unseen;
                    book.not_checked(
                        *name,
                        format!("{} were never there, {} among them", unseen.len(), unseen[0]),
                    );
                }
                None if tally.verified == 0 => book.not_checked(*name, "no receipt came"),
                None => book.ok(*name, format!("{} receipts: {words}", tally.verified)),
            }
        }
    }
}

/// Which alarms are the failure of which check, and what is true without them.
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
    (CheckName::Growth, &[AlarmKind::Rollback], "no signed size went back"),
    (CheckName::Consistency, &[AlarmKind::Fork], "one root for what is signed as one tree"),
    (CheckName::Entries, &[AlarmKind::Vanished], "what was there is there"),
];

impl Entry {
    fn open(watched: &WatchedEntry) -> Result<Self, BadService> {
        let (digest, statement) = match &watched.what {
            Watched::Digest(digest) => (*digest, None),
            Watched::File(path) => {
                let statement = file::statement(path)?;
                (statement.digest(), Some(statement))
            }
        };
        Ok(Self { id: watched.id.clone().unwrap_or_else(|| digest.to_string()), digest, statement })
    }
}

/// What a verified receipt is signed for: where two roots are one too many.
pub(crate) enum Place {
    /// A tree size.
    Size {
        /// Of which log.
        log: String,
        /// Leaves.
        size: u64,
    },
    /// A transaction of a ledger.
    Transaction {
        /// Of which ledger.
        log: String,
        /// Its `txid`.
        id: String,
    },
}

impl Place {
    pub(crate) fn of(facts: &ReceiptFacts) -> Option<Self> {
        let log = facts.log.clone().unwrap_or_default();
        match (facts.position.filter(|position| position.signed), &facts.transaction) {
            (Some(position), _) => Some(Self::Size { log, size: position.tree_size.get() }),
            // Only where there is no position is it a ledger; of others the label means nothing.
            (None, Some(id)) if facts.position.is_none() => Some(Self::Transaction { log, id: id.clone() }),
            _ => None,
        }
    }
}

impl std::fmt::Display for Place {
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
) -> Verdict {
    match statement {
        Some(statement) => verifier::verify_receipt(statement, receipt, trust, now),
        None => verifier::verify_receipt_of(entry, receipt, trust, now),
    }
}

/// Why what came is no answer: somebody's error page, a structure that this release does not read, or more than is kept.
fn no_receipt(came: &[u8], verdict: &Verdict) -> Option<String> {
    match verdict.reason {
        Some(Code::MalformedReceipt | Code::UnsupportedStructure) => {
            let why = verdict.why();
            Some(format!("what came is no receipt: {why}"))
        }
        _ if came.len() > MAX_RECEIPT_KEPT => {
            Some(format!("a receipt of {} bytes, and {MAX_RECEIPT_KEPT} are kept", came.len()))
        }
        _ => None,
    }
}

/// What a receipt that does not verify is an alarm of.
fn refusal(verdict: &Verdict) -> (AlarmKind, String) {
    let words = verdict.why().to_owned();
    let kind = match verdict.reason {
        Some(Code::UnknownLog | Code::UnknownLogKey) => AlarmKind::UnknownKey,
        Some(Code::ReceiptSubjectMismatch) => AlarmKind::OtherLog,
        Some(Code::ReceiptSignatureInvalid) => AlarmKind::BadSignature,
        Some(Code::LogKeyRetired | Code::LogKeyCompromised) => AlarmKind::RetiredKey,
        Some(Code::ReceiptExpired | Code::ReceiptNotYetValid) => AlarmKind::Clock,
        _ => AlarmKind::Inconsistent,
    };
    debug_assert!(verdict.outcome != Outcome::Verified, "a verified receipt is no refusal");
    (kind, words)
}

fn accuse(book: &mut Book, kind: AlarmKind, which: &str, words: String, evidence: Evidence) {
    let alarm = Alarm::new(kind, &book.log, About::Log, words, book.now).which(which).shown_by(evidence);
    book.alarms.push(alarm);
}

/// The service says that there is no such entry, or none any more.
fn is_gone(error: &ClientError) -> bool {
    match error {
        ClientError::NotFound(_) => true,
        ClientError::Refused { status, .. } => status.as_u16() == 410,
        _ => false,
    }
}

impl ServiceTarget {
    /// A service, watched with what is usual.
    pub fn new(name: &str, url: Url, trust: PathBuf) -> Self {
        Self {
            name: name.to_owned(),
            url,
            trust,
            ca_file: None,
            unreachable_after: UNREACHABLE_AFTER,
            lag: LAG,
            entries: Vec::new(),
        }
    }
}
