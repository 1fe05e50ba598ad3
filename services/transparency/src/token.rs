//! Tokens of HTTP: names of types, parameters and fields.

/// Returns whether a text is a token (RFC 9110, section 5.6.2).
pub fn is_token(text: &[u8]) -> bool {
    let is_in_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    !text.is_empty() && text.iter().all(is_in_token)
}
