//! Creates Signed Statements, in deterministic CBOR, by coset.
//!
//! The builder adds no header but `alg`, so that a test can create a statement that lacks labels which RFC 9943
//! requires. The payload of a hash envelope is the digest; the caller computes it.

use coset::CborSerializable;

use crate::cbor::Value;
use crate::frame;
use crate::header::{CertHash, ContentType, HashEnvelope, Label, X5Chain, labels};
use crate::malformed::Malformed;
use crate::signer::{SignError, Signer};
use crate::statement::SignedStatement;

/// Error of [`StatementBuilder::sign`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// The signer failed.
    #[error(transparent)]
    Sign(#[from] SignError),
    /// The result is not a statement that [`SignedStatement::parse`] accepts.
    #[error("this statement would be refused: {0}")]
    Refused(#[from] Malformed),
}

/// Builder for a [`SignedStatement`]: collects headers and a payload.
#[derive(Clone, Debug, Default)]
pub struct StatementBuilder {
    header: Vec<(Label, Value<'static>)>,
    claims: Vec<(Label, Value<'static>)>,
    unprotected: Vec<(Label, Value<'static>)>,
    payload: Vec<u8>,
    detached: bool,
}

impl StatementBuilder {
    /// Creates a builder for a statement over `payload`, which is attached unless [`detached`](Self::detached) is
    /// called.
    pub fn new(payload: impl Into<Vec<u8>>) -> Self {
        Self { payload: payload.into(), ..Self::default() }
    }

    /// Leaves the payload out of the message; it is signed all the same.
    pub fn detached(mut self) -> Self {
        self.detached = true;
        self
    }

    /// Sets the content type of the payload (label 3).
    pub fn content_type(self, content_type: impl Into<ContentType>) -> Self {
        self.label(labels::CONTENT_TYPE, content_type.into().to_value())
    }

    /// Sets the type of the whole message, `typ` (label 16).
    pub fn typ(self, typ: impl Into<ContentType>) -> Self {
        self.label(labels::TYP, typ.into().to_value())
    }

    /// Sets the key identifier, `kid` (label 4).
    pub fn kid(self, kid: impl Into<Vec<u8>>) -> Self {
        self.label(labels::KID, kid.into().into())
    }

    /// Sets the issuer, `iss` (CWT claim 1 under label 15).
    pub fn iss(self, iss: &str) -> Self {
        self.claim(labels::ISS, iss.to_owned().into())
    }

    /// Sets the subject, `sub` (CWT claim 2 under label 15).
    #[expect(clippy::should_implement_trait, reason = "the claim's name; nobody subtracts from a builder")]
    pub fn sub(self, sub: &str) -> Self {
        self.claim(labels::SUB, sub.to_owned().into())
    }

    /// Sets the time of issue, `iat` (CWT claim 6 under label 15), in Unix seconds.
    pub fn iat(self, seconds: i64) -> Self {
        self.claim(labels::IAT, seconds.into())
    }

    /// Sets any CWT claim (label 15); replaces an earlier value.
    pub fn claim(mut self, label: impl Into<Label>, value: Value<'static>) -> Self {
        put(&mut self.claims, label.into(), value);
        self
    }

    /// Sets any protected label; replaces an earlier value.
    pub fn label(mut self, label: impl Into<Label>, value: Value<'static>) -> Self {
        put(&mut self.header, label.into(), value);
        self
    }

    /// Sets any unprotected label; replaces an earlier value.
    pub fn unprotected(mut self, label: impl Into<Label>, value: Value<'static>) -> Self {
        put(&mut self.unprotected, label.into(), value);
        self
    }

    /// Sets the certificate chain of the key, `x5chain` (label 33), in the protected header.
    pub fn x5chain(self, chain: &X5Chain) -> Self {
        self.label(labels::X5CHAIN, chain_value(chain))
    }

    /// Sets `x5chain` (label 33) in the unprotected header, to be combined with [`x5t`](Self::x5t).
    pub fn unprotected_x5chain(self, chain: &X5Chain) -> Self {
        self.unprotected(labels::X5CHAIN, chain_value(chain))
    }

    /// Sets the hash of the end-entity certificate, `x5t` (label 34).
    pub fn x5t(self, hash: &CertHash) -> Self {
        self.label(labels::X5T, hash.to_value())
    }

    /// Marks the payload as a digest (labels 258, 259 and 260, RFC 9995).
    pub fn hash_envelope(mut self, envelope: &HashEnvelope) -> Self {
        self = self.label(labels::PAYLOAD_HASH_ALG, envelope.algorithm.into());
        if let Some(preimage) = &envelope.preimage_content_type {
            self = self.label(labels::PREIMAGE_CONTENT_TYPE, preimage.to_value());
        }
        match &envelope.location {
            Some(location) => self.label(labels::PAYLOAD_LOCATION, location.clone().into()),
            None => self,
        }
    }

    /// Signs the statement and parses the result.
    ///
    /// # Errors
    /// Returns [`BuildError::Sign`] if the signer fails, or [`BuildError::Refused`] if the result would be refused.
    pub fn sign(self, signer: &dyn Signer) -> Result<SignedStatement, BuildError> {
        Ok(SignedStatement::parse(self.encode(signer)?)?)
    }

    /// Signs the statement and returns the encoded message with its unprotected header. The result is not checked.
    ///
    /// # Errors
    /// Returns the signer's error, or [`SignError::Unwritable`] for a header value that coset cannot write.
    pub fn encode(self, signer: &dyn Signer) -> Result<Vec<u8>, SignError> {
        let protected = self.protected(signer.algorithm().to_cose())?;
        let signature = signer.sign(&frame::sig_structure(&protected, false, &self.payload))?;
        let payload = (!self.detached).then_some(self.payload.as_slice());
        Ok(frame::write(&protected, to_header(self.unprotected)?, payload, &signature))
    }

    fn protected(&self, alg: i64) -> Result<Vec<u8>, SignError> {
        let mut header = self.header.clone();
        if !header.iter().any(|(label, _)| *label == Label::Int(labels::ALG)) {
            put(&mut header, labels::ALG.into(), alg.into());
        }
        if !self.claims.is_empty() {
            let claims = self.claims.iter().map(|(label, value)| (label.to_value(), value.clone()));
            put(&mut header, labels::CWT_CLAIMS.into(), Value::map(claims));
        }
        Ok(to_header(header)?.to_vec().expect("coset refuses only labels that occur twice"))
    }
}

fn put(entries: &mut Vec<(Label, Value<'static>)>, label: Label, value: Value<'static>) {
    entries.retain(|(known, _)| *known != label);
    entries.push((label, value));
}

/// Returns the header that coset writes in the core deterministic encoding.
fn to_header(mut entries: Vec<(Label, Value<'static>)>) -> Result<coset::Header, SignError> {
    entries.sort_by_cached_key(|(label, _)| label.to_value().encode());
    let entry = |(label, value): (Label, Value<'static>)| {
        let written = value.to_ciborium().ok_or_else(|| SignError::Unwritable(label.clone()))?;
        Ok((label.into(), written))
    };
    let rest = entries.into_iter().map(entry).collect::<Result<_, SignError>>()?;
    Ok(coset::Header { rest, ..coset::Header::default() })
}

fn chain_value(chain: &X5Chain) -> Value<'static> {
    match chain.certificates() {
        [only] => only.to_vec().into(),
        many => Value::array(many.iter().map(|certificate| certificate.to_vec().into())),
    }
}
