//! Codes in records: too short and restricted to repeat a text of somebody else.

/// Maximum length of a code in characters.
pub const MAX_CODE: usize = 64;

/// Returns `true` if a text is a code: 1 to [`MAX_CODE`] letters, digits and `_ . : + -`.
pub fn is_code(text: &str) -> bool {
    (1..=MAX_CODE).contains(&text.len()) && text.bytes().all(is_code_byte)
}

/// Returns `true` for letters, digits and `_ . : + -`.
pub fn is_code_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_.:+-".contains(&byte)
}
