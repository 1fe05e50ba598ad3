//! Selection of entries by their type.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde_json::Value;

use super::listing::Redactions;

/// A type of entries (section 3.6 of the draft).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EntryType {
    /// A message of the user.
    User,
    /// A message of the model.
    Assistant,
    /// A tool call.
    ToolCall,
    /// The result of a tool call.
    ToolResult,
    /// Reasoning of the model.
    Reasoning,
    /// Any other event.
    SystemEvent,
}

impl EntryType {
    /// All types.
    pub const ALL: [EntryType; 6] =
        [Self::User, Self::Assistant, Self::ToolCall, Self::ToolResult, Self::Reasoning, Self::SystemEvent];

    /// The name of the type.
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::ToolCall => "tool-call",
            Self::ToolResult => "tool-result",
            Self::Reasoning => "reasoning",
            Self::SystemEvent => "system-event",
        }
    }
}

impl FromStr for EntryType {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|kind| kind.name() == name);
        found.ok_or_else(|| format!("the types are {}", Self::ALL.map(Self::name).join(", ")))
    }
}

/// Types of entries to keep. Default: all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    kept: BTreeSet<EntryType>,
}

impl Default for Selection {
    fn default() -> Self {
        Selection { kept: EntryType::ALL.into_iter().collect() }
    }
}

impl Selection {
    /// Keeps these types only.
    pub fn only(kept: impl IntoIterator<Item = EntryType>) -> Self {
        Selection { kept: kept.into_iter().collect() }
    }

    /// Leaves these types out.
    pub fn without(mut self, left_out: impl IntoIterator<Item = EntryType>) -> Self {
        let left_out: BTreeSet<EntryType> = left_out.into_iter().collect();
        self.kept.retain(|kind| !left_out.contains(kind));
        self
    }

    fn keeps(&self, entry: &Value) -> bool {
        let kind = entry.get("type").and_then(Value::as_str).and_then(|name| name.parse().ok());
        kind.is_none_or(|kind| self.kept.contains(&kind))
    }

    /// Leaves entries out of a record. Children that are kept take the place of an entry that is not.
    pub(super) fn apply(&self, record: &mut Value, found: &mut Redactions) {
        if self.kept.len() == EntryType::ALL.len() {
            return;
        }
        if let Some(Value::Array(entries)) = record.pointer_mut("/session/entries") {
            let all = std::mem::take(entries);
            *entries = self.select(all, "/session/entries", found);
        }
    }

    fn select(&self, entries: Vec<Value>, pointer: &str, found: &mut Redactions) -> Vec<Value> {
        let mut kept = Vec::with_capacity(entries.len());
        for (position, mut entry) in entries.into_iter().enumerate() {
            let pointer = format!("{pointer}/{position}");
            let children = match entry.get_mut("children").map(Value::take) {
                Some(Value::Array(children)) => self.select(children, &format!("{pointer}/children"), found),
                _ => Vec::new(),
            };
            if !self.keeps(&entry) {
                let kind = entry.get("type").and_then(Value::as_str).unwrap_or_default();
                found.add(&format!("without:{kind}"), 1, &pointer);
                kept.extend(children);
                continue;
            }
            if let Value::Object(members) = &mut entry {
                members.remove("children");
                if !children.is_empty() {
                    members.insert("children".to_owned(), Value::Array(children));
                }
            }
            kept.push(entry);
        }
        kept
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.kept.iter().map(|kind| kind.name()).collect();
        f.write_str(&names.join(","))
    }
}
