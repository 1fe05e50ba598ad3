//! The effective commitment: the commitment in force, and the chain of its digests (readings V-16 to V-18, V-23).
//!
//! E0 is the commitment without its signature, reduced to the operator's ceiling. An amendment derives E(n+1) from E(n)
//! as a new value, so that E(n) is still there while the amendment is judged. Agents can compute the same result: lists
//! are appended in order without exact duplicates, numbers are added as decimals, the later deadline is kept as
//! written, the ceiling is applied last, and `prev_commitment_digest` is the digest of E(n).
//!
//! The digest is SHA-256 over the canonical text, which the agent receives. The text is JCS (RFC 8785) as long as
//! doubles represent every number; other numbers are written out exactly.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jose::jcs;
use jose::json::{self, Limits};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use decimal::Decimal;
use vap::digest::{Canon, Digest};
use vap::glob::{self, Pattern};
use vap::limits::{MAX_INTEGER, MAX_METERS, MAX_PATTERNS};
use vap::message::{
    AddScope, Budget, ClaimedPrincipal, Deadline, IncreaseBudget, MessageType, Scope, ScopeAmendment,
    ScopeCommitment, VERSION,
};
use vap::reason::Reason;

/// An effective commitment: a session's scope and budget in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Effective {
    /// The session's id.
    pub session_id: String,
    /// The goal of the session.
    pub goal: String,
    /// The tools that may be called.
    pub scope: Scope,
    /// The limits on calls, time and meters.
    pub budget: Budget,
    /// A digest of the agent's plan; opaque.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_digest: Option<Digest>,
    /// The agent that the sender claims to be.
    pub principal: ClaimedPrincipal,
    /// The digest of the effective commitment before the last amendment; `None` in E0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prev_commitment_digest: Option<Digest>,
}

/// The operator's ceiling for one session of a route at its commitment time; derived from
/// [`rules::Ceiling`](crate::rules::Ceiling).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionCeiling {
    /// Maximum number of calls.
    pub max_calls: Option<u64>,
    /// The latest deadline.
    pub deadline: Option<Timestamp>,
    /// The ceiling of each meter, by its name.
    pub limits: BTreeMap<String, Decimal>,
    /// The ceilings of the scope; all of them apply.
    pub scopes: Vec<ScopeCeiling>,
}

/// A ceiling of the tools that sessions may call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScopeCeiling {
    /// Patterns of the tools that may be in a scope; none means all tools.
    pub tools_allow: Vec<Pattern>,
    /// Patterns of the tools that are in no scope.
    pub tools_deny: Vec<Pattern>,
}

impl ScopeCeiling {
    /// Returns `true` if sessions may call the tool.
    #[must_use]
    pub fn allows(&self, tool: &str) -> bool {
        match self.tools_allow.is_empty() {
            true => !glob::matches_any(&self.tools_deny, tool),
            false => glob::allows(&self.tools_allow, &self.tools_deny, tool),
        }
    }

    /// Reduces a scope to this ceiling. A pattern that overlaps the ceiling and is not covered by it remains, since no
    /// pattern describes what both match; so each call is checked against the ceiling as well.
    fn narrow(&self, scope: &mut Scope) {
        if !self.tools_allow.is_empty() {
            let allowed = scope.tools_allow.iter().flat_map(|pattern| self.within(pattern));
            scope.tools_allow = allowed.fold(Vec::new(), |mut patterns, pattern| {
                append(&mut patterns, &[pattern]);
                patterns
            });
        }
        if !self.tools_deny.is_empty() {
            append(scope.tools_deny.get_or_insert_default(), &self.tools_deny);
        }
    }

    /// Returns the parts of a pattern that are within the allowed ones.
    fn within(&self, pattern: &Pattern) -> Vec<Pattern> {
        if self.tools_allow.iter().any(|ceiling| ceiling.covers(pattern)) {
            return vec![pattern.clone()];
        }
        let overlapping = self.tools_allow.iter().filter(|ceiling| ceiling.overlaps(pattern));
        let part = |ceiling: &Pattern| if pattern.covers(ceiling) { ceiling } else { pattern }.clone();
        overlapping.map(part).collect()
    }
}

/// An effective commitment after the operator's ceiling was applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capped {
    /// The commitment in force.
    pub effective: Effective,
    /// `true` if the ceiling changed the scope or the budget: the Verdict is then `downgraded` (reading V-23).
    pub changed: bool,
}

impl Effective {
    /// Computes E0 from a commitment.
    ///
    /// # Errors
    /// [`Reason::OutOfRange`] if commitment and ceiling together limit more than [`MAX_METERS`] meters or have more than
    /// [`MAX_PATTERNS`] patterns, and [`Reason::ScopeEscape`] if the ceiling leaves no tool of the scope.
    pub fn of(commitment: &ScopeCommitment, ceiling: &SessionCeiling) -> Result<Capped, Reason> {
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

    /// Computes E(n+1) from this E(n), which remains unchanged (reading V-18).
    ///
    /// # Errors
    /// The reason why the amendment is denied, such as [`Reason::ChainBroken`] or [`Reason::NoSuchLimit`].
    pub fn amended(&self, amendment: &ScopeAmendment, ceiling: &SessionCeiling) -> Result<Capped, Reason> {
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

    /// Returns the canonical text as bytes; `raw` is set if a number in it is not representable in JCS.
    pub fn canon(&self) -> Canon {
        let (text, raw) = canonical(self);
        Canon { bytes: text.into_bytes(), raw }
    }

    /// Returns the canonical text, which the agent receives (reading V-17).
    pub fn text(&self) -> String {
        canonical(self).0
    }

    /// Returns the digest that the next amendment has to contain.
    pub fn digest(&self) -> Digest {
        self.canon().digest()
    }

    fn capped(mut self, ceiling: &SessionCeiling) -> Result<Capped, Reason> {
        let before = (self.scope.clone(), self.budget.clone());
        ceiling.scopes.iter().for_each(|ceiling| ceiling.narrow(&mut self.scope));
        if self.scope.tools_allow.is_empty() {
            return Err(Reason::ScopeEscape);
        }
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
        if budget.limits.len() > MAX_METERS || count(&self.scope) > MAX_PATTERNS {
            return Err(Reason::OutOfRange);
        }
        let changed = (&self.scope, &self.budget) != (&before.0, &before.1);
        Ok(Capped { effective: self, changed })
    }
}

/// Returns the smaller of the present values.
fn least(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    a.into_iter().chain(b).min()
}

/// Returns `true` if all additions are absent or empty (reading V-16).
fn adds_nothing(amendment: &ScopeAmendment) -> bool {
    let scope = amendment.add_scope.as_ref().is_none_or(|added| *added == AddScope::default());
    let budget = amendment.increase_budget.as_ref().is_none_or(|added| *added == IncreaseBudget::default());
    scope && budget
}

/// Appends patterns. Denied patterns are never removed (reading V-9).
fn widen(scope: &mut Scope, added: &AddScope) -> Result<(), Reason> {
    append(&mut scope.tools_allow, &added.tools_allow);
    if !added.tools_deny.is_empty() {
        append(scope.tools_deny.get_or_insert_default(), &added.tools_deny);
    }
    if count(scope) > MAX_PATTERNS { Err(Reason::OutOfRange) } else { Ok(()) }
}

/// Returns the number of patterns in a scope.
fn count(scope: &Scope) -> usize {
    scope.tools_allow.len() + scope.tools_deny.as_ref().map_or(0, Vec::len)
}

fn append(patterns: &mut Vec<Pattern>, added: &[Pattern]) {
    for pattern in added {
        if !patterns.contains(pattern) {
            patterns.push(pattern.clone());
        }
    }
}

/// Raises existing limits; an amendment cannot introduce a new one (reading V-16).
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

/// Returns the canonical text, and whether a number in it differs from JCS.
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

/// Formats an object with its members in the order of RFC 8785, by the UTF-16 code units of their names.
fn object(mut members: Vec<(&str, String)>) -> String {
    members.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
    let member = |(name, text): &(&str, String)| format!("{}:{text}", string(name));
    format!("{{{}}}", members.iter().map(member).collect::<Vec<_>>().join(","))
}

fn string(text: &str) -> String {
    jcs_text(&text)
}

/// Returns the JCS form of a value without numbers.
fn jcs_text<T: Serialize>(value: &T) -> String {
    let bytes = jcs::to_canonical(value).expect("texts and lists of texts have a canonical form");
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Formats a number as RFC 8785 does, or with all its digits and `true` if no double represents it.
fn decimal(number: Decimal) -> (String, bool) {
    let text = number.to_string();
    let limits = Limits { bytes: text.len(), depth: 0 };
    let exact = json::check(text.as_bytes(), limits).is_ok_and(|text| text.first_inexact_number().is_none());
    match exact {
        true => (jcs_text(&Value::from(number.to_f64())), false),
        false => (text, true),
    }
}
