//! Indentation of JSON that leaves its values as they were written.

/// Characters between tokens (RFC 8259, section 2).
const WHITESPACE: [char; 4] = [' ', '\t', '\n', '\r'];
/// Characters after which a number or a literal has ended.
const ENDS_OF_A_LITERAL: [char; 11] = ['{', '}', '[', ']', ',', ':', '"', ' ', '\t', '\n', '\r'];

/// Indents a JSON text by two spaces for each level. Strings and numbers are copied and not parsed, so that a reader
/// sees the signed ones: `1e2` and `12345678901234567890123` stay so. The text must be JSON already.
pub fn indented_json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut depth = 0_usize;
    let mut left = text.trim_start_matches(WHITESPACE);
    while !left.is_empty() {
        let (token, after) = left.split_at(token_length(left));
        left = after.trim_start_matches(WHITESPACE);
        match token {
            "{" | "[" => {
                depth += 1;
                out.push_str(token);
                if !left.starts_with(['}', ']']) {
                    break_line(&mut out, depth);
                }
            }
            "}" | "]" => {
                depth = depth.saturating_sub(1);
                // An empty object or array stays on its line.
                if !out.ends_with(['{', '[']) {
                    break_line(&mut out, depth);
                }
                out.push_str(token);
            }
            "," => {
                out.push_str(token);
                break_line(&mut out, depth);
            }
            ":" => out.push_str(": "),
            value => out.push_str(value),
        }
    }
    out
}

fn break_line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth));
}

/// Returns the length in bytes of the first token; at least one of a text that is not empty.
fn token_length(text: &str) -> usize {
    match text.as_bytes().first() {
        Some(b'"') => string_length(text),
        Some(b'{' | b'}' | b'[' | b']' | b',' | b':') => 1,
        _ => text.find(ENDS_OF_A_LITERAL).unwrap_or(text.len()),
    }
}

/// Returns the length in bytes of the string at the start of the text, with its quotes.
fn string_length(text: &str) -> usize {
    let mut is_escaped = false;
    let end = text.bytes().skip(1).position(|byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    });
    end.map_or(text.len(), |end| end + 2)
}

#[cfg(test)]
mod tests {
    use super::indented_json;

    #[test]
    fn numbers_and_strings_are_copied_as_they_were_written() {
        for value in [
            "12345678901234567890123",
            "0.1000000000000000055511151231257827",
            "1e2",
            "-0",
            "true",
            r#""a \" b\\""#,
            r#""\u00e9, { [ ż 🦀""#,
        ] {
            assert_eq!(indented_json(value), value);
            assert_eq!(
                indented_json(&format!(" [{value} ,{value}]\n")),
                format!("[\n  {value},\n  {value}\n]")
            );
            assert_eq!(indented_json(&format!("{{\"a\" :{value}}}")), format!("{{\n  \"a\": {value}\n}}"));
        }
    }

    #[test]
    fn each_level_is_indented_and_empty_ones_stay_on_their_line() {
        let text = r#"{"b":{"c":[1,[]]},"a":{ }}"#;
        let indented = indented_json(text);
        assert_eq!(indented, "{\n  \"b\": {\n    \"c\": [\n      1,\n      []\n    ]\n  },\n  \"a\": {}\n}");
        assert_eq!(indented_json(&indented), indented);
    }
}
