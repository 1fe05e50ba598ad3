//! The tree of CBOR items that the reader returns and the writer encodes.

use std::borrow::Cow;
use std::ops::Range;

use super::ItemWriter;

/// A value and its byte span in the input. Equality compares values only.
#[derive(Clone, Debug)]
pub struct Item<'a> {
    /// Offset of the first byte; 0 if the item was not parsed.
    pub offset: usize,
    /// Offset after the last byte; 0 if the item was not parsed.
    pub end: usize,
    /// Parsed value.
    pub value: Value<'a>,
}

impl PartialEq for Item<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl Item<'_> {
    /// Returns the byte range of the item in the input.
    pub fn span(&self) -> Range<usize> {
        self.offset..self.end
    }

    /// Copies borrowed strings, so that the item no longer depends on the input.
    pub fn into_owned(self) -> Item<'static> {
        Item { offset: self.offset, end: self.end, value: self.value.into_owned() }
    }
}

impl<'a> From<Value<'a>> for Item<'a> {
    fn from(value: Value<'a>) -> Self {
        Self { offset: 0, end: 0, value }
    }
}

/// A CBOR data item. Strings borrow from the input, except indefinite-length strings, which are copied.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// An unsigned integer.
    Unsigned(u64),
    /// A negative integer, stored as n for the value -1 - n.
    Negative(u64),
    /// A byte string.
    Bytes(Cow<'a, [u8]>),
    /// A text string.
    Text(Cow<'a, str>),
    /// An array.
    Array(Vec<Item<'a>>),
    /// A map, in the order of the input; no two keys are equal.
    Map(Vec<(Item<'a>, Item<'a>)>),
    /// A tag and its content.
    Tag(u64, Box<Item<'a>>),
    /// `true` or `false`.
    Bool(bool),
    /// The simple value `null`, which COSE calls `nil`.
    Null,
    /// The simple value `undefined`.
    Undefined,
    /// A simple value other than `false`, `true`, `null` and `undefined`.
    Simple(u8),
    /// A float of any width.
    Float(f64),
}

impl<'a> Value<'a> {
    /// Creates an array of values.
    pub fn array(elements: impl IntoIterator<Item = Value<'a>>) -> Self {
        Self::Array(elements.into_iter().map(Item::from).collect())
    }

    /// Creates a map; [`encode`](Self::encode) sorts its keys. Keys should be distinct.
    pub fn map(entries: impl IntoIterator<Item = (Value<'a>, Value<'a>)>) -> Self {
        Self::Map(entries.into_iter().map(|(key, value)| (key.into(), value.into())).collect())
    }

    /// Creates a tagged value.
    pub fn tagged(tag: u64, content: Value<'a>) -> Self {
        Self::Tag(tag, Box::new(content.into()))
    }

    /// Returns the integer, if this is an integer that fits into `i64`.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Self::Unsigned(n) => i64::try_from(*n).ok(),
            Self::Negative(n) => i64::try_from(*n).ok().map(|n| !n),
            _ => None,
        }
    }

    /// Returns the integer, if this is an unsigned integer.
    pub fn as_u64(&self) -> Option<u64> {
        match self {
            Self::Unsigned(n) => Some(*n),
            _ => None,
        }
    }

    /// Returns the bytes, if this is a byte string.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Returns the text, if this is a text string.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the elements, if this is an array.
    pub fn as_array(&self) -> Option<&[Item<'a>]> {
        match self {
            Self::Array(elements) => Some(elements),
            _ => None,
        }
    }

    /// Returns the entries, if this is a map.
    pub fn as_map(&self) -> Option<&[(Item<'a>, Item<'a>)]> {
        match self {
            Self::Map(entries) => Some(entries),
            _ => None,
        }
    }

    /// Returns the value under `key`, if this is a map with that key.
    pub fn get(&self, key: &Value<'_>) -> Option<&Item<'a>> {
        self.as_map()?.iter().find(|(candidate, _)| candidate.value == *key).map(|(_, value)| value)
    }

    /// Returns the core deterministic encoding: shortest heads, definite lengths, map keys in bytewise order of their
    /// encodings (not RFC 7049's length-first order), bignums that fit an integer as that integer.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = ItemWriter::new();
        self.write(&mut writer);
        writer.into_bytes()
    }

    /// Returns the value that ciborium writes in the bytes of [`encode`](Self::encode); `None` if it has no such value.
    pub(crate) fn to_ciborium(&self) -> Option<ciborium::Value> {
        let encoded = self.encode();
        let value: ciborium::Value = ciborium::from_reader(encoded.as_slice()).ok()?;
        let mut written = Vec::with_capacity(encoded.len());
        ciborium::into_writer(&value, &mut written).ok()?;
        (written == encoded).then_some(value)
    }

    /// Copies borrowed strings, so that the value no longer depends on the input.
    pub fn into_owned(self) -> Value<'static> {
        match self {
            Self::Bytes(bytes) => Value::Bytes(Cow::Owned(bytes.into_owned())),
            Self::Text(text) => Value::Text(Cow::Owned(text.into_owned())),
            Self::Array(elements) => Value::Array(elements.into_iter().map(Item::into_owned).collect()),
            Self::Map(entries) => Value::Map(
                entries.into_iter().map(|(key, value)| (key.into_owned(), value.into_owned())).collect(),
            ),
            Self::Tag(tag, content) => Value::Tag(tag, Box::new(content.into_owned())),
            Self::Unsigned(n) => Value::Unsigned(n),
            Self::Negative(n) => Value::Negative(n),
            Self::Bool(value) => Value::Bool(value),
            Self::Null => Value::Null,
            Self::Undefined => Value::Undefined,
            Self::Simple(number) => Value::Simple(number),
            Self::Float(value) => Value::Float(value),
        }
    }

    pub(super) fn write(&self, writer: &mut ItemWriter) {
        match self {
            Self::Unsigned(n) => writer.unsigned(*n),
            Self::Negative(n) => writer.negative(*n),
            Self::Bytes(bytes) => writer.bytes(bytes),
            Self::Text(text) => writer.text(text),
            Self::Array(elements) => {
                writer.array(elements.len());
                elements.iter().for_each(|element| element.value.write(writer));
                writer
            }
            Self::Map(entries) => write_sorted(writer, entries),
            Self::Tag(tag @ (2 | 3), content) => write_bignum(writer, *tag, content),
            Self::Tag(tag, content) => {
                content.value.write(writer.tag(*tag));
                writer
            }
            Self::Bool(value) => writer.bool(*value),
            Self::Null => writer.null(),
            Self::Undefined => writer.simple(23),
            Self::Simple(number) => writer.simple(*number),
            Self::Float(value) => writer.float(*value),
        };
    }
}

fn write_sorted<'w>(writer: &'w mut ItemWriter, entries: &[(Item<'_>, Item<'_>)]) -> &'w mut ItemWriter {
    let mut encoded: Vec<(Vec<u8>, &Item<'_>)> =
        entries.iter().map(|(key, value)| (key.value.encode(), value)).collect();
    encoded.sort_by(|(a, _), (b, _)| a.cmp(b));
    writer.map(encoded.len());
    for (key, value) in encoded {
        value.value.write(writer.raw(&key));
    }
    writer
}

fn write_bignum<'w>(writer: &'w mut ItemWriter, tag: u64, content: &Item<'_>) -> &'w mut ItemWriter {
    let Value::Bytes(bytes) = &content.value else {
        content.value.write(writer.tag(tag));
        return writer;
    };
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    let digits = &bytes[zeros..];
    if digits.len() > 8 {
        return writer.tag(tag).bytes(digits);
    }
    let number = digits.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
    if tag == 2 { writer.unsigned(number) } else { writer.negative(number) }
}

impl From<i64> for Value<'_> {
    fn from(value: i64) -> Self {
        match u64::try_from(value) {
            Ok(value) => Self::Unsigned(value),
            Err(_) => Self::Negative(!value as u64),
        }
    }
}

impl From<u64> for Value<'_> {
    fn from(value: u64) -> Self {
        Self::Unsigned(value)
    }
}

impl From<bool> for Value<'_> {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(value: &'a str) -> Self {
        Self::Text(Cow::Borrowed(value))
    }
}

impl From<String> for Value<'_> {
    fn from(value: String) -> Self {
        Self::Text(Cow::Owned(value))
    }
}

impl<'a> From<&'a [u8]> for Value<'a> {
    fn from(value: &'a [u8]) -> Self {
        Self::Bytes(Cow::Borrowed(value))
    }
}

impl From<Vec<u8>> for Value<'_> {
    fn from(value: Vec<u8>) -> Self {
        Self::Bytes(Cow::Owned(value))
    }
}
