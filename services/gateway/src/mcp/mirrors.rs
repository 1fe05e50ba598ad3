//! Checks the headers that repeat the body of a modern message, for intermediaries that route by headers (section 1.1).
//! If they disagreed, such an intermediary and the gateway would see two different calls.
//!
//! A missing header is left to the upstream to refuse, except for a tool call (V-7).

use admission::principal::Era;
use http::HeaderMap;

use super::refusal::McpRefusal;
use crate::frame::{Frame, Kind, Mirrored, mirrored_name};
use crate::upstream::request::{mirrored_member, speaks_modern};
use crate::upstream::text::meta;

/// The era of a message, by its `_meta` and its headers.
pub fn era(frame: &Frame, headers: &HeaderMap) -> Era {
    let opens_session = frame.kind() == Kind::Request && frame.method() == Some("initialize");
    match frame.meta(meta::PROTOCOL_VERSION).is_some() || (!opens_session && speaks_modern(headers)) {
        true => Era::Modern,
        false => Era::Legacy,
    }
}

/// Checks the mirrored headers of a modern message.
pub fn check(frame: &Frame, headers: &HeaderMap) -> Result<(), McpRefusal> {
    if frame.is_tool_call() && frame.meta(meta::PROTOCOL_VERSION).is_none() {
        return Err(McpRefusal::WithoutRevision(frame.id().cloned()));
    }
    let method = frame.method();
    compare(frame, headers, "MCP-Protocol-Version", frame.meta_string(meta::PROTOCOL_VERSION).as_deref())?;
    compare(frame, headers, "Mcp-Method", method)?;
    match method.and_then(mirrored_member) {
        Some(member) => compare(frame, headers, "Mcp-Name", frame.param_string(member).as_deref()),
        None => Ok(()),
    }
}

fn compare(
    frame: &Frame,
    headers: &HeaderMap,
    name: &'static str,
    body: Option<&str>,
) -> Result<(), McpRefusal> {
    let agrees = match (mirrored_name(headers, &name.to_ascii_lowercase()), body) {
        (Mirrored::Absent, _) => !frame.is_tool_call(),
        (Mirrored::Says(value), Some(body)) => value == body,
        // The upstream requires the member; its header alone cannot be misread.
        (Mirrored::Says(_), None) => !frame.is_tool_call(),
        (Mirrored::Unreadable, _) => false,
    };
    match agrees {
        true => Ok(()),
        false => Err(McpRefusal::Mismatch(frame.id().cloned(), name)),
    }
}
