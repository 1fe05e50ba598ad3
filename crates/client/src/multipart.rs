//! Bodies of several parts, as we send them (RFC 2046, RFC 7578).

use bytes::Bytes;
use data_encoding::HEXLOWER;

use crate::ClientError;

/// A request's body and its content type.
#[derive(Clone, Debug)]
pub struct Body {
    /// `Content-Type`.
    pub content_type: String,
    /// The bytes.
    pub bytes: Bytes,
}

impl Body {
    /// A statement by itself.
    pub fn statement(message: &Bytes) -> Self {
        Self { content_type: "application/cose".into(), bytes: message.clone() }
    }

    /// A statement and the payload that it is detached from.
    pub fn form(message: &Bytes, payload: &[u8]) -> Result<Self, ClientError> {
        let named = |name| format!("Content-Disposition: form-data; name=\"{name}\"; filename=\"{name}\"");
        let statement = format!("{}\r\nContent-Type: application/cose", named("statement"));
        let bytes = format!("{}\r\nContent-Type: application/octet-stream", named("payload"));
        Self::of("form-data", &[(&statement, message), (&bytes, payload)])
    }

    /// Many statements.
    pub fn batch<'m>(messages: impl Iterator<Item = &'m [u8]>) -> Result<Self, ClientError> {
        let parts: Vec<_> = messages.map(|message| ("Content-Type: application/cose", message)).collect();
        Self::of("mixed", &parts)
    }

    fn of(kind: &str, parts: &[(&str, &[u8])]) -> Result<Self, ClientError> {
        let boundary = boundary()?;
        let length = parts.iter().map(|(head, bytes)| head.len() + bytes.len() + boundary.len() + 10).sum();
        let mut body = Vec::with_capacity(length);
        for (head, bytes) in parts {
            body.extend_from_slice(format!("--{boundary}\r\n{head}\r\n\r\n").as_bytes());
            body.extend_from_slice(bytes);
            body.extend_from_slice(b"\r\n");
        }
        body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
        Ok(Self { content_type: format!("multipart/{kind}; boundary={boundary}"), bytes: body.into() })
    }
}

/// 128 random bits: no part holds them.
fn boundary() -> Result<String, ClientError> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|error| ClientError::Setup(error.to_string()))?;
    Ok(HEXLOWER.encode(&random))
}
