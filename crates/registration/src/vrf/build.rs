//! Creation of VRF statements: from a receipt and a key to a statement that a log can admit.

use merkle::EntryDigest;
use scitt::cbor::Value as Cbor;
use scitt::header::X5Chain;
use scitt::{BuildError, SignedStatement, Signer, StatementBuilder};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::form::Form;
use super::headers::LABELS;
use super::{Chain, VERSION, VRF_CBOR, VRF_JSON, VrfRecord, VrfRedacted, kid_of, redacted};
use crate::violation::Violation;

/// An error from building a VRF statement.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildVrfError {
    /// The statement would break a rule, so no log would admit it.
    #[error("this receipt breaks a rule: {0}")]
    Violates(#[from] Violation),
    /// Building or signing the statement failed.
    #[error(transparent)]
    Build(#[from] BuildError),
}

/// A verifier that is not a did:key.
#[derive(Clone, Debug)]
struct OtherIssuer {
    iss: String,
    certificates: Option<X5Chain>,
}

/// A builder for the statement of a verification receipt.
#[derive(Clone, Debug)]
pub struct VrfStatement {
    receipt: Value,
    sub: String,
    /// The verifier; the did:key of the signing key if `None`.
    issuer: Option<OtherIssuer>,
    chain: Chain,
    form: Form,
    redacted: bool,
}

impl VrfStatement {
    /// Creates a statement of this receipt (JSON of section 4) about the work of the agent `sub`. By default it is the
    /// first of its chain.
    pub fn new(receipt: Value, sub: impl Into<String>) -> Self {
        let (chain, form) = (Chain::Genesis, Form::B);
        VrfStatement { receipt, sub: sub.into(), issuer: None, chain, form, redacted: false }
    }

    /// Names another verifier than the did:key of the signing key. Logs admit it if their policy allows other issuers and
    /// lists its key or a root of its certificates (reading 4). Without certificates, `kid` is the key's thumbprint.
    pub fn issued_by(self, iss: impl Into<String>, certificates: Option<X5Chain>) -> Self {
        VrfStatement { issuer: Some(OtherIssuer { iss: iss.into(), certificates }), ..self }
    }

    /// Selects bare JSON, `application/vrf+json`, instead of a CBOR byte string.
    pub fn bare_json(self) -> Self {
        VrfStatement { form: Form::A, redacted: false, ..self }
    }

    /// Registers the receipt by its hash (reading 21). Keep [`byte_string`](Self::byte_string) for the disclosure.
    pub fn redacted(self) -> Self {
        VrfStatement { form: Form::B, redacted: true, ..self }
    }

    /// The receipt as a CBOR byte string, which a redacted statement hashes and its issuer discloses.
    pub fn byte_string(&self) -> Vec<u8> {
        Form::B.wrap(&jose::jcs::canonical(&self.receipt))
    }

    /// Places the receipt outside of any chain.
    pub fn unchained(self) -> Self {
        VrfStatement { chain: Chain::Unchained, ..self }
    }

    /// Places the receipt at `position`, after the receipt whose statement has the entry ID `previous`.
    pub fn after(self, previous: EntryDigest, position: u64) -> Self {
        VrfStatement { chain: Chain::Link { position, previous }, ..self }
    }

    /// Signs with a verifier's Ed25519 key, and validates the result as a log would.
    pub fn sign(&self, verifier: &dyn Signer) -> Result<SignedStatement, BuildVrfError> {
        let statement = self.builder(verifier).sign(verifier)?;
        let key = verifier.public_key();
        match self.redacted {
            true => VrfRedacted::verify_with(&statement, None, key)?.disclose(&self.byte_string())?,
            false => VrfRecord::verify_with(&statement, None, key)?,
        };
        Ok(statement)
    }

    /// Returns the statement before it is signed and validated, for callers that change it.
    pub fn builder(&self, verifier: &dyn Signer) -> StatementBuilder {
        let iss = self.iss(verifier);
        let text = |text: &str| Cbor::from(text.to_owned());
        let [version, issuer, receipt_id, ..] = LABELS;
        let id = self.receipt.get("receipt_id").and_then(Value::as_str).unwrap_or_default();
        let builder = self
            .with_payload()
            .iss(&iss)
            .sub(&self.sub)
            .label(version, text(VERSION))
            .label(issuer, text(&iss))
            .label(receipt_id, text(id));
        self.with_chain(self.with_key_name(builder, verifier))
    }

    /// The `iss` of the statement if this key signs it.
    pub fn iss(&self, verifier: &dyn Signer) -> String {
        self.issuer.as_ref().map_or_else(|| verifier.public_key().did_key(), |issuer| issuer.iss.clone())
    }

    fn with_key_name(&self, builder: StatementBuilder, verifier: &dyn Signer) -> StatementBuilder {
        match &self.issuer {
            None => builder.kid(kid_of(&verifier.public_key().did_key())),
            Some(OtherIssuer { certificates: Some(certificates), .. }) => builder.x5chain(certificates),
            Some(OtherIssuer { certificates: None, .. }) => builder.kid(verifier.public_key().thumbprint()),
        }
    }

    fn with_payload(&self) -> StatementBuilder {
        let json = || jose::jcs::canonical(&self.receipt);
        match (self.redacted, self.form) {
            (true, _) => StatementBuilder::new(Sha256::digest(self.byte_string()).to_vec())
                .hash_envelope(&redacted::envelope()),
            (false, Form::A) => StatementBuilder::new(json()).content_type(VRF_JSON),
            (false, Form::B) => StatementBuilder::new(self.byte_string()).content_type(VRF_CBOR),
        }
    }

    fn with_chain(&self, builder: StatementBuilder) -> StatementBuilder {
        let [.., previous_label, position_label] = LABELS;
        match self.chain {
            Chain::Unchained => builder,
            Chain::Genesis => {
                builder.label(previous_label, Cbor::Null).label(position_label, Cbor::Unsigned(0))
            }
            Chain::Link { position, previous } => builder
                .label(previous_label, Cbor::from(format!("sha256:{previous}")))
                .label(position_label, Cbor::Unsigned(position)),
        }
    }
}
