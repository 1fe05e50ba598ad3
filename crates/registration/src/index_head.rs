//! Heads of the search index: statements of the log that commit to what its index holds.
//!
//! The payload is an [`IndexHead`] (`application/vnd.tabellion.index-head+cbor`), signed with a key that the policy in
//! force lists for the index, `iss` the log's, `sub` its origin and `/index`. The claim `iat` is the time of the head. The
//! policy says how often the log admits one. A head is never erased.
//!
//! Not here: whether the roots are right, which only a computation from the statements shows; and the rules about other
//! entries (the horizon never goes back, the root is that of the log, all leaves are before the head), which monitors check.

use lookup_tree::{HEAD_CONTENT_TYPE, HeadError, IndexHead};
use scitt::{SignedStatement, Signer, StatementBuilder};

use crate::authenticated::Authenticated;
use crate::demands::PermitDemands;
use crate::facts::Facts;
use crate::guard::{Guard, GuardKind, permanent_guard};
use crate::limits::CLOCK_SKEW;
use crate::operator_signature::SignError;
use crate::policy::{Contents, IndexRules};
use crate::rule::rules;
use crate::time_window::{Bound, TimeWindow};
use crate::violation::{Place, RuleName, Violation};

/// The rule that admits heads of the index, under any policy with an index.
pub const INDEX_HEAD_RULE: &str = "index-head";

/// The label of the `iat` claim (RFC 8392, section 4).
const IAT: i64 = 6;

rules! {
    /// Rules of a head of the search index (`application/vnd.tabellion.index-head+cbor`), a format defined by Tabellion.
    IndexHeadRule {
        /// The payload is a head in deterministic CBOR.
        Cbor = "index-head-cbor", reading "-", section "payload";
        /// The runs are those that the size of the head requires.
        Runs = "index-head-runs", reading "-", section "payload";
        /// The series is that of the index of the policy in force.
        Series = "index-head-series", reading "-", section "payload";
        /// `sub` is the log's origin and `/index`.
        Subject = "index-head-subject", reading "-", section "statement";
        /// `iat` is present, and the log registers the head from 300 seconds before it until `every` seconds after it.
        IssuedAt = "index-head-issued-at", reading "-", section "statement";
        /// No two heads of a series have their `iat` in one interval of `every` seconds. The log enforces this rule with
        /// the permit's guard.
        Every = "index-head-every", reading "-", section "log";
    }
}

/// Parses the payload of a head.
pub(crate) fn read(payload: &[u8]) -> Result<IndexHead, Violation> {
    let head = IndexHead::decode(payload).map_err(|why: HeadError| {
        IndexHeadRule::Cbor.in_payload("", format!("the payload is not a head of an index: {why}"))
    })?;
    match head.scheduled_runs() {
        Ok(_) => Ok(head),
        Err(why) => Err(IndexHeadRule::Runs.in_payload("/5", why.to_string())),
    }
}

/// Checks the rules that involve the statement's header and the policy, and returns the demands of the head.
pub(crate) fn check(
    head: &IndexHead,
    statement: &Authenticated<'_>,
    policy: &Contents,
) -> Result<PermitDemands, Violation> {
    let subject = subject(&policy.origin);
    if statement.sub() != subject {
        let detail = format!("the subject of a head of the index is {subject:?}");
        return Err(IndexHeadRule::Subject.in_header("15/2", detail));
    }
    let index = policy.index.as_ref().filter(|index| index.series() == head.series);
    let index = index.ok_or_else(|| {
        let detail = format!("{} is not the series of the policy's index", head.series);
        IndexHeadRule::Series.in_payload("/1", detail)
    })?;
    let iat = statement.header().iat();
    let iat = iat.and_then(|iat| u64::try_from(iat).ok()).ok_or_else(|| {
        IndexHeadRule::IssuedAt.in_header("15/6", "the time of the head (`iat`) is required")
    })?;
    let registered = Bound {
        rule: RuleName::fixed(IndexHeadRule::IssuedAt.name()),
        place: Place::protected("15/6"),
        window: TimeWindow {
            not_before: Some(iat.saturating_sub(CLOCK_SKEW)),
            not_after: Some(iat.saturating_add(index.every)),
        },
    };
    let guards = vec![interval_guard(head, iat / index.every), permanent_guard(&statement.digest())];
    Ok(PermitDemands { bounds: vec![registered], guards, ..PermitDemands::default() })
}

/// Adds the facts of a head.
pub(crate) fn facts(head: &IndexHead, facts: &mut Facts) {
    facts.put("size", head.size.get().into());
    facts.put("horizon", head.horizon.get().into());
    facts.text("series", &head.series.to_string());
}

/// Signs a head of the index with a key that the policy lists for it; `log` holds the log's `iss` and origin, and
/// `issued_at` is the time of the head in Unix seconds.
///
/// # Errors
/// [`SignError`] if the policy's index does not list the key, or the head breaks a rule of its payload.
pub fn sign(
    head: &IndexHead,
    issued_at: u64,
    (iss, origin): (&str, &str),
    index: &IndexRules,
    key: &dyn Signer,
) -> Result<SignedStatement, SignError> {
    let payload = head.encode();
    read(&payload).map_err(|why| SignError::violates(&why))?;
    let listed = index.keys.iter().find(|bound| bound.key == *key.public_key());
    let listed = listed.ok_or_else(|| SignError::NotAnIndexKey(key.public_key().did_key()))?;
    let statement = StatementBuilder::new(payload).content_type(HEAD_CONTENT_TYPE).kid(listed.kid.clone());
    let statement = statement.iss(iss).sub(&subject(origin));
    Ok(statement.claim(IAT, i64::try_from(issued_at).unwrap_or(i64::MAX).into()).sign(key)?)
}

/// The subject of all heads of a log's index.
pub fn subject(origin: &str) -> String {
    format!("{origin}/index")
}

/// The guard of an interval of time, of which a series has at most one head.
fn interval_guard(head: &IndexHead, interval: u64) -> Guard {
    Guard::new(GuardKind::IndexHead, &[head.series.as_bytes(), &interval.to_be_bytes()])
}
