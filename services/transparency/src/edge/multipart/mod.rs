//! Multipart bodies (RFC 2046, section 5.1; RFC 7578), parsed strictly and without a copy.
//!
//! The body is in memory already, within the budget of module `body`; its parts are slices of it. Parsing takes one
//! pass and linear time with any boundary: a delimiter line begins with CR and a boundary contains none, so no byte is
//! compared twice.
//!
//! Deviations are refused, never repaired: bytes before the first delimiter or after the last (RFC 2046 allows skipping
//! them, and no HTTP client sends any), padding after a delimiter, folded or repeated part headers, bare CR or LF in
//! them, transfer encodings. A part's own charset parameter is ignored: parts are bytes.

mod params;

use bytes::Bytes;
use http::HeaderMap;
use http::header::CONTENT_TYPE;

use crate::limits::{BOUNDARY_BYTES, PART_HEADER_BYTES, PART_HEADERS};

pub use params::ParsedHeader;

/// A body that is not the multipart body of its content type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct MultipartError {
    /// Offset of the defect in the body; `None` if it is in the `Content-Type`.
    pub offset: Option<usize>,
    /// The defect.
    pub what: MultipartDefect,
}

/// The defects of a multipart body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MultipartDefect {
    /// The content type has no boundary parameter, or two.
    #[error("the content type names no boundary, or more than one")]
    NoBoundary,
    /// The boundary contains characters that RFC 2046 does not allow, or has a wrong length.
    #[error("the boundary is not 1 to {BOUNDARY_BYTES} characters that RFC 2046 allows in one")]
    BadBoundary,
    /// The body does not begin with the boundary.
    #[error("the body does not begin with its boundary")]
    Preamble,
    /// A line that begins with the boundary continues with other characters.
    #[error("the boundary is followed by something other than a line end or --")]
    BadDelimiter,
    /// The closing delimiter is missing.
    #[error("the body ends before its closing boundary")]
    CutShort,
    /// More bytes follow the closing delimiter.
    #[error("more bytes follow the closing boundary")]
    Epilogue,
    /// The body has no part.
    #[error("there are no parts")]
    NoParts,
    /// The body has more parts than this limit.
    #[error("there are more than {0} parts")]
    TooManyParts(usize),
    /// Part headers exceed [`PART_HEADERS`] or [`PART_HEADER_BYTES`].
    #[error("a part has more than {PART_HEADERS} headers, or more than {PART_HEADER_BYTES} bytes of them")]
    LargeHeaders,
    /// A part header is malformed.
    #[error("a part header is not a name, a colon and a value on one line")]
    BadHeader,
    /// A part has the same header twice.
    #[error("a part has the same header twice")]
    HeaderTwice,
    /// A part has a transfer encoding that would change its bytes.
    #[error("a part is sent in a transfer encoding: send it as binary")]
    Encoded,
    /// A part has no `Content-Disposition: form-data; name=…`.
    #[error("a part of a form has no name, or more than one")]
    NoName,
    /// A part has a name that this form does not define.
    #[error("a part has a name that this form does not know")]
    UnknownName,
    /// No part is named `statement`.
    #[error("the form has no part named statement")]
    NoStatement,
    /// Two parts have the same name.
    #[error("two parts have the same name")]
    NameTwice,
}

impl MultipartDefect {
    fn at(self, offset: usize) -> MultipartError {
        MultipartError { offset: Some(offset), what: self }
    }

    fn in_head(self) -> MultipartError {
        MultipartError { offset: None, what: self }
    }
}

/// The delimiter of parts: `--` and the boundary of the content type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delimiter(Vec<u8>);

impl Delimiter {
    /// Reads the boundary from the request's only `Content-Type`.
    pub fn of(headers: &HeaderMap) -> Result<Self, MultipartError> {
        let mut values = headers.get_all(CONTENT_TYPE).iter();
        let (Some(value), None) = (values.next(), values.next()) else {
            return Err(MultipartDefect::NoBoundary.in_head());
        };
        let value = ParsedHeader::parse(value.as_bytes()).ok_or(MultipartDefect::NoBoundary.in_head())?;
        let boundary = value.only("boundary").ok_or(MultipartDefect::NoBoundary.in_head())?;
        match is_boundary(boundary.as_bytes()) {
            true => Ok(Self([b"--", boundary.as_bytes()].concat())),
            false => Err(MultipartDefect::BadBoundary.in_head()),
        }
    }

    /// Finds the next line of `body`, starting at `from`, that begins with the delimiter. Returns the offset of the CR
    /// before it.
    fn next(&self, body: &[u8], from: usize) -> Option<usize> {
        let mut at = from;
        loop {
            at += body.get(at..)?.iter().position(|byte| *byte == b'\r')?;
            if body[at + 1..].strip_prefix(b"\n").is_some_and(|line| line.starts_with(&self.0)) {
                return Some(at);
            }
            at += 1;
        }
    }
}

/// Checks a boundary: `bchars` of RFC 2046, without a space at the end.
fn is_boundary(text: &[u8]) -> bool {
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"'()+_,-./:=? ".contains(byte);
    (1..=BOUNDARY_BYTES).contains(&text.len()) && text.iter().all(allowed) && !text.ends_with(b" ")
}

/// A part of a multipart body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodyPart {
    /// Header fields; names in lower case.
    headers: Vec<(String, ParsedHeader)>,
    /// The part's content.
    pub body: Bytes,
    /// Offset of the part in the whole body, headers included.
    pub offset: usize,
}

impl BodyPart {
    /// The header with this name in lower case.
    pub fn header(&self, name: &str) -> Option<&ParsedHeader> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value)
    }

    /// The part's name in a form (RFC 7578, section 4.2).
    pub fn name(&self) -> Result<&str, MultipartError> {
        let disposition = self.header("content-disposition").filter(|value| value.essence == "form-data");
        disposition.and_then(|value| value.only("name")).ok_or(MultipartDefect::NoName.at(self.offset))
    }

    /// The part's own `Content-Type`, if it has one.
    pub fn media_type(&self) -> Option<&ParsedHeader> {
        self.header("content-type")
    }
}

/// Splits a body into its parts; [`MultipartDefect::TooManyParts`] if there are more than `most`.
pub fn parts(body: &Bytes, delimiter: &Delimiter, most: usize) -> Result<Vec<BodyPart>, MultipartError> {
    if !body.starts_with(&delimiter.0) {
        return Err(if body.is_empty() { MultipartDefect::CutShort } else { MultipartDefect::Preamble }.at(0));
    }
    let mut found = Vec::new();
    let mut at = delimiter.0.len();
    while let Some(start) = after_delimiter(body, at)? {
        if found.len() == most {
            return Err(MultipartDefect::TooManyParts(most).at(start));
        }
        let end = delimiter.next(body, start).ok_or(MultipartDefect::CutShort.at(body.len()))?;
        found.push(part(body.slice(start..end), start)?);
        at = end + b"\r\n".len() + delimiter.0.len();
    }
    if found.is_empty() { Err(MultipartDefect::NoParts.at(0)) } else { Ok(found) }
}

/// Returns the start of the part that the delimiter opens, or `None` if it closes the body.
fn after_delimiter(body: &[u8], at: usize) -> Result<Option<usize>, MultipartError> {
    match &body[at..] {
        [b'\r', b'\n', ..] => Ok(Some(at + 2)),
        [b'-', b'-'] | [b'-', b'-', b'\r', b'\n'] => Ok(None),
        [b'-', b'-', ..] => Err(MultipartDefect::Epilogue.at(at + 2)),
        [] | [b'-' | b'\r'] => Err(MultipartDefect::CutShort.at(body.len())),
        _ => Err(MultipartDefect::BadDelimiter.at(at)),
    }
}

fn part(bytes: Bytes, offset: usize) -> Result<BodyPart, MultipartError> {
    let (headers, head) = headers(&bytes, offset)?;
    if let Some(encoding) = headers.iter().find(|(name, _)| name == "content-transfer-encoding")
        && !matches!(encoding.1.essence.as_str(), "binary" | "8bit" | "7bit")
    {
        return Err(MultipartDefect::Encoded.at(offset));
    }
    Ok(BodyPart { headers, body: bytes.slice(head..), offset })
}

/// Parses a part's headers; returns them with the offset of its body.
fn headers(part: &[u8], offset: usize) -> Result<(Vec<(String, ParsedHeader)>, usize), MultipartError> {
    let mut headers: Vec<(String, ParsedHeader)> = Vec::new();
    let mut at = 0;
    loop {
        let rest = &part[at..];
        let Some(length) =
            rest.iter().take((PART_HEADER_BYTES + 1).saturating_sub(at)).position(|byte| *byte == b'\r')
        else {
            let what = if part.len() > PART_HEADER_BYTES {
                MultipartDefect::LargeHeaders
            } else {
                MultipartDefect::BadHeader
            };
            return Err(what.at(offset + at));
        };
        if rest.get(length + 1) != Some(&b'\n') {
            return Err(MultipartDefect::BadHeader.at(offset + at + length));
        }
        if length == 0 {
            return Ok((headers, at + 2));
        }
        if headers.len() == PART_HEADERS {
            return Err(MultipartDefect::LargeHeaders.at(offset + at));
        }
        let (name, value) = header(&rest[..length]).ok_or(MultipartDefect::BadHeader.at(offset + at))?;
        if headers.iter().any(|(known, _)| *known == name) {
            return Err(MultipartDefect::HeaderTwice.at(offset + at));
        }
        headers.push((name, value));
        at += length + 2;
    }
}

fn header(line: &[u8]) -> Option<(String, ParsedHeader)> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    let name = params::token(&line[..colon])?;
    Some((name, ParsedHeader::parse(&line[colon + 1..])?))
}

#[cfg(test)]
mod tests;
