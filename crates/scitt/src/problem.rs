//! Concise problem details (RFC 9290): how a service says no, and how a client reads it.
//!
//! Written: title (-1), detail (-2), instance (-3), and custom entries under URI keys. The response code (-4) is
//! a CoAP code, not an HTTP status, so it is never written. Read: whatever a peer sends that is CBOR at all; an
//! entry that is malformed or unknown is passed over, as the RFC asks.
//!
//! Not here: which problem has which title, and the HTTP status.

use crate::cbor::{self, Item, Value};
use crate::header::Label;
use crate::limits;

/// The URI key under which our own entries stand: `code`, `offset`, `rule`.
pub const TABELLION: &str = "urn:tabellion:problem";

const TITLE: i64 = -1;
const DETAIL: i64 = -2;
const INSTANCE: i64 = -3;
const RESPONSE_CODE: i64 = -4;

/// Text with a language and a direction (RFC 9290, appendix A): tag 38.
const LANGUAGE_TAGGED: u64 = 38;

const PROBLEM_LIMITS: cbor::Limits =
    cbor::Limits { depth: limits::PROBLEM_DEPTH, items: limits::PROBLEM_ITEMS };

/// What went wrong, for a person and for a program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Problem {
    /// What kind of thing happened; SCRAPI's own words where they fit.
    pub title: Option<String>,
    /// What happened this time.
    pub detail: Option<String>,
    /// Names this occurrence: a URI.
    pub instance: Option<String>,
    /// A CoAP response code that a peer sent; never written.
    pub response_code: Option<u8>,
    /// Custom entries by URI, each a map.
    pub custom: Vec<(String, Vec<(Label, Value<'static>)>)>,
}

/// A body that is not problem details at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAProblem {
    /// Larger than any limit allows.
    #[error("larger than {} bytes", limits::PROBLEM_BYTES)]
    TooLarge,
    /// Not CBOR.
    #[error(transparent)]
    Cbor(#[from] cbor::Error),
    /// CBOR, but no map, or an empty one.
    #[error("not a map of problem details")]
    NotAMap,
}

/// Title and detail on one line.
impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.title, &self.detail) {
            (Some(title), Some(detail)) => write!(f, "{title}: {detail}"),
            (Some(only), None) | (None, Some(only)) => f.write_str(only),
            (None, None) => f.write_str("no details"),
        }
    }
}

impl Problem {
    /// A problem with SCRAPI's two required entries.
    pub fn new(title: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { title: Some(title.into()), detail: Some(detail.into()), ..Self::default() }
    }

    /// Names this occurrence: a URI such as `urn:uuid:…`.
    pub fn instance(mut self, uri: impl Into<String>) -> Self {
        self.instance = Some(uri.into());
        self
    }

    /// A custom entry in the map under a URI; replaces an earlier one.
    pub fn entry(mut self, uri: &str, key: impl Into<Label>, value: impl Into<Value<'static>>) -> Self {
        let (key, value) = (key.into(), value.into());
        match self.custom.iter_mut().find(|(known, _)| known == uri) {
            Some((_, entries)) => {
                entries.retain(|(known, _)| *known != key);
                entries.push((key, value));
            }
            None => self.custom.push((uri.to_owned(), vec![(key, value)])),
        }
        self
    }

    /// Our stable code for what happened, such as `receipt-root-mismatch`.
    pub fn code(self, code: impl Into<String>) -> Self {
        self.entry(TABELLION, "code", code.into())
    }

    /// The byte at which a message is malformed.
    pub fn offset(self, offset: usize) -> Self {
        self.entry(TABELLION, "offset", offset as u64)
    }

    /// The policy rule that refused.
    pub fn rule(self, rule: impl Into<String>) -> Self {
        self.entry(TABELLION, "rule", rule.into())
    }

    /// What stands under a URI and a key.
    pub fn get(&self, uri: &str, key: &Label) -> Option<&Value<'static>> {
        let (_, entries) = self.custom.iter().find(|(known, _)| known == uri)?;
        entries.iter().find(|(known, _)| known == key).map(|(_, value)| value)
    }

    /// Our code, if the problem has one.
    pub fn get_code(&self) -> Option<&str> {
        self.get(TABELLION, &"code".into())?.as_text()
    }

    /// The byte offset, if the problem has one.
    pub fn get_offset(&self) -> Option<u64> {
        self.get(TABELLION, &"offset".into())?.as_u64()
    }

    /// The policy rule, if the problem has one.
    pub fn get_rule(&self) -> Option<&str> {
        self.get(TABELLION, &"rule".into())?.as_text()
    }

    /// The problem as deterministic CBOR. A problem with no entry at all is not one; it gets an empty title.
    pub fn encode(&self) -> Vec<u8> {
        let text = |key: i64, text: &Option<String>| Some((key.into(), text.as_deref()?.to_owned().into()));
        let standard = [text(TITLE, &self.title), text(DETAIL, &self.detail), text(INSTANCE, &self.instance)];
        let mut entries: Vec<(Value<'static>, Value<'static>)> = standard.into_iter().flatten().collect();
        entries.extend(self.custom.iter().map(|(uri, entries)| (uri.clone().into(), to_map(entries))));
        if entries.is_empty() {
            entries.push((TITLE.into(), "".into()));
        }
        Value::map(entries).encode()
    }

    /// Reads what any service sends.
    ///
    /// # Errors
    /// Only when the body is not a CBOR map; then the HTTP status is all there is to go by.
    pub fn parse(body: &[u8]) -> Result<Self, NotAProblem> {
        if body.len() > limits::PROBLEM_BYTES {
            return Err(NotAProblem::TooLarge);
        }
        let item = cbor::parse(body, PROBLEM_LIMITS)?;
        let map = item.value.as_map().filter(|map| !map.is_empty()).ok_or(NotAProblem::NotAMap)?;
        let mut problem = Self::default();
        map.iter().for_each(|(key, value)| problem.take(&key.value, value));
        Ok(problem)
    }

    fn take(&mut self, key: &Value<'_>, item: &Item<'_>) {
        match (key, key.as_i64()) {
            (_, Some(TITLE)) => self.title = text(item),
            (_, Some(DETAIL)) => self.detail = text(item),
            (_, Some(INSTANCE)) => self.instance = item.value.as_text().map(str::to_owned),
            (_, Some(RESPONSE_CODE)) => {
                self.response_code = item.value.as_u64().and_then(|code| code.try_into().ok());
            }
            (Value::Text(uri), _) => self.custom.extend(custom(uri, item)),
            _ => {}
        }
    }
}

fn to_map(entries: &[(Label, Value<'static>)]) -> Value<'static> {
    Value::map(entries.iter().map(|(key, value)| (key.to_value(), value.clone())))
}

/// Plain text, or the text of tag 38 `[language, text, ? direction]`; anything else is no text.
fn text(item: &Item<'_>) -> Option<String> {
    match &item.value {
        Value::Text(text) => Some(text.clone().into_owned()),
        Value::Tag(LANGUAGE_TAGGED, content) => match content.value.as_array()? {
            [language, text] | [language, text, _] => {
                language.value.as_text()?;
                text.value.as_text().map(str::to_owned)
            }
            _ => None,
        },
        _ => None,
    }
}

type Custom = (String, Vec<(Label, Value<'static>)>);

/// Entries whose key is no label are passed over.
fn custom(uri: &str, item: &Item<'_>) -> Option<Custom> {
    let entry = |(key, value): &(Item<'_>, Item<'_>)| {
        Label::read(key).ok().map(|key| (key, value.value.clone().into_owned()))
    };
    Some((uri.to_owned(), item.value.as_map()?.iter().filter_map(entry).collect()))
}
