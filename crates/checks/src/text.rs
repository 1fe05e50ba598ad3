//! Texts of untrusted work in a receipt.

/// Cuts a text so that it has at most `most` bytes in JSON, escapes included; a text that was cut ends with `…`.
pub(crate) fn shorten(text: &str, most: usize) -> String {
    let mut bytes = 0;
    let too_long = |character: char| {
        bytes += escaped_length(character);
        bytes > most
    };
    match text.find(too_long) {
        None => text.to_owned(),
        Some(end) => format!("{}…", &text[..end]),
    }
}

/// Returns the length of a character in a JSON string (RFC 8785, section 3.2.2.2).
fn escaped_length(character: char) -> usize {
    match character {
        '"' | '\\' => 2,
        '\0'..'\u{20}' => 6,
        other => other.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use super::shorten;

    #[test]
    fn a_text_is_cut_by_its_length_in_json() {
        assert_eq!(shorten("abcd", 4), "abcd");
        assert_eq!(shorten("abcde", 4), "abcd…");
        assert_eq!(shorten("éé", 3), "é…");
        assert_eq!(shorten("\0\0", 6), "\0…");
    }
}
