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

/// Returns whether Unicode has the property Default_Ignorable_Code_Point for the character, or it is otherwise drawn
/// as nothing: line separators, annotation marks and the empty Braille pattern.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{00AD}' | '\u{034F}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}' | '\u{180B}'..='\u{180F}'
            | '\u{200B}'..='\u{200D}' | '\u{2028}' | '\u{2029}' | '\u{2060}'..='\u{2065}' | '\u{206A}'..='\u{206F}'
            | '\u{2800}' | '\u{3164}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}' | '\u{FFF0}'..='\u{FFFB}'
            | '\u{1BCA0}'..='\u{1BCA3}' | '\u{1D173}'..='\u{1D17A}' | '\u{E0000}'..='\u{E0FFF}'
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

    #[test]
    fn every_character_that_unicode_lets_a_renderer_ignore_is_shown_as_its_code_point() {
        // The property Default_Ignorable_Code_Point of Unicode 16.
        let ignorable = [
            0x00AD..=0x00AD,
            0x034F..=0x034F,
            0x061C..=0x061C,
            0x115F..=0x1160,
            0x17B4..=0x17B5,
            0x180B..=0x180F,
            0x200B..=0x200F,
            0x202A..=0x202E,
            0x2060..=0x206F,
            0x3164..=0x3164,
            0xFE00..=0xFE0F,
            0xFEFF..=0xFEFF,
            0xFFA0..=0xFFA0,
            0xFFF0..=0xFFF8,
            0x1BCA0..=0x1BCA3,
            0x1D173..=0x1D17A,
            0xE0000..=0xE0FFF,
        ];
        for code in ignorable.into_iter().flatten().chain([0x2800]) {
            let character = char::from_u32(code).expect("no surrogate");
            assert_eq!(safe(&character.to_string()), format!("\\u{{{code:x}}}"));
        }
    }
}
