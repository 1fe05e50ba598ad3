//! The walk over all texts and member names of a record.

use std::collections::BTreeSet;

use jose::json::pointer_step;
use serde_json::{Map, Value};

use super::fields::FieldPattern;
use super::listing::Redactions;
use super::rules::{RedactionRule, names_a_secret};

/// Members of a record that are not redacted: they describe the record, not the session.
const SPARED: [&str; 4] = ["id", "version", "source", "recording-agent"];
/// Members that link entries. They look random, and are no secrets.
const IDENTIFIERS: [&str; 5] = ["id", "parent-id", "call-id", "session-id", "previous-record"];
/// Members that the draft requires, so that they are replaced and not removed.
const REQUIRED: [&str; 9] = [
    "session-id",
    "model-id",
    "model-provider",
    "name",
    "input",
    "output",
    "content",
    "event-type",
    "working-dir",
];

/// Redacts a record.
pub(super) fn redact(
    record: &mut Value,
    rules: &BTreeSet<RedactionRule>,
    fields: &[FieldPattern],
    found: &mut Redactions,
) {
    let mut walk = Walk { rules, fields, path: Vec::new(), found };
    let Value::Object(members) = record else { return };
    let (spared, rest) =
        std::mem::take(members).into_iter().partition(|(name, _)| SPARED.contains(&name.as_str()));
    *members = spared;
    members.extend(walk.members(rest));
}

struct Walk<'a> {
    rules: &'a BTreeSet<RedactionRule>,
    fields: &'a [FieldPattern],
    /// The steps to the current value.
    path: Vec<String>,
    found: &'a mut Redactions,
}

impl Walk<'_> {
    fn members(&mut self, members: Map<String, Value>) -> Map<String, Value> {
        let mut kept = Map::new();
        for (name, value) in members {
            self.path.push(name.clone());
            if let Some(value) = self.member(&name, value) {
                let name = self.text(&name, None).unwrap_or(name);
                kept.insert(unused(&kept, name), value);
            }
            self.path.pop();
        }
        kept
    }

    /// Redacts the value of a member; `None` removes the member.
    fn member(&mut self, name: &str, value: Value) -> Option<Value> {
        if self.is_field() {
            self.add("field", 1);
            return REQUIRED.contains(&name).then(|| marker("field"));
        }
        let is_text = value.as_str().is_some_and(|text| !text.is_empty() && !text.starts_with("[redacted:"));
        if is_text && self.rules.contains(&RedactionRule::SecretMember) && names_a_secret(name) {
            self.add(RedactionRule::SecretMember.name(), 1);
            return Some(marker(RedactionRule::SecretMember.name()));
        }
        Some(self.value(value, Some(name)))
    }

    fn value(&mut self, value: Value, name: Option<&str>) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(&text, name).unwrap_or(text)),
            Value::Array(items) => {
                items.into_iter().enumerate().map(|(at, item)| self.item(at, item)).collect()
            }
            Value::Object(members) => Value::Object(self.members(members)),
            plain => plain,
        }
    }

    fn item(&mut self, position: usize, item: Value) -> Value {
        self.path.push(position.to_string());
        let item = match self.is_field() {
            true => {
                self.add("field", 1);
                marker("field")
            }
            false => self.value(item, None),
        };
        self.path.pop();
        item
    }

    /// Redacts a text; `None` if it stays as it is.
    fn text(&mut self, text: &str, name: Option<&str>) -> Option<String> {
        let mut current: Option<String> = None;
        for rule in self.rules {
            if *rule == RedactionRule::HighEntropy && name.is_some_and(|name| IDENTIFIERS.contains(&name)) {
                continue;
            }
            let (replaced, count) = rule.replace(current.as_deref().unwrap_or(text));
            if count > 0 {
                let replaced = replaced.into_owned();
                self.add(rule.name(), count);
                current = Some(replaced);
            }
        }
        current
    }

    fn is_field(&self) -> bool {
        self.fields.iter().any(|pattern| pattern.matches(&self.path))
    }

    fn add(&mut self, rule: &str, count: u64) {
        let pointer: String = self.path.iter().map(|step| format!("/{}", pointer_step(step))).collect();
        self.found.add(rule, count, &pointer);
    }
}

fn marker(rule: &str) -> Value {
    Value::String(format!("[redacted:{rule}]"))
}

/// Returns a member name that is not in use: two names may be equal after redaction.
fn unused(members: &Map<String, Value>, name: String) -> String {
    if !members.contains_key(&name) {
        return name;
    }
    let numbered = (2..).map(|number| format!("{name} ({number})"));
    numbered.into_iter().find(|numbered| !members.contains_key(numbered)).unwrap_or(name)
}
