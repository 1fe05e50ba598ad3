//! One JSON-RPC message of a client: the original text, and the places of what matters in it.
//!
//! Nothing is ever written anew: what passes on is the original text with members cut out ([`Frame::without_meta`]) or put
//! in, everything else byte for byte (section 0.3). The reading is strict where two readers could disagree about which
//! call this is: members named twice, batches, a second spelling of a member that a careless reader takes for the
//! first. It is lenient about what only the receiver cares for: large numbers, lone surrogates, unknown members.
//!
//! Answers of servers are read by [`reply`]. Not here: HTTP (`front`), what a VAP message says (`admission`).

mod id;
mod name;
mod object;
pub mod reply;
mod scan;
#[cfg(test)]
mod tests;

use std::ops::Range;

use bytes::Bytes;
use thiserror::Error;

pub use id::{LooseId, RawId};
pub use name::{Mirrored, mirrored_name};
pub use scan::{Flaw, FlawKind};

use object::Object;
use scan::Repeats;

use crate::limits::MAX_DEPTH;

/// The method that calls a tool.
pub const TOOLS_CALL: &str = "tools/call";

/// Members of a message's own level. A reader that ignores case must find the same ones as we do.
const ENVELOPE: &[&str] = &["jsonrpc", "id", "method", "params", "result", "error"];
/// The same of a tool call's parameters.
const CALL: &[&str] = &["name", "arguments", "_meta"];

/// A message, and where things are in it.
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

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It has a method and an id, and wants an answer.
    Request,
    /// It has a method and no id.
    Notification,
    /// It has a result or an error: it answers a request of the server.
    Response,
    /// It has none of these: the server will say what it thinks of it.
    Unknown,
}

/// Why a message is refused unforwarded, with status 400.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FrameError {
    /// It is no JSON, too deep, or names a member twice.
    #[error(transparent)]
    Flaw(#[from] Flaw),
    /// It is an array of messages.
    #[error("batches are not accepted: one message for each request")]
    Batch,
    /// It is no object.
    #[error("a message is a JSON object")]
    NotAnObject,
    /// The method is no string.
    #[error("the method must be a string")]
    Method,
    /// The id is neither a string nor a number.
    #[error("the id must be a string or a number")]
    Id,
    /// It is a request and a response at once.
    #[error("a message has a method or a result or error, not both")]
    Ambiguous,
    /// Some readers would take the member for another.
    #[error("the member {0:?} can be mistaken for one of the protocol's")]
    Lookalike(String),
    /// A tool call that asks for no answer.
    #[error("tools/call needs an id: a call without one could not be answered")]
    CallWithoutId,
    /// A tool call whose tool is named by something else than a text: some servers would take `["x"]` for x.
    #[error("the name of a tool must be a text")]
    CallName,
    /// A tool call whose parameters are no object.
    #[error("the parameters of tools/call must be an object")]
    CallWithoutParams,
}

impl FrameError {
    /// The code of the JSON-RPC error.
    pub fn code(&self) -> i32 {
        match self {
            Self::Flaw(flaw) if flaw.is_syntax() => -32700,
            _ => -32600,
        }
    }
}

impl Frame {
    /// Reads a message.
    ///
    /// # Errors
    /// If the transport refuses it.
    pub fn parse(text: Bytes) -> Result<Self, FrameError> {
        let body = scan::check(&text, MAX_DEPTH, Repeats::Refused)?;
        let whole = top_level(body)?;
        refuse_lookalikes(&whole, ENVELOPE)?;
        let method = method(body, &whole)?;
        let id = id(body, &whole)?;
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
        if self.kind != Kind::Request {
            return Err(FrameError::CallWithoutId);
        }
        refuse_lookalikes(self.params.as_ref().ok_or(FrameError::CallWithoutParams)?, CALL)?;
        match self.param("name").is_some() && self.tool_name().is_none() {
            true => Err(FrameError::CallName),
            false => Ok(()),
        }
    }

    /// The original text.
    pub fn text(&self) -> &Bytes {
        &self.text
    }

    /// What it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Its method, unescaped.
    pub fn method(&self) -> Option<&str> {
        self.method.as_deref()
    }

    /// Its id, as it is written.
    pub fn id(&self) -> Option<&RawId> {
        self.id.as_ref()
    }

    /// Whether it is a tool call.
    pub fn is_tool_call(&self) -> bool {
        self.method() == Some(TOOLS_CALL)
    }

    /// A parameter, as it is written.
    pub fn param(&self, name: &str) -> Option<&str> {
        Some(self.slice(self.params.as_ref()?.get(name)?))
    }

    /// The parameters, as they are written.
    pub fn params_text(&self) -> Option<&str> {
        Some(self.slice(self.whole.get("params")?))
    }

    /// A member of the message's own level, as it is written: the `result` of a client's response, say.
    pub fn member(&self, name: &str) -> Option<&str> {
        Some(self.slice(self.whole.get(name)?))
    }

    /// A parameter that is a string, unescaped.
    pub fn param_string(&self, name: &str) -> Option<String> {
        serde_json::from_str(self.param(name)?).ok()
    }

    /// A member of `params._meta`, as it is written.
    pub fn meta(&self, key: &str) -> Option<&str> {
        Some(self.slice(self.meta.as_ref()?.get(key)?))
    }

    /// A member of `params._meta` that is a string, unescaped.
    pub fn meta_string(&self, key: &str) -> Option<String> {
        serde_json::from_str(self.meta(key)?).ok()
    }

    /// The keys of `params._meta`.
    pub fn meta_keys(&self) -> impl Iterator<Item = &str> {
        self.meta.iter().flat_map(Object::names)
    }

    /// The tool that a call names: `params.name`, unescaped.
    pub fn tool_name(&self) -> Option<String> {
        self.param_string("name")
    }

    /// The arguments of a call, as they are written; none or `null` are the empty object (V-7).
    pub fn arguments_text(&self) -> &str {
        self.param("arguments").filter(|text| *text != "null").unwrap_or("{}")
    }

    /// The text without these members of `params._meta`. If nothing is left of `_meta`, it goes as well.
    pub fn without_meta(&self, keys: &[&str]) -> Bytes {
        self.edited(&[], keys)
    }

    /// The text with parameters replaced, added (`Some`) or taken out (`None`), and without these members of
    /// `params._meta`.
    pub fn edited(&self, params: &[(&str, Option<&str>)], without_meta: &[&str]) -> Bytes {
        let here = |key: &&&str| self.meta.as_ref().is_some_and(|meta| meta.get(key).is_some());
        let gone: Vec<_> = without_meta.iter().filter(here).map(|key| (*key, None)).collect();
        if params.is_empty() && gone.is_empty() {
            return self.text.clone();
        }
        let new_meta = (self.meta.as_ref().filter(|_| !gone.is_empty())).map(|meta| {
            let emptied = meta.len() == gone.len();
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

fn top_level(text: &str) -> Result<Object, FrameError> {
    let start = text.len() - text.trim_start_matches(object::BLANKS).len();
    if text[start..].starts_with('[') {
        return Err(FrameError::Batch);
    }
    Object::read(text, start..text.trim_end_matches(object::BLANKS).len()).ok_or(FrameError::NotAnObject)
}

/// Some readers match names without regard to case (and take `ſ` for s, `K` for k): for them the last one wins.
fn refuse_lookalikes(object: &Object, known: &[&str]) -> Result<(), FrameError> {
    let mistaken = |name: &&str| !known.contains(name) && known.contains(&folded(name).as_str());
    match object.names().find(mistaken) {
        Some(name) => Err(FrameError::Lookalike(name.to_owned())),
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

fn id(text: &str, whole: &Object) -> Result<Option<RawId>, FrameError> {
    let Some(at) = whole.get("id") else { return Ok(None) };
    match &text[at.clone()] {
        "null" => Ok(None),
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
