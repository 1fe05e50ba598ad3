//! Erasure statements: by whose word, and why, the bytes of entries were taken out of a log.
//!
//! An entry keeps its place, its digest and its guards for ever, so every proof and receipt stands. Its bytes may go, and
//! then a statement of the log's operator says so: `application/vnd.tabellion.erasure+json`, canonical JSON, signed with an
//! operator key of the policy in force, `iss` the log's, `sub` its origin. It is registered first; only then is anything
//! erased. Erasures are numbered from 0 without gaps, so that whoever has the log finds all of them, and whoever has
//! the newest knows how many there are. Statements of the operator are never erased.
//!
//! Not here: taking the bytes out, holds that keep them, and when a retention has passed (the service).

mod read;
mod rule;
mod sign;

use merkle::EntryDigest;

pub use rule::ErasureRule;
pub use sign::{NewErasure, sign};

use crate::answers::{Answers, Questions};
use crate::authenticate::Authenticated;
use crate::decision::Permit;
use crate::facts::Facts;
use crate::guard::{Guard, GuardKind};
use crate::lookups::{LookupKind, Lookups};
use crate::policy::essence;
use crate::violation::Violation;

/// The content type of an erasure statement.
pub const ERASURE_CONTENT_TYPE: &str = "application/vnd.tabellion.erasure+json";
/// Why a content type's retention erases: the value of `rule`.
pub const RETENTION: &str = "retention";
/// Why somebody's request erases: the value of `rule`.
pub const REQUEST: &str = "request";

/// An erasure that keeps every rule which needs nothing but its payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Erasure {
    /// Its number: erasures of a log count from 0.
    pub sequence: u64,
    /// The entries whose bytes go, in order.
    pub entries: Vec<EntryDigest>,
    /// Why, in words.
    pub reason: String,
    /// Why, as a code: `request`, `retention`, or what the operator calls it.
    pub rule: String,
    /// When it was asked for, as the operator says.
    pub at: Option<String>,
    /// Who decided, as the operator says.
    pub authorized_by: Option<String>,
}

/// Whether a media type is that of erasure statements.
pub(crate) fn is_erasure(media_type: &str) -> bool {
    essence(media_type) == ERASURE_CONTENT_TYPE
}

/// The claim of an erasure's number.
pub fn sequence_guard(sequence: u64) -> Guard {
    Guard::new(GuardKind::ErasureSequence, &[&sequence.to_be_bytes()])
}

/// The claim of an entry that is never erased.
pub fn permanent_guard(entry: &EntryDigest) -> Guard {
    Guard::new(GuardKind::Permanent, &[entry.as_bytes()])
}

impl Erasure {
    /// The claims that its statement, of this digest, makes in a log.
    pub fn guards(&self, statement: &EntryDigest) -> [Guard; 2] {
        [sequence_guard(self.sequence), permanent_guard(statement)]
    }

    pub(crate) fn questions(&self, asked: &mut Questions) {
        asked.digests.extend(&self.entries);
        asked.guards.extend(self.entries.iter().map(permanent_guard));
        asked.guards.extend(self.sequence.checked_sub(1).map(sequence_guard));
    }

    /// The rules of an erasure beside the log and the statement around it.
    pub(crate) fn check(
        &self,
        statement: &Authenticated<'_>,
        origin: &str,
        log: &Answers,
        permit: &mut Permit,
    ) -> Result<(), Violation> {
        if statement.sub() != origin {
            return Err(
                ErasureRule::Subject.in_header("15/2", "the subject of an erasure is the log's origin")
            );
        }
        if let Some(before) = self.sequence.checked_sub(1)
            && log.guard(&sequence_guard(before)).is_none()
        {
            let detail = format!("erasure {before} is not in the log");
            return Err(ErasureRule::Predecessor.in_payload("/sequence", detail));
        }
        for (i, entry) in self.entries.iter().enumerate() {
            let at = format!("/entries/{i}");
            if log.entry(entry).is_none() {
                return Err(ErasureRule::Known.in_payload(at, format!("{entry} is not in the log")));
            }
            if log.guard(&permanent_guard(entry)).is_some() {
                let detail = format!("{entry} is a statement of the operator: it stays");
                return Err(ErasureRule::Permanent.in_payload(at, detail));
            }
        }
        permit.guards.extend(self.guards(&statement.digest()));
        Ok(())
    }

    pub(crate) fn state(&self, facts: &mut Facts) {
        facts.put("sequence", self.sequence.into());
        facts.put("erased", self.entries.len().into());
        facts.text("reason", &self.reason);
        facts.text("rule", &self.rule);
    }

    pub(crate) fn lookups(&self, found: &mut Lookups) {
        for entry in &self.entries {
            found.add(LookupKind::Erasure, entry.to_string());
        }
    }
}
