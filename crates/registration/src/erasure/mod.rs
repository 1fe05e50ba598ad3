//! Erasure statements: the operator's record of the entries whose bytes are erased, with the reason.
//!
//! An entry keeps its index, its digest and its guards for ever, so all proofs and receipts stay valid. Its bytes can
//! be erased, which the log's operator states: `application/vnd.tabellion.erasure+json`, canonical JSON, signed with an
//! operator key of the policy in force, `iss` the log's, `sub` its origin. The statement is registered before the bytes
//! are erased. Erasures are numbered from 0 without gaps: a copy of the log contains all of them, and the newest one's
//! number shows their count. Statements of the operator are never erased.
//!
//! Not here: removal of the bytes, holds that prevent it, and retention periods (the service).

mod read;
mod rule;
mod sign;

use merkle::EntryDigest;

pub use crate::content_types::ERASURE_CONTENT_TYPE;
pub use crate::guard::permanent_guard;
pub use rule::ErasureRule;
pub use sign::{NewErasure, sign};

use crate::answers::{Answers, Questions};
use crate::authenticated::Authenticated;
use crate::demands::PermitDemands;
use crate::facts::Facts;
use crate::guard::{Guard, GuardKind};
use crate::violation::Violation;

/// The value of `rule` in an erasure at the end of a content type's retention period.
pub const RETENTION: &str = "retention";
/// The value of `rule` in an erasure on request.
pub const REQUEST: &str = "request";

/// An erasure whose payload keeps every rule. The [`ErasureRule`]s about the log and the header are checked later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Erasure {
    /// The number of the erasure; the erasures of a log count from 0.
    pub sequence: u64,
    /// The entries whose bytes are erased, in ascending order.
    pub entries: Vec<EntryDigest>,
    /// The reason as text, 1 to 1000 characters.
    pub reason: String,
    /// The reason as a code: [`REQUEST`], [`RETENTION`], or a name chosen by the operator.
    pub rule: String,
    /// The time of the request, as stated by the operator.
    pub at: Option<String>,
    /// The person who decided, as stated by the operator.
    pub authorized_by: Option<String>,
}

/// The guard of an erasure's number.
pub fn sequence_guard(sequence: u64) -> Guard {
    Guard::new(GuardKind::ErasureSequence, &[&sequence.to_be_bytes()])
}

impl Erasure {
    /// Returns the guards of the erasure statement with this digest.
    pub fn guards(&self, statement: &EntryDigest) -> [Guard; 2] {
        [sequence_guard(self.sequence), permanent_guard(statement)]
    }

    pub(crate) fn questions(&self, asked: &mut Questions) {
        asked.digests.extend(&self.entries);
        asked.guards.extend(self.entries.iter().map(permanent_guard));
        asked.guards.extend(self.sequence.checked_sub(1).map(sequence_guard));
    }

    /// Checks the rules about the log and the statement's header.
    pub(crate) fn check(
        &self,
        statement: &Authenticated<'_>,
        origin: &str,
        log: &Answers,
    ) -> Result<PermitDemands, Violation> {
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
        Ok(PermitDemands::guards(self.guards(&statement.digest())))
    }

    pub(crate) fn facts(&self, facts: &mut Facts) {
        facts.put("sequence", self.sequence.into());
        facts.put("erased", self.entries.len().into());
        facts.text("reason", &self.reason);
        facts.text("rule", &self.rule);
    }
}
