//! Entries of a session while it is being read (section 3.6 of the draft).

use serde_json::{Map, Value, json};

use crate::native::Native;
use crate::time;
use crate::usage::TokenUsage;

pub(crate) const USER: &str = "user";
pub(crate) const ASSISTANT: &str = "assistant";
pub(crate) const TOOL_CALL: &str = "tool-call";
pub(crate) const TOOL_RESULT: &str = "tool-result";
pub(crate) const REASONING: &str = "reasoning";
pub(crate) const SYSTEM_EVENT: &str = "system-event";

/// An entry with the native members that have no counterpart.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    kind: &'static str,
    members: Map<String, Value>,
    native: Map<String, Value>,
    children: Vec<Entry>,
}

impl Entry {
    fn new(kind: &'static str) -> Self {
        Entry { kind, members: Map::new(), native: Map::new(), children: Vec::new() }
    }

    /// A message; `kind` is [`USER`] or [`ASSISTANT`].
    pub fn message(kind: &'static str, content: Option<Value>) -> Self {
        Entry::new(kind).with("content", content)
    }

    pub fn tool_call(name: Option<String>, input: Option<Value>) -> Self {
        let name = name.unwrap_or_else(|| "unknown".to_owned());
        Entry::new(TOOL_CALL).with("name", Some(name)).with("input", Some(input.unwrap_or(Value::Null)))
    }

    pub fn tool_result(output: Option<Value>) -> Self {
        Entry::new(TOOL_RESULT).with("output", Some(output.unwrap_or_else(|| json!(""))))
    }

    pub fn reasoning(content: Value) -> Self {
        Entry::new(REASONING).with("content", Some(content))
    }

    /// An event with its native content as `data`.
    pub fn event(event_type: impl Into<String>, data: Map<String, Value>) -> Self {
        let data = (!data.is_empty()).then_some(Value::Object(data));
        Entry::new(SYSTEM_EVENT).with("event-type", Some(event_type.into())).with("data", data)
    }

    /// An event for a native entry that is not an object.
    pub fn event_of_value(event_type: impl Into<String>, value: Value) -> Self {
        Entry::event(event_type, Map::from_iter([("value".to_owned(), value)]))
    }

    pub fn kind(&self) -> &'static str {
        self.kind
    }

    pub fn member(&self, name: &str) -> Option<&Value> {
        self.members.get(name)
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        self.member(name)?.as_str()
    }

    pub fn native_value(&self, name: &str) -> Option<&Value> {
        self.native.get(name)
    }

    /// The members, and the native ones without a counterpart.
    pub fn all_members(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.members.iter().chain(&self.native)
    }

    pub fn child_entries(&self) -> &[Entry] {
        &self.children
    }

    /// Sets a member, if there is a value.
    pub fn with(mut self, name: &str, value: Option<impl Into<Value>>) -> Self {
        if let Some(value) = value {
            self.members.insert(name.to_owned(), value.into());
        }
        self
    }

    /// Sets the timestamp. A native value in another form is kept as native.
    pub fn at(mut self, time: Option<Value>) -> Self {
        match (time.as_ref().and_then(time::canonical), time) {
            (Some(time), _) => self.with("timestamp", Some(time)),
            (None, Some(time)) => {
                self.native.insert("timestamp".to_owned(), time);
                self
            }
            (None, None) => self,
        }
    }

    pub fn usage(self, usage: TokenUsage) -> Self {
        self.with("token-usage", usage.into_value())
    }

    /// Adds the members of the native entry that have no counterpart.
    pub fn native(mut self, native: Native) -> Self {
        self.native.extend(native.rest());
        self
    }

    /// Adds a native member, if there is a value.
    pub fn native_member(mut self, name: &str, value: Option<impl Into<Value>>) -> Self {
        if let Some(value) = value {
            self.native.insert(name.to_owned(), value.into());
        }
        self
    }

    pub fn children(mut self, children: Vec<Entry>) -> Self {
        self.children.extend(children);
        self
    }

    /// Serializes the entry.
    pub fn into_value(self) -> Value {
        let mut members = self.members;
        members.insert("type".to_owned(), self.kind.into());
        if !self.native.is_empty() {
            members.insert("native".to_owned(), Value::Object(self.native));
        }
        if !self.children.is_empty() {
            let children = self.children.into_iter().map(Entry::into_value).collect();
            members.insert("children".to_owned(), Value::Array(children));
        }
        Value::Object(members)
    }
}
