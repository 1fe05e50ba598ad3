//! Forms of identifiers that several profiles read.

/// Returns whether a name has the form of an `aer_id`.
pub(crate) fn is_aer_id(name: &str) -> bool {
    is_id(name, "aer:")
}

/// Returns whether a name is `<prefix><16 lower-case hex digits>`.
pub(crate) fn is_id(name: &str, prefix: &str) -> bool {
    name.strip_prefix(prefix).is_some_and(|digits| is_hex(digits, 16))
}

/// Returns whether a text is this number of lower-case hex digits.
pub(crate) fn is_hex(digits: &str, count: usize) -> bool {
    digits.len() == count && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
