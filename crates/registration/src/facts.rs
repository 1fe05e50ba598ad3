//! Facts: what was read from an admitted statement, for display and look-up. No rule reads them.

use serde_json::{Map, Value};

use crate::authenticate::Authenticated;
use crate::limits::MAX_IDENTIFIER;
use crate::policy::spell;
use crate::record::{Record, content_type};

/// The facts as canonical JSON: what the statement states, and what deciding found out. Bounded, and free of U+0000, which
/// not every database keeps.
pub(crate) fn facts(statement: &Authenticated<'_>, record: &Record, learned: Map<String, Value>) -> String {
    let mut facts = Facts(learned);
    facts.0.append(&mut header_facts(statement).0);
    record.state(&mut facts);
    String::from_utf8(jose::jcs::canonical(&Value::Object(facts.0))).unwrap_or_default()
}

/// What the protected header states.
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

/// Facts being gathered.
#[derive(Default)]
pub(crate) struct Facts(pub Map<String, Value>);

impl Facts {
    pub fn put(&mut self, name: &str, value: Value) {
        self.0.insert(name.to_owned(), value);
    }

    /// A text, cut at the bound on identifiers.
    pub fn text(&mut self, name: &str, text: &str) {
        let kept = text.chars().take(MAX_IDENTIFIER).map(|c| if c == '\0' { '\u{fffd}' } else { c });
        self.put(name, Value::String(kept.collect()));
    }
}
