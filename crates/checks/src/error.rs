//! The error of a request that cannot be run, and the reader of its objects.

use jose::json::JsonError;
use jose::members::Rule;

/// The reason why a request cannot be run, with its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} (at {})", if pointer.is_empty() { "the top level" } else { pointer })]
pub struct RequestError {
    /// JSON pointer (RFC 6901) into the request; empty for the whole request.
    pub pointer: String,
    /// The description of the error. It may contain a shortened and escaped value of the request.
    pub message: String,
}

/// The rule that a request has the form of this crate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form;

impl Rule for Form {
    const MEMBER: Self = Self;
    type Error = RequestError;

    fn broken(self, pointer: String, message: String) -> RequestError {
        RequestError { pointer, message }
    }
}

/// An object in a request.
pub(crate) type Members<'a> = jose::members::Members<'a, Form>;

impl From<JsonError> for RequestError {
    fn from(error: JsonError) -> Self {
        let message = format!("{} at byte {} of the request", error.kind, error.offset);
        Self { pointer: error.pointer, message }
    }
}

/// Refuses a member that is not listed: a request with a misspelt member must not run without it.
pub(crate) fn only(members: &Members<'_>, known: &[&str]) -> Result<(), RequestError> {
    match members.names().find(|name| !known.contains(name)) {
        None => Ok(()),
        Some(other) => {
            Err(members.broken(Form, other, format!("unknown member; known are {}", known.join(", "))))
        }
    }
}

/// Reads a required text of 1 to `most` characters without control characters.
pub(crate) fn short_text(members: &Members<'_>, name: &str, most: usize) -> Result<String, RequestError> {
    let text = members.text(name)?;
    let fits = !text.is_empty() && text.chars().nth(most).is_none() && !text.chars().any(char::is_control);
    match fits {
        true => Ok(text.to_owned()),
        false => {
            let needed =
                format!("a text of 1 to {most} characters without control characters is needed here");
            Err(members.broken(Form, name, needed))
        }
    }
}

/// Reads a list of at most `most` items.
pub(crate) fn list<'a>(
    members: &Members<'a>,
    name: &str,
    most: usize,
) -> Result<&'a [serde_json::Value], RequestError> {
    match members.required(name)?.as_array() {
        Some(items) if items.len() <= most => Ok(items),
        _ => Err(members.broken(Form, name, format!("a list of at most {most} items is needed here"))),
    }
}

/// Reads an integer between two bounds, or returns `default`.
pub(crate) fn bounded(
    members: &Members<'_>,
    name: &str,
    range: std::ops::RangeInclusive<u64>,
    default: u64,
) -> Result<u64, RequestError> {
    let Some(value) = members.get(name) else { return Ok(default) };
    value.as_u64().filter(|value| range.contains(value)).ok_or_else(|| {
        let (least, most) = range.into_inner();
        members.broken(Form, name, format!("an integer from {least} to {most} is needed here"))
    })
}
