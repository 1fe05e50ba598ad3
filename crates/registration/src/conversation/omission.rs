//! What takes the place of a value that is left out of a record, so that the record stays valid.
//!
//! The answers come from the tables of the CDDL (`shape`). The caller walks over a record and takes a [`RecordPlace`] along;
//! it decides what is left out, and why.

use serde_json::{Map, Value};

use super::shape::{self, Is, Member, Shape};

/// The members of a record that cannot be left out: they say what it is.
pub const NEVER_LEFT_OUT: [&str; 2] = ["version", "id"];

/// The word for a contributor whose type is not stated.
const UNKNOWN_CONTRIBUTOR: &str = "unknown";

/// The place of a value in a record.
#[derive(Clone, Copy, Debug)]
pub struct RecordPlace(At);

#[derive(Clone, Copy, Debug)]
enum At {
    Record,
    /// One of [`NEVER_LEFT_OUT`].
    Fixed,
    Member(&'static Member),
    /// A map in a list; `None` for an entry of an unknown type.
    Item(Option<&'static Shape>),
    /// An item of a list of texts, or of any array beyond the CDDL.
    AnyItem,
    /// A member beyond the CDDL.
    AnyMember,
}

/// What happens to the record if a value is left out.
#[derive(Clone, Debug, PartialEq)]
pub enum Omission {
    /// The value is removed.
    Remove,
    /// This takes its place.
    Replace(Value),
    /// The map that has the value is left out, because it requires a value that nothing can replace.
    Enclosing,
    /// The value stays.
    Never,
}

impl RecordPlace {
    /// The record itself.
    pub const RECORD: RecordPlace = RecordPlace(At::Record);

    /// The place of a member of the map at this place.
    pub fn member(self, name: &str) -> RecordPlace {
        if matches!(self.0, At::Record) && NEVER_LEFT_OUT.contains(&name) {
            return RecordPlace(At::Fixed);
        }
        let member = self.shape().and_then(|shape| shape.member(name));
        RecordPlace(member.map_or(At::AnyMember, |(_, member)| At::Member(member)))
    }

    /// The place of an item of the array at this place. Of entries, `entry_type` is the item's `type`.
    pub fn item(self, entry_type: Option<&str>) -> RecordPlace {
        RecordPlace(match self.0 {
            At::Member(Member { is: Is::Maps(shape), .. }) => At::Item(Some(shape)),
            At::Member(Member { is: Is::Entries, .. }) => At::Item(entry_type.and_then(shape::entry)),
            _ => At::AnyItem,
        })
    }

    /// Returns what happens if the value is left out. `text` takes the place of values that may be any text.
    pub fn omission(self, text: &str) -> Omission {
        match self.0 {
            At::Fixed | At::Record => Omission::Never,
            At::Member(member) if member.required => {
                replacement(member.is, text).map_or(Omission::Enclosing, Omission::Replace)
            }
            At::Member(_) | At::Item(_) | At::AnyMember => Omission::Remove,
            At::AnyItem => Omission::Replace(text.into()),
        }
    }

    /// Returns the name of the member of the same map that needs this one: it may not stay if this one is left out.
    pub fn needed_by(self) -> Option<&'static str> {
        match self.0 {
            At::Member(member) => member.needed_by,
            _ => None,
        }
    }

    /// Returns whether a text at this place may become any other text.
    pub fn is_text(self) -> bool {
        match self.0 {
            At::Fixed => false,
            At::Member(member) => !matches!(
                member.is,
                Is::EntryType(_) | Is::Contributor(_) | Is::Timestamp | Is::Unsigned | Is::Number | Is::Bool
            ),
            At::Record | At::Item(_) | At::AnyItem | At::AnyMember => true,
        }
    }

    /// The map of the CDDL at this place.
    fn shape(self) -> Option<&'static Shape> {
        match self.0 {
            At::Record => Some(&shape::RECORD),
            At::Member(Member { is: Is::Map(shape), .. }) => Some(shape),
            At::Item(shape) => shape,
            At::Fixed | At::Member(_) | At::AnyItem | At::AnyMember => None,
        }
    }
}

/// Returns a value of this type that says nothing; `None` if there is none.
fn replacement(is: Is, text: &str) -> Option<Value> {
    match is {
        Is::Any | Is::Text | Is::Url | Is::EntryId | Is::TraceFormat | Is::SessionId => Some(text.into()),
        Is::Contributor(_) => Some(UNKNOWN_CONTRIBUTOR.into()),
        Is::Texts | Is::Maps(_) | Is::Entries => Some(Value::Array(Vec::new())),
        Is::OpenMap => Some(Value::Object(Map::new())),
        Is::Map(shape) => least(shape, text),
        Is::Unsigned | Is::Number | Is::Bool | Is::Timestamp | Is::EntryType(_) => None,
    }
}

/// Returns a map with the members that it requires, each of which says nothing.
fn least(shape: &Shape, text: &str) -> Option<Value> {
    let required = shape.members.iter().filter(|member| member.required);
    let members = required.map(|member| Some((member.name.to_owned(), replacement(member.is, text)?)));
    members.collect::<Option<Map<String, Value>>>().map(Value::Object)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The omission of the value at a path: `*` is an item of an array, and an entry of this type.
    fn omission(entry_type: &str, path: &str) -> Omission {
        let place = path.split('/').skip(1).fold(RecordPlace::RECORD, |place, step| match step {
            "*" => place.item(Some(entry_type)),
            name => place.member(name),
        });
        place.omission("-")
    }

    #[test]
    fn the_tables_tell_what_takes_the_place_of_a_value() {
        let replaced = |value: Value| Omission::Replace(value);
        let session = json!({
            "session-id": "-", "agent-meta": { "model-id": "-", "model-provider": "-" }, "entries": [],
        });
        for (entry_type, path, expected) in [
            ("", "/version", Omission::Never),
            ("", "/id", Omission::Never),
            ("", "/session", replaced(session)),
            ("", "/vcs", Omission::Remove),
            ("", "/vcs/type", replaced(json!("-"))),
            ("", "/recording-agent/version", Omission::Remove),
            ("", "/recording-agent/id", Omission::Remove),
            ("", "/session/agent-meta/models/*", replaced(json!("-"))),
            ("user", "/session/entries/*", Omission::Remove),
            ("user", "/session/entries/*/type", Omission::Enclosing),
            ("user", "/session/entries/*/content", Omission::Remove),
            ("reasoning", "/session/entries/*/content", replaced(json!("-"))),
            ("reasoning", "/session/entries/*/children/*/content", replaced(json!("-"))),
            ("reasoning", "/session/entries/*/content/*/type", Omission::Remove),
            ("", "/file-attribution", Omission::Remove),
            ("", "/file-attribution/files", replaced(json!([]))),
            ("", "/file-attribution/files/*/conversations/*/ranges/*/start-line", Omission::Enclosing),
            ("", "/file-attribution/files/*/conversations/*/contributor/type", replaced(json!("unknown"))),
        ] {
            assert_eq!(omission(entry_type, path), expected, "{entry_type} {path}");
        }
    }
}
