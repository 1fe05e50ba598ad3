//! Hooks in JSON files (`settings.json` of Claude Code, `hooks.json` of Cursor): edits of `hooks.EVENT` that leave
//! everything else as it was written.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The member with the lists of hooks.
const HOOKS: &str = "hooks";
/// Spaces of one level of nesting in what is added.
const INDENT: usize = 2;

/// Adds an element to the list of an event, in front of the others.
///
/// # Errors
/// What is wrong with the file, in words.
pub fn add(text: &str, event: &str, element: &Value) -> Result<String, String> {
    check(text)?;
    let Some(hooks) = members(text, whole(text))?.remove(HOOKS) else {
        return Ok(insert(text, whole(text), 1, Some(HOOKS), &json!({ event: [element] })));
    };
    match members(text, hooks.clone())?.remove(event) {
        Some(list) => {
            elements(text, list.clone())?;
            Ok(insert(text, list, 3, None, element))
        }
        None => Ok(insert(text, hooks, 2, Some(event), &json!([element]))),
    }
}

/// Removes the elements of the event's list that `is_ours` selects, and the list and `hooks` if nothing else is in them.
///
/// # Errors
/// What is wrong with the file, in words.
pub fn remove(text: &str, event: &str, is_ours: impl Fn(&Value) -> bool) -> Result<String, String> {
    check(text)?;
    let mut text = text.to_owned();
    while let Some((container, item)) = next_removal(&text, event, &is_ours)? {
        text = cut(&text, container, item);
    }
    Ok(text)
}

/// A part of a text to remove: the range of the array or object that it is in, and its own.
type Removal = (Range<usize>, Range<usize>);

/// Returns the next thing to remove.
fn next_removal(
    text: &str,
    event: &str,
    is_ours: &impl Fn(&Value) -> bool,
) -> Result<Option<Removal>, String> {
    let top = members(text, whole(text))?;
    let Some(hooks) = top.get(HOOKS).cloned() else { return Ok(None) };
    let lists = members(text, hooks.clone())?;
    let Some(list) = lists.get(event).cloned() else { return Ok(None) };
    let items = elements(text, list.clone())?;
    let ours: Vec<_> = items.iter().filter(|(_, value)| is_ours(value)).collect();
    let Some((first, _)) = ours.first() else { return Ok(None) };
    if ours.len() < items.len() {
        return Ok(Some((list, first.clone())));
    }
    match lists.len() {
        1 => Ok(Some((whole(text), with_name(text, HOOKS, hooks)?))),
        _ => Ok(Some((hooks, with_name(text, event, list)?))),
    }
}

/// Returns the elements of the event's list.
///
/// # Errors
/// What is wrong with the file, in words.
pub fn list(text: &str, event: &str) -> Result<Vec<Value>, String> {
    check(text)?;
    let Some(hooks) = members(text, whole(text))?.remove(HOOKS) else { return Ok(Vec::new()) };
    let Some(list) = members(text, hooks)?.remove(event) else { return Ok(Vec::new()) };
    Ok(elements(text, list)?.into_iter().map(|(_, value)| value).collect())
}

fn check(text: &str) -> Result<(), String> {
    let limits = jose::json::Limits { bytes: text.len(), depth: jose::json::MAX_DEPTH };
    jose::json::check(text.as_bytes(), limits)
        .map(drop)
        .map_err(|error| format!("it is not strict JSON: {error}"))
}

/// Returns the range of the document without the white space around it.
fn whole(text: &str) -> Range<usize> {
    let start = text.len() - text.trim_start().len();
    start..text.trim_end().len().max(start)
}

/// Returns the ranges of an object's values by name.
fn members(text: &str, object: Range<usize>) -> Result<BTreeMap<String, Range<usize>>, String> {
    let part = text.get(object).unwrap_or_default();
    let members: BTreeMap<String, &RawValue> =
        serde_json::from_str(part).map_err(|error| format!("an object is expected: {error}"))?;
    Ok(members.into_iter().map(|(name, value)| (name, place(text, value))).collect())
}

/// Returns the ranges and values of an array's elements.
fn elements(text: &str, array: Range<usize>) -> Result<Vec<(Range<usize>, Value)>, String> {
    let part = text.get(array).unwrap_or_default();
    let elements: Vec<&RawValue> =
        serde_json::from_str(part).map_err(|error| format!("a list of hooks is expected: {error}"))?;
    let value = |raw: &RawValue| serde_json::from_str(raw.get()).map_err(|error| error.to_string());
    elements.into_iter().map(|raw| Ok((place(text, raw), value(raw)?))).collect()
}

/// Returns the position of a value that was parsed from this text without a copy.
fn place(text: &str, value: &RawValue) -> Range<usize> {
    let start = value.get().as_ptr().addr().wrapping_sub(text.as_ptr().addr());
    start..start.saturating_add(value.get().len())
}

/// Returns the range of a member with its name.
fn with_name(text: &str, name: &str, value: Range<usize>) -> Result<Range<usize>, String> {
    let before = text.get(..value.start).unwrap_or_default();
    let end = before.trim_end().strip_suffix(':').map(str::trim_end);
    let start = end.and_then(|end| end.strip_suffix(&format!("\"{name}\""))).map(str::len);
    start.map(|start| start..value.end).ok_or_else(|| format!("the name {name} is written with escapes"))
}

/// Inserts a value, as a member if it has a name, as the first one of a container at this depth.
fn insert(text: &str, container: Range<usize>, depth: usize, name: Option<&str>, value: &Value) -> String {
    let (open, close) = (container.start + 1, container.end.saturating_sub(1));
    let indent = " ".repeat(INDENT * depth);
    let value = format!("{value:#}").replace('\n', &format!("\n{indent}"));
    let item = name.map_or(value.clone(), |name| format!("\"{name}\": {value}"));
    let mut edited = text.to_owned();
    match text.get(open..close).is_some_and(|inside| inside.trim().is_empty()) {
        true => {
            let outer = " ".repeat(INDENT * (depth - 1));
            edited.replace_range(open..close, &format!("\n{indent}{item}\n{outer}"));
        }
        false => edited.insert_str(open, &format!("\n{indent}{item},")),
    }
    edited
}

/// Removes an item from a container, with the comma that separates it.
fn cut(text: &str, container: Range<usize>, item: Range<usize>) -> String {
    let before = text.get(..item.start).unwrap_or_default().trim_end();
    let after = text.get(item.end..).unwrap_or_default().trim_start();
    let gone = match (after.strip_prefix(','), before.strip_suffix(',')) {
        (Some(rest), _) => before.len()..text.len() - rest.len(),
        (None, Some(rest)) => rest.len()..item.end,
        (None, None) => container.start + 1..container.end.saturating_sub(1),
    };
    let mut edited = text.to_owned();
    edited.replace_range(gone, "");
    edited
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ours(value: &Value) -> bool {
        value["command"] == "ours"
    }

    #[test]
    fn an_undo_restores_every_byte_of_a_file_that_had_something_else() {
        for text in [
            "{\n  \"model\": \"m\"\n}\n",
            "{\"hooks\":{\"stop\":[{\"command\":\"theirs\"}]},\"x\":1}",
            "{\n  \"hooks\": {\n    \"end\": [\n      { \"command\": \"theirs\" }\n    ]\n  }\n}",
            "{ }",
        ] {
            let added = add(text, "end", &json!({ "command": "ours" })).unwrap();
            let parsed: Value = serde_json::from_str(&added).unwrap();
            assert_eq!(parsed["hooks"]["end"][0]["command"], "ours", "{added}");
            assert_eq!(list(&added, "end").unwrap()[0]["command"], "ours");
            let removed = remove(&added, "end", ours).unwrap();
            let expected = if text == "{ }" { "{}" } else { text };
            assert_eq!(removed, expected, "{added}");
        }
    }

    #[test]
    fn only_our_hooks_are_removed_wherever_they_are_in_the_list() {
        let text =
            r#"{"hooks":{"end":[{"command":"a"},{"command":"ours"},{"command":"b"},{"command":"ours"}]}}"#;
        let removed = remove(text, "end", ours).unwrap();
        assert_eq!(removed, r#"{"hooks":{"end":[{"command":"a"},{"command":"b"}]}}"#);
        assert_eq!(remove(&removed, "end", ours).unwrap(), removed);
    }

    #[test]
    fn a_file_of_another_shape_is_refused() {
        for text in ["", "[]", "// c\n{}", r#"{"hooks":[]}"#, r#"{"hooks":{"end":{}}}"#, r#"{"a":1,"a":2}"#] {
            assert!(add(text, "end", &json!({})).is_err(), "{text}");
        }
    }
}
