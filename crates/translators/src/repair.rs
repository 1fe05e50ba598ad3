//! Repair of native JSON that is not strict only because of characters which no record can have. The programs that wrote it
//! read it in the same way: bytes that are not UTF-8 and lone surrogates, as in a text that was cut off, are U+FFFD.

use std::borrow::Cow;

/// What the account says about a text with replacements.
pub(crate) const REPLACED: &str = "characters that are not Unicode text were replaced by U+FFFD";

/// The escape of U+FFFD.
const REPLACEMENT: &str = "\\ufffd";
/// Length of a `\u` escape.
const ESCAPE: usize = 6;

/// Returns a JSON text in which these characters are replaced; `None` if there are none.
pub(crate) fn repaired(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    match (without_lone_surrogates(&text), text) {
        (Some(repaired), _) => Some(repaired),
        (None, Cow::Owned(text)) => Some(text),
        (None, Cow::Borrowed(_)) => None,
    }
}

/// Returns the text with an escape of U+FFFD in place of each escape of a lone surrogate; `None` if there are none.
fn without_lone_surrogates(text: &str) -> Option<String> {
    let (mut repaired, mut copied, mut at) = (String::new(), 0, 0);
    while let Some(found) = text[at..].find('\\') {
        at += found;
        let length = match (code_unit(text, at), code_unit(text, at + ESCAPE)) {
            // After a backslash that escapes another character, what follows is not an escape.
            (None, _) => 1 + text[at + 1..].chars().next().map_or(0, char::len_utf8),
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => 2 * ESCAPE,
            (Some(0xD800..=0xDFFF), _) => {
                repaired.push_str(&text[copied..at]);
                repaired.push_str(REPLACEMENT);
                copied = at + ESCAPE;
                ESCAPE
            }
            (Some(_), _) => ESCAPE,
        };
        at += length;
    }
    repaired.push_str(&text[copied..]);
    (copied > 0).then_some(repaired)
}

/// Returns the UTF-16 code unit of the `\u` escape at a position.
fn code_unit(text: &str, at: usize) -> Option<u16> {
    let digits = text.get(at..at + ESCAPE)?.strip_prefix("\\u")?;
    let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    u16::from_str_radix(digits, 16).ok().filter(|_| is_hex)
}
