//! What was asked and what was answered, kept for the verdict. History first, verdict after.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use merkle::EntryDigest;
use scitt::SignedStatement;

use crate::http::{Answer, Connection, Silence};
use crate::tally::count;

/// How one attempt to register ended, for whoever made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// 201: in the log, with a receipt.
    Registered,
    /// 202: durably on its way.
    Accepted,
    /// 400: not admitted.
    Refused,
    /// 429 or 503: try again later.
    TurnedAway,
    /// No answer: it may have happened.
    Unknown,
    /// Nobody listened.
    NotAsked,
}

/// What is known of a statement, most binding last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fate {
    /// Handed in; nothing was promised.
    Open,
    /// The service said that it is not admitted.
    Refused,
    /// The service promised to register it.
    Accepted,
    /// The service gave a receipt.
    Registered,
}

/// Remembers everything that the service said. Shared by all who speak to it.
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
    /// Nothing has happened yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Hands in a statement and remembers what comes of it.
    pub fn register(&self, connection: &mut Connection, statement: &SignedStatement) -> Outcome {
        self.remember(statement, Fate::Open);
        let headers = [("Content-Type", "application/cose")];
        match connection.try_send("POST", "/entries", &headers, statement.bytes()) {
            Ok(answer) => self.answered(statement, &answer),
            Err(Silence::Unknown(_)) => Outcome::Unknown,
            Err(Silence::NotAsked(_)) => Outcome::NotAsked,
        }
    }

    /// Asks for a fresh receipt of a statement that may be in the log, and remembers it.
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

    /// How many statements have a receipt.
    pub fn registered(&self) -> usize {
        self.with_fate(Fate::Registered).len()
    }

    /// How often each status was answered.
    pub fn answers(&self) -> BTreeMap<u16, usize> {
        self.history().answers.clone()
    }

    /// A registered statement, any of them.
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

/// What a long run's report says: a statement counts once, however often it was checked.
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
