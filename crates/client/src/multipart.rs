//! Request bodies, including multipart ones (RFC 2046, RFC 7578).

use bytes::Bytes;
use data_encoding::HEXLOWER;

use crate::ClientError;

/// A request body with its content type.
#[derive(Clone, Debug)]
pub struct RequestBody {
    /// Value of the `Content-Type` header.
    pub content_type: String,
    /// The encoded body.
    pub bytes: Bytes,
}

impl RequestBody {
    /// A single statement, as `application/cose`.
    pub fn statement(message: &Bytes) -> Self {
        Self { content_type: scitt::media::COSE.into(), bytes: message.clone() }
    }

    /// A statement and its detached payload, as `multipart/form-data`.
    pub fn form(message: &Bytes, payload: &[u8]) -> Result<Self, ClientError> {
        let named = |name| format!("Content-Disposition: form-data; name=\"{name}\"; filename=\"{name}\"");
        let statement = format!("{}\r\nContent-Type: application/cose", named("statement"));
        let bytes = format!("{}\r\nContent-Type: application/octet-stream", named("payload"));
        Self::of("form-data", &[(&statement, message), (&bytes, payload)])
    }

    /// Several statements, as `multipart/mixed`.
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

/// A boundary of 128 random bits, which does not occur in a part.
fn boundary() -> Result<String, ClientError> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|error| ClientError::Setup(error.to_string()))?;
    Ok(HEXLOWER.encode(&random))
}
