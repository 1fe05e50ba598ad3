//! A server's JSON-RPC message: its text, the members that the gateway reads, and edits of its text.
//!
//! The parser is lenient: member names may repeat anywhere but on the paths that the gateway reads. Messages that the
//! gateway itself writes are also built here.

use std::fmt::Display;
use std::ops::Range;

use bytes::Bytes;
use jose::json::{JsonError, JsonErrorKind, TextRules};
use serde_json::Value;

use super::object::{self, BLANKS, Object};
use super::{Kind, LooseId, NOTIFICATIONS_CANCELLED, RawId, checked};
use crate::limits::MAX_ANSWER_DEPTH;

/// Paths at which a server could write members that clients take for the gateway's: `_meta` of a result, `data` of an
/// error, and the same members of a task's result (in a response or in a notification).
const GATEWAY_MEMBER_PATHS: &[&[&str]] = &[
    &["result", "_meta"],
    &["result", "result", "_meta"],
    &["result", "error", "data"],
    &["result", "task", "_meta"],
    &["error", "data"],
    &["params", "_meta"],
    &["params", "result", "_meta"],
    &["params", "error", "data"],
];

/// A parsed JSON-RPC message of a server: its text, and the byte ranges of its members.
#[derive(Clone, Debug)]
pub struct Reply {
    text: Bytes,
    kind: Kind,
    id: Option<RawId>,
    whole: Object,
    result: Option<Object>,
    error: Option<Object>,
    meta: Option<Object>,
}

impl Reply {
    /// Parses a server's message.
    ///
    /// # Errors
    /// A [`JsonError`] if the text is not a JSON object, or if a member name repeats at the top level or in `result`,
    /// `error` or `result._meta`, so that two readers could disagree about the result.
    pub fn parse(text: Bytes) -> Result<Self, JsonError> {
        let body = checked(&text, MAX_ANSWER_DEPTH, TextRules::Syntax)?;
        let start = body.len() - body.trim_start_matches(BLANKS).len();
        let flaw = |offset, kind| JsonError { pointer: String::new(), offset, kind };
        let not_an_object = || flaw(start, JsonErrorKind::Expected("an object"));
        let span = start..body.trim_end_matches(BLANKS).len();
        let whole = Object::read(body, span).ok_or_else(not_an_object)?;
        let result = whole.get("result").and_then(|at| Object::read(body, at.clone()));
        let error = whole.get("error").and_then(|at| Object::read(body, at.clone()));
        let meta = result.as_ref().and_then(|result| Object::read(body, result.get("_meta")?.clone()));
        for object in [Some(&whole), result.as_ref(), error.as_ref(), meta.as_ref()].into_iter().flatten() {
            if let Some(name) = object.repeated() {
                return Err(flaw(0, JsonErrorKind::Duplicate(name.to_owned())));
            }
        }
        let id = whole.get("id").and_then(|at| RawId::read(&body[at.clone()]));
        let kind = kind(&whole);
        Ok(Self { kind, id, whole, result, error, meta, text })
    }

    /// The original text of the message.
    pub fn text(&self) -> &Bytes {
        &self.text
    }

    /// The kind of the message: request, notification or response.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns whether this is the response to the request with this id.
    pub fn answers(&self, id: &RawId) -> bool {
        self.kind == Kind::Response && self.id.as_ref() == Some(id)
    }

    /// Returns whether some client may take the message for a response: it has a `result` or an `error`, whatever its
    /// other members are.
    pub fn may_answer(&self) -> bool {
        self.member("result").is_some() || self.is_error()
    }

    /// Returns whether some client would take the message for the response to this request, although it is not.
    pub fn is_mistaken_for_answer(&self, id: &RawId) -> bool {
        self.may_answer()
            && !self.answers(id)
            && self.loose_id().is_some_and(|loose| loose.is_taken_for(&id.loosely()))
    }

    /// The `id` as clients read it that convert ids to numbers. `None` without an `id`, and for an error whose id is
    /// `null` (which stands for a request whose id could not be read).
    pub fn loose_id(&self) -> Option<LooseId> {
        match (&self.id, self.member("id")?) {
            (Some(id), _) => Some(id.loosely()),
            (None, "null") if self.is_error() => None,
            (None, _) => Some(LooseId::AnyNumber),
        }
    }

    /// The `id` of the message.
    pub fn id(&self) -> Option<&RawId> {
        self.id.as_ref()
    }

    /// The `method` of a request or notification.
    pub fn method(&self) -> Option<String> {
        serde_json::from_str(self.member("method")?).ok()
    }

    /// The raw JSON text of a top-level member.
    pub fn member(&self, name: &str) -> Option<&str> {
        Some(self.slice(self.whole.get(name)?))
    }

    /// The raw JSON text of `result`.
    pub fn result(&self) -> Option<&str> {
        self.member("result")
    }

    /// The raw JSON text of a member of `result`.
    pub fn result_member(&self, name: &str) -> Option<&str> {
        Some(self.slice(self.result.as_ref()?.get(name)?))
    }

    /// The raw JSON text of the value at a path below `result`.
    pub fn result_at(&self, path: &[&str]) -> Option<&str> {
        let mut at = self.whole.get("result")?.clone();
        for name in path {
            at = Object::read(self.body(), at)?.get(name)?.clone();
        }
        Some(self.slice(&at))
    }

    /// The string at a path below `result`, with its escapes decoded. `None` if there is no string.
    pub fn result_string_at(&self, path: &[&str]) -> Option<String> {
        serde_json::from_str(self.result_at(path)?).ok()
    }

    /// Returns whether the message has an `error` member.
    pub fn is_error(&self) -> bool {
        self.whole.get("error").is_some()
    }

    /// The raw JSON text of a member of `error`.
    pub fn error_member(&self, name: &str) -> Option<&str> {
        Some(self.slice(self.error.as_ref()?.get(name)?))
    }

    /// Returns whether the message is a tool result with `isError: true`.
    pub fn is_tool_error(&self) -> bool {
        self.result_member("isError") == Some("true")
    }

    /// The raw JSON text of a member of `result._meta`.
    pub fn meta(&self, key: &str) -> Option<&str> {
        Some(self.slice(self.meta.as_ref()?.get(key)?))
    }

    /// The text with the members `put` set in `result._meta` and the members `drop` removed from it. Unchanged if there
    /// is not a result object.
    pub fn with_meta(&self, put: &[(&str, &str)], drop: &[&str]) -> Bytes {
        self.edited(&[], put, drop)
    }

    /// The text with members of `result` replaced or added (`Some`) or removed (`None`), and with `result._meta`
    /// changed as by [`Reply::with_meta`]. Unchanged if the result is not an object.
    pub fn edited(&self, result: &[(&str, Option<&str>)], put: &[(&str, &str)], drop: &[&str]) -> Bytes {
        let Some(object) = &self.result else { return self.text.clone() };
        let mut changes = result.to_vec();
        let meta = self.changed_meta(put, drop);
        if let Some(meta) = &meta {
            changes.push(("_meta", meta.as_deref()));
        }
        if changes.is_empty() {
            return self.text.clone();
        }
        let result = object.rewritten(self.body(), &changes);
        self.whole.rewritten_in(self.body(), &[("result", Some(&result))]).into()
    }

    /// The changed text of `result._meta`: `None` if nothing changes, `Some(None)` if no member is left.
    fn changed_meta(&self, put: &[(&str, &str)], drop: &[&str]) -> Option<Option<String>> {
        let has = |key: &str| self.meta.as_ref().is_some_and(|meta| meta.get(key).is_some());
        let dropped = drop.iter().filter(|key| has(key) && put.iter().all(|(name, _)| name != *key));
        let mut changes: Vec<_> = dropped.map(|key| (*key, None)).collect();
        let gone = changes.len();
        changes.extend(put.iter().map(|(key, json)| (*key, Some(*json))));
        if changes.is_empty() {
            return None;
        }
        let emptied = put.is_empty() && self.meta.as_ref().is_some_and(|meta| meta.names().count() == gone);
        let meta = self.meta.as_ref().map(|meta| meta.rewritten(self.body(), &changes));
        Some((!emptied).then(|| meta.unwrap_or_else(|| Object::default().rewritten("{}", &changes))))
    }

    /// The text without these members at every path of `GATEWAY_MEMBER_PATHS`, where clients would take a server's text for the
    /// gateway's. Unchanged if none of the members is present.
    pub fn without_gateway_members(&self, names: &[&str]) -> Bytes {
        self.without_at(GATEWAY_MEMBER_PATHS, names)
    }

    /// The text without these members at each of these paths. Unchanged if none of the members is present.
    pub fn without_at(&self, paths: &[&[&str]], names: &[&str]) -> Bytes {
        let trimmed = self.body().trim_matches(BLANKS);
        let mut changed = None;
        for path in paths {
            changed = object::without(changed.as_deref().unwrap_or(trimmed), path, names).or(changed);
        }
        changed.map_or_else(|| self.text.clone(), Bytes::from)
    }

    /// The text with this member set in `error.data`. `None` if the message is not an error, or its `data` is not an
    /// object.
    pub fn with_error_data(&self, key: &str, json: &str) -> Option<Bytes> {
        let error = self.slice(self.whole.get("error").filter(|_| self.error.is_some())?);
        let error = object::put(error, &["data", key], json)?;
        Some(self.whole.rewritten_in(self.body(), &[("error", Some(&error))]).into())
    }

    /// The text with this member of `error` replaced or added. `None` if the message has no error object.
    pub fn with_error_member(&self, name: &str, json: &str) -> Option<Bytes> {
        let error = self.error.as_ref()?.rewritten(self.body(), &[(name, Some(json))]);
        Some(self.whole.rewritten_in(self.body(), &[("error", Some(&error))]).into())
    }

    /// The text with this value set at a path below `result`. Missing objects on the path are created; `None` if a
    /// value on the path is not an object.
    pub fn with_result_at(&self, path: &[&str], json: &str) -> Option<Bytes> {
        let result = object::put(self.result()?, path, json)?;
        Some(self.whole.rewritten_in(self.body(), &[("result", Some(&result))]).into())
    }

    /// The raw JSON text of `result` without its `_meta`: the input of the result digest (V-39).
    pub fn result_without_meta(&self) -> Option<String> {
        match &self.result {
            Some(result) => Some(result.rewritten(self.body(), &[("_meta", None)])),
            None => self.result().map(str::to_owned),
        }
    }

    fn slice(&self, at: &Range<usize>) -> &str {
        self.body().get(at.clone()).unwrap_or_default()
    }

    fn body(&self) -> &str {
        std::str::from_utf8(&self.text).unwrap_or_default()
    }
}

fn kind(whole: &Object) -> Kind {
    let has = |name| whole.get(name).is_some();
    match (has("method"), has("id"), has("result") || has("error")) {
        (true, true, false) => Kind::Request,
        (true, false, false) => Kind::Notification,
        (false, _, true) => Kind::Response,
        _ => Kind::Unknown,
    }
}

/// A response with this result; the result's text is inserted unchanged.
pub fn result(id: &RawId, result: &str) -> Bytes {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#).into()
}

/// An error response; `id` is null if the request's id could not be read.
pub fn error(id: Option<&RawId>, code: i32, message: &str, data: Option<&str>) -> Bytes {
    let id = id.map_or("null", RawId::text);
    let data = data.map(|data| format!(r#","data":{data}"#)).unwrap_or_default();
    let message = Value::from(message);
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":{message}{data}}}}}"#).into()
}

/// A request that the gateway itself sends.
pub fn request(id: &RawId, method: &str, params: &str) -> Bytes {
    let method = Value::from(method);
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{method},"params":{params}}}"#).into()
}

/// The notification that the request with this id is given up; `reason` is for the log of its receiver.
pub fn cancelled(id: &impl Display, reason: &str) -> Bytes {
    let reason = Value::from(reason);
    format!(r#"{{"jsonrpc":"2.0","method":"{NOTIFICATIONS_CANCELLED}","params":{{"requestId":{id},"reason":{reason}}}}}"#)
        .into()
}

/// The result of a failed tool (X-2): `isError: true`, with `words` as its text. `more` are further members of the
/// result, in the modern era `("resultType", "\"complete\"")`.
pub fn tool_error(id: &RawId, words: &str, more: &[(&str, &str)], meta: &[(&str, &str)]) -> Bytes {
    let member = |(name, json): &(&str, &str)| format!(",{}:{json}", Value::from(*name));
    let more: String = more.iter().map(member).collect();
    let meta: String = meta.iter().map(member).collect();
    let meta = match meta.strip_prefix(',') {
        Some(members) => format!(r#","_meta":{{{members}}}"#),
        None => String::new(),
    };
    let words = Value::from(words);
    result(id, &format!(r#"{{"content":[{{"type":"text","text":{words}}}],"isError":true{more}{meta}}}"#))
}
