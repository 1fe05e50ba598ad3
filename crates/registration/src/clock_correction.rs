//! Clock corrections: the operator's statement that the log's time was ahead of the true time.
//!
//! The times of a log's heads never decrease. A head committed while the host's clock was ahead would therefore stop
//! the log until that time. A clock correction ends this: `application/vnd.tabellion.clock-correction+json`, canonical
//! JSON, signed with an operator key of the policy in force, `iss` the log's, `sub` its origin. It names the size N of
//! the newest head, the time that this head carries, and the true time. Its entry has index N and is the first of its
//! batch: only there may the time decrease, to the given time or a later one. The entry is never erased.
//!
//! Not here: whether the given time is true (the sequencer compares the clocks), and whether the head of size N carries
//! the named time (checked by the sequencer and by auditors).

use jose::json;
use jose::members::quote;
use merkle::TreeSize;
use scitt::{SignedStatement, Signer};
use serde_json::{Map, Value};

use crate::authenticated::Authenticated;
use crate::bound_key::BoundKey;
use crate::demands::PermitDemands;
use crate::facts::Facts;
use crate::guard::permanent_guard;
use crate::limits::{JSON_DEPTH, MAX_INTEGER, MAX_REASON};
use crate::operator_signature::{SignError, sign_as_operator};
use crate::rule::rules;
use crate::time_window::{Bound, TimeWindow};
use crate::violation::{Place, RuleName, Violation};

pub use crate::content_types::CLOCK_CORRECTION_CONTENT_TYPE;

/// The name of the rule that admits clock corrections, under any policy.
pub const CLOCK_CORRECTION_RULE: &str = "clock-correction";

/// The names of the payload's members; all are required.
const MEMBERS: [&str; 4] = ["size", "committed_at", "time", "reason"];

rules! {
    /// Rules of a clock correction (`application/vnd.tabellion.clock-correction+json`), a format defined by Tabellion.
    ClockCorrectionRule {
        /// The payload is one object of strict JSON.
        Json = "clock-correction-json", reading "-", section "payload";
        /// The JSON is its own canonical form (RFC 8785), byte for byte.
        Canonical = "clock-correction-canonical", reading "-", section "payload";
        /// Every member is known, present, and of the right type.
        Member = "clock-correction-member", reading "-", section "payload";
        /// `time` is before `committed_at`, and the batch of the correction is committed at `time` or later, before
        /// `committed_at`.
        Time = "clock-correction-time", reading "-", section "payload";
        /// `reason` has 1 to 1000 characters.
        Reason = "clock-correction-reason", reading "-", section "payload";
        /// `sub` is the log's origin.
        Subject = "clock-correction-subject", reading "-", section "statement";
        /// The log's time is ahead, `size` and `committed_at` are those of its newest head, and the clocks agree with
        /// `time`.
        NewestHead = "clock-correction-head", reading "-", section "log";
    }
}

/// A clock correction whose payload keeps every rule. [`NewestHead`](ClockCorrectionRule::NewestHead) and
/// [`Subject`](ClockCorrectionRule::Subject) are checked later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClockCorrection {
    /// The size of the newest head, whose time was ahead.
    pub size: TreeSize,
    /// The time that this head carries, in Unix seconds.
    pub committed_at: u64,
    /// The true time when the operator signed, in Unix seconds. Later heads carry this time or a later one.
    pub time: u64,
    /// The operator's explanation.
    pub reason: String,
}

impl ClockCorrection {
    /// Returns whether this correction permits the batch after the head of `size`, committed at `committed_at`, to be
    /// committed at the earlier time `at`.
    pub fn explains(&self, size: TreeSize, committed_at: u64, at: u64) -> bool {
        (self.size, self.committed_at) == (size, committed_at) && (self.time..committed_at).contains(&at)
    }

    /// Parses a payload: canonical JSON without unknown members.
    ///
    /// # Errors
    /// The first rule that the payload breaks.
    pub fn from_payload(payload: &[u8]) -> Result<ClockCorrection, Violation> {
        use ClockCorrectionRule as Rule;
        let limits = json::Limits { depth: JSON_DEPTH, ..json::Limits::default() };
        let document = json::parse_strict(payload, limits).map_err(|error| {
            let detail = format!("{} at byte {} of the JSON", error.kind, error.offset);
            Rule::Json.in_payload(error.pointer.clone(), detail)
        })?;
        let Value::Object(members) = &document else {
            return Err(Rule::Json.in_payload("", "the payload is not an object"));
        };
        if jose::jcs::canonical(&document) != payload {
            return Err(Rule::Canonical.in_payload("", "the JSON is not in its canonical form (RFC 8785)"));
        }
        if let Some(name) = members.keys().find(|name| !MEMBERS.contains(&name.as_str())) {
            return Err(Rule::Member.in_payload("", format!("{} is not known here", quote(name))));
        }
        let correction = ClockCorrection {
            size: TreeSize::new(number(members, "size")?),
            committed_at: number(members, "committed_at")?,
            time: number(members, "time")?,
            reason: reason(members)?,
        };
        match correction.time < correction.committed_at {
            true => Ok(correction),
            false => Err(Rule::Time.in_payload("/time", "the true time is before the time that was ahead")),
        }
    }

    /// Serializes the correction as canonical JSON (RFC 8785).
    pub fn payload(&self) -> Vec<u8> {
        jose::jcs::canonical(&Value::Object(Map::from_iter([
            ("size".to_owned(), self.size.get().into()),
            ("committed_at".to_owned(), self.committed_at.into()),
            ("time".to_owned(), self.time.into()),
            ("reason".to_owned(), self.reason.as_str().into()),
        ])))
    }

    /// Checks the rules that involve the statement's header, and returns the correction's demands.
    pub(crate) fn check(
        &self,
        statement: &Authenticated<'_>,
        origin: &str,
    ) -> Result<PermitDemands, Violation> {
        if statement.sub() != origin {
            let detail = "the subject of a clock correction is the log's origin";
            return Err(ClockCorrectionRule::Subject.in_header("15/2", detail));
        }
        let time = Bound {
            rule: RuleName::fixed(ClockCorrectionRule::Time.name()),
            place: Place::payload("/time"),
            window: TimeWindow { not_before: Some(self.time), not_after: Some(self.committed_at - 1) },
        };
        let guards = vec![permanent_guard(&statement.digest())];
        Ok(PermitDemands { bounds: vec![time], guards, ..PermitDemands::default() })
    }

    pub(crate) fn facts(&self, facts: &mut Facts) {
        facts.put("size", self.size.get().into());
        facts.put("committed_at", self.committed_at.into());
        facts.put("time", self.time.into());
        facts.text("reason", &self.reason);
    }
}

/// Signs a clock correction with an operator key of the policy in force; `log` holds the log's `iss` and origin.
///
/// # Errors
/// [`SignError`] if `key` is not one of `operators`, or the correction breaks a rule.
pub fn sign(
    correction: &ClockCorrection,
    log: (&str, &str),
    operators: &[BoundKey],
    key: &dyn Signer,
) -> Result<SignedStatement, SignError> {
    let payload = correction.payload();
    ClockCorrection::from_payload(&payload).map_err(|why| SignError::violates(&why))?;
    sign_as_operator(CLOCK_CORRECTION_CONTENT_TYPE, payload, None, log, operators, key)
}

fn number(members: &Map<String, Value>, name: &str) -> Result<u64, Violation> {
    let number = members.get(name).and_then(Value::as_u64).filter(|number| *number <= MAX_INTEGER);
    number.ok_or_else(|| {
        let detail = "an integer from 0 to 2^53-1 is needed here";
        ClockCorrectionRule::Member.in_payload(format!("/{name}"), detail)
    })
}

fn reason(members: &Map<String, Value>) -> Result<String, Violation> {
    let reason = members.get("reason").and_then(Value::as_str);
    let reason =
        reason.ok_or_else(|| ClockCorrectionRule::Member.in_payload("/reason", "a string is needed here"))?;
    match reason.chars().count() {
        1..=MAX_REASON => Ok(reason.to_owned()),
        _ => {
            let detail = format!("1 to {MAX_REASON} characters are needed here");
            Err(ClockCorrectionRule::Reason.in_payload("/reason", detail))
        }
    }
}
