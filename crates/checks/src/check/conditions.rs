//! A schema and constraints (tier 1). Nothing is run: the work is data, and validator and conditions are bounded.

use std::collections::BTreeMap;

use expression::{Answer, EvalError, Expression, Input};
use regex::Regex;
use sandbox::Engine;
use schema::{Misfit, Schema};
use serde_json::{Map, Value};

use super::deadline::Deadline;
use super::outcome::{Cause, detail, error, fail};
use crate::limits::{DETAIL_BYTES, MATCHED_BYTES};
use crate::report::{Detail, Report};
use crate::request::CheckRequest;
use crate::request::artifact::Artifact;
use crate::request::conditions::{Conditions, Constraint, ConstraintTest, SCHEMA_CHECK};
use crate::text::shorten;

/// Checks the schema, then the constraints.
pub(super) fn run(request: &CheckRequest, conditions: &Conditions, deadline: Deadline<'_>) -> Report {
    let artifact = request.artifact();
    let by_schema = conditions.schema.iter().map(|schema| matches_schema(schema, artifact));
    let input = Input::new(&document(artifact));
    let in_time = |constraint: &Constraint| match deadline.check() {
        Ok(()) => fulfils(constraint, artifact, &input),
        Err(cause) => detail(&constraint.name, Err(cause), None),
    };
    Report {
        details: by_schema.chain(conditions.constraints.iter().map(in_time)).collect(),
        engine: engine(),
        fuel_used: None,
        seed: None,
        cases: None,
        hashes: BTreeMap::new(),
        execution_ms: 0,
    }
}

/// The validator: this program itself.
fn engine() -> Engine {
    Engine {
        sandbox: "none".to_owned(),
        name: "tabellion checks".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        digests: Vec::new(),
    }
}

fn matches_schema(schema: &Schema, artifact: &Artifact) -> Detail {
    let result = match artifact.text() {
        None => Err(fail("the work is not UTF-8, so it is not JSON")),
        Some(text) => schema.check(text).map_err(|misfit| match misfit {
            Misfit::At { .. } => fail(format!("the work does not match the schema: {misfit}")),
            Misfit::Unreadable(why) => fail(format!("the work cannot be read: {why}")),
            Misfit::TooCostly => error("the check of the schema would take too many steps"),
        }),
    };
    detail(SCHEMA_CHECK, result, None)
}

/// Returns the document of conditions: `value`, `text` and `files`, as far as the work is JSON or UTF-8.
fn document(artifact: &Artifact) -> Value {
    let mut document = Map::new();
    if let Some(value) = artifact.json() {
        document.insert("value".to_owned(), value);
    }
    if let Some(text) = artifact.text() {
        document.insert("text".to_owned(), text.into());
    }
    let files = artifact
        .files()
        .iter()
        .filter_map(|(path, bytes)| Some((path.clone(), Value::from(std::str::from_utf8(bytes).ok()?))));
    document.insert("files".to_owned(), files.collect());
    document.into()
}

fn fulfils(constraint: &Constraint, artifact: &Artifact, input: &Result<Input, EvalError>) -> Detail {
    let (result, expected) = match &constraint.test {
        ConstraintTest::Expression(condition) => (holds(condition, input), condition.text()),
        ConstraintTest::Pattern(pattern) => (matches(pattern, artifact), pattern.as_str()),
    };
    let expected = Some(shorten(expected, DETAIL_BYTES));
    Detail { expected, ..detail(&constraint.name, result, None) }
}

fn matches(pattern: &Regex, artifact: &Artifact) -> Result<(), Cause> {
    match artifact.text() {
        Some(text) if text.len() > MATCHED_BYTES => Err(error(format!(
            "the work has {} bytes; regular expressions are matched with at most {MATCHED_BYTES}",
            text.len()
        ))),
        Some(text) if pattern.is_match(text) => Ok(()),
        Some(_) => Err(fail("the regular expression does not match")),
        None => Err(fail("the work is not UTF-8")),
    }
}

/// Evaluates a condition. One that refers to a member that the document lacks, or that cannot be applied to what it
/// has, does not hold.
pub(super) fn holds(condition: &Expression, input: &Result<Input, EvalError>) -> Result<(), Cause> {
    match input.as_ref().map_err(Clone::clone).and_then(|input| condition.answer(input)) {
        Ok(Answer::Holds) => Ok(()),
        Ok(Answer::DoesNotHold) => Err(fail("the condition does not hold")),
        Ok(Answer::MissingMember) => Err(fail("the condition refers to a member that is absent or null")),
        Err(EvalError::TimedOut) => Err(error("the condition took too long")),
        Err(EvalError::Failed(why)) => Err(fail(format!("the condition cannot be applied: {why}"))),
    }
}
