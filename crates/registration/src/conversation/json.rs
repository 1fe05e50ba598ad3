//! JSON parser for conversation records. `jose` has validated the text, so that all parsers agree about it. This parser
//! adds borrowed strings, and integers without loss of precision.

use std::borrow::Cow;

use jose::json::{JsonError, JsonErrorKind, Limits, MAX_DEPTH};

use super::node::{Key, Node, Path, Step};
use super::rule::ConversationRule as Rule;
use crate::limits::{CONVERSATION_ITEMS, MAX_STATEMENT};
use crate::violation::Violation;

/// Parses a record in JSON.
pub(super) fn read(payload: &[u8]) -> Result<Node<'_>, Violation> {
    let limits = Limits { bytes: MAX_STATEMENT as usize, depth: MAX_DEPTH };
    let checked = jose::json::check(payload, limits).map_err(|flaw| refused(&flaw))?;
    JsonReader { text: checked.text(), at: 0, items_left: CONVERSATION_ITEMS, path: Path::default() }.value()
}

/// Maps a JSON error to the rule that it breaks.
fn refused(flaw: &JsonError) -> Violation {
    let rule = match flaw.kind {
        JsonErrorKind::Duplicate(_) => Rule::DuplicateMember,
        JsonErrorKind::LoneSurrogate => Rule::LoneSurrogate,
        JsonErrorKind::NotUtf8 => Rule::Utf8,
        JsonErrorKind::NumberRange => Rule::Number,
        JsonErrorKind::TooDeep(_) => Rule::Nesting,
        _ => Rule::Json,
    };
    rule.in_payload(flaw.pointer.clone(), format!("{} at byte {} of the JSON", flaw.kind, flaw.offset))
}

/// A parser for text that is known to be strict JSON.
struct JsonReader<'a> {
    text: &'a str,
    at: usize,
    items_left: usize,
    path: Path<'a>,
}

impl<'a> JsonReader<'a> {
    fn value(&mut self) -> Result<Node<'a>, Violation> {
        self.items_left = self.items_left.checked_sub(1).ok_or_else(|| {
            Rule::Items.in_payload(self.path.pointer(), format!("more than {CONVERSATION_ITEMS} values"))
        })?;
        match self.peek() {
            Some(b'{') => self.object(),
            Some(b'[') => self.array(),
            Some(b'"') => self.string().map(Node::Text),
            Some(b't') => self.word("true", Node::Bool(true)),
            Some(b'f') => self.word("false", Node::Bool(false)),
            Some(b'n') => self.word("null", Node::Null),
            _ => self.number(),
        }
    }

    fn object(&mut self) -> Result<Node<'a>, Violation> {
        let mut members = Vec::new();
        self.at += 1;
        while !self.closes(b'}')? {
            let name = self.string()?;
            self.expect(b':')?;
            self.path.enter(Step::Member(name.clone()));
            let value = self.value()?;
            self.path.leave();
            members.push((Key::Text(name), value));
        }
        Ok(Node::Map(members))
    }

    fn array(&mut self) -> Result<Node<'a>, Violation> {
        let mut items = Vec::new();
        self.at += 1;
        while !self.closes(b']')? {
            self.path.enter(Step::Item(items.len()));
            items.push(self.value()?);
            self.path.leave();
        }
        Ok(Node::Array(items))
    }

    /// Skips the comma before the next member or element, or the closing byte; returns true for the latter.
    fn closes(&mut self, end: u8) -> Result<bool, Violation> {
        match self.peek() {
            Some(byte) if byte == end => {
                self.at += 1;
                Ok(true)
            }
            Some(b',') => {
                self.at += 1;
                Ok(false)
            }
            Some(_) => Ok(false),
            None => Err(self.disagree()),
        }
    }

    fn string(&mut self) -> Result<Cow<'a, str>, Violation> {
        self.expect(b'"')?;
        let start = self.at;
        let mut escaped = false;
        loop {
            match self.text.as_bytes().get(self.at) {
                Some(b'"') => break,
                Some(b'\\') => {
                    escaped = true;
                    self.at += 2;
                }
                Some(_) => self.at += 1,
                None => return Err(self.disagree()),
            }
        }
        self.at += 1;
        match escaped {
            false => Ok(Cow::Borrowed(&self.text[start..self.at - 1])),
            true => serde_json::from_str(&self.text[start - 1..self.at])
                .map(Cow::Owned)
                .map_err(|_| self.disagree()),
        }
    }

    fn number(&mut self) -> Result<Node<'a>, Violation> {
        let rest = &self.text[self.at..];
        let end = rest.find(|c: char| !matches!(c, '0'..='9' | '-' | '+' | '.' | 'e' | 'E'));
        let written = &rest[..end.unwrap_or(rest.len())];
        self.at += written.len();
        if written == "-0" || written.contains(['.', 'e', 'E']) {
            return written.parse().map(Node::Float).map_err(|_| self.disagree());
        }
        if let Ok(number) = written.parse() {
            return Ok(Node::Unsigned(number));
        }
        match written.parse::<i64>() {
            Ok(number) => Ok(Node::Negative(!number as u64)),
            Err(_) if written.is_empty() => Err(self.disagree()),
            Err(_) => Err(Rule::Integer
                .in_payload(self.path.pointer(), format!("{written} lies outside -2^63 … 2^64 - 1"))),
        }
    }

    fn word(&mut self, word: &str, node: Node<'a>) -> Result<Node<'a>, Violation> {
        self.at += word.len();
        Ok(node)
    }

    fn expect(&mut self, byte: u8) -> Result<(), Violation> {
        match self.peek() {
            Some(found) if found == byte => {
                self.at += 1;
                Ok(())
            }
            _ => Err(self.disagree()),
        }
    }

    /// Returns the next byte that is not blank, without consuming it.
    fn peek(&mut self) -> Option<u8> {
        let rest = self.text.as_bytes().get(self.at..)?;
        self.at += rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).count();
        self.text.as_bytes().get(self.at).copied()
    }

    fn disagree(&self) -> Violation {
        Rule::Json.in_payload(self.path.pointer(), format!("not JSON at byte {}", self.at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to_json(node: &Node<'_>) -> serde_json::Value {
        match node {
            Node::Null => serde_json::Value::Null,
            Node::Bool(value) => (*value).into(),
            Node::Unsigned(number) => (*number).into(),
            Node::Negative(number) => (!i64::try_from(*number).unwrap()).into(),
            Node::Float(number) => (*number).into(),
            Node::Text(text) => text.as_ref().into(),
            Node::Array(items) => items.iter().map(to_json).collect(),
            Node::Map(members) => members
                .iter()
                .map(|(key, value)| (key.as_text().unwrap().to_owned(), to_json(value)))
                .collect(),
            other => panic!("{other:?} is not in JSON"),
        }
    }

    #[test]
    fn what_serde_json_reads_is_read_alike() {
        for text in [
            r#"{}"#,
            r#" {"a" : [ 1 , -2, 3.5e2, -0, 0 ] , "b\u0041\ud834\udd1e\n" : "\"\\", "c":{"d":[],"e":{}} } "#,
            r#"[true,false,null,18446744073709551615,-9223372036854775808,"é"]"#,
            r#"[[[]],[{}],"",{"":""}]"#,
        ] {
            let ours = to_json(&read(text.as_bytes()).unwrap());
            assert_eq!(ours, serde_json::from_str::<serde_json::Value>(text).unwrap(), "{text}");
        }
    }

    #[test]
    fn integers_beyond_64_bits_are_refused_where_they_stand() {
        for number in ["18446744073709551616", "-9223372036854775809", "123456789012345678901234567890"] {
            let refusal = read(format!(r#"{{"a":[0,{number}]}}"#).as_bytes()).unwrap_err();
            assert_eq!(
                (refusal.rule.as_str(), refusal.place.to_string().as_str()),
                ("conversation-integer", "payload/a/1")
            );
        }
    }
}
