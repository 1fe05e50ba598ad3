//! Parser for the values of `Content-Type` and `Content-Disposition`: `value; name=value; name="quoted value"` (RFC
//! 9110, section 5.6.6).

use crate::token::is_token;

/// A header's value and its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsedHeader {
    /// The value before the parameters, in lower case.
    pub essence: String,
    /// Parameters; names in lower case, values unchanged.
    parameters: Vec<(String, String)>,
}

impl ParsedHeader {
    /// Parses a header value; `None` if any part of it is malformed.
    pub fn parse(value: &[u8]) -> Option<Self> {
        let value = std::str::from_utf8(value).ok()?;
        if value.chars().any(|c| c.is_control() && c != '\t') {
            return None;
        }
        let (essence, mut rest) = value.split_at(value.find(';').unwrap_or(value.len()));
        let mut parameters = Vec::new();
        while let Some(next) = rest.strip_prefix(';').map(trim) {
            if next.is_empty() {
                return None;
            }
            let (name, value, after) = parameter(next)?;
            parameters.push((name, value));
            rest = after;
        }
        rest.is_empty().then(|| Self { essence: trim(essence).to_ascii_lowercase(), parameters })
    }

    /// The value of a parameter that occurs exactly once.
    pub fn only(&self, name: &str) -> Option<&str> {
        let mut values = self.parameters.iter().filter(|(own, _)| own == name).map(|(_, value)| value);
        values.next().filter(|_| values.next().is_none()).map(String::as_str)
    }

    /// All parameters as name and value.
    pub fn parameters(&self) -> impl Iterator<Item = (&str, &str)> {
        self.parameters.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

/// Parses a token of RFC 9110 and returns it in lower case.
pub(super) fn token(text: &[u8]) -> Option<String> {
    is_token(text).then(|| String::from_utf8_lossy(text).to_ascii_lowercase())
}

fn parameter(text: &str) -> Option<(String, String, &str)> {
    let (name, rest) = text.split_once('=')?;
    let name = token(name.as_bytes())?;
    match rest.strip_prefix('"') {
        Some(quoted) => quoted_string(quoted).map(|(value, rest)| (name, value, rest)),
        None => {
            let (value, rest) = rest.split_at(rest.find(';').unwrap_or(rest.len()));
            let value = trim(value);
            let plain = !value.is_empty() && !value.contains(['"', ' ', '\t']);
            plain.then(|| (name, value.to_owned(), rest))
        }
    }
}

/// Parses up to the closing quote. The rest must be another parameter or empty.
fn quoted_string(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => value.push(chars.next()?.1),
            '"' => {
                let rest = trim(&text[at + 1..]);
                return (rest.is_empty() || rest.starts_with(';')).then_some((value, rest));
            }
            c => value.push(c),
        }
    }
    None
}

fn trim(text: &str) -> &str {
    text.trim_matches([' ', '\t'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Option<ParsedHeader> {
        ParsedHeader::parse(text.as_bytes())
    }

    #[test]
    fn parameters_come_as_tokens_and_as_quoted_strings() {
        let value = parse(r#"form-data; name="statement"; FileName="a; b\"c".cose"#);
        assert_eq!(value, None, "something stands behind the closing quote");
        let value = parse(r#" Form-Data ; name=statement;FileName="a; b\"c" "#).unwrap();
        assert_eq!(value.essence, "form-data");
        assert_eq!((value.only("name"), value.only("filename")), (Some("statement"), Some("a; b\"c")));
    }

    #[test]
    fn a_parameter_given_twice_is_neither() {
        assert_eq!(parse("form-data; name=a; Name=b").unwrap().only("name"), None);
    }

    #[test]
    fn what_is_not_whole_is_nothing() {
        for wrong in [
            "x;",
            "x; ",
            "x; a",
            "x; =1",
            "x; a=",
            "x; a=\"1",
            "x; a=1 2",
            "x; a b=1",
            "x; a\u{0}=1",
            "x;;a=1",
        ] {
            assert_eq!(parse(wrong), None, "{wrong:?}");
        }
        assert_eq!(ParsedHeader::parse(b"x; a=\xff"), None);
    }
}
