//! Formatting of JSON for display on a terminal. Signatures are not verified here.

use std::io::{self, Write};

pub use display::{header, time};
use serde_json::{Map, Value as Json};

use crate::console::safe;

/// Maximum length in characters of a text on a terminal; `--json` prints it whole.
const SHOWN_TEXT: usize = 96;

/// Writes a JSON object as indented lines of name and value.
pub fn lines(out: &mut dyn Write, indent: usize, object: &Map<String, Json>) -> io::Result<()> {
    let width = object.keys().map(String::len).max().unwrap_or(0);
    for (name, value) in object {
        match value {
            Json::Object(inner) => {
                writeln!(out, "{:indent$}{}", "", safe(name))?;
                lines(out, indent + 2, inner)?;
            }
            Json::String(text) => writeln!(out, "{:indent$}{:width$}  {}", "", safe(name), cut(text))?,
            other => writeln!(out, "{:indent$}{:width$}  {}", "", safe(name), cut(&other.to_string()))?,
        }
    }
    Ok(())
}

/// Writes the members of a JSON object as lines that are indented by two spaces.
pub fn members(out: &mut dyn Write, object: &Json) -> io::Result<()> {
    object.as_object().map_or(Ok(()), |members| lines(out, 2, members))
}

/// Returns the elements of the array `name`; none if there is no such array.
pub fn items<'a>(of: &'a Json, name: &str) -> &'a [Json] {
    of.get(name).and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Returns the string `name`, escaped; `-` if there is none.
pub fn text(of: &Json, name: &str) -> String {
    safe(of.get(name).and_then(Json::as_str).unwrap_or("-")).into_owned()
}

/// Returns the number `name`; 0 if there is none.
pub fn number(of: &Json, name: &str) -> u64 {
    of.get(name).and_then(Json::as_u64).unwrap_or_default()
}

fn cut(text: &str) -> String {
    let shown: String = text.chars().take(SHOWN_TEXT).collect();
    let rest = if shown.len() < text.len() { format!("… ({} bytes)", text.len()) } else { String::new() };
    format!("{}{rest}", safe(&shown))
}
