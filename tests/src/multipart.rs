//! Multipart bodies, written by hand.

/// Boundary of all bodies.
const BOUNDARY: &str = "0f2c-boundary-of-the-tests";

/// Returns the `Content-Type` of a form (`form-data`) or batch (`mixed`).
pub fn content_type(kind: &str) -> String {
    format!("multipart/{kind}; boundary={BOUNDARY}")
}

/// Returns a form with a detached statement and its payload.
pub fn form(statement: &[u8], payload: &[u8]) -> Vec<u8> {
    let field = |name: &str| format!("Content-Disposition: form-data; name=\"{name}\"");
    of(&[(&field("statement"), statement), (&field("payload"), payload)])
}

/// Returns a batch of statements.
pub fn batch<'s>(statements: impl Iterator<Item = &'s [u8]>) -> Vec<u8> {
    of(&statements.map(|statement| ("Content-Type: application/cose", statement)).collect::<Vec<_>>())
}

fn of(parts: &[(&str, &[u8])]) -> Vec<u8> {
    let mut body = Vec::new();
    for (headers, bytes) in parts {
        body.extend_from_slice(format!("--{BOUNDARY}\r\n{headers}\r\n\r\n").as_bytes());
        body.extend_from_slice(bytes);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(format!("--{BOUNDARY}--\r\n").as_bytes());
    body
}
