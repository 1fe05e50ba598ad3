//! One object of a checked text: where its members are, and the text with some of them changed.

use std::collections::HashSet;
use std::ops::Range;

use super::scan;

/// What may stand between the tokens of JSON.
pub const BLANKS: &[char] = &[' ', '\t', '\n', '\r'];

/// Where the members of an object are.
#[derive(Clone, Debug, Default)]
pub struct Object {
    span: Range<usize>,
    members: Vec<Member>,
}

#[derive(Clone, Debug)]
struct Member {
    name: String,
    /// From behind the brace or comma before it to the comma or brace after it.
    segment: Range<usize>,
    value: Range<usize>,
}

impl Object {
    /// The object at this place of a checked text; none if something else is there.
    pub fn read(text: &str, span: Range<usize>) -> Option<Self> {
        let bytes = text.as_bytes();
        if bytes.get(span.start) != Some(&b'{') {
            return None;
        }
        let mut members = Vec::new();
        let mut at = span.start + 1;
        loop {
            let segment = at;
            let name = scan::blanks(bytes, at);
            if bytes.get(name) != Some(&b'"') {
                break;
            }
            let name_end = scan::skip(bytes, name);
            let start = scan::blanks(bytes, scan::blanks(bytes, name_end) + 1);
            let end = scan::skip(bytes, start);
            at = scan::blanks(bytes, end);
            members.push(Member {
                name: String::from_utf8_lossy(&scan::unescaped(&text[name + 1..name_end - 1])).into_owned(),
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

    /// Where the value of a member is.
    pub fn get(&self, name: &str) -> Option<&Range<usize>> {
        self.members.iter().find(|member| member.name == name).map(|member| &member.value)
    }

    /// The members' names, unescaped.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.members.iter().map(|member| member.name.as_str())
    }

    /// A name that occurs twice.
    pub fn repeated(&self) -> Option<&str> {
        let mut names = HashSet::with_capacity(self.members.len());
        self.names().find(|name| !names.insert(*name))
    }

    /// How many members there are.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// All of the text, with members of this object replaced or added (`Some`) or taken out (`None`). What stays, stays
    /// byte for byte, and in its order; what is added comes last.
    pub fn rewritten_in(&self, text: &str, changes: &[(&str, Option<&str>)]) -> String {
        let object = self.rewritten(text, changes);
        [&text[..self.span.start], &object, &text[self.span.end..]].concat()
    }

    /// The text of this object alone, changed.
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

/// An object's text without these members of the object at this path; of objects on the way that are named twice, all are
/// meant. None if nothing of it is there.
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

/// An object's text with the value at this path put in; objects on the way are made if they are not there. None if
/// something else is there.
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
