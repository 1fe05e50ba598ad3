//! Names and codes that can be part of a record.

pub use jose::code::is_code;
pub(crate) use jose::code::is_code_byte;

use crate::limits::MAX_NAME;

/// Returns `true` if a text can be a name in a record: 1 to [`MAX_NAME`] characters, no control characters.
pub fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().nth(MAX_NAME).is_none() && !text.chars().any(char::is_control)
}
