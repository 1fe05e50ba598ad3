//! A kid as a URL path segment (SCRAPI -11, section 2.1.2: `/.well-known/scitt-keys/{kid_value}`).

use data_encoding::BASE64URL_NOPAD;

/// The form every kid has: unpadded base64url of its bytes.
pub fn kid_segment(kid: &[u8]) -> String {
    BASE64URL_NOPAD.encode(kid)
}

/// Whether a (percent-decoded) path segment names this kid: its base64url form always does, its raw
/// form if it needs no percent-encoding. Padded base64url never does.
pub fn kid_segment_matches(kid: &[u8], segment: &str) -> bool {
    kid_segment(kid) == segment || (is_safe_segment(kid) && kid == segment.as_bytes())
}

/// `pchar` of RFC 3986 without percent-encoding; `.` and `..` would be resolved away.
fn is_safe_segment(kid: &[u8]) -> bool {
    let safe = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@".contains(byte);
    !kid.is_empty() && kid != b"." && kid != b".." && kid.iter().all(safe)
}
