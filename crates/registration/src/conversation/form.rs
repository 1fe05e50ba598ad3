//! Detection of a record's encoding, JSON or CBOR, by the payload's first byte (reading C-6).

use super::node::Node;
use super::rule::ConversationRule as Rule;
use super::{cbor, json, nesting};
use crate::violation::Violation;

/// The CBOR head of tag 4149 in its shortest form. The draft requests the tag from IANA and never uses it (D8).
const TAG_4149: [u8; 3] = [0xd9, 0x10, 0x35];

/// The encoding of a record in the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A JSON object.
    Json,
    /// A CBOR map.
    Cbor,
    /// A CBOR map in tag 4149.
    TaggedCbor,
}

impl Form {
    /// Detects the encoding by the first byte, or by the first after tag 4149.
    pub fn of(payload: &[u8]) -> Option<Form> {
        match payload.first()? {
            b'{' => Some(Form::Json),
            0xa0..=0xbb | 0xbf => Some(Form::Cbor),
            _ => match payload.strip_prefix(&TAG_4149)?.first()? {
                0xa0..=0xbb | 0xbf => Some(Form::TaggedCbor),
                _ => None,
            },
        }
    }

    /// The name of the encoding in facts.
    pub fn name(self) -> &'static str {
        match self {
            Form::Json => "json",
            Form::Cbor | Form::TaggedCbor => "cbor",
        }
    }
}

/// Parses a payload as a tree: step 5 of the registration policy.
pub(super) fn read(payload: &[u8]) -> Result<(Form, Node<'_>), Violation> {
    let form = Form::of(payload).ok_or_else(|| {
        Rule::Form.in_payload("", "a record begins with '{' (JSON) or with a CBOR map, and nothing before it")
    })?;
    let node = match form {
        Form::Json => json::read(payload)?,
        Form::Cbor => cbor::read(payload)?,
        Form::TaggedCbor => cbor::read(&payload[TAG_4149.len()..])?,
    };
    nesting::check(&node)?;
    Ok((form, node))
}
