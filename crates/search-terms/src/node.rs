//! A value in a statement, whether it was written in JSON or in CBOR.

use std::borrow::Cow;

use scitt::cbor::{Item, Value as Cbor};
use serde_json::{Map, Number, Value as Json};

use crate::limits::MAX_INTEGER;

/// A value in a header or payload.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Node<'v> {
    Json(&'v Json),
    Cbor(&'v Cbor<'v>),
}

/// A value without parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scalar<'v> {
    Text(&'v str),
    /// A byte string, which only CBOR has.
    Bytes(&'v [u8]),
    Integer(i128),
}

impl<'v> Node<'v> {
    /// Returns the member of an object, or of a map with text keys.
    pub fn member(self, name: &str) -> Option<Node<'v>> {
        match self {
            Node::Json(value) => value.as_object()?.get(name).map(Node::Json),
            Node::Cbor(value) => {
                let mut members = value.as_map()?.iter();
                members
                    .find(|(key, _)| key.value.as_text() == Some(name))
                    .map(|(_, item)| Node::Cbor(&item.value))
            }
        }
    }

    /// Returns the elements of an array; none if the value is not an array.
    pub fn elements(self) -> impl Iterator<Item = Node<'v>> {
        let (json, cbor): (&'v [Json], &'v [Item<'v>]) = match self {
            Node::Json(Json::Array(elements)) => (elements, &[]),
            Node::Cbor(Cbor::Array(elements)) => (&[], elements),
            _ => (&[], &[]),
        };
        json.iter().map(Node::Json).chain(cbor.iter().map(|item| Node::Cbor(&item.value)))
    }

    /// Returns a text, byte string or integer. A number of JSON that is written with a fraction or an exponent, or does
    /// not fit into 64 bits, is not an integer.
    pub fn scalar(self) -> Option<Scalar<'v>> {
        Some(match self {
            Node::Json(Json::String(text)) => Scalar::Text(text),
            Node::Json(Json::Number(number)) => Scalar::Integer(integer(number)?),
            Node::Cbor(Cbor::Text(text)) => Scalar::Text(text),
            Node::Cbor(Cbor::Bytes(bytes)) => Scalar::Bytes(bytes),
            Node::Cbor(Cbor::Unsigned(number)) => Scalar::Integer((*number).into()),
            Node::Cbor(Cbor::Negative(number)) => Scalar::Integer(-1 - i128::from(*number)),
            _ => return None,
        })
    }

    /// Returns the text, if the value is one.
    pub fn text(self) -> Option<&'v str> {
        match self.scalar()? {
            Scalar::Text(text) => Some(text),
            Scalar::Bytes(_) | Scalar::Integer(_) => None,
        }
    }

    /// Returns the value as JSON that every reader understands alike. `None` if it has a byte string, a tag, an undefined
    /// or simple value, a key that is not text, or a number beyond [`MAX_INTEGER`] in either direction.
    pub fn exact_json(self) -> Option<Cow<'v, Json>> {
        match self {
            Node::Json(value) => is_exact(value).then_some(Cow::Borrowed(value)),
            Node::Cbor(value) => converted(value).map(Cow::Owned),
        }
    }
}

fn integer(number: &Number) -> Option<i128> {
    number.as_u64().map(i128::from).or_else(|| number.as_i64().map(i128::from))
}

fn is_exact(value: &Json) -> bool {
    match value {
        Json::Number(number) => number.as_f64().is_some_and(is_exact_number),
        Json::Array(elements) => elements.iter().all(is_exact),
        Json::Object(members) => members.values().all(is_exact),
        Json::Null | Json::Bool(_) | Json::String(_) => true,
    }
}

/// Returns whether a number is within [`MAX_INTEGER`] of zero. A larger integer rounds to 2^53 or beyond it.
fn is_exact_number(number: f64) -> bool {
    number.abs() <= MAX_INTEGER as f64
}

fn converted(value: &Cbor<'_>) -> Option<Json> {
    Some(match value {
        Cbor::Null => Json::Null,
        Cbor::Bool(value) => (*value).into(),
        Cbor::Unsigned(number) if *number <= MAX_INTEGER => (*number).into(),
        Cbor::Negative(number) if *number < MAX_INTEGER => (-1 - i64::try_from(*number).ok()?).into(),
        Cbor::Float(number) if is_exact_number(*number) => Number::from_f64(*number)?.into(),
        Cbor::Text(text) => text.as_ref().into(),
        Cbor::Array(elements) => {
            Json::Array(elements.iter().map(|item| converted(&item.value)).collect::<Option<_>>()?)
        }
        Cbor::Map(members) => {
            let member = |(key, item): &(Item<'_>, Item<'_>)| {
                Some((key.value.as_text()?.to_owned(), converted(&item.value)?))
            };
            Json::Object(members.iter().map(member).collect::<Option<Map<_, _>>>()?)
        }
        _ => return None,
    })
}
