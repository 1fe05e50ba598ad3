//! Native JSON objects from which members are taken one by one, so that those without a counterpart remain.

use serde_json::{Map, Value};

use crate::time::canonical;

/// A native object. Members whose value is null count as absent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Native(Map<String, Value>);

impl Native {
    /// Returns the object, or the value if it is none.
    pub fn of(value: Value) -> Result<Native, Value> {
        match value {
            Value::Object(members) => Ok(Native(members)),
            other => Err(other),
        }
    }

    /// Returns an object with one member.
    pub fn single(name: &str, value: Value) -> Native {
        Native(Map::from_iter([(name.to_owned(), value)]))
    }

    /// Returns whether no member is left.
    pub fn is_empty(&self) -> bool {
        self.0.values().all(Value::is_null)
    }

    /// Returns whether all members have one of these names, except for those that are null or an empty list.
    pub fn has_only(&self, names: &[&str]) -> bool {
        let says_nothing = |value: &Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
        self.0.iter().all(|(name, value)| names.contains(&name.as_str()) || says_nothing(value))
    }

    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_str()
    }

    /// Removes a member.
    pub fn take(&mut self, name: &str) -> Option<Value> {
        self.0.remove(name).filter(|value| !value.is_null())
    }

    /// Removes a member that is a text; another value stays.
    pub fn take_text(&mut self, name: &str) -> Option<String> {
        self.text(name)?;
        match self.0.remove(name) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        }
    }

    /// Removes a member that is a time, and returns it as [`canonical`]; another value stays.
    pub fn take_time(&mut self, name: &str) -> Option<String> {
        let time = canonical(self.get(name)?)?;
        self.0.remove(name);
        Some(time)
    }

    /// Removes a member that is an object; another value stays.
    pub fn take_object(&mut self, name: &str) -> Option<Native> {
        self.get(name)?.as_object()?;
        self.0.remove(name).and_then(|value| Native::of(value).ok())
    }

    /// Removes a member that is an array; another value stays.
    pub fn take_array(&mut self, name: &str) -> Option<Vec<Value>> {
        self.get(name)?.as_array()?;
        match self.0.remove(name) {
            Some(Value::Array(items)) => Some(items),
            _ => None,
        }
    }

    /// Removes a member whose value is this text, because the session already says it.
    pub fn drop_if(&mut self, name: &str, text: Option<&str>) {
        if text.is_some() && self.text(name) == text {
            self.0.remove(name);
        }
    }

    /// Adds members, which replace those of the same names.
    pub fn extend(&mut self, members: Native) {
        self.0.extend(members.0);
    }

    /// Adds a member; an empty object is left out.
    pub fn put_object(&mut self, name: &str, members: Map<String, Value>) {
        if !members.is_empty() {
            self.0.insert(name.to_owned(), Value::Object(members));
        }
    }

    /// Adds a list of objects; an empty list is left out.
    pub fn put_objects(&mut self, name: &str, objects: Vec<Map<String, Value>>) {
        if !objects.is_empty() {
            self.0.insert(name.to_owned(), objects.into_iter().map(Value::Object).collect());
        }
    }

    /// The object with the members that were not taken, unchanged.
    pub fn into_value(self) -> Value {
        Value::Object(self.0)
    }

    /// The members that were not taken, without nulls at any depth.
    pub fn rest(self) -> Map<String, Value> {
        without_nulls(self.0)
    }
}

/// Removes members whose value is null. Elements of arrays stay, because their position may matter.
fn without_nulls(members: Map<String, Value>) -> Map<String, Value> {
    members
        .into_iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(name, value)| (name, clean(value)))
        .collect()
}

fn clean(value: Value) -> Value {
    match value {
        Value::Object(members) => Value::Object(without_nulls(members)),
        Value::Array(items) => Value::Array(items.into_iter().map(clean).collect()),
        plain => plain,
    }
}
