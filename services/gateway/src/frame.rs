//! A client's JSON-RPC message: the original text, and the byte ranges of the members that the gateway reads.
//!
//! A message is never re-serialized: the upstream receives the original text with members cut out
//! ([`Frame::without_meta`]) or inserted, everything else byte for byte (section 0.3). The parser is strict where two
//! readers could disagree about which call a message is: duplicate member names, batches, a second spelling of a
//! member that a case-insensitive reader takes for the first. It accepts what concerns only the receiver: large
//! numbers, lone surrogates, unknown members.
//!
//! Messages of servers are parsed by [`reply`]. Not here: HTTP (`front`), the content of a VAP message (`admission`).

pub mod error_code;
mod id;
mod name;
pub mod object;
pub mod reply;
#[cfg(test)]
mod tests;
mod walk;

use std::ops::Range;

use bytes::Bytes;
use jose::json::{self, JsonError, Limits, TextRules};
use thiserror::Error;

pub use id::{LooseId, RawId};
pub use name::{Mirrored, mirrored_name, mirrored_value};

use object::Object;

use crate::limits::MAX_DEPTH;

/// The MCP method `tools/call`.
pub const TOOLS_CALL: &str = "tools/call";
/// The MCP method `tools/list`.
pub const TOOLS_LIST: &str = "tools/list";
/// The MCP method `notifications/cancelled`, with which either side gives up a request that it sent.
pub const NOTIFICATIONS_CANCELLED: &str = "notifications/cancelled";
/// The MCP method `subscriptions/listen` of the modern era. Its answer does not end by itself.
pub const SUBSCRIBE: &str = "subscriptions/listen";

/// Members of the JSON-RPC envelope. Another spelling of one of them is refused, because a case-insensitive reader
/// would take it for the member.
const ENVELOPE: &[&str] = &["jsonrpc", "id", "method", "params", "result", "error"];
/// Members of the `params` of `tools/call`; other spellings of them are refused, as for [`ENVELOPE`].
const CALL: &[&str] = &["name", "arguments", "_meta"];

/// A parsed JSON-RPC message of a client: its text, and the byte ranges of its members.
#[derive(Clone, Debug)]
pub struct Frame {
    text: Bytes,
    kind: Kind,
    method: Option<String>,
    id: Option<RawId>,
    whole: Object,
    params: Option<Object>,
    meta: Option<Object>,
}

/// The kind of a JSON-RPC message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A message with a `method` and an `id`: the receiver must answer it.
    Request,
    /// A message with a `method` and no `id`.
    Notification,
    /// A message with a `result` or an `error`: the answer to a request of the other side.
    Response,
    /// None of the other kinds. The gateway does not judge it; the server may refuse it.
    Unknown,
}

/// Reason why a message is refused with status 400 and not forwarded.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FrameError {
    /// The text is not JSON, is nested too deeply, or repeats a member name.
    #[error(transparent)]
    Flaw(#[from] JsonError),
    /// A batch: a JSON array of messages.
    #[error("batches are not accepted: one message for each request")]
    Batch,
    /// The message is not a JSON object.
    #[error("a message is a JSON object")]
    NotAnObject,
    /// The `method` is not a string.
    #[error("the method must be a string")]
    Method,
    /// The `id` is neither a string nor a number, or `null` although the message has a `method`.
    #[error("the id must be a string or a number")]
    Id,
    /// The message has a `method` and also a `result` or an `error`.
    #[error("a message has a method or a result or error, not both")]
    Ambiguous,
    /// A member name that case-insensitive readers take for a member of the protocol; in `params`, with the id of the
    /// request.
    #[error("the member {0:?} can be mistaken for one of the protocol's")]
    Lookalike(String, Option<RawId>),
    /// A `tools/call` without an `id`: it could not be answered.
    #[error("tools/call needs an id: a call without one could not be answered")]
    CallWithoutId,
    /// A `tools/call` with this id whose `params.name` is not a string. Some servers would read `["x"]` as x.
    #[error("the name of a tool must be a text")]
    CallName(RawId),
    /// A `tools/call` with this id whose `params` is not an object.
    #[error("the parameters of tools/call must be an object")]
    CallWithoutParams(RawId),
}

impl FrameError {
    /// The JSON-RPC error code: [`error_code::PARSE_ERROR`] for a syntax error, otherwise
    /// [`error_code::INVALID_REQUEST`].
    pub fn code(&self) -> i32 {
        match self {
            Self::Flaw(flaw) if flaw.is_syntax() => error_code::PARSE_ERROR,
            _ => error_code::INVALID_REQUEST,
        }
    }

    /// The id of the request, if the message is known to be one.
    pub const fn id(&self) -> Option<&RawId> {
        match self {
            Self::CallName(id) | Self::CallWithoutParams(id) => Some(id),
            Self::Lookalike(_, id) => id.as_ref(),
            _ => None,
        }
    }
}

impl Frame {
    /// Parses a client's message.
    ///
    /// # Errors
    /// A [`FrameError`] if two readers could disagree about the message, or if a `tools/call` cannot be decided.
    pub fn parse(text: Bytes) -> Result<Self, FrameError> {
        let body = checked(&text, MAX_DEPTH, TextRules::DistinctNames)?;
        let whole = top_level(body)?;
        refuse_lookalikes(&whole, ENVELOPE, None)?;
        let method = method(body, &whole)?;
        let id = id(body, &whole, method.is_some())?;
        let kind = kind(&whole, method.is_some(), id.is_some())?;
        let params = whole.get("params").and_then(|at| Object::read(body, at.clone()));
        let meta = params.as_ref().and_then(|params| Object::read(body, params.get("_meta")?.clone()));
        let frame = Self { kind, method, id, whole, params, meta, text };
        frame.refuse_undecidable_call()?;
        Ok(frame)
    }

    fn refuse_undecidable_call(&self) -> Result<(), FrameError> {
        if self.method() != Some(TOOLS_CALL) {
            return Ok(());
        }
        let Some(id) = self.id() else {
            return Err(FrameError::CallWithoutId);
        };
        if self.params.is_none() {
            return Err(FrameError::CallWithoutParams(id.clone()));
        }
        self.refuse_lookalike_params(CALL)?;
        match self.param("name").is_some() && self.tool_name().is_none() {
            true => Err(FrameError::CallName(id.clone())),
            false => Ok(()),
        }
    }

    /// The original text of the message.
    pub fn text(&self) -> &Bytes {
        &self.text
    }

    /// The kind of the message.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The `method`, with its escapes decoded.
    pub fn method(&self) -> Option<&str> {
        self.method.as_deref()
    }

    /// The `id`, exactly as the client wrote it. `None` for a message without `id`, and for a response with `null`.
    pub fn id(&self) -> Option<&RawId> {
        self.id.as_ref()
    }

    /// Returns whether the method is [`TOOLS_CALL`].
    pub fn is_tool_call(&self) -> bool {
        self.method() == Some(TOOLS_CALL)
    }

    /// The raw JSON text of a member of `params`.
    pub fn param(&self, name: &str) -> Option<&str> {
        Some(self.slice(self.params.as_ref()?.get(name)?))
    }

    /// The raw JSON text of `params`.
    pub fn params_text(&self) -> Option<&str> {
        Some(self.slice(self.whole.get("params")?))
    }

    /// The raw JSON text of a top-level member, such as the `result` of a client's response.
    pub fn member(&self, name: &str) -> Option<&str> {
        Some(self.slice(self.whole.get(name)?))
    }

    /// A string member of `params`, with its escapes decoded. `None` if the member is not a string.
    pub fn param_string(&self, name: &str) -> Option<String> {
        serde_json::from_str(self.param(name)?).ok()
    }

    /// The raw JSON text of a member of `params._meta`.
    pub fn meta(&self, key: &str) -> Option<&str> {
        Some(self.slice(self.meta.as_ref()?.get(key)?))
    }

    /// A string member of `params._meta`, with its escapes decoded.
    pub fn meta_string(&self, key: &str) -> Option<String> {
        serde_json::from_str(self.meta(key)?).ok()
    }

    /// The member names of `params._meta`.
    pub fn meta_keys(&self) -> impl Iterator<Item = &str> {
        self.meta.iter().flat_map(Object::names)
    }

    /// The name of the called tool: `params.name`, with its escapes decoded.
    pub fn tool_name(&self) -> Option<String> {
        self.param_string("name")
    }

    /// The raw JSON text of a call's `arguments`. Absent or `null` arguments are the empty object `{}` (V-7).
    pub fn arguments_text(&self) -> &str {
        self.param("arguments").filter(|text| *text != "null").unwrap_or("{}")
    }

    /// Refuses member names of `params` that a case-insensitive reader takes for one of `known`.
    ///
    /// # Errors
    /// [`FrameError::Lookalike`] with the first such name.
    pub fn refuse_lookalike_params(&self, known: &[&str]) -> Result<(), FrameError> {
        self.params.as_ref().map_or(Ok(()), |params| refuse_lookalikes(params, known, self.id()))
    }

    /// The raw JSON text of a member of an object in `params`, such as a member of `params.metadata`.
    pub fn inner_param(&self, name: &str, member: &str) -> Option<&str> {
        let at = self.params.as_ref()?.get(name)?.clone();
        Some(self.slice(Object::read(self.body(), at)?.get(member)?))
    }

    /// A string member of an object in `params`, with its escapes decoded. `None` if the member is not a string.
    pub fn inner_string(&self, name: &str, member: &str) -> Option<String> {
        serde_json::from_str(self.inner_param(name, member)?).ok()
    }

    /// The text without these members of an object in `params`. If no member is left, the object is removed too.
    pub fn without_inner(&self, name: &str, members: &[&str]) -> Bytes {
        let changed = self.param(name).and_then(|text| object::without(text, &[], members));
        match &changed {
            Some(text) => self.edited(&[(name, Some(text.as_str()).filter(|text| *text != "{}"))], &[]),
            None => self.text.clone(),
        }
    }

    /// The text without the given members of `params._meta`. If no member is left, `_meta` is removed too.
    pub fn without_meta(&self, keys: &[&str]) -> Bytes {
        self.edited(&[], keys)
    }

    /// The text with members of `params` replaced or added (`Some`) or removed (`None`), and without the given members
    /// of `params._meta`.
    pub fn edited(&self, params: &[(&str, Option<&str>)], without_meta: &[&str]) -> Bytes {
        let here = |key: &&&str| self.meta.as_ref().is_some_and(|meta| meta.get(key).is_some());
        let gone: Vec<_> = without_meta.iter().filter(here).map(|key| (*key, None)).collect();
        if params.is_empty() && gone.is_empty() {
            return self.text.clone();
        }
        let new_meta = (self.meta.as_ref().filter(|_| !gone.is_empty())).map(|meta| {
            let emptied = meta.names().count() == gone.len();
            (!emptied).then(|| meta.rewritten(self.body(), &gone))
        });
        let mut changes = params.to_vec();
        if let Some(meta) = &new_meta {
            changes.push(("_meta", meta.as_deref()));
        }
        let params = match &self.params {
            Some(params) => params.rewritten(self.body(), &changes),
            None => Object::default().rewritten("{}", &changes),
        };
        self.whole.rewritten_in(self.body(), &[("params", Some(&params))]).into()
    }

    fn slice(&self, at: &Range<usize>) -> &str {
        self.body().get(at.clone()).unwrap_or_default()
    }

    fn body(&self) -> &str {
        std::str::from_utf8(&self.text).unwrap_or_default()
    }
}

/// Checks a text of any length, with at most `depth` arrays and objects open at once.
fn checked(text: &[u8], depth: usize, rules: TextRules) -> Result<&str, JsonError> {
    json::check_rules(text, Limits { bytes: text.len(), depth }, rules)
}

fn top_level(text: &str) -> Result<Object, FrameError> {
    let start = text.len() - text.trim_start_matches(object::BLANKS).len();
    if text[start..].starts_with('[') {
        return Err(FrameError::Batch);
    }
    Object::read(text, start..text.trim_end_matches(object::BLANKS).len()).ok_or(FrameError::NotAnObject)
}

/// Refuses member names that a case-insensitive reader takes for one of `known` (such readers also take `ſ` for s and
/// `K` for k): if a name repeats, the last one wins for such a reader. `id` is that of the request, if it is known.
fn refuse_lookalikes(object: &Object, known: &[&str], id: Option<&RawId>) -> Result<(), FrameError> {
    let mistaken = |name: &&str| !known.contains(name) && known.contains(&folded(name).as_str());
    match object.names().find(mistaken) {
        Some(name) => Err(FrameError::Lookalike(name.to_owned(), id.cloned())),
        None => Ok(()),
    }
}

fn folded(name: &str) -> String {
    let fold = |letter| match letter {
        'ſ' => 's',
        '\u{212A}' => 'k',
        other => other.to_ascii_lowercase(),
    };
    name.chars().map(fold).collect()
}

fn method(text: &str, whole: &Object) -> Result<Option<String>, FrameError> {
    let Some(at) = whole.get("method") else { return Ok(None) };
    serde_json::from_str(&text[at.clone()]).map(Some).map_err(|_| FrameError::Method)
}

/// Reads the `id`. `null` is that of a response to a message without a readable id. A message with a method must not have
/// it: some servers execute it as a request, and others take it for a notification.
fn id(text: &str, whole: &Object, has_method: bool) -> Result<Option<RawId>, FrameError> {
    let Some(at) = whole.get("id") else { return Ok(None) };
    match &text[at.clone()] {
        "null" if !has_method => Ok(None),
        raw => RawId::read(raw).map(Some).ok_or(FrameError::Id),
    }
}

fn kind(whole: &Object, method: bool, id: bool) -> Result<Kind, FrameError> {
    let answers = whole.get("result").is_some() || whole.get("error").is_some();
    match (method, answers, id) {
        (true, true, _) => Err(FrameError::Ambiguous),
        (true, false, true) => Ok(Kind::Request),
        (true, false, false) => Ok(Kind::Notification),
        (false, true, _) => Ok(Kind::Response),
        (false, false, _) => Ok(Kind::Unknown),
    }
}
