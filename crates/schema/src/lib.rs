//! Whether arguments fit a JSON Schema that somebody else wrote.
//!
//! Schema and arguments are strangers' texts, and may have been made for each other. So nothing is fetched, a reference stays inside
//! of its schema, regular expressions do not backtrack, and before a validator is asked, a walk counts what it would have to do:
//! a check that would take too many steps is not begun. Everything is bounded by [`limits`].
//!
//! Drafts 4, 6, 7, 2019-09 and 2020-12 are known by their `$schema`; a schema that names none is of 2020-12, as MCP says. `format` is
//! not checked.
//!
//! Not here: what follows from a misfit (`admission`), and which schema a tool has (the gateway).

pub mod limits;
mod refuse;
mod walk;

use jose::json::{self, JsonError, Limits};
use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

/// A schema that arguments can be held against.
#[derive(Debug)]
pub struct Schema {
    validator: Validator,
    document: Value,
}

/// Why a schema cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// It is no strict JSON, too long, or nested too deep.
    #[error("it cannot be read: {0}")]
    Unreadable(#[from] JsonError),
    /// It is no object.
    #[error("a schema of arguments is an object")]
    NoObject,
    /// It says a dialect that is not known here.
    #[error("$schema names no draft that is known here")]
    Dialect,
    /// A reference leads out of the schema, or nowhere, or where it leads is found out while it is used.
    #[error("{0}: only references inside of the schema, by JSON pointer, are followed")]
    Reference(&'static str),
    /// A regular expression is too long, or there are too many.
    #[error("its regular expressions are too long or too many")]
    Patterns,
    /// It is no schema of its draft, or holds a regular expression that cannot be used.
    #[error("it is no schema of its draft, or has a regular expression that is not supported, at {0:?}")]
    Invalid(String),
}

/// Why arguments do not pass.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    /// They do not fit.
    #[error("{keyword} at {place:?}")]
    At {
        /// JSON pointer to the value that does not fit.
        place: String,
        /// The keyword of the schema that says so.
        keyword: String,
    },
    /// They are no strict JSON, or nested too deep.
    #[error("they cannot be read: {0}")]
    Unreadable(JsonError),
    /// To hold them against this schema would take too long.
    #[error("the check would take too many steps")]
    TooCostly,
}

impl Schema {
    /// Reads and compiles a schema.
    ///
    /// # Errors
    /// If it is no schema, or one that could take too long or ask for something outside.
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

    /// Holds the text of arguments against the schema.
    ///
    /// # Errors
    /// If they do not fit, or the check would take too long.
    pub fn check(&self, arguments: &str) -> Result<(), Misfit> {
        let limits = Limits { bytes: arguments.len(), depth: limits::ARGUMENTS_DEPTH };
        let arguments = json::parse_strict(arguments.as_bytes(), limits).map_err(Misfit::Unreadable)?;
        walk::check(&self.document, &arguments)?;
        if self.validator.is_valid(&arguments) {
            return Ok(());
        }
        match self.validator.validate(&arguments) {
            Ok(()) => Ok(()),
            Err(error) => Err(Misfit::At {
                place: place(error.instance_path().as_str()),
                keyword: place(error.kind().keyword()),
            }),
        }
    }
}

/// As much of a place as is told.
fn place(pointer: &str) -> String {
    pointer[..pointer.floor_char_boundary(limits::PLACE_BYTES)].to_owned()
}
