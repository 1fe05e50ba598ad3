//! JSON or CBOR: the payload's first byte says (reading C-6).

use super::node::Node;
use super::rule::ConversationRule as Rule;
use super::{cbor, json, nesting};
use crate::violation::Violation;

/// Tag 4149, which the document asks IANA for and uses nowhere (D8), in its shortest form.
const TAG_4149: [u8; 3] = [0xd9, 0x10, 0x35];

/// How a record stands in the payload.
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
    /// What the first byte says.
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

    /// What facts call it.
    pub fn name(self) -> &'static str {
        match self {
            Form::Json => "json",
            Form::Cbor | Form::TaggedCbor => "cbor",
        }
    }
}

/// Reads a payload as a tree: step 5 of the registration policy.
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
