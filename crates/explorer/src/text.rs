//! Texts of statements on a page: escaped, and of bounded length.

use std::borrow::Cow;

use display::is_plain;
use maud::{Markup, html};

/// Most bytes of one text or of one hexadecimal dump on a page. The rest can be downloaded.
pub const EXCERPT_BYTES: usize = 64 << 10;

/// Most characters of a text in a row of a list. The page of the row has all of it.
pub const ROW_CHARACTERS: usize = 200;

/// A text in one line: invisible characters, controls and bidi overrides become code points (`\u{202e}`).
pub fn line(text: &str) -> Cow<'_, str> {
    display::safe(text)
}

/// The beginning of a text in one line, for a row of a list.
pub fn brief(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(ROW_CHARACTERS) {
        None => line(text),
        Some((end, _)) => Cow::Owned(format!("{}…", line(&text[..end]))),
    }
}

/// A text in several lines: like [`line()`], but line feeds stay.
pub fn lines(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if c == '\n' || is_plain(c) { escaped.push(c) } else { escaped.extend(c.escape_unicode()) }
    }
    escaped
}

/// The beginning of a long text, and its whole length in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// At most [`EXCERPT_BYTES`] of the text.
    pub beginning: String,
    /// Length of what the text stands for, in bytes.
    pub bytes: usize,
    /// Whether something is left out.
    pub cut: bool,
}

impl Excerpt {
    /// The beginning of a text.
    pub fn text(text: &str) -> Self {
        let end = text.floor_char_boundary(EXCERPT_BYTES);
        Self { beginning: text[..end].to_owned(), bytes: text.len(), cut: end < text.len() }
    }

    /// The beginning of a hexadecimal dump, with 16 bytes in a line.
    pub fn hex(bytes: &[u8]) -> Self {
        let dumped = &bytes[..bytes.len().min(EXCERPT_BYTES / 3)];
        let mut dump = String::with_capacity(dumped.len() * 3);
        for row in dumped.chunks(16) {
            for (at, byte) in row.iter().enumerate() {
                dump.push_str(&format!("{}{byte:02x}", if at == 0 { "" } else { " " }));
            }
            dump.push('\n');
        }
        Self { beginning: dump, bytes: bytes.len(), cut: dumped.len() < bytes.len() }
    }
}

/// A block of text, with a remark if it is cut.
pub fn block(excerpt: &Excerpt) -> Markup {
    html! {
        pre tabindex="0" { (lines(&excerpt.beginning)) }
        @if excerpt.cut {
            p.note { "Only the beginning is shown, of " (excerpt.bytes) " bytes. Download it to read all of it." }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_at_a_character() {
        let long = "ä".repeat(EXCERPT_BYTES);
        let excerpt = Excerpt::text(&long);
        assert_eq!(
            (excerpt.beginning.len(), excerpt.bytes, excerpt.cut),
            (EXCERPT_BYTES, 2 * EXCERPT_BYTES, true)
        );
        assert!(!Excerpt::text("short").cut);
        assert_eq!(Excerpt::hex(&[0, 255]).beginning, "00 ff\n");
    }

    #[test]
    fn a_long_text_in_a_row_is_cut_at_a_character() {
        let whole = "ä".repeat(ROW_CHARACTERS);
        assert_eq!(brief(&whole), whole);
        assert_eq!(brief(&format!("{whole}\u{202e}")), format!("{whole}…"));
    }

    #[test]
    fn what_is_invisible_or_reorders_text_is_shown_as_a_code_point() {
        assert_eq!(lines("a\u{1b}[31m\n\u{202e}b\t"), "a\\u{1b}[31m\n\\u{202e}b\\u{9}");
        let html = block(&Excerpt::text("<script>alert(1)</script>\u{202e}")).into_string();
        assert!(html.contains("&lt;script&gt;") && html.contains("\\u{202e}"), "{html}");
    }
}
