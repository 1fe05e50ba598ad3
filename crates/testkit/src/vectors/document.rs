//! Edits of JSON documents and of their bytes.

use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use serde::Deserialize;
use serde_json::Value;

/// One edit of a document, at a JSON Pointer.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DocumentEdit {
    set: Option<String>,
    insert: Option<String>,
    remove: Option<String>,
    /// Pointers to two values that change places.
    swap: Option<[String; 2]>,
    /// Pointer to bytes in base64url whose last bit changes.
    flip: Option<String>,
    /// New value, unless one of the members below makes it.
    to: Option<Value>,
    /// New value as JSON, for what TOML cannot write.
    json: Option<String>,
    /// Pointer to a value of the document that is copied.
    from: Option<String>,
    /// Text that is repeated `times`.
    repeat: Option<String>,
    times: Option<usize>,
    prefix: Option<String>,
    suffix: Option<String>,
    /// Name of the statement whose digest is the new value.
    digest_of: Option<String>,
    /// Count of entry digests: those of the numbers 0 to n - 1 as eight bytes, sorted.
    digests: Option<u64>,
    /// Count of texts: the numbers n - 1 to 0 in decimal digits.
    numbers: Option<u64>,
    /// Count of copies of `to` in an array.
    copies: Option<usize>,
}

impl DocumentEdit {
    /// Applies the edit; `digest` returns the digest of a named statement.
    pub fn apply(&self, document: &mut Value, digest: &dyn Fn(&str) -> String) {
        match (&self.set, &self.insert, &self.remove, &self.swap, &self.flip) {
            (Some(pointer), None, None, None, None) => self.set(document, pointer, digest),
            (None, Some(pointer), None, None, None) => {
                let value = self.value(document, digest);
                let (parent, name) = split(document, pointer);
                let items = parent.as_array_mut().unwrap_or_else(|| panic!("{pointer}: not in an array"));
                let position = if name == "-" { items.len() } else { index(&name) };
                items.insert(position, value);
            }
            (None, None, Some(pointer), None, None) => match split(document, pointer) {
                (Value::Array(items), name) => drop(items.remove(index(&name))),
                (parent, name) => {
                    let removed = parent.as_object_mut().and_then(|object| object.remove(&name));
                    assert!(removed.is_some(), "{pointer}: there is nothing to remove");
                }
            },
            (None, None, None, Some([one, other]), None) => {
                let moved = std::mem::take(at(document, one));
                let moved = std::mem::replace(at(document, other), moved);
                *at(document, one) = moved;
            }
            (None, None, None, None, Some(pointer)) => flip(at(document, pointer)),
            _ => panic!("an edit has one of set, insert, remove, swap and flip"),
        }
    }

    fn set(&self, document: &mut Value, pointer: &str, digest: &dyn Fn(&str) -> String) {
        let value = self.value(document, digest);
        if pointer.is_empty() {
            *document = value;
            return;
        }
        let (parent, name) = split(document, pointer);
        match parent {
            Value::Array(items) => items[index(&name)] = value,
            object => object[name] = value,
        }
    }

    fn value(&self, document: &mut Value, digest: &dyn Fn(&str) -> String) -> Value {
        let (prefix, suffix) =
            (self.prefix.as_deref().unwrap_or_default(), self.suffix.as_deref().unwrap_or_default());
        if let Some(value) = &self.to {
            return self.copies.map_or_else(|| value.clone(), |count| vec![value.clone(); count].into());
        }
        if let Some(json) = &self.json {
            return serde_json::from_str(json).unwrap_or_else(|error| panic!("{json}: {error}"));
        }
        if let Some(pointer) = &self.from {
            return at(document, pointer).clone();
        }
        if let Some(name) = &self.digest_of {
            return format!("{prefix}{}{suffix}", digest(name)).into();
        }
        if let Some(count) = self.digests {
            let digest = |n: u64| merkle::EntryDigest::of(&n.to_be_bytes()).to_string();
            let mut digests: Vec<String> = (0..count).map(digest).collect();
            digests.sort();
            return digests.into();
        }
        if let Some(count) = self.numbers {
            return (0..count).rev().map(|number| number.to_string()).collect();
        }
        let repeat = self.repeat.as_deref().expect("an edit has a value");
        format!("{prefix}{}{suffix}", repeat.repeat(self.times.unwrap_or(1))).into()
    }
}

/// Returns the value at a pointer.
fn at<'a>(document: &'a mut Value, pointer: &str) -> &'a mut Value {
    document.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}: leads nowhere"))
}

/// Changes the last bit of bytes in base64url.
fn flip(value: &mut Value) {
    let bytes = value.as_str().and_then(|text| BASE64URL_NOPAD.decode(text.as_bytes()).ok());
    let mut bytes = bytes.unwrap_or_else(|| panic!("{value}: not bytes in base64url"));
    *bytes.last_mut().expect("there are bytes") ^= 1;
    *value = BASE64URL_NOPAD.encode(&bytes).into();
}

/// Returns the object or array that a pointer leads into, and the name or index there.
fn split<'a>(document: &'a mut Value, pointer: &str) -> (&'a mut Value, String) {
    let (parent, name) = pointer.rsplit_once('/').unwrap_or_else(|| panic!("{pointer}: no JSON Pointer"));
    (at(document, parent), name.replace("~1", "/").replace("~0", "~"))
}

fn index(name: &str) -> usize {
    name.parse().unwrap_or_else(|_| panic!("{name}: no index"))
}

/// One edit of the encoded document; text and hexadecimal digits are two ways to write the same bytes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ByteEdit {
    /// Bytes whose first occurrence gives way to `by`.
    replace: Option<String>,
    replace_hex: Option<String>,
    by: Option<String>,
    by_hex: Option<String>,
    append: Option<String>,
    append_hex: Option<String>,
    /// Number of bytes that are kept.
    keep: Option<usize>,
}

impl ByteEdit {
    /// Returns the bytes after the edit.
    pub fn apply(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        let from = written(self.replace.as_deref(), self.replace_hex.as_deref());
        let to = written(self.by.as_deref(), self.by_hex.as_deref());
        let end = written(self.append.as_deref(), self.append_hex.as_deref());
        match (from, to, end, self.keep) {
            (Some(from), Some(to), None, None) => {
                let start = bytes.windows(from.len()).position(|window| window == from);
                let start = start.unwrap_or_else(|| panic!("{self:?}: there is nothing to replace"));
                bytes.splice(start..start + from.len(), to);
            }
            (None, None, Some(end), None) => bytes.extend(end),
            (None, None, None, Some(keep)) if keep < bytes.len() => bytes.truncate(keep),
            _ => panic!("{self:?}: an edit of bytes has replace and by, append, or keep"),
        }
        bytes
    }
}

fn written(text: Option<&str>, hex: Option<&str>) -> Option<Vec<u8>> {
    text.map(|text| text.as_bytes().to_vec()).or_else(|| hex.map(unhex))
}

/// Bytes that are written out.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LiteralBytes {
    hex: Option<String>,
    text: Option<String>,
    /// How often the text occurs; once unless given.
    times: Option<usize>,
}

impl LiteralBytes {
    /// Returns the bytes.
    pub fn bytes(&self) -> Vec<u8> {
        match (&self.hex, &self.text) {
            (Some(hex), None) => unhex(hex),
            (None, Some(text)) => text.repeat(self.times.unwrap_or(1)).into_bytes(),
            _ => panic!("bytes are given as hex or as text"),
        }
    }
}

/// Returns the bytes that hexadecimal digits stand for.
pub fn unhex(hex: &str) -> Vec<u8> {
    HEXLOWER.decode(hex.as_bytes()).unwrap_or_else(|error| panic!("{hex}: {error}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn edited(edits: &str) -> Value {
        #[derive(Deserialize)]
        struct Edits {
            edit: Vec<DocumentEdit>,
        }
        let Edits { edit } = toml::from_str(edits).expect("edits");
        let mut document = json!({ "a": [1, 2], "b": { "c/d": "x" } });
        edit.iter().for_each(|edit| edit.apply(&mut document, &|name| format!("digest of {name}")));
        document
    }

    #[test]
    fn edits_change_members_and_elements() {
        let edits = r#"edit = [
            { set = "/a/0", to = 0 },
            { insert = "/a/-", json = "null" },
            { remove = "/b/c~1d" },
            { set = "/b/e", repeat = "ab", times = 2, prefix = "<", suffix = ">" },
            { set = "/f", digest_of = "note", prefix = "sha256:" },
        ]"#;
        let document = json!({ "a": [0, 2, null], "b": { "e": "<abab>" }, "f": "sha256:digest of note" });
        assert_eq!(edited(edits), document);
    }

    #[test]
    fn values_change_places_are_copied_and_lose_a_bit() {
        let edits = r#"edit = [
            { swap = ["/a/0", "/b/c~1d"] },
            { insert = "/a/-", from = "/a/1" },
            { set = "/b/e", to = "AAE" },
            { flip = "/b/e" },
        ]"#;
        assert_eq!(edited(edits), json!({ "a": ["x", 2, 2], "b": { "c/d": 1, "e": "AAA" } }));
    }

    #[test]
    fn long_arrays_are_numbers_or_copies() {
        let edits = r#"edit = [
            { set = "/a", numbers = 3 },
            { set = "/b", to = "x", copies = 2 },
        ]"#;
        assert_eq!(edited(edits), json!({ "a": ["2", "1", "0"], "b": ["x", "x"] }));
    }

    #[test]
    #[should_panic(expected = "there is nothing to remove")]
    fn an_edit_that_changes_nothing_is_a_mistake() {
        edited(r#"edit = [{ remove = "/b/x" }]"#);
    }

    #[test]
    fn bytes_are_edited_as_text_or_in_hexadecimal() {
        let edit = |text: &str| toml::from_str::<ByteEdit>(text).expect("an edit");
        let replaced = edit("replace = 'b'\nby_hex = '00ff'").apply(b"abb".to_vec());
        assert_eq!(replaced, b"a\x00\xffb");
        assert_eq!(edit("append = 'c'").apply(replaced.clone()), b"a\x00\xffbc");
        assert_eq!(edit("keep = 1").apply(replaced), b"a");
    }
}
