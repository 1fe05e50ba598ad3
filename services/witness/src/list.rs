//! The list of witnessed logs: a C2SP tlog-list, so that the lists of the public witness network can be used unchanged.
//!
//! ```text
//! logs/v0
//!
//! # one log: its key, whose name is the origin unless an `origin` line follows
//! vkey log.example+d0a1b2c3+AbCd…
//! origin log.example
//! qpd 86400
//! contact ops@log.example
//! ```
//!
//! An extension for lists written by hand: a log that replaced its key has an additional line for each retired key,
//! with the first tree size that this key must not sign:
//!
//! ```text
//! vkey log.example+d0a1b2c3+AbCd…
//! retired log.example+00c0ffee+EfGh… 1204
//! ```
//!
//! Lists written by hand may omit `qpd` and `contact`. `qpd`, the maximum number of growths per day, is enforced;
//! `contact` is informational.

use std::collections::HashMap;
use std::str::FromStr;

use merkle::TreeSize;
use tlog::checkpoint::{NotAnOrigin, Origin};
use tlog::key::{BadKey, KeyKind, VerifierKey};

use crate::limits::LOGS;

/// First line of the file.
const HEADER: &str = "logs/v0";
/// Fields of a log, in this order.
const FIELDS: [&str; 4] = ["vkey", "origin", "qpd", "contact"];

/// A witnessed log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// The log's origin.
    pub origin: Origin,
    /// The key that must sign the checkpoints; of type 0x01 (Ed25519).
    pub key: VerifierKey,
    /// Retired keys, each with the first tree size that it must not sign.
    pub retired: Vec<(VerifierKey, TreeSize)>,
    /// Maximum number of growths per day (`qpd`); unlimited if `None`.
    pub per_day: Option<u32>,
}

impl Log {
    /// The keys whose signature is accepted for a tree of this size.
    pub fn keys_for(&self, size: TreeSize) -> Vec<VerifierKey> {
        let retired = self.retired.iter().filter(|(_, end)| size < *end).map(|(key, _)| key);
        std::iter::once(&self.key).chain(retired).cloned().collect()
    }
}

/// The logs by origin; at most `LOGS`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogList(HashMap<Origin, Log>);

/// Errors of parsing a list of logs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAList {
    /// The first line is not the header.
    #[error("line {0}: a list of logs starts with \"{HEADER}\"")]
    Header(usize),
    /// The line is not a field of a log, or out of order.
    #[error("line {line}: expected \"vkey\", \"origin\", \"qpd\" or \"contact\" and a value, in this order")]
    Form {
        /// Line number, from 1.
        line: usize,
    },
    /// The `vkey` is malformed.
    #[error("line {line}: {flaw}")]
    Key {
        /// Line number, from 1.
        line: usize,
        /// Reason for the rejection.
        flaw: BadKey,
    },
    /// The key is not of type 0x01 (Ed25519).
    #[error("line {line}: a log's key has type 0x01 (Ed25519)")]
    NotALogKey {
        /// Line number, from 1.
        line: usize,
    },
    /// A `retired` line without a key and a tree size.
    #[error(
        "line {line}: expected \"retired\", a key of type 0x01 and the first tree size that it signs no more"
    )]
    Retired {
        /// Line number, from 1.
        line: usize,
    },
    /// The `origin` is malformed.
    #[error("line {line}: {flaw}")]
    Origin {
        /// Line number, from 1.
        line: usize,
        /// Reason for the rejection.
        flaw: NotAnOrigin,
    },
    /// `qpd` is not a number from 1 to 2^31 - 1.
    #[error("line {line}: \"qpd\" is a number from 1 to 2147483647")]
    PerDay {
        /// Line number, from 1.
        line: usize,
    },
    /// Two logs have the same origin.
    #[error("line {line}: another log has the same origin")]
    Twice {
        /// Line number, from 1.
        line: usize,
    },
    /// More than `LOGS` logs (100,000).
    #[error("more than {LOGS} logs")]
    TooMany,
}

impl LogList {
    /// The log with this origin.
    pub fn get(&self, origin: &Origin) -> Option<&Log> {
        self.0.get(origin)
    }

    /// All logs, in arbitrary order.
    pub fn iter(&self) -> impl Iterator<Item = &Log> {
        self.0.values()
    }

    /// The number of logs.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns `true` if the list has no logs.
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

/// A log while its lines are parsed.
struct Entry {
    log: Log,
    /// Index of the last parsed field in [`FIELDS`].
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

/// Parses a line to its index in [`FIELDS`] and its value.
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

/// Parses a decimal number from 1 to 2^31 - 1 without leading zeros or signs.
fn per_day(value: &str) -> Option<u32> {
    let number: u32 = value.parse().ok()?;
    let fits = (1..1 << 31).contains(&number) && number.to_string() == value;
    fits.then_some(number)
}
