//! The facts of an admitted statement: those of its header, of its record, and of the decision.

use serde_json::{Map, Value};

use crate::authenticated::Authenticated;
use crate::content_types::{content_type, spell};
use crate::facts::Facts;
use crate::record::Record;

/// Serializes the facts of a statement as canonical JSON: those of its header and record, and those found during the
/// decision. Texts are bounded and free of U+0000, which not every database stores.
pub(crate) fn facts(statement: &Authenticated<'_>, record: &Record, learned: Map<String, Value>) -> String {
    let mut facts = Facts(learned);
    facts.0.append(&mut header_facts(statement).0);
    record.facts(&mut facts);
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
