//! JSON output that is safe on a terminal: characters that control it or are invisible are escaped.
//!
//! The JSON value is unchanged. `serde_json` itself escapes only the characters that JSON requires, which excludes C1
//! controls and bidi overrides.

use std::io::{self, Write};

use display::is_plain;
use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::Formatter;

/// Writes a value as one line of JSON.
pub fn write(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    value.serialize(&mut Serializer::with_formatter(out, Escaping)).map_err(io::Error::from)
}

/// Formats a value like `write!`, as a string.
pub fn text(value: &impl Serialize) -> String {
    let mut out = Vec::new();
    match write(&mut out, value) {
        Ok(()) => String::from_utf8_lossy(&out).into_owned(),
        Err(_) => "{}".into(),
    }
}

struct Escaping;

impl Formatter for Escaping {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        let mut plain = 0;
        for (at, c) in fragment.char_indices().filter(|(_, c)| !is_plain(*c)) {
            out.write_all(&fragment.as_bytes()[plain..at])?;
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(out, "\\u{unit:04x}")?;
            }
            plain = at + c.len_utf8();
        }
        out.write_all(&fragment.as_bytes()[plain..])
    }
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn nothing_that_a_terminal_obeys_is_left_and_the_text_is_the_same() {
        let hostile = "a\u{1b}[31m\u{9b}31m\u{202e}deny\u{7f}\n\u{e0041}\"\\ żółw 🦀";
        let json = text(&hostile);
        assert!(json.chars().all(super::is_plain), "{json}");
        assert!(json.contains("żółw 🦀"));
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), hostile);
    }
}
