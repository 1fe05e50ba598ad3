//! Signed and Transparent Statements (RFC 9943).

use scitt::{PublicKey, SignedStatement, Signer, StatementBuilder, transparent};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::bytes::{ByteString, base64url};
use crate::error::CoreError;
use crate::keys::{PrivateKey, public_key};

/// Code of bytes that are not a statement.
const MALFORMED: &str = "malformed-statement";

/// Signs a statement. Without `iss`, the issuer is the `did:key` of the key. Without `kid`, the key is named by that DID, or
/// for another issuer by its thumbprint (RFC 9679).
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignStatement {
    private_key: PrivateKey,
    payload: ByteString,
    content_type: String,
    iss: Option<String>,
    sub: String,
    kid: Option<String>,
    /// Time of issue in Unix seconds.
    iat: Option<i64>,
    /// Leaves the payload out of the message.
    #[serde(default)]
    detached: bool,
}

/// Reads a statement.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadStatement {
    statement: ByteString,
}

/// Verifies the signature of a statement by one key. The key's owner is not considered.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VerifySignature {
    statement: ByteString,
    public_key: String,
    /// The payload of a statement that does not contain it.
    payload: Option<ByteString>,
}

/// Attaches receipts to a statement.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttachReceipts {
    statement: ByteString,
    receipts: Vec<ByteString>,
}

/// Removes the receipts from a statement.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StripReceipts {
    statement: ByteString,
}

impl SignStatement {
    pub(crate) fn sign(self) -> Result<Value, CoreError> {
        let key = self.private_key.signing_key()?;
        let did = key.public_key().did_key();
        let iss = self.iss.unwrap_or_else(|| did.clone());
        let kid = match self.kid {
            Some(kid) => kid.into_bytes(),
            None if iss == did => did.into_bytes(),
            None => key.public_key().thumbprint().to_vec(),
        };
        let mut builder = StatementBuilder::new(self.payload.0)
            .content_type(self.content_type.as_str())
            .kid(kid)
            .iss(&iss)
            .sub(&self.sub);
        if let Some(iat) = self.iat {
            builder = builder.iat(iat);
        }
        if self.detached {
            builder = builder.detached();
        }
        let signed = builder.sign(&key).map_err(|error| CoreError::new("signing-failed", error))?;
        Ok(json!({ "statement": base64url(signed.bytes()), "entry": signed.digest().to_string() }))
    }
}

impl ReadStatement {
    pub(crate) fn read(self) -> Result<Value, CoreError> {
        let statement = parse(self.statement)?;
        let header = statement.header();
        Ok(json!({
            "entry": statement.digest().to_string(),
            "statement": base64url(statement.bytes()),
            "twin": statement.twin().map(|twin| twin.to_string()),
            "alg": header.alg(),
            "iss": header.iss(),
            "sub": header.sub(),
            "kid": header.kid().map(base64url),
            "content_type": header.content_type().map(ToString::to_string),
            "missing": header.require_scitt().err().map(|missing| missing.label_path()),
            "payload": statement.payload().map(base64url),
            "receipts": statement.receipts().iter().map(base64url).collect::<Vec<_>>(),
        }))
    }
}

impl VerifySignature {
    pub(crate) fn verify(self) -> Result<Value, CoreError> {
        let key: PublicKey = public_key(&self.public_key)?;
        let statement = parse(self.statement)?;
        let payload = self.payload.map(|payload| payload.0);
        let verified = statement.verify_with(&key, payload.as_deref());
        verified.map(|()| json!({})).map_err(|error| CoreError::new("signature-invalid", error))
    }
}

impl AttachReceipts {
    pub(crate) fn attach(self) -> Result<Value, CoreError> {
        let receipts: Vec<Vec<u8>> = self.receipts.into_iter().map(|receipt| receipt.0).collect();
        let attached = transparent::attach(&self.statement.0, &receipts)
            .map_err(|malformed| CoreError::malformed(MALFORMED, &malformed))?;
        Ok(json!({ "statement": base64url(attached) }))
    }
}

impl StripReceipts {
    pub(crate) fn strip(self) -> Result<Value, CoreError> {
        let (statement, receipts) = transparent::strip(&self.statement.0)
            .map_err(|malformed| CoreError::malformed(MALFORMED, &malformed))?;
        let receipts: Vec<_> = receipts.iter().map(base64url).collect();
        Ok(json!({ "statement": base64url(statement), "receipts": receipts }))
    }
}

/// Parses a statement.
pub fn parse(bytes: ByteString) -> Result<SignedStatement, CoreError> {
    SignedStatement::parse(bytes.0).map_err(|malformed| CoreError::malformed(MALFORMED, &malformed))
}
