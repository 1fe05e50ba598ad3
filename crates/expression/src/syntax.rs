//! The engine's syntax tree as JSON: its nodes, and their places in the text.

use std::ops::Range;

use serde_json::Value;

use crate::error::CompileError;
use crate::source;

/// Returns a node's kind and parts. Each node is an object with one member, named after its kind.
pub(crate) fn node(value: &Value) -> Result<(&str, &Value), CompileError> {
    let only =
        value.as_object().filter(|members| members.len() == 1).and_then(|members| members.iter().next());
    only.map(|(kind, parts)| (kind.as_str(), parts))
        .ok_or_else(|| CompileError::at_start("the condition cannot be read"))
}

pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Returns a name, dotted or not, as written.
pub(crate) fn name(expression: &Value) -> Option<String> {
    let (kind, parts) = node(expression).ok()?;
    match kind {
        "Var" => Some(parts["value"].as_str()?.to_owned()),
        "RefDot" => Some(format!("{}.{}", name(&parts["refr"])?, parts["field"][1].as_str()?)),
        _ => None,
    }
}

/// Returns the byte range of a part in the module.
pub(crate) fn range(span: &Value) -> Option<Range<usize>> {
    let at = |end: &str| span[end].as_u64().and_then(|at| usize::try_from(at).ok());
    Some(at("start")?..at("end")?)
}

/// Returns the source text of a part.
pub(crate) fn written<'t>(text: &'t str, span: &Value) -> &'t str {
    let start = source::range(text).start;
    let range =
        range(span).and_then(|range| Some(range.start.checked_sub(start)?..range.end.checked_sub(start)?));
    range.and_then(|range| text.get(range)).unwrap_or_default()
}

/// Creates a [`CompileError`] at a part.
pub(crate) fn refused(text: &str, span: &Value, why: impl Into<String>) -> CompileError {
    let at = |name: &str| span[name].as_u64().and_then(|at| usize::try_from(at).ok()).unwrap_or(0);
    source::place(text, at("line"), at("col"), why)
}
