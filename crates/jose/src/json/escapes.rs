//! Decoding of the escapes in JSON strings.

use std::borrow::Cow;

/// Decodes the escapes of a JSON string, given without its quotes. A lone surrogate becomes the three bytes of its
/// generalized UTF-8 form, so that equal strings stay equal. The text must be one that a check accepted.
pub fn unescaped(inner: &str) -> Cow<'_, [u8]> {
    if !inner.contains('\\') {
        return Cow::Borrowed(inner.as_bytes());
    }
    let mut out = Vec::with_capacity(inner.len());
    let mut rest = inner.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = match (byte, after.split_first()) {
            (b'\\', Some((b'u', digits))) => unit(&mut out, digits),
            (b'\\', Some((&letter, after))) => {
                out.push(control(letter));
                after
            }
            _ => {
                out.push(byte);
                after
            }
        };
    }
    Cow::Owned(out)
}

fn control(letter: u8) -> u8 {
    match letter {
        b'b' => 8,
        b'f' => 12,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        other => other,
    }
}

/// Decodes a `\uXXXX` escape, of which `digits` begins with the hex digits, into `out`. Returns the input after it.
fn unit<'a>(out: &mut Vec<u8>, digits: &'a [u8]) -> &'a [u8] {
    let (first, rest) = (hex(digits), digits.get(4..).unwrap_or_default());
    let low = rest.strip_prefix(b"\\u").map(hex).filter(|low| (0xDC00..0xE000).contains(low));
    match (first, low) {
        (0xD800..0xDC00, Some(low)) => {
            push(out, 0x10000 + ((first - 0xD800) << 10) + (low - 0xDC00));
            rest.get(6..).unwrap_or_default()
        }
        _ => {
            push(out, first);
            rest
        }
    }
}

fn hex(digits: &[u8]) -> u32 {
    let digits = digits.get(..4).and_then(|digits| std::str::from_utf8(digits).ok());
    digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()).unwrap_or_default()
}

fn push(out: &mut Vec<u8>, code: u32) {
    match char::from_u32(code) {
        Some(character) => out.extend(character.encode_utf8(&mut [0; 4]).as_bytes()),
        None => {
            let low = code.to_be_bytes();
            let [_, _, high, low] = low;
            out.extend([0xE0 | high >> 4, 0x80 | (high & 0x0F) << 2 | low >> 6, 0x80 | low & 0x3F]);
        }
    }
}
