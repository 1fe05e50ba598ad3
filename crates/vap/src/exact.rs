//! Equality of two JSON texts (reading V-7): equal structure, texts equal after unescaping, and numbers equal as exact
//! decimals. Doubles would not do: for them, 9007199254740993 equals 9007199254740992.
//!
//! The order of members and the whitespace between tokens are ignored. A text that is not strict JSON, but for
//! the size of its numbers, equals only the identical text.

use std::borrow::Cow;
use std::collections::BTreeMap;

use jose::json::{self, CheckedJson};
use jose::number;

/// Returns `true` if both texts denote the same JSON value.
pub fn equal(a: &str, b: &str) -> bool {
    a == b || tree(a).is_some_and(|a| tree(b).is_some_and(|b| a == b))
}

fn tree(text: &str) -> Option<Tree<'_>> {
    let checked = json::check_any_numbers(text).ok()?;
    Reader::new(checked).value()
}

/// A JSON value whose numbers are kept as text.
enum Tree<'a> {
    /// The literal `null`, `true` or `false`.
    Word(&'a str),
    Number(&'a str),
    Text(Cow<'a, str>),
    Array(Vec<Tree<'a>>),
    Object(BTreeMap<Cow<'a, str>, Tree<'a>>),
}

impl PartialEq for Tree<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Tree::Word(a), Tree::Word(b)) => a == b,
            (Tree::Number(a), Tree::Number(b)) => number::same(a, b),
            (Tree::Text(a), Tree::Text(b)) => a == b,
            (Tree::Array(a), Tree::Array(b)) => a == b,
            (Tree::Object(a), Tree::Object(b)) => a == b,
            _ => false,
        }
    }
}

/// A parser for a text that was checked: the first byte of each value determines its kind, and the rest is well formed.
struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn new(text: CheckedJson<'a>) -> Reader<'a> {
        Reader { text: text.text(), at: 0 }
    }

    fn value(&mut self) -> Option<Tree<'a>> {
        Some(match self.next_token()? {
            b'{' => Tree::Object(self.object()?),
            b'[' => Tree::Array(self.array()?),
            b'"' => Tree::Text(self.string()?),
            b'-' | b'0'..=b'9' => {
                Tree::Number(self.run(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte)))
            }
            _ => Tree::Word(self.run(|byte| byte.is_ascii_alphabetic())),
        })
    }

    fn object(&mut self) -> Option<BTreeMap<Cow<'a, str>, Tree<'a>>> {
        let mut members = BTreeMap::new();
        self.at += 1;
        while self.next_token()? != b'}' {
            let name = self.string()?;
            self.next_token()?;
            self.at += 1; // the colon
            members.insert(name, self.value()?);
            self.comma()?;
        }
        self.at += 1;
        Some(members)
    }

    fn array(&mut self) -> Option<Vec<Tree<'a>>> {
        let mut items = Vec::new();
        self.at += 1;
        while self.next_token()? != b']' {
            items.push(self.value()?);
            self.comma()?;
        }
        self.at += 1;
        Some(items)
    }

    fn comma(&mut self) -> Option<()> {
        if self.next_token()? == b',' {
            self.at += 1;
        }
        Some(())
    }

    fn string(&mut self) -> Option<Cow<'a, str>> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        self.at += 1;
        while *bytes.get(self.at)? != b'"' {
            self.at += if bytes[self.at] == b'\\' { 2 } else { 1 };
        }
        self.at += 1;
        let quoted = &self.text[start..self.at];
        match quoted.contains('\\') {
            true => json::read_text(quoted).ok().map(Cow::Owned),
            false => Some(Cow::Borrowed(&quoted[1..quoted.len() - 1])),
        }
    }

    fn run(&mut self, belongs: impl Fn(u8) -> bool) -> &'a str {
        let rest = &self.text[self.at..];
        let length = rest.bytes().take_while(|byte| belongs(*byte)).count();
        self.at += length;
        &rest[..length]
    }

    /// Skips whitespace and returns the next byte without consuming it.
    fn next_token(&mut self) -> Option<u8> {
        let rest = self.text.as_bytes().get(self.at..)?;
        self.at += rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        self.text.as_bytes().get(self.at).copied()
    }
}
