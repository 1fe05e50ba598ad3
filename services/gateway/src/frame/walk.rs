//! Steps over the values of a checked JSON text.

/// The offset of the first byte at or after `from` that is not whitespace.
pub fn blanks(bytes: &[u8], from: usize) -> usize {
    let blank = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
    from + bytes.get(from..).unwrap_or_default().iter().take_while(blank).count()
}

/// The end of the JSON value that starts at `from`, in a text that was checked.
pub fn skip(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    let mut open = 0usize;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => at = string_end(bytes, at),
            b'{' | b'[' => {
                open += 1;
                at += 1;
            }
            b'}' | b']' => {
                open = open.saturating_sub(1);
                at += 1;
            }
            b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => {
                let inside = |b: &&u8| !matches!(b, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r');
                at += bytes[at..].iter().take_while(inside).count();
            }
            _ => {
                at += 1;
                continue;
            }
        }
        if open == 0 {
            break;
        }
    }
    at
}

fn string_end(bytes: &[u8], from: usize) -> usize {
    let mut at = from + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}
