//! Operator actions: freezing the log, holding an entry, and releasing it.

use jose::members::quote;
use merkle::EntryDigest;
use serde_json::{Map, Value, json};

use super::OperatorRule as Rule;
use super::document::{close, digest, number, object, text};
use super::{Effect, FREEZE_RULE, HOLD_RULE, RELEASE_RULE, freeze_guard, hold_guard};
use crate::answers::{Answers, Questions};
use crate::authenticated::Authenticated;
use crate::demands::PermitDemands;
use crate::facts::Facts;
use crate::guard::Guard;
use crate::guard::permanent_guard;
use crate::limits::{MAX_CASE, MAX_REASON};
use crate::violation::Violation;

/// An operator action whose payload keeps every rule. Rules about the log and the header are checked later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Freezes the log: no entry may follow.
    Freeze {
        /// The operator's explanation, 1 to 1000 characters.
        reason: String,
    },
    /// Prevents the erasure of an entry's bytes while a case lasts.
    Hold(Held),
    /// Ends the hold of an entry for a case.
    Release(Held),
}

/// The entry and case of a hold or release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The entry ID of the held entry.
    pub entry: EntryDigest,
    /// The name of the case, 1 to 256 bytes.
    pub case: String,
    /// The number among the holds and releases of this entry and case: even for a hold, odd for a release.
    pub number: u64,
}

impl Action {
    /// Returns the action with this number: a hold if it is even, a release if it is odd.
    pub fn numbered(entry: EntryDigest, case: &str, number: u64) -> Action {
        let held = Held { entry, case: case.to_owned(), number };
        if number.is_multiple_of(2) { Action::Hold(held) } else { Action::Release(held) }
    }

    /// The value of the member `action`.
    pub fn name(&self) -> &'static str {
        match self {
            Action::Freeze { .. } => "freeze",
            Action::Hold(_) => "hold",
            Action::Release(_) => "release",
        }
    }

    /// The name of the rule that admits the action.
    pub fn rule(&self) -> &'static str {
        match self {
            Action::Freeze { .. } => FREEZE_RULE,
            Action::Hold(_) => HOLD_RULE,
            Action::Release(_) => RELEASE_RULE,
        }
    }

    /// The entry and case, or `None` for a freeze.
    pub fn held(&self) -> Option<&Held> {
        match self {
            Action::Freeze { .. } => None,
            Action::Hold(held) | Action::Release(held) => Some(held),
        }
    }

    /// Parses a payload: canonical JSON without unknown members.
    ///
    /// # Errors
    /// The first rule that the payload breaks.
    pub fn from_payload(payload: &[u8]) -> Result<Action, Violation> {
        let members = object(payload)?;
        match text(&members, "action")? {
            "freeze" => {
                close(&members, &["action", "reason"])?;
                Ok(Action::Freeze { reason: reason(&members)? })
            }
            "hold" => held(&members, 0).map(Action::Hold),
            "release" => held(&members, 1).map(Action::Release),
            other => {
                let detail = format!("found {}, needed freeze, hold or release", quote(other));
                Err(Rule::Action.in_payload("/action", detail))
            }
        }
    }

    /// Serializes the action as canonical JSON (RFC 8785).
    pub fn payload(&self) -> Vec<u8> {
        let document = match self {
            Action::Freeze { reason } => json!({ "action": self.name(), "reason": reason }),
            Action::Hold(Held { entry, case, number }) | Action::Release(Held { entry, case, number }) => {
                json!({ "action": self.name(), "entry": entry.to_string(), "case": case, "number": number })
            }
        };
        jose::jcs::canonical(&document)
    }

    /// Returns the guards of the statement with this digest.
    pub fn guards(&self, statement: &EntryDigest) -> [Guard; 2] {
        let own = match self.held() {
            None => freeze_guard(),
            Some(held) => hold_guard(&held.entry, &held.case, held.number),
        };
        [own, permanent_guard(statement)]
    }

    pub(crate) fn questions(&self, asked: &mut Questions) {
        let Some(Held { entry, case, number }) = self.held() else { return };
        asked.digests.push(*entry);
        asked.guards.extend(number.checked_sub(1).map(|before| hold_guard(entry, case, before)));
    }

    /// Checks the rules about the log and the statement's header. Returns the action's demands, and the change that
    /// its commit applies.
    pub(crate) fn check(
        &self,
        statement: &Authenticated<'_>,
        origin: &str,
        log: &Answers,
    ) -> Result<(PermitDemands, Effect), Violation> {
        if statement.sub() != origin {
            return Err(
                Rule::Subject.in_header("15/2", "the subject of an operator's action is the log's origin")
            );
        }
        let effect = self.effect(log)?;
        Ok((PermitDemands::guards(self.guards(&statement.digest())), effect))
    }

    fn effect(&self, log: &Answers) -> Result<Effect, Violation> {
        let Some(Held { entry, case, number }) = self.held() else { return Ok(Effect::Freeze) };
        let Some(leaf) = log.entry(entry) else {
            return Err(Rule::Known.in_payload("/entry", format!("{entry} is not in the log")));
        };
        if let Some(before) = number.checked_sub(1)
            && log.guard(&hold_guard(entry, case, before)).is_none()
        {
            let detail = format!("number {before} of this entry and case is not in the log");
            return Err(Rule::Predecessor.in_payload("/number", detail));
        }
        let (entry, case) = (leaf, case.clone());
        Ok(match self {
            Action::Release(_) => Effect::Release { entry, case },
            _ => Effect::Hold { entry, case },
        })
    }

    pub(crate) fn facts(&self, facts: &mut Facts) {
        facts.text("action", self.name());
        match self {
            Action::Freeze { reason } => facts.text("reason", reason),
            Action::Hold(held) | Action::Release(held) => {
                facts.text("entry", &held.entry.to_string());
                facts.text("case", &held.case);
                facts.put("number", held.number.into());
            }
        }
    }
}

fn held(members: &Map<String, Value>, parity: u64) -> Result<Held, Violation> {
    close(members, &["action", "entry", "case", "number"])?;
    let entry = EntryDigest::from_bytes(digest(members, "entry", Rule::Entry)?);
    let case = case(members)?;
    let number = number(members, "number", Rule::Number)?;
    match number % 2 == parity {
        true => Ok(Held { entry, case, number }),
        false => {
            let detail = format!("found {number}: holds have even numbers, releases odd ones");
            Err(Rule::Number.in_payload("/number", detail))
        }
    }
}

fn case(members: &Map<String, Value>) -> Result<String, Violation> {
    let case = text(members, "case")?;
    match (1..=MAX_CASE).contains(&case.len()) && !case.chars().any(char::is_control) {
        true => Ok(case.to_owned()),
        false => {
            let detail = format!("1 to {MAX_CASE} bytes without control characters are needed here");
            Err(Rule::Case.in_payload("/case", detail))
        }
    }
}

fn reason(members: &Map<String, Value>) -> Result<String, Violation> {
    let reason = text(members, "reason")?;
    match reason.chars().count() {
        1..=MAX_REASON => Ok(reason.to_owned()),
        _ => {
            let detail = format!("1 to {MAX_REASON} characters are needed here");
            Err(Rule::Reason.in_payload("/reason", detail))
        }
    }
}
