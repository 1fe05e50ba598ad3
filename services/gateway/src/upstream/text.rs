//! A JSON-RPC message as text: slices for its parts, and edits that replace some of them.
//!
//! Ids, tokens and names change on the way between a client and a server that is shared or federated; everything else
//! stays byte for byte as it was written (1.4). Nothing is therefore re-serialized: a part is a slice of the text, and
//! [`Edits`] inserts other text in its place.
//!
//! Not here: the strict checks of a client's message (`frame`). Servers' messages are read as other parsers read them:
//! of a duplicate member, the last one counts.

use std::ops::Range;

use bytes::Bytes;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// A JSON value: a slice of the text that contains it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Json<'a>(&'a str);

impl<'a> Json<'a> {
    /// Parses a whole text; `None` if it is not JSON.
    pub fn whole(text: &'a str) -> Option<Self> {
        serde_json::from_str::<&RawValue>(text).ok().map(|raw| Self(raw.get()))
    }

    /// The raw JSON text of the value.
    pub const fn raw(self) -> &'a str {
        self.0
    }

    /// The members of an object; empty for any other value.
    pub fn members(self) -> Vec<(String, Self)> {
        if !self.0.starts_with('{') {
            return Vec::new();
        }
        serde_json::Deserializer::from_str(self.0).deserialize_map(ObjectVisitor).unwrap_or_default()
    }

    /// The items of an array; empty for any other value.
    pub fn items(self) -> Vec<Self> {
        if !self.0.starts_with('[') {
            return Vec::new();
        }
        serde_json::Deserializer::from_str(self.0).deserialize_seq(ArrayVisitor).unwrap_or_default()
    }

    /// The member with this name; of duplicates, the last one.
    pub fn get(self, name: &str) -> Option<Self> {
        self.members().into_iter().rev().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// The value at this path of member names.
    pub fn at(self, path: &[&str]) -> Option<Self> {
        path.iter().try_fold(self, |value, name| value.get(name))
    }

    /// The decoded text of a string; `None` for any other value.
    pub fn string(self) -> Option<String> {
        serde_json::from_str(self.0).ok()
    }

    /// The value of an integer in the range of `i64`.
    pub fn integer(self) -> Option<i64> {
        serde_json::from_str(self.0).ok()
    }

    /// Returns whether the value is an object.
    pub fn is_object(self) -> bool {
        self.0.starts_with('{')
    }
}

/// An id or token for comparison: its JSON type and value, independent of the spelling.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Id {
    /// A string.
    Text(String),
    /// A number, in a normalized spelling.
    Number(String),
}

impl Id {
    /// Reads an id; `None` unless the value is a string or number.
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

/// The kind of a JSON-RPC message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RpcKind {
    /// A message with a `method` and an `id` that is not `null`.
    Request,
    /// A message with a `method`, without `id` or with `null`.
    Notification,
    /// A message without `method`, with a `result` or an `error`.
    Response,
}

/// A parsed JSON-RPC message, as slices of its text.
#[derive(Clone, Debug)]
pub struct RpcMessage<'a> {
    text: &'a str,
    members: Vec<(String, Json<'a>)>,
    /// The kind of the message.
    pub kind: RpcKind,
}

impl<'a> RpcMessage<'a> {
    /// Parses a message; `None` if the text is not a JSON-RPC message.
    pub fn read(text: &'a str) -> Option<Self> {
        let members = Json::whole(text)?.members();
        let member = |name: &str| members.iter().rev().find(|(key, _)| key == name).map(|(_, value)| *value);
        let has = |name: &str| member(name).is_some();
        let kind = match (has("method"), member("id").is_some_and(|id| id.raw() != "null")) {
            (true, true) => RpcKind::Request,
            (true, false) => RpcKind::Notification,
            (false, _) if has("result") || has("error") => RpcKind::Response,
            (false, _) => return None,
        };
        Some(Self { text, members, kind })
    }

    /// Parses a message; `None` if the bytes are not a JSON-RPC message in UTF-8.
    pub fn read_bytes(bytes: &'a [u8]) -> Option<Self> {
        Self::read(std::str::from_utf8(bytes).ok()?)
    }

    /// The original text.
    pub const fn text(&self) -> &'a str {
        self.text
    }

    /// A top-level member; of duplicates, the last one.
    pub fn get(&self, name: &str) -> Option<Json<'a>> {
        self.members.iter().rev().find(|(key, _)| key == name).map(|(_, value)| *value)
    }

    /// The value at this path of member names.
    pub fn at(&self, path: &[&str]) -> Option<Json<'a>> {
        let (first, rest) = path.split_first()?;
        self.get(first)?.at(rest)
    }

    /// The raw `id`.
    pub fn id(&self) -> Option<Json<'a>> {
        self.get("id")
    }

    /// The `method`, with its escapes decoded.
    pub fn method(&self) -> Option<String> {
        self.get("method")?.string()
    }

    /// A member of `params`.
    pub fn param(&self, name: &str) -> Option<Json<'a>> {
        self.at(&["params", name])
    }

    /// A member of `params._meta`.
    pub fn meta(&self, name: &str) -> Option<Json<'a>> {
        self.at(&["params", "_meta", name])
    }

    /// Returns whether this is a request or notification of the modern revision (without sessions).
    pub fn is_modern(&self) -> bool {
        self.meta(meta::PROTOCOL_VERSION).is_some()
    }

    /// The `error.code` of an error response; `None` if it is not an integer of 32 bits.
    pub fn error_code(&self) -> Option<i32> {
        self.at(&["error", "code"])?.integer()?.try_into().ok()
    }
}

/// Member names of `_meta` that MCP defines.
pub mod meta {
    /// The token by which progress notifications name their request.
    pub const PROGRESS_TOKEN: &str = "progressToken";
    /// The protocol revision of a modern request.
    pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    /// The client's capabilities.
    pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    /// The client's name and version.
    pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
    /// The id of the request that opened the subscription of a notification.
    pub const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
    /// The task that a message belongs to.
    pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
    /// The minimum level of log messages that a request asks for.
    pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
}

/// A text, and the replacements for some of its parts.
#[derive(Debug)]
pub struct Edits<'a> {
    text: &'a str,
    edits: Vec<(Range<usize>, String)>,
}

impl<'a> Edits<'a> {
    /// Starts without replacements.
    pub const fn of(text: &'a str) -> Self {
        Self { text, edits: Vec::new() }
    }

    /// Replaces a part. A part of another text is ignored, and so is a replacement that overlaps an earlier part of the
    /// text.
    pub fn replace(&mut self, part: Json<'a>, with: impl Into<String>) {
        let Some(start) = part.raw().as_ptr().addr().checked_sub(self.text.as_ptr().addr()) else { return };
        let range = start..start + part.raw().len();
        if range.end <= self.text.len() {
            self.edits.push((range, with.into()));
        }
    }

    /// Returns whether there are no replacements.
    pub const fn is_empty(&self) -> bool {
        self.edits.is_empty()
    }

    /// The text with the replacements.
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

/// The text as a JSON string, with quotes and escapes.
pub fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

struct ObjectVisitor;

impl<'de> Visitor<'de> for ObjectVisitor {
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

struct ArrayVisitor;

impl<'de> Visitor<'de> for ArrayVisitor {
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

/// Returns whether the text may be a JSON-RPC message. Some clients read one whatever the content type is, also after a
/// byte order mark, or in UTF-16 and UTF-32 (the same characters between NUL bytes).
pub fn may_be_message(text: &[u8]) -> bool {
    let is_before =
        |byte: &u8| matches!(byte, 0 | 0xef | 0xbb | 0xbf | 0xfe | 0xff) || byte.is_ascii_whitespace();
    matches!(text.iter().find(|byte| !is_before(byte)), Some(b'{' | b'['))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_leaves_everything_else_as_it_was_written() {
        let text = r#"{ "id" : 1e2, "params":{"x":1.0, "a":[1,{"b":"\u2028"}], "_meta":{"progressToken":"1"}},"method":"m"}"#;
        let message = RpcMessage::read(text).unwrap();
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
        let message = RpcMessage::read(r#"{"id":1,"id":2,"result":{}}"#).unwrap();
        assert_eq!(message.id().unwrap().raw(), "2");
    }

    #[test]
    fn a_message_with_the_id_null_is_no_request() {
        let kind = |text| RpcMessage::read(text).unwrap().kind;
        assert_eq!(kind(r#"{"id":null,"method":"m"}"#), RpcKind::Notification);
        assert_eq!(kind(r#"{"id":1,"method":"m","id":null}"#), RpcKind::Notification);
        assert_eq!(kind(r#"{"id":null,"method":"m","id":1}"#), RpcKind::Request);
        assert_eq!(kind(r#"{"id":null,"error":{}}"#), RpcKind::Response);
    }

    #[test]
    fn what_is_neither_request_nor_response_is_no_message() {
        for text in ["", "[]", "17", "{}", r#"{"id":1}"#, "Starting server...", r#"{"method":"m""#] {
            assert!(RpcMessage::read(text).is_none(), "{text}");
        }
    }
}
