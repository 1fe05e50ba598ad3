//! The payload of a statement as a tree of values.

use std::borrow::Cow;

use jose::json;
use scitt::cbor::{self, Item, Value as Cbor};
use serde::Deserialize;
use serde_json::Value as Json;

use crate::limits::{CBOR_ITEMS, PAYLOAD_DEPTH};
use crate::node::Node;

/// The encoding that a content type has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Encoding {
    /// JSON.
    Json,
    /// JSON in a CBOR byte string.
    JsonInCbor,
    /// JSON if the first byte is `{`, else CBOR.
    JsonOrCbor,
}

/// A parsed payload.
#[derive(Debug)]
pub(crate) enum Document<'p> {
    Json(Cow<'p, Json>),
    Cbor(Item<'p>),
}

impl<'p> Document<'p> {
    /// Parses a payload; `None` if it is not in its encoding.
    pub fn parse(encoding: Encoding, payload: &'p [u8]) -> Option<Document<'p>> {
        match encoding {
            Encoding::Json => parse_json(payload),
            Encoding::JsonInCbor => parse_json(parse_cbor(payload)?.value.as_bytes()?),
            Encoding::JsonOrCbor if payload.first() == Some(&b'{') => parse_json(payload),
            Encoding::JsonOrCbor => parse_cbor(payload).map(Document::Cbor),
        }
    }

    /// Returns the whole value, without a tag around it.
    pub fn root(&self) -> Node<'_> {
        match self {
            Document::Json(value) => Node::Json(value),
            Document::Cbor(Item { value: Cbor::Tag(_, content), .. }) => Node::Cbor(&content.value),
            Document::Cbor(item) => Node::Cbor(&item.value),
        }
    }
}

/// Parses strict JSON, which all readers understand alike.
fn parse_json<'p>(text: &[u8]) -> Option<Document<'p>> {
    let limits = json::Limits { bytes: text.len(), depth: PAYLOAD_DEPTH };
    json::parse_strict(text, limits).ok().map(|value| Document::Json(Cow::Owned(value)))
}

fn parse_cbor(payload: &[u8]) -> Option<Item<'_>> {
    cbor::parse(payload, cbor::Limits { depth: PAYLOAD_DEPTH, items: CBOR_ITEMS }).ok()
}
