//! Facts: values read from an admitted statement, for display and search. No rule reads them.

use serde_json::{Map, Value};

use crate::authenticate::Authenticated;
use crate::limits::MAX_IDENTIFIER;
use crate::policy::spell;
use crate::record::{Record, content_type};

/// Serializes the facts of a statement as canonical JSON: those of its header and record, and those found during the
/// decision. Texts are bounded and free of U+0000, which not every database stores.
pub(crate) fn facts(statement: &Authenticated<'_>, record: &Record, learned: Map<String, Value>) -> String {
    let mut facts = Facts(learned);
    facts.0.append(&mut header_facts(statement).0);
    record.state(&mut facts);
    String::from_utf8(jose::jcs::canonical(&Value::Object(facts.0))).unwrap_or_default()
}

/// Reads the facts in the protected header.
pub(crate) fn header_facts(statement: &Authenticated<'_>) -> Facts {
    let mut facts = Facts::default();
    facts.text("iss", statement.iss());
    facts.text("sub", statement.sub());
    facts.text("alg", statement.algorithm().name());
    facts.text("authenticated_by", statement.method().name());
    if let Some(content_type) = content_type(statement.header()) {
        facts.text("content_type", &spell(content_type));
    }
    if let Some(iat) = statement.header().claims().and_then(|claims| claims.iat()) {
        facts.put("iat", iat.into());
    }
    facts
}

/// A collection of facts by name.
#[derive(Default)]
pub(crate) struct Facts(pub Map<String, Value>);

impl Facts {
    pub fn put(&mut self, name: &str, value: Value) {
        self.0.insert(name.to_owned(), value);
    }

    /// Adds a text, cut to [`MAX_IDENTIFIER`] characters, with U+0000 replaced.
    pub fn text(&mut self, name: &str, text: &str) {
        let kept = text.chars().take(MAX_IDENTIFIER).map(|c| if c == '\0' { '\u{fffd}' } else { c });
        self.put(name, Value::String(kept.collect()));
    }
}
