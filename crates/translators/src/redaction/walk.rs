//! The walk over all texts and member names of a record.

use std::collections::BTreeSet;

use jose::json::pointer_step;
use registration::conversation::omission::{Omission, RecordPlace};
use serde_json::{Map, Value};

use super::distinct::{Identifiers, Names, is_reference};
use super::fields::FieldPattern;
use super::listing::Redactions;
use super::rules::{FIELD, Found, RedactionRule, is_marker, marker, names_a_secret};
use super::split_key::SplitKey;

/// Members that link entries, records and lines. They look random, and are not secrets.
const IDENTIFIERS: [&str; 6] =
    ["id", "parent-id", "call-id", "session-id", "previous-record", "content-hash"];

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
    *members = walk.members(std::mem::take(members), RecordPlace::RECORD);
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
    fn members(&mut self, members: Map<String, Value>, map: RecordPlace) -> Map<String, Value> {
        let needing = self.members_that_need_a_left_out_one(&members, map);
        let mut kept = Map::new();
        let mut names = Names::default();
        for (raw, value) in members {
            let (redacted, found) = self.replaced(&raw, None);
            let name = names.unused(redacted.unwrap_or_else(|| raw.clone()), |name| kept.contains_key(name));
            let place = map.member(&raw);
            self.enter(raw.clone(), name.clone());
            let value = match needing.contains(&raw.as_str()) {
                true => self.leave_out(place),
                false => self.member(&raw, value, place),
            };
            if let Some(value) = value {
                self.list(found);
                kept.insert(name, value);
            }
            self.leave();
        }
        kept
    }

    /// Returns the members that may not stay, because a pattern names a member that they need.
    fn members_that_need_a_left_out_one(
        &self,
        members: &Map<String, Value>,
        map: RecordPlace,
    ) -> Vec<&'static str> {
        let names = members.keys().filter(|_| !self.fields.is_empty());
        let named = names.filter_map(|name| Some((name, map.member(name).needed_by()?)));
        let left_out = named.filter(|(name, _)| self.names_member(name));
        left_out.map(|(_, member)| member).collect()
    }

    /// Redacts the value of a member; `None` removes the member.
    fn member(&mut self, name: &str, value: Value, place: RecordPlace) -> Option<Value> {
        if self.is_left_out(&value, place) {
            return self.leave_out(place);
        }
        let is_open = !value.is_null() && !value.as_str().is_some_and(is_marker);
        if is_open && self.rules.contains(&RedactionRule::SecretMember) && names_a_secret(name) {
            self.add(RedactionRule::SecretMember.name(), 1);
            return Some(marker(RedactionRule::SecretMember.name()).into());
        }
        Some(self.value(value, Some(name), place))
    }

    fn value(&mut self, value: Value, name: Option<&str>, place: RecordPlace) -> Value {
        match value {
            Value::String(text) if place.is_text() => Value::String(self.text(&text, name).unwrap_or(text)),
            Value::Array(items) => Value::Array(self.items(items, place)),
            Value::Object(members) => Value::Object(self.members(members, place)),
            plain => plain,
        }
    }

    fn items(&mut self, items: Vec<Value>, array: RecordPlace) -> Vec<Value> {
        let mut kept = Vec::with_capacity(items.len());
        let mut key = SplitKey::default();
        for (position, item) in items.into_iter().enumerate() {
            let place = array.item(item.get("type").and_then(Value::as_str));
            self.enter(position.to_string(), kept.len().to_string());
            // A left out text can begin or end a key, too.
            let without_rest = self.without_rest_of_key(&item, place, &mut key);
            kept.extend(match self.is_left_out(&item, place) {
                true => self.leave_out(place),
                false => Some(self.item(item, without_rest, place)),
            });
            self.leave();
        }
        kept
    }

    /// Returns an item of an array without the rest of a private key that an earlier text began; `None` if no key goes on
    /// in it.
    fn without_rest_of_key(&self, item: &Value, place: RecordPlace, key: &mut SplitKey) -> Option<String> {
        match item {
            Value::String(text) if place.is_text() && self.rules.contains(&RedactionRule::PrivateKey) => {
                key.without_rest(text)
            }
            _ => None,
        }
    }

    /// Redacts an item of an array, or what is left of it without the rest of a private key.
    fn item(&mut self, item: Value, without_rest: Option<String>, place: RecordPlace) -> Value {
        let Some(text) = without_rest else { return self.value(item, None, place) };
        self.add(RedactionRule::PrivateKey.name(), 1);
        self.value(Value::String(text), None, place)
    }

    /// Returns whether a pattern names the current value, or a part that it cannot be without.
    fn is_left_out(&self, value: &Value, place: RecordPlace) -> bool {
        if self.fields.is_empty() || place.omission("") == Omission::Never {
            return false;
        }
        let needs = |name: &str| place.member(name).omission("") == Omission::Enclosing;
        let mut names = value.as_object().into_iter().flat_map(Map::keys);
        self.names(&self.path) || names.any(|name| needs(name) && self.names_member(name))
    }

    /// Lists the current value as left out. Returns what takes its place; `None` removes it.
    fn leave_out(&mut self, place: RecordPlace) -> Option<Value> {
        self.add(FIELD, 1);
        match place.omission(&marker(FIELD)) {
            Omission::Replace(value) => Some(value),
            Omission::Remove | Omission::Enclosing | Omission::Never => None,
        }
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

    /// Returns whether a pattern names the value at this path.
    fn names(&self, path: &[String]) -> bool {
        self.fields.iter().any(|pattern| pattern.matches(path))
    }

    /// Returns whether a pattern names a member of the current value.
    fn names_member(&self, name: &str) -> bool {
        let mut path = self.path.clone();
        path.push(name.to_owned());
        self.names(&path)
    }

    fn list(&mut self, found: Vec<Found>) {
        found.into_iter().for_each(|Found { rule, count }| self.add(rule.name(), count));
    }

    fn add(&mut self, rule: &str, count: u64) {
        let pointer: String = self.listed.iter().map(|step| format!("/{}", pointer_step(step))).collect();
        self.found.add(rule, count, &pointer);
    }
}
