//! Which logs are witnessed: a C2SP tlog-list, so that the lists of the public witness network can be used as they are.
//!
//! ```text
//! logs/v0
//!
//! # one log: its key, whose name is its origin unless another is given
//! vkey log.example+d0a1b2c3+AbCd…
//! origin log.example
//! qpd 86400
//! contact ops@log.example
//! ```
//!
//! A log that replaced its key has, in a list written by hand, one line more for each older key, with the first tree size
//! that the key signs no more:
//!
//! ```text
//! vkey log.example+d0a1b2c3+AbCd…
//! retired log.example+00c0ffee+EfGh… 1204
//! ```
//!
//! For lists written by hand `qpd` and `contact` may be left out. `qpd`, how often a day the log may grow, is enforced;
//! `contact` is for people.

use std::collections::HashMap;
use std::str::FromStr;

use merkle::TreeSize;
use tlog::checkpoint::{NotAnOrigin, Origin};
use tlog::key::{BadKey, KeyKind, VerifierKey};

use crate::limits::LOGS;

/// The first line.
const HEADER: &str = "logs/v0";
/// A key's lines, in this order.
const FIELDS: [&str; 4] = ["vkey", "origin", "qpd", "contact"];

/// A log that is witnessed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// Who it says it is.
    pub origin: Origin,
    /// The key that must have signed its checkpoints; of type 0x01.
    pub key: VerifierKey,
    /// Keys that it had before, each with the first tree size that it signs no more.
    pub retired: Vec<(VerifierKey, TreeSize)>,
    /// How often a day it may grow.
    pub per_day: Option<u32>,
}

impl Log {
    /// The keys whose signature over a tree of this size counts.
    pub fn keys_for(&self, size: TreeSize) -> Vec<VerifierKey> {
        let retired = self.retired.iter().filter(|(_, end)| size < *end).map(|(key, _)| key);
        std::iter::once(&self.key).chain(retired).cloned().collect()
    }
}

/// The logs, by their origins: no two have the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogList(HashMap<Origin, Log>);

/// Why a text is no list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAList {
    /// Another first line.
    #[error("line {0}: a list of logs starts with \"{HEADER}\"")]
    Header(usize),
    /// A line that is not one of a log's, or out of order.
    #[error("line {line}: expected \"vkey\", \"origin\", \"qpd\" or \"contact\" and a value, in this order")]
    Form {
        /// Counted from 1.
        line: usize,
    },
    /// Not a key that signs checkpoints.
    #[error("line {line}: {flaw}")]
    Key {
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        flaw: BadKey,
    },
    /// A key of another type.
    #[error("line {line}: a log's key has type 0x01 (Ed25519)")]
    NotALogKey {
        /// Counted from 1.
        line: usize,
    },
    /// Not a key and a tree size.
    #[error(
        "line {line}: expected \"retired\", a key of type 0x01 and the first tree size that it signs no more"
    )]
    Retired {
        /// Counted from 1.
        line: usize,
    },
    /// Not an origin.
    #[error("line {line}: {flaw}")]
    Origin {
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        flaw: NotAnOrigin,
    },
    /// Not a number of requests.
    #[error("line {line}: \"qpd\" is a number from 1 to 2147483647")]
    PerDay {
        /// Counted from 1.
        line: usize,
    },
    /// Two logs of one origin.
    #[error("line {line}: another log has the same origin")]
    Twice {
        /// Counted from 1.
        line: usize,
    },
    /// Too many.
    #[error("more than {LOGS} logs")]
    TooMany,
}

impl LogList {
    /// The log that says it is this one.
    pub fn get(&self, origin: &Origin) -> Option<&Log> {
        self.0.get(origin)
    }

    /// All of them, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &Log> {
        self.0.values()
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn add(&mut self, line: usize, log: Log) -> Result<(), NotAList> {
        if self.len() >= LOGS {
            return Err(NotAList::TooMany);
        }
        match self.0.insert(log.origin.clone(), log) {
            None => Ok(()),
            Some(_) => Err(NotAList::Twice { line }),
        }
    }
}

impl FromStr for LogList {
    type Err = NotAList;

    fn from_str(text: &str) -> Result<Self, NotAList> {
        let lines =
            (1..).zip(text.split('\n')).map(|(number, line)| (number, line.trim_matches([' ', '\t'])));
        let mut lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        match lines.next() {
            Some((_, HEADER)) => {}
            other => return Err(NotAList::Header(other.map_or(1, |(number, _)| number))),
        }
        let mut list = Self::default();
        let mut log: Option<(usize, Entry)> = None;
        for (line, text) in lines {
            if let Some(retired) = text.strip_prefix("retired ") {
                let (_, entry) = log.as_mut().ok_or(NotAList::Form { line })?;
                entry.log.retired.push(retired_key(retired).ok_or(NotAList::Retired { line })?);
                continue;
            }
            let (field, value) = field(text).ok_or(NotAList::Form { line })?;
            if field == 0 {
                if let Some((line, entry)) = log.replace((line, Entry::new(line, value)?)) {
                    list.add(line, entry.log)?;
                }
                continue;
            }
            let (_, entry) = log.as_mut().ok_or(NotAList::Form { line })?;
            entry.say(line, field, value)?;
        }
        if let Some((line, entry)) = log {
            list.add(line, entry.log)?;
        }
        Ok(list)
    }
}

/// A log whose lines are still being read.
struct Entry {
    log: Log,
    /// The last field that was given.
    last: usize,
}

impl Entry {
    fn new(line: usize, vkey: &str) -> Result<Self, NotAList> {
        let key: VerifierKey = vkey.parse().map_err(|flaw| NotAList::Key { line, flaw })?;
        if key.kind() != KeyKind::Ed25519 {
            return Err(NotAList::NotALogKey { line });
        }
        Ok(Self {
            log: Log { origin: key.name().clone().into(), key, retired: Vec::new(), per_day: None },
            last: 0,
        })
    }

    fn say(&mut self, line: usize, field: usize, value: &str) -> Result<(), NotAList> {
        if field <= self.last {
            return Err(NotAList::Form { line });
        }
        self.last = field;
        match FIELDS[field] {
            "origin" => self.log.origin = value.parse().map_err(|flaw| NotAList::Origin { line, flaw })?,
            "qpd" => self.log.per_day = Some(per_day(value).ok_or(NotAList::PerDay { line })?),
            _ => {}
        }
        Ok(())
    }
}

/// Which field a line gives, and its value.
fn field(line: &str) -> Option<(usize, &str)> {
    let (name, value) = line.split_once([' ', '\t'])?;
    let field = FIELDS.iter().position(|field| *field == name)?;
    Some((field, value.trim_start_matches([' ', '\t'])))
}

fn retired_key(value: &str) -> Option<(VerifierKey, TreeSize)> {
    let (key, size) = value.split_once(' ')?;
    let key: VerifierKey = key.parse().ok()?;
    (key.kind() == KeyKind::Ed25519).then_some((key, TreeSize::new(size.trim().parse().ok()?)))
}

/// From 1 to 2^31 - 1, without needless zeros and signs.
fn per_day(value: &str) -> Option<u32> {
    let number: u32 = value.parse().ok()?;
    let fits = (1..1 << 31).contains(&number) && number.to_string() == value;
    fits.then_some(number)
}
