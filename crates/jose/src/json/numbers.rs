//! The numbers in a checked text, with their positions.

use super::CheckedJson;

/// Returns the byte offset of the first number for which `is_sought` is `true`.
pub(super) fn first_number(text: CheckedJson<'_>, is_sought: impl Fn(&str) -> bool) -> Option<usize> {
    let bytes = text.text().as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => at = after_string(bytes, at),
            b'-' | b'0'..=b'9' => {
                let end = at + bytes[at..].iter().take_while(|byte| is_number_byte(**byte)).count();
                if is_sought(&text.text()[at..end]) {
                    return Some(at);
                }
                at = end;
            }
            _ => at += 1,
        }
    }
    None
}

fn after_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    at
}

const fn is_number_byte(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E')
}

#[cfg(test)]
mod tests {
    use crate::json::check_text;

    fn inexact(text: &str) -> Option<usize> {
        check_text(text).unwrap().first_inexact_number()
    }

    #[test]
    fn an_integer_beyond_2_53_is_ambiguous_and_so_are_digits_that_a_double_loses() {
        let ambiguous = |text: &str| check_text(text).unwrap().first_ambiguous_number();
        for text in [
            "9007199254740992",
            "-9007199254740993",
            "18446744073709551616",
            "0.1000000000000000055",
            "9007199254740993.0",
            "1e-400",
            r#"{"a":[{"b":9007199254740993}]}"#,
        ] {
            assert!(ambiguous(text).is_some(), "{text}");
        }
        for text in
            ["9007199254740991", "-9007199254740991", "-0", "-0.0", "0.1", "1e20", r#""9007199254740993""#]
        {
            assert_eq!(ambiguous(text), None, "{text}");
        }
    }

    #[test]
    fn numbers_that_a_double_holds_as_written_pass() {
        for text in [
            "0",
            "-1",
            "0.1",
            "1.50",
            "100",
            "1e2",
            "1E+2",
            "9007199254740992",
            "5e-324",
            "0.30000000000000004",
            "1.7976931348623157e308",
            "0e999999999999999999999",
            "0.0",
            "333333333.3333333",
        ] {
            assert_eq!(inexact(text), None, "{text}");
        }
    }

    #[test]
    fn numbers_that_change_on_the_way_are_found_where_they_stand() {
        for text in [
            "9007199254740993",
            "-9007199254740993",
            "-0",
            "1152921504606846976",
            "-0.0",
            "1e-400",
            "0.1000000000000000055",
            "123456789012345678901",
            "333333333.33333329",
        ] {
            assert_eq!(inexact(text), Some(0), "{text}");
            assert_eq!(inexact(&format!("[1,{{\"9007199254740993\\\"\":{text}}}]")), Some(25), "{text}");
        }
    }

    #[test]
    fn digits_inside_strings_are_no_numbers() {
        assert_eq!(inexact(r#"{"9007199254740993":"9007199254740993 \" -0"}"#), None);
    }
}
