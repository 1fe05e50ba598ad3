//! The parsing of a list of tools.

use admission::tool::Description;
use jose::json::{self, JsonError, Limits};
use serde_json::value::RawValue;

use crate::limits::{MAX_ANSWER_DEPTH, PINNED_TOOLS};

/// Reason why a list of tools is not accepted.
#[derive(Debug, thiserror::Error)]
pub enum UnreadableList {
    /// The list is not strict JSON: two parsers could see two different lists.
    #[error("the server's list of tools cannot be read: {0}")]
    Json(#[from] JsonError),
    /// The list has more than [`PINNED_TOOLS`] tools.
    #[error("the server lists more than {PINNED_TOOLS} tools at once")]
    TooMany,
}

/// Returns the name and the description of each tool in a list. A tool without a name cannot be called, and is left
/// out.
///
/// # Errors
/// [`UnreadableList`] if two parsers could see different lists, or the list is too long.
pub fn read(tools: &str) -> Result<Vec<(String, Description)>, UnreadableList> {
    let limits = Limits { bytes: tools.len(), depth: MAX_ANSWER_DEPTH };
    let texts: Vec<Box<RawValue>> = json::check(tools.as_bytes(), limits)?.read()?;
    if texts.len() > PINNED_TOOLS {
        return Err(UnreadableList::TooMany);
    }
    let described = texts.iter().map(|text| Description::of(text.get()));
    let named = described.filter(|read| read.as_ref().map_or(true, |(name, _)| !name.is_empty()));
    Ok(named.collect::<Result<Vec<_>, _>>()?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_tool_with_a_name_is_read_and_nothing_that_two_readers_see_differently() {
        let list =
            read(r#"[{"name":"a","inputSchema":{}},{"inputSchema":{}},{"name":3},{"name":"b"}]"#).unwrap();
        assert_eq!(list.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        for text in [
            r#"{"name":"a"}"#,
            r#"[{"name":"a","name":"b"}]"#,
            r#"[{"name":"a","x":{"y":1,"y":2}}]"#,
            "[",
            "3",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
        let many = format!("[{}]", vec!["{}"; PINNED_TOOLS + 1].join(","));
        assert!(matches!(read(&many), Err(UnreadableList::TooMany)));
    }
}
