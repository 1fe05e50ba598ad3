//! The tree of values to which both encodings of a record are parsed.
//!
//! Strings borrow from the payload where possible. Not here: parsing (`json`, `cbor`), the meaning of members
//! (`shape`).

use std::borrow::Cow;

use data_encoding::HEXLOWER;
use jose::json::pointer_step;

/// A value in a record.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node<'a> {
    Null,
    Bool(bool),
    Unsigned(u64),
    /// The integer -1 - n.
    Negative(u64),
    Float(f64),
    Text(Cow<'a, str>),
    /// A byte string, which only CBOR has.
    Bytes(Cow<'a, [u8]>),
    Array(Vec<Node<'a>>),
    Map(Vec<(Key<'a>, Node<'a>)>),
    /// A CBOR tag and its content.
    Tag(u64, Box<Node<'a>>),
    /// CBOR's `undefined`, or an unassigned simple value.
    Simple(u8),
}

/// The key of a map's member.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key<'a> {
    Text(Cow<'a, str>),
    /// A CBOR key that is not text, in its deterministic encoding.
    Other(Vec<u8>),
}

impl<'a> Node<'a> {
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Node::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn as_unsigned(&self) -> Option<u64> {
        match self {
            Node::Unsigned(number) => Some(*number),
            _ => None,
        }
    }

    pub fn as_array(&self) -> Option<&[Node<'a>]> {
        match self {
            Node::Array(items) => Some(items),
            _ => None,
        }
    }

    pub fn as_map(&self) -> Option<&[(Key<'a>, Node<'a>)]> {
        match self {
            Node::Map(members) => Some(members),
            _ => None,
        }
    }

    /// Returns the member of a map with this name.
    pub fn get(&self, name: &str) -> Option<&Node<'a>> {
        self.as_map()?.iter().find(|(key, _)| key.as_text() == Some(name)).map(|(_, value)| value)
    }

    /// Returns the member with this name, if it is text.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_text()
    }

    /// Returns the elements of the member with this name; empty if it is not an array.
    pub fn items(&self, name: &str) -> &[Node<'a>] {
        self.get(name).and_then(Node::as_array).unwrap_or_default()
    }
}

impl Key<'_> {
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Key::Text(name) => Some(name),
            Key::Other(_) => None,
        }
    }
}

/// The path of a value in the record, from which a JSON pointer is made if there is an error.
#[derive(Clone, Debug, Default)]
pub(super) struct Path<'a>(Vec<Step<'a>>);

#[derive(Clone, Debug)]
pub(super) enum Step<'a> {
    Member(Cow<'a, str>),
    Item(usize),
}

impl<'a> Step<'a> {
    /// The step to a member. A key that is not text is represented by the hexadecimal digits of its encoding.
    pub fn to(key: &'a Key<'_>) -> Step<'a> {
        match key {
            Key::Text(name) => Step::Member(Cow::Borrowed(name)),
            Key::Other(encoded) => Step::Member(Cow::Owned(HEXLOWER.encode(encoded))),
        }
    }

    pub fn member(name: &'a str) -> Step<'a> {
        Step::Member(Cow::Borrowed(name))
    }
}

impl<'a> Path<'a> {
    /// A path with one step.
    pub fn of(step: Step<'a>) -> Self {
        Path(vec![step])
    }

    /// Appends a step. Callers remove it with [`leave`](Path::leave) after success, and keep it for the error message
    /// otherwise.
    pub fn enter(&mut self, step: Step<'a>) {
        self.0.push(step);
    }

    pub fn leave(&mut self) {
        self.0.pop();
    }

    /// Formats the path as a JSON pointer (RFC 6901).
    pub fn pointer(&self) -> String {
        let step = |step: &Step<'_>| match step {
            Step::Member(name) => format!("/{}", pointer_step(name)),
            Step::Item(index) => format!("/{index}"),
        };
        self.0.iter().map(step).collect()
    }

    /// Formats the JSON pointer to a member of the value.
    pub fn pointer_to(&self, name: &str) -> String {
        format!("{}/{}", self.pointer(), pointer_step(name))
    }
}
