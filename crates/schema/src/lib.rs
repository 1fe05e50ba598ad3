//! Checks of arguments against a JSON Schema of an untrusted party.
//!
//! Schema and arguments come from untrusted parties, which may cooperate. So nothing is fetched, references must stay
//! within the schema, and regular expressions do not backtrack. Before the validator runs, a walk counts its steps; a
//! check with too many steps is not started. All bounds are in [`limits`].
//!
//! Drafts 4, 6, 7, 2019-09 and 2020-12 are recognised by `$schema`. A schema without it is of 2020-12, as MCP
//! specifies. `format` is not checked.
//!
//! Not here: the consequences of a mismatch (the `admission` crate), and the lookup of a tool's schema (the gateway).
//!
//! ```rust
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use schema::Schema;
//!
//! let text = r#"{ "type": "object", "required": ["path"], "properties": { "path": { "type": "string" } } }"#;
//! let schema = Schema::compile(text)?;
//! assert!(schema.check(r#"{ "path": "notes.txt" }"#).is_ok());
//! assert!(schema.check(r#"{ "path": 1 }"#).is_err());
//! # Ok(())
//! # }
//! ```

pub mod limits;
mod refuse;
mod walk;

use jose::json::{self, JsonError, Limits};
use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

/// A compiled schema for arguments.
#[derive(Debug)]
pub struct Schema {
    validator: Validator,
    document: Value,
}

/// The reason why a schema cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// The text is not strict JSON, or exceeds [`limits::SCHEMA_BYTES`] or [`limits::SCHEMA_DEPTH`].
    #[error("it cannot be read: {0}")]
    Unreadable(#[from] JsonError),
    /// The schema is not a JSON object.
    #[error("a schema of arguments is an object")]
    NoObject,
    /// The `$schema` is not one of the supported drafts.
    #[error("$schema names no draft that is known here")]
    Dialect,
    /// A reference leads out of the schema or to nothing, or its target depends on the evaluation (`$dynamicRef`).
    #[error("{0}: only references inside of the schema, by JSON pointer, are followed")]
    Reference(&'static str),
    /// A regular expression exceeds [`limits::PATTERN_BYTES`], or there are more than [`limits::PATTERNS`].
    #[error("its regular expressions are too long or too many")]
    Patterns,
    /// The schema is invalid in its draft, or contains an unsupported regular expression.
    #[error("it is not a schema of its draft, or has a regular expression that is not supported, at {0:?}")]
    Invalid(String),
}

/// The reason why arguments do not pass the check.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    /// A value violates the schema.
    #[error("{keyword} at {place:?}")]
    At {
        /// JSON pointer to the value in the arguments.
        place: String,
        /// The violated keyword of the schema.
        keyword: String,
    },
    /// The arguments are not strict JSON, or nested deeper than [`limits::ARGUMENTS_DEPTH`].
    #[error("they cannot be read: {0}")]
    Unreadable(JsonError),
    /// The check would exceed [`limits::CHECK_STEPS`], [`limits::CHECK_DEPTH`] or [`limits::MATCHED_BYTES`].
    #[error("the check would take too many steps")]
    TooCostly,
}

impl Schema {
    /// Parses and compiles a schema.
    ///
    /// # Errors
    /// [`Unusable`] if the text is not a valid schema, or is one that could take too long or refer to another document.
    pub fn compile(text: &str) -> Result<Self, Unusable> {
        let limits = Limits { bytes: limits::SCHEMA_BYTES, depth: limits::SCHEMA_DEPTH };
        let document = json::parse_strict(text.as_bytes(), limits)?;
        refuse::check(&document)?;
        let patterns = PatternOptions::regex()
            .size_limit(limits::COMPILED_PATTERN_BYTES)
            .dfa_size_limit(limits::PATTERN_CACHE_BYTES);
        let built = jsonschema::options()
            .offline()
            .should_validate_formats(false)
            .with_pattern_options(patterns)
            .build(&document);
        let validator = built.map_err(|error| Unusable::Invalid(place(error.instance_path().as_str())))?;
        Ok(Self { validator, document })
    }

    /// Checks the text of arguments against the schema.
    ///
    /// # Errors
    /// [`Misfit`] if the arguments violate the schema, or the check would take too long.
    pub fn check(&self, arguments: &str) -> Result<(), Misfit> {
        let arguments = read(arguments)?;
        walk::check(&self.document, &arguments, walk::Allowance::FULL)?;
        self.validate(&arguments)
    }

    /// Checks the text of arguments like [`check`](Self::check), if that takes little time: the text has at most
    /// [`limits::QUICK_BYTES`], and the check at most [`limits::QUICK_STEPS`] and no regular expression. Otherwise `None`.
    pub fn check_if_quick(&self, arguments: &str) -> Option<Result<(), Misfit>> {
        if arguments.len() > limits::QUICK_BYTES {
            return None;
        }
        let arguments = match read(arguments) {
            Ok(arguments) => arguments,
            Err(misfit) => return Some(Err(misfit)),
        };
        walk::check(&self.document, &arguments, walk::Allowance::QUICK).ok()?;
        Some(self.validate(&arguments))
    }

    fn validate(&self, arguments: &Value) -> Result<(), Misfit> {
        if self.validator.is_valid(arguments) {
            return Ok(());
        }
        match self.validator.validate(arguments) {
            Ok(()) => Ok(()),
            Err(error) => Err(Misfit::At {
                place: place(error.instance_path().as_str()),
                keyword: place(error.kind().keyword()),
            }),
        }
    }
}

fn read(arguments: &str) -> Result<Value, Misfit> {
    let limits = Limits { bytes: arguments.len(), depth: limits::ARGUMENTS_DEPTH };
    json::parse_strict(arguments.as_bytes(), limits).map_err(Misfit::Unreadable)
}

/// Cuts a pointer to [`limits::PLACE_BYTES`].
fn place(pointer: &str) -> String {
    pointer[..pointer.floor_char_boundary(limits::PLACE_BYTES)].to_owned()
}
