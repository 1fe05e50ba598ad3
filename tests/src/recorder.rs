//! A record of all requests and responses, from which [`Recorder::verdict`] checks the service's promises at the end of
//! a test.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use merkle::EntryDigest;
use scitt::SignedStatement;

use crate::http::{Answer, Connection, Silence};
use crate::tally::count;

/// Outcome of one registration attempt, as the client sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// 201: the statement is on the log, with a receipt.
    Registered,
    /// 202: the statement is durably queued.
    Accepted,
    /// 400: the statement is not admitted.
    Refused,
    /// 429 or 503: the client must retry later.
    TurnedAway,
    /// No response: the statement may have been registered.
    Unknown,
    /// No connection: the request was not sent.
    NotAsked,
}

/// Known state of a statement, in increasing order of commitment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fate {
    /// Submitted, without any promise by the service.
    Open,
    /// Refused by the service.
    Refused,
    /// Accepted: the service promised to register it.
    Accepted,
    /// Registered: the service returned a receipt.
    Registered,
}

/// Recorder of all promises of a service, shared by its clients; see [`Recorder::verdict`].
#[derive(Default)]
pub struct Recorder {
    history: Mutex<History>,
}

#[derive(Default)]
pub(crate) struct History {
    pub(crate) statements: BTreeMap<EntryDigest, (SignedStatement, Fate)>,
    pub(crate) receipts: Vec<(EntryDigest, Vec<u8>)>,
    pub(crate) violations: Vec<String>,
    answers: BTreeMap<u16, usize>,
}

impl Recorder {
    /// Creates an empty recorder.
    pub fn new() -> Self {
        Self::default()
    }

    /// Submits a statement (`POST /entries`), and records the response.
    pub fn register(&self, connection: &mut Connection, statement: &SignedStatement) -> Outcome {
        self.remember(statement, Fate::Open);
        let headers = [("Content-Type", "application/cose")];
        match connection.try_send("POST", "/entries", &headers, statement.bytes()) {
            Ok(answer) => self.answered(statement, &answer),
            Err(Silence::Unknown(_)) => Outcome::Unknown,
            Err(Silence::NotAsked(_)) => Outcome::NotAsked,
        }
    }

    /// Requests a fresh receipt (`GET /entries/{entry}`) of a statement that may be on the log, and records it.
    pub fn resolve(&self, connection: &mut Connection, entry: EntryDigest) -> Option<Answer> {
        let answer = connection.try_send("GET", &format!("/entries/{entry}"), &[], b"").ok()?;
        self.history().count(&answer);
        match answer.status {
            200 => self.has_receipt(entry, &answer),
            204 => answer.must_say_when_to_come_back(),
            404 if self.fate(entry) < Some(Fate::Accepted) => {}
            429 | 503 => answer.must_say_when_to_come_back(),
            _ => self.violation(format!("GET of {entry}: {}", described(&answer))),
        }
        Some(answer)
    }

    /// Returns the number of statements with a receipt.
    pub fn registered(&self) -> usize {
        self.with_fate(Fate::Registered).len()
    }

    /// Returns the number of responses by status.
    pub fn answers(&self) -> BTreeMap<u16, usize> {
        self.history().answers.clone()
    }

    /// Returns a random registered entry.
    pub fn any_registered(&self) -> Option<EntryDigest> {
        let registered = self.with_fate(Fate::Registered);
        (!registered.is_empty()).then(|| registered[fastrand::usize(..registered.len())])
    }

    pub(crate) fn with_fate(&self, wanted: Fate) -> Vec<EntryDigest> {
        let history = self.history();
        let found = history.statements.iter().filter(|(_, (_, fate))| *fate == wanted);
        found.map(|(digest, _)| *digest).collect()
    }

    pub(crate) fn statement(&self, entry: EntryDigest) -> SignedStatement {
        self.history().statements[&entry].0.clone()
    }

    pub(crate) fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn violation(&self, what: String) {
        self.history().violations.push(what);
    }

    fn fate(&self, entry: EntryDigest) -> Option<Fate> {
        self.history().statements.get(&entry).map(|(_, fate)| *fate)
    }

    fn answered(&self, statement: &SignedStatement, answer: &Answer) -> Outcome {
        self.history().count(answer);
        let digest = statement.digest();
        match answer.status {
            201 => {
                self.must_locate(answer, digest);
                self.has_receipt(digest, answer);
                Outcome::Registered
            }
            202 => {
                self.must_locate(answer, digest);
                answer.must_say_when_to_come_back();
                self.remember(statement, Fate::Accepted);
                Outcome::Accepted
            }
            400 => {
                self.remember(statement, Fate::Refused);
                Outcome::Refused
            }
            429 | 503 => {
                answer.problem();
                answer.must_say_when_to_come_back();
                Outcome::TurnedAway
            }
            _ => {
                self.violation(format!("POST of {digest}: {}", described(answer)));
                Outcome::TurnedAway
            }
        }
    }

    fn has_receipt(&self, entry: EntryDigest, answer: &Answer) {
        let mut history = self.history();
        history.receipts.push((entry, answer.body.clone()));
        if let Some((_, fate)) = history.statements.get_mut(&entry) {
            *fate = Fate::Registered;
        }
    }

    fn must_locate(&self, answer: &Answer, digest: EntryDigest) {
        let location = answer.header("location").unwrap_or_default();
        if !location.ends_with(&format!("/entries/{digest}")) {
            self.violation(format!("Location of {digest} is {location:?}"));
        }
    }

    fn remember(&self, statement: &SignedStatement, fate: Fate) {
        let mut history = self.history();
        let known = history.statements.entry(statement.digest()).or_insert((statement.clone(), fate));
        known.1 = known.1.max(fate);
    }
}

/// Adds to the counts of a long run. A statement counts once, even if it was checked repeatedly.
impl Drop for Recorder {
    fn drop(&mut self) {
        count("statements with a receipt", self.registered());
        count("receipts", self.history().receipts.len());
    }
}

impl History {
    fn count(&mut self, answer: &Answer) {
        *self.answers.entry(answer.status).or_default() += 1;
    }
}

fn described(answer: &Answer) -> String {
    match scitt::Problem::parse(&answer.body) {
        Ok(problem) => format!("{} {problem}", answer.status),
        Err(_) => format!("{answer:?}"),
    }
}
