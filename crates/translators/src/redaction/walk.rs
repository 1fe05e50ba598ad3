//! The walk over all texts and member names of a record.

use std::collections::BTreeSet;

use jose::json::pointer_step;
use serde_json::{Map, Value};

use super::distinct::{Identifiers, Names, is_reference};
use super::fields::FieldPattern;
use super::listing::Redactions;
use super::rules::{Found, RedactionRule, is_marker, marker, names_a_secret};

/// Members of a record that are not redacted: they describe the record, not the session.
const SPARED: [&str; 3] = ["id", "version", "recording-agent"];
/// Members that link entries. They look random, and are not secrets.
const IDENTIFIERS: [&str; 5] = ["id", "parent-id", "call-id", "session-id", "previous-record"];
/// Members that the draft requires, so that they are replaced and not removed.
const REQUIRED: [&str; 11] = [
    "session-id",
    "model-id",
    "model-provider",
    "name",
    "input",
    "output",
    "content",
    "event-type",
    "working-dir",
    "path",
    "url",
];
/// The map whose members are all optional, and numbers, which no text can replace.
const TOKEN_USAGE: &str = "token-usage";
/// Lists of maps, of which no text can replace one.
const LISTS_OF_MAPS: [&str; 6] = ["entries", "children", "files", "conversations", "ranges", "related"];

/// Redacts a record.
pub(super) fn redact(
    record: &mut Value,
    rules: &BTreeSet<RedactionRule>,
    fields: &[FieldPattern],
    found: &mut Redactions,
) {
    let identifiers = Identifiers::of(record);
    let mut walk = Walk { rules, fields, path: Vec::new(), listed: Vec::new(), identifiers, found };
    let Value::Object(members) = record else { return };
    let (spared, rest) =
        std::mem::take(members).into_iter().partition(|(name, _)| SPARED.contains(&name.as_str()));
    *members = spared;
    members.extend(walk.members(rest));
}

struct Walk<'a> {
    rules: &'a BTreeSet<RedactionRule>,
    fields: &'a [FieldPattern],
    /// The steps to the current value, as the patterns of fields name them.
    path: Vec<String>,
    /// The same steps with redacted names, as the list of omissions shows them.
    listed: Vec<String>,
    identifiers: Identifiers,
    found: &'a mut Redactions,
}

impl Walk<'_> {
    fn members(&mut self, members: Map<String, Value>) -> Map<String, Value> {
        let mut kept = Map::new();
        let mut names = Names::default();
        for (raw, value) in members {
            let (redacted, found) = self.replaced(&raw, None);
            let name = names.unused(redacted.unwrap_or_else(|| raw.clone()), |name| kept.contains_key(name));
            self.enter(raw.clone(), name.clone());
            if let Some(value) = self.member(&raw, value) {
                self.list(found);
                kept.insert(name, value);
            }
            self.leave();
        }
        kept
    }

    /// Redacts the value of a member; `None` removes the member.
    fn member(&mut self, name: &str, value: Value) -> Option<Value> {
        if self.is_field() {
            self.add("field", 1);
            return self.is_replaceable(name).then(|| marker("field"));
        }
        let is_open = !value.is_null() && !value.as_str().is_some_and(is_marker);
        if is_open && self.rules.contains(&RedactionRule::SecretMember) && names_a_secret(name) {
            self.add(RedactionRule::SecretMember.name(), 1);
            return Some(marker(RedactionRule::SecretMember.name()));
        }
        Some(self.value(value, Some(name)))
    }

    fn value(&mut self, value: Value, name: Option<&str>) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(&text, name).unwrap_or(text)),
            Value::Array(items) => Value::Array(self.items(items)),
            Value::Object(members) => Value::Object(self.members(members)),
            plain => plain,
        }
    }

    fn items(&mut self, items: Vec<Value>) -> Vec<Value> {
        let mut kept = Vec::with_capacity(items.len());
        for (position, item) in items.into_iter().enumerate() {
            self.enter(position.to_string(), kept.len().to_string());
            kept.extend(self.item(item));
            self.leave();
        }
        kept
    }

    /// Redacts an item of an array; `None` removes the item.
    fn item(&mut self, item: Value) -> Option<Value> {
        if self.is_field() {
            self.add("field", 1);
            let is_map = item.is_object() && self.parent().is_some_and(|list| LISTS_OF_MAPS.contains(&list));
            return (!is_map).then(|| marker("field"));
        }
        Some(self.value(item, None))
    }

    /// Returns `true` if a member is required and may be any text.
    fn is_replaceable(&self, name: &str) -> bool {
        match name {
            // The types of other maps are words of the draft.
            "type" => self.parent() == Some("vcs") || self.ancestor(2) == Some("related"),
            _ => REQUIRED.contains(&name) && self.parent() != Some(TOKEN_USAGE),
        }
    }

    /// Returns the name of the member that contains the current value.
    fn parent(&self) -> Option<&str> {
        self.ancestor(1)
    }

    fn ancestor(&self, levels: usize) -> Option<&str> {
        self.path.iter().rev().nth(levels).map(String::as_str)
    }

    /// Redacts a text, and lists what was found; `None` if it stays as it is.
    fn text(&mut self, text: &str, name: Option<&str>) -> Option<String> {
        let (replaced, found) = self.replaced(text, name);
        self.list(found);
        match name {
            Some(name) if is_reference(name) => {
                replaced.map(|replaced| self.identifiers.replacement(text, replaced))
            }
            _ => replaced,
        }
    }

    /// Redacts the text of a member, and counts what was found; `None` if it stays as it is.
    fn replaced(&self, text: &str, name: Option<&str>) -> (Option<String>, Vec<Found>) {
        let mut current: Option<String> = None;
        let mut found = Vec::new();
        for rule in self.rules {
            if *rule == RedactionRule::HighEntropy && name.is_some_and(|name| IDENTIFIERS.contains(&name)) {
                continue;
            }
            let (replaced, count) = rule.replace(current.as_deref().unwrap_or(text));
            if count > 0 {
                let replaced = replaced.into_owned();
                found.push(Found { rule: *rule, count });
                current = Some(replaced);
            }
        }
        (current, found)
    }

    fn enter(&mut self, raw: String, listed: String) {
        self.path.push(raw);
        self.listed.push(listed);
    }

    fn leave(&mut self) {
        self.path.pop();
        self.listed.pop();
    }

    fn is_field(&self) -> bool {
        self.fields.iter().any(|pattern| pattern.matches(&self.path))
    }

    fn list(&mut self, found: Vec<Found>) {
        found.into_iter().for_each(|Found { rule, count }| self.add(rule.name(), count));
    }

    fn add(&mut self, rule: &str, count: u64) {
        let pointer: String = self.listed.iter().map(|step| format!("/{}", pointer_step(step))).collect();
        self.found.add(rule, count, &pointer);
    }
}
