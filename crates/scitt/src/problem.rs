//! Concise problem details (RFC 9290): error responses of a service, written and read.
//!
//! Written are title (-1), detail (-2), instance (-3), and custom entries under URI keys. The response code (-4) is a
//! CoAP code and no HTTP status, and is therefore never written. Any CBOR map that a peer sends is read; entries that
//! are malformed or unknown are ignored, as the RFC requires.
//!
//! Not here: the titles of the problems, and the HTTP status.

use crate::cbor::{self, Item, Value};
use crate::header::Label;
use crate::limits;

/// URI key of this project's own entries: `code`, `offset` and `rule`.
pub const TABELLION: &str = "urn:tabellion:problem";

const TITLE: i64 = -1;
const DETAIL: i64 = -2;
const INSTANCE: i64 = -3;
const RESPONSE_CODE: i64 = -4;

/// Tag 38: text with a language and a direction (RFC 9290, appendix A).
const LANGUAGE_TAGGED: u64 = 38;

const PROBLEM_LIMITS: cbor::Limits =
    cbor::Limits { depth: limits::PROBLEM_DEPTH, items: limits::PROBLEM_ITEMS };

/// Problem details: an error for people and for programs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Problem {
    /// Short summary of the kind of problem, with SCRAPI's wording where it fits.
    pub title: Option<String>,
    /// Explanation of this occurrence.
    pub detail: Option<String>,
    /// URI that identifies this occurrence.
    pub instance: Option<String>,
    /// CoAP response code from a peer; never written.
    pub response_code: Option<u8>,
    /// Custom entries: a map per URI.
    pub custom: Vec<(String, Vec<(Label, Value<'static>)>)>,
}

/// Error of a body that is not a problem details.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAProblem {
    /// The body is larger than [`PROBLEM_BYTES`](limits::PROBLEM_BYTES).
    #[error("larger than {} bytes", limits::PROBLEM_BYTES)]
    TooLarge,
    /// The body is not CBOR.
    #[error(transparent)]
    Cbor(#[from] cbor::Error),
    /// The body is CBOR, but no map, or an empty map.
    #[error("not a map of problem details")]
    NotAMap,
}

/// Formats title and detail on one line.
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
    /// Creates a problem with `title` and `detail`, the two entries that SCRAPI requires.
    pub fn new(title: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { title: Some(title.into()), detail: Some(detail.into()), ..Self::default() }
    }

    /// Sets the URI of this occurrence, such as `urn:uuid:…`.
    pub fn instance(mut self, uri: impl Into<String>) -> Self {
        self.instance = Some(uri.into());
        self
    }

    /// Sets a custom entry in the map under a URI; replaces an earlier value.
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

    /// Sets the stable error code of this project, such as `receipt-root-mismatch`, under [`TABELLION`].
    pub fn code(self, code: impl Into<String>) -> Self {
        self.entry(TABELLION, "code", code.into())
    }

    /// Sets the byte offset at which a message is malformed.
    pub fn offset(self, offset: usize) -> Self {
        self.entry(TABELLION, "offset", offset as u64)
    }

    /// Sets the name of the policy rule that refused the request.
    pub fn rule(self, rule: impl Into<String>) -> Self {
        self.entry(TABELLION, "rule", rule.into())
    }

    /// Returns the custom entry under a URI and a key.
    pub fn get(&self, uri: &str, key: &Label) -> Option<&Value<'static>> {
        let (_, entries) = self.custom.iter().find(|(known, _)| known == uri)?;
        entries.iter().find(|(known, _)| known == key).map(|(_, value)| value)
    }

    /// Returns the error code set by [`code`](Self::code), if present.
    pub fn get_code(&self) -> Option<&str> {
        self.get(TABELLION, &"code".into())?.as_text()
    }

    /// Returns the byte offset set by [`offset`](Self::offset), if present.
    pub fn get_offset(&self) -> Option<u64> {
        self.get(TABELLION, &"offset".into())?.as_u64()
    }

    /// Returns the policy rule set by [`rule`](Self::rule), if present.
    pub fn get_rule(&self) -> Option<&str> {
        self.get(TABELLION, &"rule".into())?.as_text()
    }

    /// Encodes the problem as deterministic CBOR. RFC 9290 requires at least one entry, so that an empty problem gets
    /// an empty title.
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

    /// Parses the problem details of any service.
    ///
    /// # Errors
    /// Returns [`NotAProblem`] if the body is not a CBOR map within the limits. Only the HTTP status is known then.
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

/// Returns plain text, or the text in tag 38 `[language, text, ? direction]`; `None` for any other value.
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

/// Reads the entries under a URI. Entries whose key is not a [`Label`] are ignored.
fn custom(uri: &str, item: &Item<'_>) -> Option<Custom> {
    let entry = |(key, value): &(Item<'_>, Item<'_>)| {
        Label::read(key).ok().map(|key| (key, value.value.clone().into_owned()))
    };
    Some((uri.to_owned(), item.value.as_map()?.iter().filter_map(entry).collect()))
}
