//! Names and codes that can be part of a record.

use crate::limits::{MAX_CODE, MAX_NAME};

/// Returns `true` if a text can be a name in a record: 1 to [`MAX_NAME`] characters, no control characters.
pub fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().nth(MAX_NAME).is_none() && !text.chars().any(char::is_control)
}

/// Returns `true` if a text is a code, which is too short and restricted to repeat a caller's text.
pub fn is_code(text: &str) -> bool {
    (1..=MAX_CODE).contains(&text.len()) && text.bytes().all(is_code_byte)
}

/// Returns `true` for letters, digits and `_ . : + -`.
pub(crate) fn is_code_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_.:+-".contains(&byte)
}
