//! Trust policies: trusted logs and witnesses, and the number of required cosignatures (C2SP tlog-policy).
//!
//! ```text
//! log <vkey> [url]
//! witness <name> <vkey> [url]
//! group <name> all|any|<k> <name>...
//! quorum <name>|none
//! ```
//!
//! Fields are separated by spaces and tabs; lines that start with `#` are comments. A name must be defined once, before
//! its use, so that groups cannot contain themselves. There is exactly one quorum line. A key belongs to one witness
//! only: otherwise a witness could be counted twice.

use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;

use crate::cosignature;
use crate::key::{BadKey, KeyKind, VerifierKey};
use crate::note::Note;

/// Maximum number of logs, of witnesses and of groups; the format requires at least 32 of each.
pub const MAX_OF_EACH: usize = 64;
/// Maximum size of a policy, in bytes.
pub const MAX_POLICY_BYTES: usize = 256 << 10;
/// The quorum line's keyword for "no cosignature required".
const NONE: &str = "none";

/// A policy: trusted logs, witnesses, and a quorum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WitnessPolicy {
    logs: Vec<PolicyLog>,
    witnesses: Vec<PolicyWitness>,
    groups: Vec<WitnessGroup>,
    /// `None` if no cosignature is required.
    quorum: Option<QuorumMember>,
}

/// A trusted log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyLog {
    /// The log's key, whose name is the origin.
    pub key: VerifierKey,
    /// The log's URL, if given.
    pub url: Option<String>,
}

/// A witness.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyWitness {
    /// The witness's name in this policy.
    pub name: String,
    /// The witness's key, of type 0x04.
    pub key: VerifierKey,
    /// Submission prefix: checkpoints are posted to `<url>/add-checkpoint`.
    pub url: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct WitnessGroup {
    name: String,
    /// Minimum number of agreeing members.
    threshold: usize,
    /// The threshold as written: a number, `all` or `any`.
    rule: String,
    members: Vec<QuorumMember>,
}

/// A witness or a group, by its index in [`WitnessPolicy`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum QuorumMember {
    Witness(usize),
    Group(usize),
}

/// Result of [`WitnessPolicy::judge`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// `true` if the quorum is met.
    pub met: bool,
    /// Names of the witnesses that cosigned, in the order of the policy, with the newest time of each in Unix seconds.
    pub cosigned: Vec<(String, u64)>,
}

/// Errors of parsing a policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAPolicy {
    /// The text is longer than [`MAX_POLICY_BYTES`].
    #[error("a policy is no longer than {MAX_POLICY_BYTES} bytes")]
    TooLong,
    /// A line is invalid.
    #[error("line {line}: {flaw}")]
    Line {
        /// Line number, from 1.
        line: usize,
        /// Description of the error.
        flaw: PolicyLineError,
    },
    /// The quorum line is missing.
    #[error("a policy has one quorum line; for none write \"quorum none\"")]
    NoQuorum,
}

/// Errors in a line of a policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyLineError {
    /// Unknown keyword, or wrong number of fields.
    #[error(
        "expected \"log <vkey> [url]\", \"witness <name> <vkey> [url]\", \"group <name> all|any|<k> <name>...\" or \"quorum <name>|none\""
    )]
    Form,
    /// A control character other than tab, also a carriage return at the end of the line.
    #[error("a control character: only tabs are allowed, and a newline at the end of a line")]
    ControlCharacter,
    /// The vkey is invalid.
    #[error(transparent)]
    Key(#[from] BadKey),
    /// The key of a witness is not of type 0x04.
    #[error("a witness has a key of type 0x04, for cosignatures")]
    NotACosigner,
    /// The key of a log is not of type 0x01.
    #[error("a log has a key of type 0x01")]
    NotALogKey,
    /// The URL is not an HTTP URL.
    #[error("{0:?} is not an http or https URL")]
    Url(String),
    /// The name is defined already, or is `none`.
    #[error("the name {0:?} is taken")]
    NameTaken(String),
    /// The key is used in an earlier line.
    #[error("the key is listed already")]
    KeyTaken,
    /// The name is not defined in an earlier line.
    #[error("no witness or group above is named {0:?}")]
    Unknown(String),
    /// The member belongs to a group already, this one or another.
    #[error("{0:?} is a member of a group already")]
    MemberTaken(String),
    /// The threshold is not between 1 and the number of members.
    #[error("a group asks for 1 to {0} of its members")]
    Threshold(usize),
    /// A second quorum line.
    #[error("there is a quorum line already")]
    SecondQuorum,
    /// More than [`MAX_OF_EACH`] logs, witnesses or groups.
    #[error("no more than {MAX_OF_EACH} of a kind")]
    TooMany,
}

impl WitnessPolicy {
    /// The logs, in the order of the file.
    pub fn logs(&self) -> &[PolicyLog] {
        &self.logs
    }

    /// The witnesses, in the order of the file.
    pub fn witnesses(&self) -> &[PolicyWitness] {
        &self.witnesses
    }

    /// Name of the quorum's witness or group; `None` if no cosignature is required.
    pub fn quorum_name(&self) -> Option<&str> {
        self.quorum.map(|member| self.name(member))
    }

    /// Checks whether the note's cosignatures meet the quorum. The log's identity and signature are not checked.
    pub fn judge(&self, note: &Note) -> Judged {
        let times: Vec<Option<u64>> =
            self.witnesses.iter().map(|witness| cosignature::verified(note, &witness.key)).collect();
        let named = self.witnesses.iter().zip(&times);
        let cosigned = named.filter_map(|(witness, time)| Some((witness.name.clone(), (*time)?))).collect();
        Judged { met: self.quorum.is_none_or(|quorum| self.agrees(quorum, &times)), cosigned }
    }

    /// Returns `true` if cosignatures by exactly the named witnesses meet the quorum.
    pub fn is_met_by(&self, names: &HashSet<&str>) -> bool {
        let agrees = |witness: &PolicyWitness| names.contains(witness.name.as_str()).then_some(0);
        let times: Vec<Option<u64>> = self.witnesses.iter().map(agrees).collect();
        self.quorum.is_none_or(|quorum| self.agrees(quorum, &times))
    }

    fn agrees(&self, member: QuorumMember, times: &[Option<u64>]) -> bool {
        match member {
            QuorumMember::Witness(index) => times[index].is_some(),
            QuorumMember::Group(index) => {
                let group = &self.groups[index];
                let agreeing = group.members.iter().filter(|member| self.agrees(**member, times)).count();
                agreeing >= group.threshold
            }
        }
    }

    fn name(&self, member: QuorumMember) -> &str {
        match member {
            QuorumMember::Witness(index) => &self.witnesses[index].name,
            QuorumMember::Group(index) => &self.groups[index].name,
        }
    }

    fn find(&self, name: &str) -> Option<QuorumMember> {
        let witness = self.witnesses.iter().position(|witness| witness.name == name);
        let group = || self.groups.iter().position(|group| group.name == name);
        witness.map(QuorumMember::Witness).or_else(|| group().map(QuorumMember::Group))
    }

    fn free_name(&self, name: &str) -> Result<String, PolicyLineError> {
        match name == NONE || self.find(name).is_some() {
            true => Err(PolicyLineError::NameTaken(name.to_owned())),
            false => Ok(name.to_owned()),
        }
    }
}

impl FromStr for WitnessPolicy {
    type Err = NotAPolicy;

    fn from_str(text: &str) -> Result<Self, NotAPolicy> {
        if text.len() > MAX_POLICY_BYTES {
            return Err(NotAPolicy::TooLong);
        }
        let policy = Self { logs: Vec::new(), witnesses: Vec::new(), groups: Vec::new(), quorum: None };
        let mut parser = PolicyParser { policy, has_quorum: false, grouped: HashSet::new() };
        for (line, text) in (1..).zip(text.split('\n')) {
            parser.line(text).map_err(|flaw| NotAPolicy::Line { line, flaw })?;
        }
        match parser.has_quorum {
            true => Ok(parser.policy),
            false => Err(NotAPolicy::NoQuorum),
        }
    }
}

/// A policy while its lines are parsed.
struct PolicyParser {
    policy: WitnessPolicy,
    has_quorum: bool,
    /// Members of groups so far; a member belongs to one group only.
    grouped: HashSet<QuorumMember>,
}

impl PolicyParser {
    fn line(&mut self, line: &str) -> Result<(), PolicyLineError> {
        if line.contains(|char: char| char.is_ascii_control() && char != '\t') {
            return Err(PolicyLineError::ControlCharacter);
        }
        let words: Vec<&str> = line.split([' ', '\t']).filter(|word| !word.is_empty()).collect();
        match words.as_slice() {
            [] => Ok(()),
            [first, ..] if first.starts_with('#') => Ok(()),
            ["log", key] => self.log(key, None),
            ["log", key, url] => self.log(key, Some(url)),
            ["witness", name, key] => self.witness(name, key, None),
            ["witness", name, key, url] => self.witness(name, key, Some(url)),
            ["group", name, rule, members @ ..] if !members.is_empty() => self.group(name, rule, members),
            ["quorum", name] => self.quorum(name),
            _ => Err(PolicyLineError::Form),
        }
    }

    fn log(&mut self, key: &str, url: Option<&str>) -> Result<(), PolicyLineError> {
        let key: VerifierKey = key.parse()?;
        let logs = &mut self.policy.logs;
        if key.kind() != KeyKind::Ed25519 {
            return Err(PolicyLineError::NotALogKey);
        }
        check_count(logs.len())?;
        // As for witnesses: the same key under two names is one key.
        if logs.iter().any(|log| log.key.verifying_key() == key.verifying_key()) {
            return Err(PolicyLineError::KeyTaken);
        }
        logs.push(PolicyLog { key, url: url.map(read_url).transpose()? });
        Ok(())
    }

    fn witness(&mut self, name: &str, key: &str, url: Option<&str>) -> Result<(), PolicyLineError> {
        let (name, key): (String, VerifierKey) = (self.policy.free_name(name)?, key.parse()?);
        let witnesses = &mut self.policy.witnesses;
        if key.kind() != KeyKind::Cosignature {
            return Err(PolicyLineError::NotACosigner);
        }
        check_count(witnesses.len())?;
        // Cosignatures do not cover the witness's name: the same key under two names is one witness.
        if witnesses.iter().any(|witness| witness.key.verifying_key() == key.verifying_key()) {
            return Err(PolicyLineError::KeyTaken);
        }
        witnesses.push(PolicyWitness { name, key, url: url.map(read_url).transpose()? });
        Ok(())
    }

    fn group(&mut self, name: &str, rule: &str, names: &[&str]) -> Result<(), PolicyLineError> {
        let name = self.policy.free_name(name)?;
        check_count(self.policy.groups.len())?;
        let members = names.iter().map(|name| self.member(name)).collect::<Result<Vec<_>, _>>()?;
        let threshold = match rule {
            "all" => members.len(),
            "any" => 1,
            number => read_number(number).filter(|k| (1..=members.len()).contains(k)).unwrap_or(0),
        };
        if threshold == 0 {
            return Err(PolicyLineError::Threshold(members.len()));
        }
        self.policy.groups.push(WitnessGroup { name, threshold, rule: rule.to_owned(), members });
        Ok(())
    }

    fn member(&mut self, name: &str) -> Result<QuorumMember, PolicyLineError> {
        let member = self.policy.find(name).ok_or_else(|| PolicyLineError::Unknown(name.to_owned()))?;
        match self.grouped.insert(member) {
            true => Ok(member),
            false => Err(PolicyLineError::MemberTaken(name.to_owned())),
        }
    }

    fn quorum(&mut self, name: &str) -> Result<(), PolicyLineError> {
        if std::mem::replace(&mut self.has_quorum, true) {
            return Err(PolicyLineError::SecondQuorum);
        }
        if name != NONE {
            let member = self.policy.find(name).ok_or_else(|| PolicyLineError::Unknown(name.to_owned()))?;
            self.policy.quorum = Some(member);
        }
        Ok(())
    }
}

fn check_count(taken: usize) -> Result<(), PolicyLineError> {
    if taken < MAX_OF_EACH { Ok(()) } else { Err(PolicyLineError::TooMany) }
}

fn read_number(text: &str) -> Option<usize> {
    let number: usize = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

fn read_url(text: &str) -> Result<String, PolicyLineError> {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    match rest {
        Some(rest) if !rest.is_empty() => Ok(text.to_owned()),
        _ => Err(PolicyLineError::Url(text.to_owned())),
    }
}

/// Writes the policy in its file format; comments are lost.
impl fmt::Display for WitnessPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = |url: &Option<String>| url.as_ref().map_or_else(String::new, |url| format!(" {url}"));
        for log in &self.logs {
            writeln!(f, "log {}{}", log.key, url(&log.url))?;
        }
        for witness in &self.witnesses {
            writeln!(f, "witness {} {}{}", witness.name, witness.key, url(&witness.url))?;
        }
        for group in &self.groups {
            write!(f, "group {} {}", group.name, group.rule)?;
            group.members.iter().try_for_each(|member| write!(f, " {}", self.name(*member)))?;
            writeln!(f)?;
        }
        writeln!(f, "quorum {}", self.quorum_name().unwrap_or(NONE))
    }
}
