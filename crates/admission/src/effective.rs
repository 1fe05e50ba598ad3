//! The commitment in force, and the chain of its digests (readings V-16 to V-18, V-23).
//!
//! E0 is the commitment without its signature, after the operator's ceiling. An amendment makes E(n+1) from E(n): a new
//! value, so that whoever judges it still has the old one. Agents can do the same sums: lists appended in order without
//! exact duplicates, numbers added as decimals, the later deadline as it was written, the ceiling last, and the digest of
//! E(n) in `prev_commitment_digest`.
//!
//! The digest is SHA-256 over the canonical text, which is what the agent is given. It is JCS as long as a double holds every
//! number; another number is written out exactly.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jose::json::{self, Limits};
use jose::{jcs, number};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::decimal::Decimal;
use crate::digest::{Canon, Digest};
use crate::glob::Pattern;
use crate::limits::{MAX_INTEGER, MAX_METERS, MAX_PATTERNS};
use crate::message::{
    AddScope, Budget, ClaimedPrincipal, Deadline, IncreaseBudget, MessageType, Scope, ScopeAmendment,
    ScopeCommitment, VERSION,
};
use crate::reason::Reason;

/// What a session has agreed to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Effective {
    /// The session.
    pub session_id: String,
    /// What it is for.
    pub goal: String,
    /// Which tools may be called.
    pub scope: Scope,
    /// How much may be spent.
    pub budget: Budget,
    /// The agent's plan, opaque.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_digest: Option<Digest>,
    /// Who says it is calling.
    pub principal: ClaimedPrincipal,
    /// The digest of what this one follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prev_commitment_digest: Option<Digest>,
}

/// The most that an operator grants one session of a route.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ceiling {
    /// Calls.
    pub max_calls: Option<u64>,
    /// The latest deadline.
    pub deadline: Option<Timestamp>,
    /// Each meter.
    pub limits: BTreeMap<String, Decimal>,
}

/// A commitment after the operator's ceiling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capped {
    /// What is in force.
    pub effective: Effective,
    /// Whether the ceiling changed anything: then the Verdict is `downgraded` (reading V-23).
    pub changed: bool,
}

impl Effective {
    /// E0.
    pub fn of(commitment: &ScopeCommitment, ceiling: &Ceiling) -> Result<Capped, Reason> {
        let ScopeCommitment { session_id, goal, scope, budget, plan_digest, principal, signature: _ } =
            commitment;
        let declared = Effective {
            session_id: session_id.clone(),
            goal: goal.clone(),
            scope: scope.clone(),
            budget: budget.clone(),
            plan_digest: plan_digest.clone(),
            principal: principal.clone(),
            prev_commitment_digest: None,
        };
        declared.capped(ceiling)
    }

    /// E(n+1). This E(n) stays as it is (reading V-18).
    pub fn amended(&self, amendment: &ScopeAmendment, ceiling: &Ceiling) -> Result<Capped, Reason> {
        let digest = self.digest();
        if !amendment.prev_commitment_digest.names(&digest) {
            return Err(Reason::ChainBroken);
        }
        if adds_nothing(amendment) {
            return Err(Reason::NothingToAdd);
        }
        let mut next = self.clone();
        next.prev_commitment_digest = Some(digest);
        next.plan_digest = amendment.new_plan_digest.clone().or(next.plan_digest);
        if let Some(added) = &amendment.add_scope {
            widen(&mut next.scope, added)?;
        }
        if let Some(added) = &amendment.increase_budget {
            raise(&mut next.budget, added)?;
        }
        next.capped(ceiling)
    }

    /// The canonical text, as bytes, and whether a number in it is beyond JCS.
    pub fn canon(&self) -> Canon {
        let (text, raw) = canonical(self);
        Canon { bytes: text.into_bytes(), raw }
    }

    /// The canonical text: what the agent is given (reading V-17).
    pub fn text(&self) -> String {
        canonical(self).0
    }

    /// The digest that an amendment has to name.
    pub fn digest(&self) -> Digest {
        self.canon().digest()
    }

    fn capped(mut self, ceiling: &Ceiling) -> Result<Capped, Reason> {
        let before = self.budget.clone();
        let budget = &mut self.budget;
        budget.max_calls = least(budget.max_calls, ceiling.max_calls);
        if let Some(latest) = ceiling.deadline {
            budget.deadline = budget.deadline.take().filter(|deadline| deadline.at() <= latest);
            budget.deadline.get_or_insert_with(|| latest.into());
        }
        for (meter, most) in &ceiling.limits {
            let limit = budget.limits.entry(meter.clone()).or_insert(*most);
            *limit = (*limit).min(*most);
        }
        if budget.limits.len() > MAX_METERS {
            return Err(Reason::OutOfRange);
        }
        let changed = self.budget != before;
        Ok(Capped { effective: self, changed })
    }
}

/// The smaller of those that are there.
fn least(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    a.into_iter().chain(b).min()
}

/// Reading V-16: an empty addition is none.
fn adds_nothing(amendment: &ScopeAmendment) -> bool {
    let scope = amendment.add_scope.as_ref().is_none_or(|added| *added == AddScope::default());
    let budget = amendment.increase_budget.as_ref().is_none_or(|added| *added == IncreaseBudget::default());
    scope && budget
}

/// A deny is only ever added (reading V-9).
fn widen(scope: &mut Scope, added: &AddScope) -> Result<(), Reason> {
    append(&mut scope.tools_allow, &added.tools_allow);
    if !added.tools_deny.is_empty() {
        append(scope.tools_deny.get_or_insert_default(), &added.tools_deny);
    }
    let count = scope.tools_allow.len() + scope.tools_deny.as_ref().map_or(0, Vec::len);
    if count > MAX_PATTERNS { Err(Reason::OutOfRange) } else { Ok(()) }
}

fn append(patterns: &mut Vec<Pattern>, added: &[Pattern]) {
    for pattern in added {
        if !patterns.contains(pattern) {
            patterns.push(pattern.clone());
        }
    }
}

/// Reading V-16: only what is bounded can be raised; an addition never makes a bound.
fn raise(budget: &mut Budget, added: &IncreaseBudget) -> Result<(), Reason> {
    if let Some(calls) = added.add_calls {
        let sum = budget.max_calls.ok_or(Reason::NoSuchLimit)?.checked_add(calls);
        budget.max_calls = Some(sum.filter(|sum| *sum <= MAX_INTEGER).ok_or(Reason::OutOfRange)?);
    }
    if let Some(later) = &added.extend_deadline {
        budget.deadline = Some(extended(budget.deadline.as_ref(), later)?);
    }
    for (meter, amount) in &added.add_limits {
        let limit = budget.limits.get_mut(meter).ok_or(Reason::NoSuchLimit)?;
        *limit = limit.checked_add(*amount).ok_or(Reason::OutOfRange)?;
    }
    Ok(())
}

fn extended(deadline: Option<&Deadline>, later: &Deadline) -> Result<Deadline, Reason> {
    match deadline {
        None => Err(Reason::NoSuchLimit),
        Some(deadline) if later.at() <= deadline.at() => Err(Reason::DeadlineNotLater),
        Some(_) => Ok(later.clone()),
    }
}

/// The text, and whether a number in it is written as no double would be.
fn canonical(effective: &Effective) -> (String, bool) {
    let Effective { session_id, goal, scope, budget, plan_digest, principal, prev_commitment_digest } =
        effective;
    let (budget, raw) = canonical_budget(budget);
    let mut members = vec![
        ("vap", string(VERSION)),
        ("type", string(MessageType::ScopeCommitment.as_str())),
        ("session_id", string(session_id)),
        ("goal", string(goal)),
        ("scope", jcs_text(scope)),
        ("budget", budget),
        ("principal", jcs_text(principal)),
    ];
    let digests = [("plan_digest", plan_digest), ("prev_commitment_digest", prev_commitment_digest)];
    members.extend(
        digests.into_iter().filter_map(|(name, digest)| Some((name, string(digest.as_ref()?.as_str())))),
    );
    (object(members), raw)
}

fn canonical_budget(budget: &Budget) -> (String, bool) {
    let limits: Vec<_> =
        budget.limits.iter().map(|(meter, limit)| (meter.as_str(), decimal(*limit))).collect();
    let raw = limits.iter().any(|(_, (_, raw))| *raw);
    let mut members = Vec::new();
    if !limits.is_empty() {
        members
            .push(("limits", object(limits.into_iter().map(|(meter, (text, _))| (meter, text)).collect())));
    }
    members.extend(budget.max_calls.map(|calls| ("max_calls", calls.to_string())));
    members.extend(budget.deadline.as_ref().map(|deadline| ("deadline", string(deadline.as_str()))));
    (object(members), raw)
}

/// An object in the order of RFC 8785: by the names' UTF-16.
fn object(mut members: Vec<(&str, String)>) -> String {
    members.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
    let member = |(name, text): &(&str, String)| format!("{}:{text}", string(name));
    format!("{{{}}}", members.iter().map(member).collect::<Vec<_>>().join(","))
}

fn string(text: &str) -> String {
    jcs_text(&text)
}

/// The canonical form of what holds no numbers.
fn jcs_text<T: Serialize>(value: &T) -> String {
    let bytes = jcs::to_canonical(value).expect("texts and lists of texts have a canonical form");
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A number as RFC 8785 writes it, or, where a double is another number, all its digits.
fn decimal(number: Decimal) -> (String, bool) {
    let text = number.to_string();
    let limits = Limits { bytes: text.len(), depth: 0 };
    let exact = json::check(text.as_bytes(), limits).is_ok_and(|text| number::first_inexact(text).is_none());
    match exact {
        true => (jcs_text(&Value::from(number.to_f64())), false),
        false => (text, true),
    }
}
