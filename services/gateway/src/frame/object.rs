//! One JSON object in a checked text: the byte ranges of its members, and edits of its text.

use std::collections::HashSet;
use std::ops::Range;

use jose::json;

use super::walk::{blanks, skip};

/// The whitespace characters of JSON (RFC 8259, section 2).
pub const BLANKS: &[char] = &[' ', '\t', '\n', '\r'];

/// A JSON object: its byte range in the text, and those of its members.
#[derive(Clone, Debug, Default)]
pub struct Object {
    span: Range<usize>,
    members: Vec<ObjectMember>,
}

#[derive(Clone, Debug)]
struct ObjectMember {
    name: String,
    /// The range from behind the opening brace or comma before the member to the comma or closing brace after it.
    segment: Range<usize>,
    value: Range<usize>,
}

impl Object {
    /// Reads the object at this range of a checked text; `None` if the value there is not an
    /// object.
    pub fn read(text: &str, span: Range<usize>) -> Option<Self> {
        let bytes = text.as_bytes();
        if bytes.get(span.start) != Some(&b'{') {
            return None;
        }
        let mut members = Vec::new();
        let mut at = span.start + 1;
        loop {
            let segment = at;
            let name = blanks(bytes, at);
            if bytes.get(name) != Some(&b'"') {
                break;
            }
            let name_end = skip(bytes, name);
            let start = blanks(bytes, blanks(bytes, name_end) + 1);
            let end = skip(bytes, start);
            at = blanks(bytes, end);
            members.push(ObjectMember {
                name: String::from_utf8_lossy(&json::unescaped(&text[name + 1..name_end - 1])).into_owned(),
                segment: segment..at,
                value: start..end,
            });
            if bytes.get(at) != Some(&b',') {
                break;
            }
            at += 1;
        }
        Some(Self { span, members })
    }

    /// The byte range of a member's value.
    pub fn get(&self, name: &str) -> Option<&Range<usize>> {
        self.members.iter().find(|member| member.name == name).map(|member| &member.value)
    }

    /// The member names, with escapes decoded, in their order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.members.iter().map(|member| member.name.as_str())
    }

    /// Returns a member name that occurs more than once.
    pub fn repeated(&self) -> Option<&str> {
        let mut names = HashSet::with_capacity(self.members.len());
        self.names().find(|name| !names.insert(*name))
    }

    /// The whole text, with members of this object replaced or added (`Some`) or removed (`None`). All other bytes and
    /// their order are kept; added members come last.
    pub fn rewritten_in(&self, text: &str, changes: &[(&str, Option<&str>)]) -> String {
        let object = self.rewritten(text, changes);
        [&text[..self.span.start], &object, &text[self.span.end..]].concat()
    }

    /// The text of this object alone, changed as by [`Object::rewritten_in`].
    pub fn rewritten(&self, text: &str, changes: &[(&str, Option<&str>)]) -> String {
        let mut segments: Vec<String> = Vec::with_capacity(self.members.len() + changes.len());
        for member in &self.members {
            match changes.iter().find(|(name, _)| *name == member.name) {
                None => segments.push(text[member.segment.clone()].to_owned()),
                Some((_, None)) => {}
                Some((_, Some(new))) => {
                    let before = &text[member.segment.start..member.value.start];
                    let after = &text[member.value.end..member.segment.end];
                    segments.push([before, new, after].concat());
                }
            }
        }
        for (name, new) in changes {
            if let (Some(new), None) = (new, self.get(name)) {
                segments.push(format!("{}:{new}", serde_json::Value::from(*name)));
            }
        }
        format!("{{{}}}", segments.join(","))
    }
}

/// Removes members from the object at this path, and returns the new text. If a member on the path occurs more than
/// once, every occurrence is changed. `None` if none of the members is present.
pub fn without(text: &str, path: &[&str], names: &[&str]) -> Option<String> {
    let object = Object::read(text, 0..text.len())?;
    let Some((first, rest)) = path.split_first() else {
        let gone: Vec<_> =
            names.iter().filter(|name| object.get(name).is_some()).map(|name| (*name, None)).collect();
        return (!gone.is_empty()).then(|| object.rewritten(text, &gone));
    };
    let mut changed = None;
    for member in object.members.iter().rev().filter(|member| member.name == *first) {
        if let Some(value) = without(&text[member.value.clone()], rest, names) {
            changed.get_or_insert_with(|| text.to_owned()).replace_range(member.value.clone(), &value);
        }
    }
    changed
}

/// Inserts a value at this path of an object's text. Missing objects on the path are created. `None` if a value on the
/// path is not an object.
pub fn put(text: &str, path: &[&str], value: &str) -> Option<String> {
    let (first, rest) = path.split_first()?;
    let object = Object::read(text, 0..text.len())?;
    let inner = object.get(first).map_or("{}", |at| &text[at.clone()]);
    let deeper = match rest {
        [] => None,
        rest => Some(put(inner, rest, value)?),
    };
    Some(object.rewritten(text, &[(first, Some(deeper.as_deref().unwrap_or(value)))]))
}
