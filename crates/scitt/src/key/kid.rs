//! Key identifiers as URL path segments (SCRAPI -11, section 2.1.2: `/.well-known/scitt-keys/{kid_value}`).

use data_encoding::BASE64URL_NOPAD;

/// Returns a `kid` as unpadded base64url, a form that exists for any `kid`.
pub fn kid_segment(kid: &[u8]) -> String {
    BASE64URL_NOPAD.encode(kid)
}

/// Returns `true` if a (percent-decoded) path segment names this `kid`: in unpadded base64url, or raw if it needs no
/// percent-encoding. Padded base64url does not match.
pub fn kid_segment_matches(kid: &[u8], segment: &str) -> bool {
    kid_segment(kid) == segment || (is_safe_segment(kid) && kid == segment.as_bytes())
}

/// Returns `true` if the `kid` consists of `pchar` of RFC 3986 without percent-encoding. `.` and `..` are excluded,
/// since URL resolution removes them.
fn is_safe_segment(kid: &[u8]) -> bool {
    let safe = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@".contains(byte);
    !kid.is_empty() && kid != b"." && kid != b".." && kid.iter().all(safe)
}
