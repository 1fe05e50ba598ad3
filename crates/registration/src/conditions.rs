//! Asking an operator's conditions about a statement.
//!
//! They see what was read and authenticated, as one document: `iss`, `sub`, `content_type`, `algorithm`,
//! `authenticated_by`, `size` (bytes of the statement), `detached`, `hash_envelope`, `claims` (`iat`, `exp`, `nbf`, as far
//! as they are there) and `record`: the typed record of the content type, or the payload where the log reads nothing but
//! JSON of it. There is no time in it, and nothing of the log: whoever has the statement's bytes can ask again.
//!
//! A condition that refuses also refuses where it names a member that the statement lacks: leaving a member out must not be
//! a way around it. One that admits does not admit then.

use expression::{Answer, EvalError, Input};
use serde_json::{Map, Value, json};

use crate::authenticate::Authenticated;
use crate::decision::Undecided;
use crate::payload::Encoding;
use crate::policy::{Claim, Condition, Outcome, TypeRule, spell};
use crate::record::content_type;
use crate::violation::{Place, RuleName, Violation, cut, quote};

/// Why a statement is not admitted.
pub(crate) enum Stop {
    /// A rule is broken.
    Broken(Violation),
    /// A rule came to no answer.
    Undecided(Undecided),
}

impl From<Violation> for Stop {
    fn from(violation: Violation) -> Self {
        Stop::Broken(violation)
    }
}

/// The rule that admits: the first condition that holds and says so, or else the type's own.
pub(crate) fn ask(
    rule: &TypeRule,
    statement: &Authenticated<'_>,
    record: impl FnOnce() -> Value,
) -> Result<RuleName, Stop> {
    let Some(first) = rule.conditions.first() else { return Ok(RuleName::of(rule.name.clone())) };
    let input = Input::new(&document(statement, record())).map_err(|why| unanswered(first, why))?;
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

/// What does not fit will not fit later, so it refuses; what took too long may be quicker.
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

/// The payload as a document, where the content type is JSON or CBOR without a profile.
pub(crate) fn payload(rule: &TypeRule, statement: &Authenticated<'_>) -> Result<Value, Violation> {
    let name = content_type(statement.header()).map(spell).unwrap_or_default();
    // A policy whose conditions ask for the record of another type is a mistake, and is never in force.
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
        Claim::Iat => given.iat(),
        Claim::Exp => given.exp(),
        Claim::Nbf => given.nbf(),
    };
    let present = |(claim, name): (Claim, &str)| value(claim).map(|at| (name.to_owned(), at.into()));
    Claim::ALL.into_iter().filter_map(present).collect()
}
