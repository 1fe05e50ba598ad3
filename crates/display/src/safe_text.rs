//! Escaping of untrusted text for a terminal or a page.
//!
//! Statements contain text from untrusted parties. If it were printed raw, an escape sequence could overwrite a
//! verdict, and a bidi override could reorder it. Characters that are not plainly visible become code points.

use std::borrow::Cow;

/// Escapes every control, bidi and invisible character as `\u{…}`.
pub fn safe(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_plain(c) { out.push(c) } else { out.extend(c.escape_unicode()) }
    }
    Cow::Owned(out)
}

/// Returns whether a character is visible and has no other effect.
pub fn is_plain(c: char) -> bool {
    !c.is_control() && !is_bidi_control(c) && !is_invisible(c)
}

fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{061C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{00AD}' | '\u{034F}' | '\u{115F}' | '\u{1160}' | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200D}'
            | '\u{2028}' | '\u{2029}' | '\u{2060}'..='\u{2064}' | '\u{206A}'..='\u{206F}' | '\u{3164}'
            | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}' | '\u{FFF9}'..='\u{FFFB}' | '\u{E0000}'..='\u{E0FFF}'
    )
}

#[cfg(test)]
mod tests {
    use super::safe;

    #[test]
    fn plain_text_of_any_script_is_printed_as_it_is() {
        for text in ["hello", "żółw", "日本語", "emoji 🦀", "a/b?c=d"] {
            assert_eq!(safe(text), text);
        }
    }

    #[test]
    fn what_could_move_a_cursor_or_turn_a_word_is_shown_as_its_code_point() {
        assert_eq!(safe("\u{1b}[31mred"), "\\u{1b}[31mred");
        assert_eq!(safe("a\nb\tc\rd"), "a\\u{a}b\\u{9}c\\u{d}d");
        assert_eq!(safe("\u{202e}yned"), "\\u{202e}yned");
        assert_eq!(safe("zero\u{200b}width"), "zero\\u{200b}width");
        assert_eq!(safe("c1\u{9b}31m"), "c1\\u{9b}31m");
    }
}
