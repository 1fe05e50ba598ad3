//! A schema and constraints (tier 1).

use expression::Expression;
use regex::{Regex, RegexBuilder};
use schema::Schema;

use super::cases::distinct;
use crate::error::{Form, Members, RequestError, list, only, short_text};
use crate::limits::{COMPILED_PATTERN_BYTES, CONSTRAINTS, NAME_CHARACTERS, PATTERN_BYTES};

/// The name of the check of the schema.
pub const SCHEMA_CHECK: &str = "schema";

/// The checks of tier 1.
#[derive(Clone, Debug)]
pub struct Conditions {
    /// The schema that the work must match.
    pub schema: Option<std::sync::Arc<Schema>>,
    /// The constraints that it must fulfil.
    pub constraints: Vec<Constraint>,
}

/// A constraint on the work.
#[derive(Clone, Debug)]
pub struct Constraint {
    /// The name, which no other constraint of the request has.
    pub name: String,
    /// What must hold.
    pub test: ConstraintTest,
}

/// What must hold for the work.
#[derive(Clone, Debug)]
pub enum ConstraintTest {
    /// A condition over `input.value`, `input.text` and `input.files`.
    Expression(Box<Expression>),
    /// A regular expression that matches somewhere in the text.
    Pattern(Regex),
}

impl Conditions {
    pub(super) fn read(top: &Members<'_>) -> Result<Self, RequestError> {
        let schema = match top.get("schema") {
            None => None,
            Some(schema) => Some(compile(schema).map_err(|why| top.broken(Form, "schema", why))?),
        };
        let constraints = match top.has("constraints") {
            false => Vec::new(),
            true => constraints(top)?,
        };
        let names = constraints.iter().map(|constraint| constraint.name.as_str());
        match schema {
            Some(_) => distinct(top, "constraints", names.chain([SCHEMA_CHECK]))?,
            None => distinct(top, "constraints", names)?,
        }
        Ok(Self { schema: schema.map(Into::into), constraints })
    }
}

fn compile(schema: &serde_json::Value) -> Result<Schema, String> {
    let text = String::from_utf8(jose::jcs::canonical(schema)).map_err(|error| error.to_string())?;
    Schema::compile(&text).map_err(|error| format!("this schema cannot be used: {error}"))
}

fn constraints(top: &Members<'_>) -> Result<Vec<Constraint>, RequestError> {
    let items = list(top, "constraints", CONSTRAINTS)?;
    let read = |(index, item)| {
        let constraint = Members::of(item, format!("/constraints/{index}"))?;
        only(&constraint, &["name", "expression", "pattern"])?;
        let name = short_text(&constraint, "name", NAME_CHARACTERS)?;
        Ok(Constraint { name, test: ConstraintTest::read(&constraint)? })
    };
    items.iter().enumerate().map(read).collect()
}

impl ConstraintTest {
    fn read(constraint: &Members<'_>) -> Result<Self, RequestError> {
        match (constraint.has("expression"), constraint.has("pattern")) {
            (true, false) => condition(constraint, "expression").map(Box::new).map(Self::Expression),
            (false, true) => pattern(constraint).map(Self::Pattern),
            _ => {
                let why = "a constraint has either an expression or a pattern";
                Err(constraint.broken(Form, "expression", why))
            }
        }
    }
}

/// Reads and compiles a required condition.
pub(super) fn condition(members: &Members<'_>, name: &str) -> Result<Expression, RequestError> {
    Expression::compile(members.text(name)?).map_err(|error| members.broken(Form, name, error.to_string()))
}

fn pattern(constraint: &Members<'_>) -> Result<Regex, RequestError> {
    let text = constraint.text("pattern")?;
    if text.len() > PATTERN_BYTES {
        let why = format!("a regular expression has at most {PATTERN_BYTES} bytes");
        return Err(constraint.broken(Form, "pattern", why));
    }
    let mut builder = RegexBuilder::new(text);
    builder.size_limit(COMPILED_PATTERN_BYTES).dfa_size_limit(COMPILED_PATTERN_BYTES);
    builder.build().map_err(|error| constraint.broken(Form, "pattern", error.to_string()))
}
