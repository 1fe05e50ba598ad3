//! The function `regex.match`, implemented here and not by the engine: a pattern is compiled only once, and the cost of
//! a call is bounded by the size of the pattern times the length of the text, both limited.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::bail;
use regex::{Regex, RegexBuilder};
use regorus::{Engine, Value};

use crate::limits::{MATCHED_BYTES, PATTERN_BYTES};

/// The function with a regular expression as its first argument. The pattern must be a literal, so that it is checked
/// when the condition is compiled.
pub(crate) const FUNCTION: &str = "regex.match";

/// The compiled regular expressions of a condition.
#[derive(Clone, Default)]
pub(crate) struct Patterns(BTreeMap<String, Regex>);

impl Patterns {
    /// Compiles a pattern of at most [`PATTERN_BYTES`] in memory.
    pub(crate) fn add(&mut self, text: &str) -> Result<(), regex::Error> {
        let pattern = RegexBuilder::new(text).size_limit(PATTERN_BYTES).build()?;
        self.0.insert(text.to_owned(), pattern);
        Ok(())
    }

    /// Registers the function with the engine.
    pub(crate) fn teach(self, engine: &mut Engine) -> anyhow::Result<()> {
        let patterns = Arc::new(self);
        let matches = move |arguments: Vec<Value>| patterns.matches(&arguments);
        engine.add_extension(FUNCTION.to_owned(), 2, Box::new(matches))
    }

    fn matches(&self, arguments: &[Value]) -> anyhow::Result<Value> {
        let [Value::String(pattern), Value::String(text)] = arguments else {
            bail!("`{FUNCTION}` takes a pattern and a text");
        };
        if text.len() > MATCHED_BYTES {
            bail!("`{FUNCTION}` takes texts of at most {MATCHED_BYTES} bytes");
        }
        match self.0.get(pattern.as_ref()) {
            Some(pattern) => Ok(Value::from(pattern.is_match(text))),
            None => bail!("`{FUNCTION}` takes patterns that the condition writes out"),
        }
    }
}
