//! Names and identifiers that stay distinct when redaction makes them equal: the second one gets a number.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

/// Members by which entries of a record refer to each other.
const REFERENCES: [&str; 3] = ["id", "parent-id", "call-id"];

/// Returns whether a member of this name holds an identifier, by which entries refer to each other.
pub(crate) fn is_reference(member: &str) -> bool {
    REFERENCES.contains(&member)
}

/// The numbers that equal names have got. They make many equal names a matter of linear time.
#[derive(Default)]
pub(super) struct Names(HashMap<String, u64>);

impl Names {
    /// Returns the name, with a number after it if it is in use.
    pub fn unused(&mut self, name: String, is_used: impl Fn(&str) -> bool) -> String {
        if !is_used(&name) {
            return name;
        }
        let number = self.0.entry(name.clone()).or_insert(1);
        loop {
            *number += 1;
            let numbered = format!("{name} ({number})");
            if !is_used(&numbered) {
                return numbered;
            }
        }
    }
}

/// The identifiers of a record: equal ones are replaced by equal ones, and others by others, so that entries keep their
/// links and an `id` stays unique.
#[derive(Default)]
pub(super) struct Identifiers {
    /// Identifiers of the record, and replacements.
    used: HashSet<String>,
    replacements: HashMap<String, String>,
    names: Names,
}

impl Identifiers {
    /// Collects the identifiers of a record.
    pub fn of(record: &Value) -> Identifiers {
        let mut identifiers = Identifiers::default();
        identifiers.collect(record);
        identifiers
    }

    /// Returns the replacement of an identifier that becomes `redacted`.
    pub fn replacement(&mut self, identifier: &str, redacted: String) -> String {
        if let Some(known) = self.replacements.get(identifier) {
            return known.clone();
        }
        let replacement = self.names.unused(redacted, |name| self.used.contains(name));
        self.used.insert(replacement.clone());
        self.replacements.insert(identifier.to_owned(), replacement.clone());
        replacement
    }

    fn collect(&mut self, value: &Value) {
        match value {
            Value::Object(members) => {
                for (name, value) in members {
                    self.used.extend(value.as_str().filter(|_| is_reference(name)).map(str::to_owned));
                    self.collect(value);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.collect(item)),
            _ => {}
        }
    }
}
