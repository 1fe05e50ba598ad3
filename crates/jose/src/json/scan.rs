//! A scanner that checks a text and stores nothing but the member names of open objects.
//!
//! Recursion is bounded by the depth limit. An error's pointer is built while returning.

use std::{borrow::Cow, collections::HashSet};

use super::escapes::unescaped;
use super::{JsonError, JsonErrorKind as Kind, TextRules, pointer_token};

/// The prefix of `serde_json`'s private member names.
pub const RESERVED: &str = "$serde_json::private::";
/// Length above which numbers are tested as doubles. A shorter number without an exponent is never too large.
const SURELY_FINITE: usize = 300;
/// Length in bytes at which a step of an error's pointer is cut.
const MAX_STEP: usize = 256;
/// Number of member names that are searched linearly; further names go to a hash set.
const FEW: usize = 8;

/// Checks that the text is exactly one JSON value.
pub(super) fn scan(text: &str, depth: usize, rules: TextRules) -> Result<(), JsonError> {
    let mut scanner = SyntaxScanner { text, at: 0, max_depth: depth, rules };
    scanner.value(0)?;
    scanner.blanks();
    match scanner.peek() {
        None => Ok(()),
        Some(_) => Err(scanner.flaw(Kind::Trailing)),
    }
}

struct SyntaxScanner<'a> {
    text: &'a str,
    at: usize,
    max_depth: usize,
    rules: TextRules,
}

impl<'a> SyntaxScanner<'a> {
    fn value(&mut self, depth: usize) -> Result<(), JsonError> {
        self.blanks();
        match self.peek() {
            Some(b'{') => self.object(self.deeper(depth)?),
            Some(b'[') => self.array(self.deeper(depth)?),
            Some(b'"') => self.string().map(drop),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true"),
            Some(b'f') => self.word("false"),
            Some(b'n') => self.word("null"),
            Some(_) => Err(self.flaw(Kind::Expected("a value"))),
            None => Err(self.flaw(Kind::Truncated)),
        }
    }

    fn deeper(&self, depth: usize) -> Result<usize, JsonError> {
        match depth < self.max_depth {
            true => Ok(depth + 1),
            false => Err(self.flaw(Kind::TooDeep(self.max_depth))),
        }
    }

    fn object(&mut self, depth: usize) -> Result<(), JsonError> {
        self.at += 1;
        self.blanks();
        if self.take(b'}') {
            return Ok(());
        }
        let mut names = SeenNames::default();
        loop {
            self.blanks();
            let name = self.name(&mut names)?;
            self.blanks();
            self.expect(b':', "a colon")?;
            self.value(depth).map_err(|e| below(e, &String::from_utf8_lossy(&name)))?;
            self.blanks();
            if self.take(b'}') {
                return Ok(());
            }
            self.expect(b',', "a comma or the end of the object")?;
        }
    }

    fn array(&mut self, depth: usize) -> Result<(), JsonError> {
        self.at += 1;
        self.blanks();
        if self.take(b']') {
            return Ok(());
        }
        for index in 0usize.. {
            self.value(depth).map_err(|e| below(e, &index.to_string()))?;
            self.blanks();
            if self.take(b']') {
                break;
            }
            self.expect(b',', "a comma or the end of the array")?;
        }
        Ok(())
    }

    /// Scans a member name and checks that it is new in the object.
    fn name(&mut self, names: &mut SeenNames<'a>) -> Result<Cow<'a, [u8]>, JsonError> {
        let start = self.at;
        match self.peek() {
            Some(b'"') => {}
            Some(_) => return Err(self.flaw(Kind::Expected("a member name"))),
            None => return Err(self.flaw(Kind::Truncated)),
        }
        let raw = self.string()?;
        let name = unescaped(&raw[1..raw.len() - 1]);
        if self.rules == TextRules::Syntax {
            return Ok(name);
        }
        let in_words = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
        if name.starts_with(RESERVED.as_bytes()) {
            return Err(self.flaw_at(start, Kind::ReservedName(in_words(&name))));
        }
        match names.insert(name.clone()) {
            true => Ok(name),
            false => Err(self.flaw_at(start, Kind::Duplicate(in_words(&name)))),
        }
    }

    /// Scans a string and returns its source text with quotes and escapes.
    fn string(&mut self) -> Result<&'a str, JsonError> {
        let start = self.at;
        self.at += 1;
        loop {
            let plain = self.rest().iter().take_while(|byte| !matches!(byte, b'"' | b'\\' | 0..0x20));
            self.at += plain.count();
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => self.escape()?,
                Some(_) => return Err(self.flaw(Kind::Control)),
                None => return Err(self.flaw(Kind::Truncated)),
            }
        }
        self.at += 1;
        Ok(&self.text[start..self.at])
    }

    fn escape(&mut self) -> Result<(), JsonError> {
        let start = self.at;
        self.at += 1;
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.at += 1;
                Ok(())
            }
            Some(b'u') => match self.utf16_unit(start)? {
                _ if !matches!(self.rules, TextRules::Strict | TextRules::AnyNumbers) => Ok(()),
                0xD800..=0xDBFF => self.low_surrogate(start),
                0xDC00..=0xDFFF => Err(self.flaw_at(start, Kind::LoneSurrogate)),
                _ => Ok(()),
            },
            Some(_) => Err(self.flaw_at(start, Kind::Escape)),
            None => Err(self.flaw(Kind::Truncated)),
        }
    }

    fn low_surrogate(&mut self, start: usize) -> Result<(), JsonError> {
        let lone = self.flaw_at(start, Kind::LoneSurrogate);
        if !self.rest().starts_with(b"\\u") {
            return Err(lone);
        }
        let escape = self.at;
        self.at += 1;
        match self.utf16_unit(escape)? {
            0xDC00..=0xDFFF => Ok(()),
            _ => Err(lone),
        }
    }

    /// Scans the hexadecimal digits of a `\uXXXX` escape, starting at its `u`.
    fn utf16_unit(&mut self, escape: usize) -> Result<u16, JsonError> {
        let digits = self.rest().get(1..5).filter(|d| d.iter().all(u8::is_ascii_hexdigit));
        let unit = digits.and_then(|d| u16::from_str_radix(std::str::from_utf8(d).ok()?, 16).ok());
        self.at += 5;
        unit.ok_or_else(|| self.flaw_at(escape, Kind::Escape))
    }

    fn number(&mut self) -> Result<(), JsonError> {
        let start = self.at;
        self.take(b'-');
        if !self.take(b'0') {
            self.digits()?;
        }
        if self.take(b'.') {
            self.digits()?;
        }
        let exponent = self.take(b'e') || self.take(b'E');
        if exponent {
            let _ = self.take(b'+') || self.take(b'-');
            self.digits()?;
        }
        let text = &self.text[start..self.at];
        if self.rules == TextRules::Strict
            && (exponent || text.len() > SURELY_FINITE)
            && !text.parse().is_ok_and(|double: f64| double.is_finite())
        {
            return Err(self.flaw_at(start, Kind::NumberRange));
        }
        Ok(())
    }

    /// Scans one or more digits.
    fn digits(&mut self) -> Result<(), JsonError> {
        let count = self.rest().iter().take_while(|b| b.is_ascii_digit()).count();
        if count == 0 {
            return Err(self.unexpected("a digit"));
        }
        self.at += count;
        Ok(())
    }

    fn word(&mut self, word: &'static str) -> Result<(), JsonError> {
        if !self.rest().starts_with(word.as_bytes()) {
            return Err(self.flaw(Kind::Expected("a value")));
        }
        self.at += word.len();
        Ok(())
    }

    fn blanks(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn expect(&mut self, byte: u8, what: &'static str) -> Result<(), JsonError> {
        match self.take(byte) {
            true => Ok(()),
            false => Err(self.unexpected(what)),
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn rest(&self) -> &'a [u8] {
        self.text.as_bytes().get(self.at..).unwrap_or_default()
    }

    fn unexpected(&self, what: &'static str) -> JsonError {
        match self.peek() {
            Some(_) => self.flaw(Kind::Expected(what)),
            None => self.flaw(Kind::Truncated),
        }
    }

    fn flaw(&self, kind: Kind) -> JsonError {
        self.flaw_at(self.at, kind)
    }

    fn flaw_at(&self, offset: usize, kind: Kind) -> JsonError {
        super::at_root(offset, kind)
    }
}

/// Member names of an object that were seen so far.
#[derive(Default)]
struct SeenNames<'a> {
    few: Vec<Cow<'a, [u8]>>,
    many: HashSet<Cow<'a, [u8]>>,
}

impl<'a> SeenNames<'a> {
    /// Adds a name. Returns `false` if it was there.
    fn insert(&mut self, name: Cow<'a, [u8]>) -> bool {
        if self.few.contains(&name) {
            return false;
        }
        if self.few.len() < FEW {
            self.few.push(name);
            return true;
        }
        self.many.insert(name)
    }
}

/// Adds a step before the pointer of an error. Long names are cut, since each level copies the pointer.
fn below(error: JsonError, step: &str) -> JsonError {
    let step = &step[..step.floor_char_boundary(MAX_STEP)];
    JsonError { pointer: pointer_token(step) + &error.pointer, ..error }
}
