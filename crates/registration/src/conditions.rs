//! Evaluation of an operator's conditions on a statement.
//!
//! Conditions see the authenticated statement as one document: `iss`, `sub`, `content_type`, `algorithm`,
//! `authenticated_by`, `size` (bytes of the statement), `detached`, `hash_envelope`, `claims` (`iat`, `exp`, `nbf`,
//! those present) and `record`: the typed record of the content type, or the payload of a JSON or CBOR content type
//! without a profile. The document depends neither on the time nor on the log, so that anyone with the statement's
//! bytes can evaluate the conditions again.
//!
//! A refusing condition also refuses if it names a member that the statement lacks: leaving out a member must not
//! circumvent it. An admitting condition does not admit in this case.

use expression::{Answer, EvalError, Input};
use jose::members::quote;
use serde_json::{Map, Value, json};

use crate::authenticated::Authenticated;
use crate::content_types::{content_type, spell};
use crate::decision::Undecided;
use crate::opaque::OpaqueRecord;
use crate::payload::Encoding;
use crate::policy::{Condition, CwtClaim, Outcome, TypeRule};
use crate::profile::TypedRecord;
use crate::violation::{Place, RuleName, Violation, cut};

/// The reasons for not admitting a statement.
pub(crate) enum Stop {
    /// The statement breaks a rule.
    Broken(Violation),
    /// A rule gave no answer within its time limit.
    Undecided(Undecided),
}

impl From<Violation> for Stop {
    fn from(violation: Violation) -> Self {
        Stop::Broken(violation)
    }
}

/// Returns the rule that admits: the first admitting condition that holds before a refusing one does, otherwise the
/// rule of the content type.
pub(crate) fn ask(
    rule: &TypeRule,
    statement: &Authenticated<'_>,
    record: &TypedRecord,
) -> Result<RuleName, Stop> {
    let Some(first) = rule.conditions.first() else { return Ok(RuleName::of(rule.name.clone())) };
    let record = record_document(rule, statement, record)?;
    let input = Input::new(&document(statement, record)).map_err(|why| unanswered(first, why))?;
    for condition in &rule.conditions {
        let answer = condition.when.answer(&input).map_err(|why| unanswered(condition, why))?;
        let when = || quote(condition.when.text());
        match (condition.then, answer) {
            (_, Answer::DoesNotHold) | (Outcome::Admit, Answer::MissingMember) => {}
            (Outcome::Admit, Answer::Holds) => return Ok(RuleName::of(condition.name.clone())),
            (Outcome::Refuse, Answer::Holds) => {
                let detail = format!("the policy refuses where {} holds", when());
                return Err(Stop::Broken(broken(condition, detail)));
            }
            (Outcome::Refuse, Answer::MissingMember) => {
                let detail = format!(
                    "the policy refuses where {} holds, and a member that it names is missing",
                    when()
                );
                return Err(Stop::Broken(broken(condition, detail)));
            }
        }
    }
    Ok(RuleName::of(rule.name.clone()))
}

/// Maps an evaluation error: a time-out leaves the statement undecided, because a later attempt may be faster. Every
/// other error would recur, so it refuses the statement.
fn unanswered(condition: &Condition, why: EvalError) -> Stop {
    match why {
        EvalError::TimedOut => {
            Stop::Undecided(Undecided { rule: RuleName::of(condition.name.clone()), why: why.to_string() })
        }
        EvalError::Failed(why) => {
            Stop::Broken(broken(condition, format!("the condition has no answer: {why}")))
        }
    }
}

fn broken(condition: &Condition, detail: String) -> Violation {
    Violation { rule: RuleName::of(condition.name.clone()), place: Place::Statement, detail: cut(detail) }
}

fn document(statement: &Authenticated<'_>, record: Value) -> Value {
    let header = statement.header();
    json!({
        "iss": statement.iss(),
        "sub": statement.sub(),
        "content_type": content_type(header).map(spell),
        "algorithm": statement.algorithm().name(),
        "authenticated_by": statement.method().name(),
        "size": statement.statement().bytes().len(),
        "detached": statement.statement().is_detached(),
        "hash_envelope": header.hash_envelope().is_some(),
        "claims": claims(statement),
        "record": record,
    })
}

/// Returns the document of a record; for an opaque payload that the conditions ask about, that is its content.
fn record_document(
    rule: &TypeRule,
    statement: &Authenticated<'_>,
    record: &TypedRecord,
) -> Result<Value, Violation> {
    let is_asked = rule.conditions.iter().any(Condition::asks_for_record);
    match record.get::<OpaqueRecord>() {
        Some(_) if is_asked => payload(rule, statement),
        _ => Ok(record.as_dyn().document()),
    }
}

/// Parses the payload of a JSON or CBOR content type without a profile as a document.
fn payload(rule: &TypeRule, statement: &Authenticated<'_>) -> Result<Value, Violation> {
    let name = content_type(statement.header()).map(spell).unwrap_or_default();
    // Policy validation rejects conditions on the record of any other content type, so this fallback is not used.
    let encoding = Encoding::of(&name).unwrap_or(Encoding::Json);
    encoding.read(statement.payload()).map_err(|why| Violation {
        rule: RuleName::fixed(encoding.rule()),
        place: Place::payload(""),
        detail: cut(format!("the rules of {} ask about the payload, and {why}", rule.name)),
    })
}

fn claims(statement: &Authenticated<'_>) -> Map<String, Value> {
    let Some(given) = statement.header().claims() else { return Map::new() };
    let value = |claim| match claim {
        CwtClaim::Iat => given.iat(),
        CwtClaim::Exp => given.exp(),
        CwtClaim::Nbf => given.nbf(),
    };
    let present = |(claim, name): (CwtClaim, &str)| value(claim).map(|at| (name.to_owned(), at.into()));
    CwtClaim::ALL.into_iter().filter_map(present).collect()
}
