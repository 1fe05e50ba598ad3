//! Making Signed Statements, in deterministic CBOR.
//!
//! The builder puts in what it is told and nothing else, so that a test can make a statement that lacks
//! what RFC 9943 requires. A hash envelope's payload is the digest; hashing is the caller's.

use crate::cbor::Value;
use crate::frame;
use crate::header::{CertHash, ContentType, HashEnvelope, Label, X5Chain, labels};
use crate::malformed::Malformed;
use crate::signer::{SignError, Signer};
use crate::statement::SignedStatement;

/// Why no statement came out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// Nothing was signed.
    #[error(transparent)]
    Sign(#[from] SignError),
    /// What was asked for is not a statement we would accept.
    #[error("this statement would be refused: {0}")]
    Refused(#[from] Malformed),
}

/// Collects headers and a payload to be signed.
#[derive(Clone, Debug, Default)]
pub struct StatementBuilder {
    header: Vec<(Label, Value<'static>)>,
    claims: Vec<(Label, Value<'static>)>,
    unprotected: Vec<(Label, Value<'static>)>,
    payload: Vec<u8>,
    detached: bool,
}

impl StatementBuilder {
    /// A statement over `payload`, attached unless [`detached`](Self::detached).
    pub fn new(payload: impl Into<Vec<u8>>) -> Self {
        Self { payload: payload.into(), ..Self::default() }
    }

    /// Signs the payload but leaves it out of the message.
    pub fn detached(mut self) -> Self {
        self.detached = true;
        self
    }

    /// What the payload is (3).
    pub fn content_type(self, content_type: impl Into<ContentType>) -> Self {
        self.label(labels::CONTENT_TYPE, content_type.into().to_value())
    }

    /// What the message is (16).
    pub fn typ(self, typ: impl Into<ContentType>) -> Self {
        self.label(labels::TYP, typ.into().to_value())
    }

    /// Names the key (4).
    pub fn kid(self, kid: impl Into<Vec<u8>>) -> Self {
        self.label(labels::KID, kid.into().into())
    }

    /// The issuer (15, 1).
    pub fn iss(self, iss: &str) -> Self {
        self.claim(labels::ISS, iss.to_owned().into())
    }

    /// The subject (15, 2).
    #[expect(clippy::should_implement_trait, reason = "the claim's name; nobody subtracts from a builder")]
    pub fn sub(self, sub: &str) -> Self {
        self.claim(labels::SUB, sub.to_owned().into())
    }

    /// When it is issued (15, 6), in Unix seconds.
    pub fn iat(self, seconds: i64) -> Self {
        self.claim(labels::IAT, seconds.into())
    }

    /// Any CWT claim (15); replaces an earlier one.
    pub fn claim(mut self, label: impl Into<Label>, value: Value<'static>) -> Self {
        put(&mut self.claims, label.into(), value);
        self
    }

    /// Any protected label; replaces an earlier one.
    pub fn label(mut self, label: impl Into<Label>, value: Value<'static>) -> Self {
        put(&mut self.header, label.into(), value);
        self
    }

    /// Any unprotected label; replaces an earlier one.
    pub fn unprotected(mut self, label: impl Into<Label>, value: Value<'static>) -> Self {
        put(&mut self.unprotected, label.into(), value);
        self
    }

    /// The certificates that lead to an anchor (33), protected.
    pub fn x5chain(self, chain: &X5Chain) -> Self {
        self.label(labels::X5CHAIN, chain_value(chain))
    }

    /// The same, unprotected: to go with [`x5t`](Self::x5t).
    pub fn unprotected_x5chain(self, chain: &X5Chain) -> Self {
        self.unprotected(labels::X5CHAIN, chain_value(chain))
    }

    /// The hash of the certificate whose key signs (34).
    pub fn x5t(self, hash: &CertHash) -> Self {
        self.label(labels::X5T, hash.to_value())
    }

    /// Says that the payload is a digest, and of what (258, 259, 260).
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

    /// Signs, and reads what came out as anybody else would.
    ///
    /// # Errors
    /// When the signer fails, or the result is not a statement we would accept.
    pub fn sign(self, signer: &dyn Signer) -> Result<SignedStatement, BuildError> {
        Ok(SignedStatement::parse(self.encode(signer)?)?)
    }

    /// Signs, and gives the message with its unprotected header.
    ///
    /// # Errors
    /// When the signer fails.
    pub fn encode(self, signer: &dyn Signer) -> Result<Vec<u8>, SignError> {
        let protected = self.protected(signer.algorithm().to_cose());
        let signature = signer.sign(&frame::sig_structure(&protected, false, &self.payload))?;
        let payload = (!self.detached).then_some(self.payload.as_slice());
        let unprotected = to_map(self.unprotected).encode();
        Ok(frame::write(&protected, &unprotected, payload, &signature))
    }

    fn protected(&self, alg: i64) -> Vec<u8> {
        let mut header = self.header.clone();
        if !header.iter().any(|(label, _)| *label == Label::Int(labels::ALG)) {
            put(&mut header, labels::ALG.into(), alg.into());
        }
        if !self.claims.is_empty() {
            put(&mut header, labels::CWT_CLAIMS.into(), to_map(self.claims.clone()));
        }
        to_map(header).encode()
    }
}

fn put(entries: &mut Vec<(Label, Value<'static>)>, label: Label, value: Value<'static>) {
    entries.retain(|(known, _)| *known != label);
    entries.push((label, value));
}

fn to_map(entries: Vec<(Label, Value<'static>)>) -> Value<'static> {
    Value::map(entries.into_iter().map(|(label, value)| (label.to_value(), value)))
}

fn chain_value(chain: &X5Chain) -> Value<'static> {
    match chain.certificates() {
        [only] => only.to_vec().into(),
        many => Value::array(many.iter().map(|certificate| certificate.to_vec().into())),
    }
}
