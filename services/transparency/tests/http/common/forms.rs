//! Multipart bodies, as a client makes them.

/// The boundary of all of them.
pub const BOUNDARY: &str = "----boundary-7d0fae86";

pub fn form_type() -> String {
    format!("multipart/form-data; boundary={BOUNDARY}")
}

pub fn mixed_type() -> String {
    format!("multipart/mixed; boundary={BOUNDARY}")
}

/// One part: its headers without the empty line, its body.
pub fn part(headers: &str, body: &[u8]) -> Vec<u8> {
    [format!("--{BOUNDARY}\r\n{headers}\r\n\r\n").as_bytes(), body, b"\r\n"].concat()
}

/// A part of a form.
pub fn field(name: &str, body: &[u8]) -> Vec<u8> {
    part(&format!("Content-Disposition: form-data; name=\"{name}\"; filename=\"{name}.bin\""), body)
}

/// A part of a batch.
pub fn cose(body: &[u8]) -> Vec<u8> {
    part("Content-Type: application/cose", body)
}

/// Parts, and the end.
pub fn closed(parts: &[Vec<u8>]) -> Vec<u8> {
    [parts.concat(), format!("--{BOUNDARY}--\r\n").into_bytes()].concat()
}

/// A statement and its payload.
pub fn form(statement: &[u8], payload: &[u8]) -> Vec<u8> {
    closed(&[field("statement", statement), field("payload", payload)])
}
