//! A JSON-RPC message as the text that it is: where its parts are, and the same text with some parts replaced.
//!
//! Ids, tokens and names are changed on the way between a client and a server that is shared or federated; everything
//! else stays byte for byte as it was written (1.4). So nothing is reserialised here: a part is a slice of the text, and
//! [`Edits`] puts other text in its place.
//!
//! Not here: whether a client's message is strict enough to be decided on (`frame`). What a server writes is taken as
//! other parsers take it: of a member that is there twice, the last one counts.

use std::ops::Range;

use bytes::Bytes;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// A value: a slice of the text that it stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Json<'a>(&'a str);

impl<'a> Json<'a> {
    /// A whole text, if it is JSON.
    pub fn whole(text: &'a str) -> Option<Self> {
        serde_json::from_str::<&RawValue>(text).ok().map(|raw| Self(raw.get()))
    }

    /// As it is written.
    pub const fn raw(self) -> &'a str {
        self.0
    }

    /// Its members, if it is an object.
    pub fn members(self) -> Vec<(String, Self)> {
        if !self.0.starts_with('{') {
            return Vec::new();
        }
        serde_json::Deserializer::from_str(self.0).deserialize_map(Members).unwrap_or_default()
    }

    /// Its items, if it is an array.
    pub fn items(self) -> Vec<Self> {
        if !self.0.starts_with('[') {
            return Vec::new();
        }
        serde_json::Deserializer::from_str(self.0).deserialize_seq(Items).unwrap_or_default()
    }

    /// One of its members.
    pub fn get(self, name: &str) -> Option<Self> {
        self.members().into_iter().rev().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// A member of a member, and so on.
    pub fn at(self, path: &[&str]) -> Option<Self> {
        path.iter().try_fold(self, |value, name| value.get(name))
    }

    /// What it says, if it is a string.
    pub fn string(self) -> Option<String> {
        serde_json::from_str(self.0).ok()
    }

    /// Which number, if it is a whole one.
    pub fn integer(self) -> Option<i64> {
        serde_json::from_str(self.0).ok()
    }

    /// Whether it is an object.
    pub fn is_object(self) -> bool {
        self.0.starts_with('{')
    }
}

/// What is compared of an id or a token: value and type, however it is written.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Id {
    /// A string.
    Text(String),
    /// A number, in one spelling.
    Number(String),
}

impl Id {
    /// The id that a value is.
    pub fn read(value: Json<'_>) -> Option<Self> {
        if let Some(text) = value.string() {
            return Some(Self::Text(text));
        }
        if let Some(whole) = value.integer() {
            return Some(Self::Number(whole.to_string()));
        }
        let digits = value.raw().strip_prefix('-').unwrap_or(value.raw());
        if !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit()) {
            return Some(Self::Number(value.raw().to_owned()));
        }
        let number: f64 = serde_json::from_str(value.raw()).ok()?;
        Some(Self::Number(number.to_string()))
    }
}

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Method and id.
    Request,
    /// A method without id.
    Notification,
    /// An id without method.
    Response,
}

/// One message.
#[derive(Clone, Debug)]
pub struct Message<'a> {
    text: &'a str,
    members: Vec<(String, Json<'a>)>,
    /// What it is.
    pub kind: Kind,
}

impl<'a> Message<'a> {
    /// Reads a message, if the text is one.
    pub fn read(text: &'a str) -> Option<Self> {
        let members = Json::whole(text)?.members();
        let has = |name: &str| members.iter().any(|(key, _)| key == name);
        let kind = match (has("method"), has("id")) {
            (true, true) => Kind::Request,
            (true, false) => Kind::Notification,
            (false, _) if has("result") || has("error") => Kind::Response,
            (false, _) => return None,
        };
        Some(Self { text, members, kind })
    }

    /// As it is written.
    pub const fn text(&self) -> &'a str {
        self.text
    }

    /// A member of the message.
    pub fn get(&self, name: &str) -> Option<Json<'a>> {
        self.members.iter().rev().find(|(key, _)| key == name).map(|(_, value)| *value)
    }

    /// A part of it, by the names that lead to it.
    pub fn at(&self, path: &[&str]) -> Option<Json<'a>> {
        let (first, rest) = path.split_first()?;
        self.get(first)?.at(rest)
    }

    /// Its id, as it is written.
    pub fn id(&self) -> Option<Json<'a>> {
        self.get("id")
    }

    /// Its method.
    pub fn method(&self) -> Option<String> {
        self.get("method")?.string()
    }

    /// A part of its parameters.
    pub fn param(&self, name: &str) -> Option<Json<'a>> {
        self.at(&["params", name])
    }

    /// A part of the `_meta` of its parameters.
    pub fn meta(&self, name: &str) -> Option<Json<'a>> {
        self.at(&["params", "_meta", name])
    }

    /// Whether it is a request or notification of the revision without sessions.
    pub fn is_modern(&self) -> bool {
        self.meta(meta::PROTOCOL_VERSION).is_some()
    }

    /// The code of the error that it answers with.
    pub fn error_code(&self) -> Option<i64> {
        self.at(&["error", "code"])?.integer()
    }
}

/// Names in `_meta` that MCP gives a meaning to.
pub mod meta {
    /// Whose progress is told.
    pub const PROGRESS_TOKEN: &str = "progressToken";
    /// The revision that a modern request speaks.
    pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    /// What the client can do.
    pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    /// Who the client is.
    pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
    /// The request that opened the subscription that a notification belongs to.
    pub const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
    /// The task that a message belongs to.
    pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
    /// From which level on log messages are wanted.
    pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
}

/// A text, and what is to stand in it instead.
#[derive(Debug)]
pub struct Edits<'a> {
    text: &'a str,
    edits: Vec<(Range<usize>, String)>,
}

impl<'a> Edits<'a> {
    /// Of this text.
    pub const fn of(text: &'a str) -> Self {
        Self { text, edits: Vec::new() }
    }

    /// Puts something in the place of a part. A part of another text is left alone, as is what overlaps.
    pub fn replace(&mut self, part: Json<'a>, with: impl Into<String>) {
        let Some(start) = part.raw().as_ptr().addr().checked_sub(self.text.as_ptr().addr()) else { return };
        let range = start..start + part.raw().len();
        if range.end <= self.text.len() {
            self.edits.push((range, with.into()));
        }
    }

    /// Whether nothing is to change.
    pub const fn is_empty(&self) -> bool {
        self.edits.is_empty()
    }

    /// The text as it now reads.
    pub fn done(mut self) -> Bytes {
        self.edits.sort_by_key(|(range, _)| range.start);
        let mut out = String::with_capacity(self.text.len() + 64);
        let mut at = 0;
        for (range, with) in self.edits {
            if range.start >= at {
                out.push_str(&self.text[at..range.start]);
                out.push_str(&with);
                at = range.end;
            }
        }
        out.push_str(&self.text[at..]);
        out.into()
    }
}

/// A string as JSON writes it.
pub fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Vec<(String, Json<'de>)>;

    fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some((key, value)) = map.next_entry::<String, &RawValue>()? {
            members.push((key, Json(value.get())));
        }
        Ok(members)
    }
}

struct Items;

impl<'de> Visitor<'de> for Items {
    type Value = Vec<Json<'de>>;

    fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(value) = seq.next_element::<&RawValue>()? {
            items.push(Json(value.get()));
        }
        Ok(items)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_leaves_everything_else_as_it_was_written() {
        let text = r#"{ "id" : 1e2, "params":{"x":1.0, "a":[1,{"b":"\u2028"}], "_meta":{"progressToken":"1"}},"method":"m"}"#;
        let message = Message::read(text).unwrap();
        let mut edits = Edits::of(text);
        edits.replace(message.meta(meta::PROGRESS_TOKEN).unwrap(), "7");
        edits.replace(message.id().unwrap(), "\"seven\"");
        let expected = text.replace("1e2", "\"seven\"").replace(r#"n":"1""#, r#"n":7"#);
        assert_eq!(edits.done(), expected.as_bytes());
    }

    #[test]
    fn a_number_and_a_string_are_different_ids_however_they_are_written() {
        let id = |text| Id::read(Json::whole(text).unwrap()).unwrap();
        assert_ne!(id("1"), id("\"1\""));
        assert_eq!(id("\"A\""), id("\"\\u0041\""));
        assert_eq!(id("100"), id("1e2"));
        assert_ne!(id("9007199254740993"), id("9007199254740992"));
        assert_ne!(id("18446744073709551617"), id("18446744073709551618"));
    }

    #[test]
    fn of_a_member_that_is_there_twice_the_last_one_counts() {
        let message = Message::read(r#"{"id":1,"id":2,"result":{}}"#).unwrap();
        assert_eq!(message.id().unwrap().raw(), "2");
    }

    #[test]
    fn what_is_neither_request_nor_response_is_no_message() {
        for text in ["", "[]", "17", "{}", r#"{"id":1}"#, "Starting server...", r#"{"method":"m""#] {
            assert!(Message::read(text).is_none(), "{text}");
        }
    }
}
