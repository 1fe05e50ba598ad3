//! A record with every member of every map of the draft's CDDL, made from the CDDL.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

const CDDL: &str = include_str!("../../../../vectors/conversation/agent-conversation.cddl");
/// The types of entries whose maps differ.
const ENTRIES: [&str; 5] =
    ["message-entry", "tool-call-entry", "tool-result-entry", "reasoning-entry", "event-entry"];

/// The record. Each type of entries is there once, and once as a child of each type.
pub fn record() -> Value {
    let (record, _) = CDDL.split_once("; SCITT-interoperable COSE Envelope").unwrap();
    let mut maps = BTreeMap::new();
    let mut lines = record.lines();
    while let Some(line) = lines.next() {
        if let Some(name) = line.strip_suffix(" = {") {
            maps.insert(name, lines.by_ref().take_while(|line| *line != "}").collect());
        }
    }
    Maker { maps, ids: 0, parents: 0 }.map("verifiable-agent-record")
}

/// A pointer to each value of the record, the same with `*` for each index, and each member at any depth.
pub fn fields() -> BTreeSet<String> {
    let mut fields = BTreeSet::new();
    add_fields(&record(), "", "", &mut fields);
    fields
}

fn add_fields(value: &Value, pointer: &str, pattern: &str, fields: &mut BTreeSet<String>) {
    if !pointer.is_empty() {
        fields.extend([pointer.to_owned(), pattern.to_owned()]);
    }
    for (name, value) in value.as_object().into_iter().flatten() {
        fields.insert(format!("/**/{name}"));
        add_fields(value, &format!("{pointer}/{name}"), &format!("{pattern}/{name}"), fields);
    }
    for (index, value) in value.as_array().into_iter().flatten().enumerate() {
        add_fields(value, &format!("{pointer}/{index}"), &format!("{pattern}/*"), fields);
    }
}

struct Maker<'a> {
    /// The lines of the maps, by name.
    maps: BTreeMap<&'a str, Vec<&'a str>>,
    /// Number of identifiers that are in use.
    ids: usize,
    /// Number of entries around the current value.
    parents: usize,
}

impl Maker<'_> {
    fn map(&mut self, name: &str) -> Value {
        let mut members = Map::new();
        for line in self.maps[name].clone() {
            let line = line.split(" ;").next().unwrap().trim();
            if line.starts_with('*') {
                members.insert("beyond-the-draft".to_owned(), any());
                continue;
            }
            let (name, of) = line.trim_start_matches("? ").split_once(": ").unwrap();
            let of = of.replace("[ *", "[*").replace(" ]", "]");
            members.insert(name.to_owned(), self.value(name, &of));
        }
        Value::Object(members)
    }

    fn value(&mut self, name: &str, of: &str) -> Value {
        match (name, of) {
            ("content-hash-alg", _) => "murmur3".into(),
            ("version", _) => "3.0.0".into(),
            (_, "tstr" | "tstr .regexp uri-regexp" | "session-id") => "text".into(),
            (_, "entry-id") => {
                self.ids += 1;
                self.ids.to_string().into()
            }
            (_, "uint" | "number") => 1.into(),
            (_, "bool") => true.into(),
            (_, "abstract-timestamp") => "2026-03-01T10:00:00Z".into(),
            (_, "any") => any(),
            (_, "{ * tstr => any }") => json!({ "any": any() }),
            (_, "[* tstr]") => json!(["one", "two"]),
            (_, "[* entry]") => self.entries(),
            _ => self.other(of),
        }
    }

    /// A list of maps, a map, or the first of several words.
    fn other(&mut self, of: &str) -> Value {
        if let Some(item) = of.strip_prefix("[* ").and_then(|of| of.strip_suffix(']')) {
            return json!([self.map(item), self.map(item)]);
        }
        match of.strip_prefix('"').and_then(|of| of.split_once('"')) {
            Some((word, _)) => word.into(),
            None => self.map(of),
        }
    }

    fn entries(&mut self) -> Value {
        if self.parents > 1 {
            return json!([]);
        }
        self.parents += 1;
        let entries = ENTRIES.map(|name| self.map(name));
        self.parents -= 1;
        Value::from(entries.to_vec())
    }
}

fn any() -> Value {
    json!({ "list": ["a", { "type": "b", "name": "c" }], "text": "d" })
}
