//! Headers that repeat the body in the modern era, for machines that route by headers (section 1.1). One that disagrees
//! would make such a machine and us see two different calls.
//!
//! A mirror that is missing is the upstream's to complain about, but for a tool call (V-7).

use admission::principal::Era;
use http::HeaderMap;

use super::refusal::Refusal;
use crate::frame::{Frame, Kind, Mirrored, mirrored_name};
use crate::upstream::request::speaks_modern;

/// Where a modern message says its revision.
pub const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// Which era a message is of.
pub fn era(frame: &Frame, headers: &HeaderMap) -> Era {
    let opens_session = frame.kind() == Kind::Request && frame.method() == Some("initialize");
    match frame.meta(META_VERSION).is_some() || (!opens_session && speaks_modern(headers)) {
        true => Era::Modern,
        false => Era::Legacy,
    }
}

/// Checks the mirrors of a modern message.
pub fn check(frame: &Frame, headers: &HeaderMap) -> Result<(), Refusal> {
    if frame.is_tool_call() && frame.meta(META_VERSION).is_none() {
        return Err(Refusal::WithoutRevision(frame.id().cloned()));
    }
    let method = frame.method();
    compare(frame, headers, "MCP-Protocol-Version", frame.meta_string(META_VERSION).as_deref())?;
    compare(frame, headers, "Mcp-Method", method)?;
    let name = match method {
        Some("tools/call" | "prompts/get") => frame.param_string("name"),
        Some("resources/read") => frame.param_string("uri"),
        _ => return Ok(()),
    };
    compare(frame, headers, "Mcp-Name", name.as_deref())
}

fn compare(
    frame: &Frame,
    headers: &HeaderMap,
    name: &'static str,
    body: Option<&str>,
) -> Result<(), Refusal> {
    let agrees = match (mirrored_name(headers, &name.to_ascii_lowercase()), body) {
        (Mirrored::Absent, _) => !frame.is_tool_call(),
        (Mirrored::Says(said), Some(body)) => said == body,
        // The upstream demands the member; what it mirrors cannot be misread.
        (Mirrored::Says(_), None) => !frame.is_tool_call(),
        (Mirrored::Unreadable, _) => false,
    };
    match agrees {
        true => Ok(()),
        false => Err(Refusal::Mismatch(frame.id().cloned(), name)),
    }
}
