//! The facts of an entry: those of its header and record, and those that the decision found.
//!
//! The log stores with an entry only the facts that its statement does not contain. Readers of an entry read the others
//! from the statement again ([`entry_facts`]).

use jose::json::{Limits, read_strict};
use scitt::{Header, SignedStatement};
use serde_json::{Map, Value};

use crate::authenticated::{Authenticated, Method};
use crate::content_types::{content_type, spell};
use crate::facts::Facts;
use crate::record::Record;

/// Serializes the facts that the log stores with an entry, as canonical JSON (RFC 8785): those found during the
/// decision, and those of a payload that is not in the statement. `{}` for most entries.
pub(crate) fn stored_facts(
    statement: &Authenticated<'_>,
    record: &Record,
    learned: Map<String, Value>,
) -> String {
    let mut facts = Facts(learned);
    if statement.statement().is_detached() {
        record.facts(&mut facts);
    }
    String::from_utf8(jose::jcs::canonical(&Value::Object(facts.0))).unwrap_or_default()
}

/// Returns all facts of an admitted statement, for display and search: those that it contains, and those stored with its
/// entry ([`Permit::facts`](crate::Permit::facts)). Signatures are not checked. Texts are bounded and free of U+0000.
pub fn entry_facts(statement: &SignedStatement, stored: &str) -> Map<String, Value> {
    let mut facts = Facts(read_strict(stored.as_bytes(), Limits::default()).unwrap_or_default());
    // What the header lacks, no stored fact says in its place.
    HEADER_FACTS.iter().for_each(|name| drop(facts.0.remove(*name)));
    header_facts(statement.header(), &mut facts);
    if let Some(Ok(record)) = statement.payload().map(|payload| Record::of(statement.header(), payload)) {
        record.facts(&mut facts);
    }
    facts.0
}

/// The names of the facts in a protected header.
const HEADER_FACTS: [&str; 6] = ["iss", "authenticated_by", "sub", "alg", "content_type", "iat"];

/// Adds the facts in the protected header.
fn header_facts(header: &Header, facts: &mut Facts) {
    if let Some(iss) = header.iss() {
        facts.text("iss", iss);
        facts.text("authenticated_by", Method::of(header, iss).name());
    }
    if let Some(sub) = header.sub() {
        facts.text("sub", sub);
    }
    if let Some(algorithm) = header.algorithm() {
        facts.text("alg", algorithm.name());
    }
    if let Some(content_type) = content_type(header) {
        facts.text("content_type", &spell(content_type));
    }
    if let Some(iat) = header.iat() {
        facts.put("iat", iat.into());
    }
}
