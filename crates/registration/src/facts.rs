//! Facts: values read from an admitted statement, for display and search. No rule reads them.

use serde_json::{Map, Value};

use crate::limits::MAX_IDENTIFIER;

/// A collection of facts by name.
#[derive(Default)]
pub(crate) struct Facts(pub Map<String, Value>);

impl Facts {
    pub fn put(&mut self, name: &str, value: Value) {
        self.0.insert(name.to_owned(), value);
    }

    /// Adds a text, cut to [`MAX_IDENTIFIER`] characters, with U+0000 replaced.
    pub fn text(&mut self, name: &str, text: &str) {
        let shortened = text.chars().take(MAX_IDENTIFIER).map(|c| if c == '\0' { '\u{fffd}' } else { c });
        self.put(name, Value::String(shortened.collect()));
    }
}
