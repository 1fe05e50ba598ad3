//! A scanner for JSON that all readers understand alike, and helpers that walk over a checked text.
//!
//! Refused: text that is not JSON (RFC 8259), a byte order mark, nesting deeper than allowed, and, with escapes
//! decoded, a duplicate member name in one object and a name that `serde_json` reserves for itself. Accepted: numbers
//! of any size and lone surrogates, which concern only the receiver.

use std::borrow::Cow;
use std::collections::HashSet;

use thiserror::Error;

/// Number of member names that are searched linearly; further names go to a hash set.
const FEW: usize = 8;

/// Treatment of objects with a duplicate or reserved member name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeats {
    /// Such objects are refused.
    Refused,
    /// Such objects are accepted; the receiver has to handle them.
    Ignored,
}

/// A defect of a text, with its position.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("at byte {offset}: {kind}")]
pub struct JsonFlaw {
    /// Offset of the defect, in bytes from the start of the text.
    pub offset: usize,
    /// The kind of the defect.
    pub kind: FlawKind,
}

/// The kind of a [`JsonFlaw`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FlawKind {
    /// The text is not UTF-8.
    #[error("not UTF-8")]
    NotUtf8,
    /// The named token is missing at this position.
    #[error("expected {0}")]
    Expected(&'static str),
    /// Further text follows the JSON value.
    #[error("something follows the value")]
    Trailing,
    /// More arrays and objects are open than this limit allows.
    #[error("nested deeper than {0}")]
    TooDeep(usize),
    /// A duplicate member name in one object.
    #[error("a second member named {0:?}")]
    Duplicate(String),
    /// A member name that `serde_json` reserves for itself, so that our own parser would read another value.
    #[error("the member name {0:?} is reserved")]
    Reserved(String),
}

impl JsonFlaw {
    /// Returns whether the text is not JSON at all: a syntax error, not a limit or a repeated or reserved name.
    pub fn is_syntax(&self) -> bool {
        !matches!(self.kind, FlawKind::TooDeep(_) | FlawKind::Duplicate(_) | FlawKind::Reserved(_))
    }
}

/// Checks a text, with at most `depth` arrays and objects open at once.
pub fn check(bytes: &[u8], depth: usize, repeats: Repeats) -> Result<&str, JsonFlaw> {
    let text = std::str::from_utf8(bytes)
        .map_err(|flaw| JsonFlaw { offset: flaw.valid_up_to(), kind: FlawKind::NotUtf8 })?;
    let mut scanner = Scanner { text, at: 0, max_depth: depth, repeats };
    scanner.value(depth)?;
    scanner.blanks();
    match scanner.peek() {
        None => Ok(text),
        Some(_) => Err(scanner.flaw(FlawKind::Trailing)),
    }
}

/// The offset of the first byte at or after `from` that is not whitespace.
pub fn blanks(bytes: &[u8], from: usize) -> usize {
    let blank = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
    from + bytes.get(from..).unwrap_or_default().iter().take_while(blank).count()
}

/// The end of the JSON value that starts at `from`, in a text that [`check`] accepted.
pub fn skip(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    let mut open = 0usize;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => at = string_end(bytes, at),
            b'{' | b'[' => {
                open += 1;
                at += 1;
            }
            b'}' | b']' => {
                open = open.saturating_sub(1);
                at += 1;
            }
            b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => {
                let inside = |b: &&u8| !matches!(b, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r');
                at += bytes[at..].iter().take_while(inside).count();
            }
            _ => {
                at += 1;
                continue;
            }
        }
        if open == 0 {
            break;
        }
    }
    at
}

fn string_end(bytes: &[u8], from: usize) -> usize {
    let mut at = from + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Decodes the escapes of a JSON string, given without its quotes. A lone surrogate becomes the three bytes of its
/// generalized UTF-8 form, so that equal strings stay equal.
pub fn unescaped(inner: &str) -> Cow<'_, [u8]> {
    if !inner.contains('\\') {
        return Cow::Borrowed(inner.as_bytes());
    }
    let mut out = Vec::with_capacity(inner.len());
    let mut rest = inner.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = match (byte, after.split_first()) {
            (b'\\', Some((b'u', digits))) => unit(&mut out, digits),
            (b'\\', Some((&letter, after))) => {
                out.push(control(letter));
                after
            }
            _ => {
                out.push(byte);
                after
            }
        };
    }
    Cow::Owned(out)
}

fn control(letter: u8) -> u8 {
    match letter {
        b'b' => 8,
        b'f' => 12,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        other => other,
    }
}

/// Decodes a `\uXXXX` escape, of which `digits` begins with the hex digits, into `out`. Returns the input after it.
fn unit<'a>(out: &mut Vec<u8>, digits: &'a [u8]) -> &'a [u8] {
    let (first, rest) = (hex(digits), digits.get(4..).unwrap_or_default());
    let low = rest.strip_prefix(b"\\u").map(hex).filter(|low| (0xDC00..0xE000).contains(low));
    match (first, low) {
        (0xD800..0xDC00, Some(low)) => {
            push(out, 0x10000 + ((first - 0xD800) << 10) + (low - 0xDC00));
            rest.get(6..).unwrap_or_default()
        }
        _ => {
            push(out, first);
            rest
        }
    }
}

fn hex(digits: &[u8]) -> u32 {
    let digits = digits.get(..4).and_then(|digits| std::str::from_utf8(digits).ok());
    digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()).unwrap_or_default()
}

fn push(out: &mut Vec<u8>, code: u32) {
    match char::from_u32(code) {
        Some(character) => out.extend(character.encode_utf8(&mut [0; 4]).as_bytes()),
        None => {
            let low = code.to_be_bytes();
            let [_, _, high, low] = low;
            out.extend([0xE0 | high >> 4, 0x80 | (high & 0x0F) << 2 | low >> 6, 0x80 | low & 0x3F]);
        }
    }
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
    max_depth: usize,
    repeats: Repeats,
}

impl<'a> Scanner<'a> {
    /// Scans a value in which at most `depth` further arrays and objects may be open.
    fn value(&mut self, depth: usize) -> Result<(), JsonFlaw> {
        self.blanks();
        match self.peek() {
            Some(b'{') => self.object(self.deeper(depth)?),
            Some(b'[') => self.array(self.deeper(depth)?),
            Some(b'"') => self.string().map(drop),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true"),
            Some(b'f') => self.word("false"),
            Some(b'n') => self.word("null"),
            _ => Err(self.expected("a value")),
        }
    }

    fn deeper(&self, depth: usize) -> Result<usize, JsonFlaw> {
        depth.checked_sub(1).ok_or_else(|| self.flaw(FlawKind::TooDeep(self.max_depth)))
    }

    fn object(&mut self, depth: usize) -> Result<(), JsonFlaw> {
        self.at += 1;
        self.blanks();
        if self.take(b'}') {
            return Ok(());
        }
        let mut names = SeenNames::default();
        loop {
            self.blanks();
            let start = self.at;
            if self.peek() != Some(b'"') {
                return Err(self.expected("a member name"));
            }
            let raw = self.string()?;
            if self.repeats == Repeats::Refused {
                names
                    .add(unescaped(&raw[1..raw.len() - 1]))
                    .map_err(|kind| JsonFlaw { offset: start, kind })?;
            }
            self.blanks();
            self.expect(b':', "a colon")?;
            self.value(depth)?;
            self.blanks();
            if self.take(b'}') {
                return Ok(());
            }
            self.expect(b',', "a comma or the end of the object")?;
        }
    }

    fn array(&mut self, depth: usize) -> Result<(), JsonFlaw> {
        self.at += 1;
        self.blanks();
        if self.take(b']') {
            return Ok(());
        }
        loop {
            self.value(depth)?;
            self.blanks();
            if self.take(b']') {
                return Ok(());
            }
            self.expect(b',', "a comma or the end of the array")?;
        }
    }

    /// Scans a string and returns its raw text, with quotes and escapes.
    fn string(&mut self) -> Result<&'a str, JsonFlaw> {
        let start = self.at;
        self.at += 1;
        loop {
            let plain = |byte: &u8| !matches!(byte, b'"' | b'\\' | 0..0x20);
            self.at += self.rest(0).iter().position(|byte| !plain(byte)).unwrap_or(self.rest(0).len());
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => self.escape()?,
                _ => return Err(self.expected("the rest of a string")),
            }
        }
        self.at += 1;
        Ok(&self.text[start..self.at])
    }

    fn escape(&mut self) -> Result<(), JsonFlaw> {
        self.at += 1;
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 1,
            Some(b'u') if self.rest(1).get(..4).is_some_and(|d| d.iter().all(u8::is_ascii_hexdigit)) => {
                self.at += 5;
            }
            _ => return Err(self.expected("an escape")),
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), JsonFlaw> {
        self.take(b'-');
        if !self.take(b'0') {
            self.digits()?;
        }
        if self.take(b'.') {
            self.digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            let _ = self.take(b'+') || self.take(b'-');
            self.digits()?;
        }
        Ok(())
    }

    /// Scans one or more digits.
    fn digits(&mut self) -> Result<(), JsonFlaw> {
        let count = self.rest(0).iter().take_while(|byte| byte.is_ascii_digit()).count();
        if count == 0 {
            return Err(self.expected("a digit"));
        }
        self.at += count;
        Ok(())
    }

    fn word(&mut self, word: &'static str) -> Result<(), JsonFlaw> {
        if !self.rest(0).starts_with(word.as_bytes()) {
            return Err(self.expected("a value"));
        }
        self.at += word.len();
        Ok(())
    }

    fn blanks(&mut self) {
        self.at = blanks(self.text.as_bytes(), self.at);
    }

    fn expect(&mut self, byte: u8, what: &'static str) -> Result<(), JsonFlaw> {
        match self.take(byte) {
            true => Ok(()),
            false => Err(self.expected(what)),
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

    fn rest(&self, ahead: usize) -> &'a [u8] {
        self.text.as_bytes().get(self.at + ahead..).unwrap_or_default()
    }

    fn expected(&self, what: &'static str) -> JsonFlaw {
        self.flaw(FlawKind::Expected(what))
    }

    fn flaw(&self, kind: FlawKind) -> JsonFlaw {
        JsonFlaw { offset: self.at, kind }
    }
}

/// Member names of an object that were seen so far.
#[derive(Default)]
struct SeenNames<'a> {
    few: Vec<Cow<'a, [u8]>>,
    many: HashSet<Cow<'a, [u8]>>,
}

impl<'a> SeenNames<'a> {
    fn add(&mut self, name: Cow<'a, [u8]>) -> Result<(), FlawKind> {
        if name.starts_with(jose::json::RESERVED.as_bytes()) {
            return Err(FlawKind::Reserved(String::from_utf8_lossy(&name).into_owned()));
        }
        if self.few.contains(&name) || self.many.contains(&name) {
            return Err(FlawKind::Duplicate(String::from_utf8_lossy(&name).into_owned()));
        }
        if self.few.len() < FEW {
            self.few.push(name);
        } else {
            self.many.insert(name);
        }
        Ok(())
    }
}
