//! Making VRF statements: from a receipt and a key to a statement that any log of ours admits.

use merkle::EntryDigest;
use scitt::cbor::Value as Cbor;
use scitt::{BuildError, SignedStatement, Signer, StatementBuilder};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::form::Form;
use super::headers::LABELS;
use super::{Chain, VERSION, VRF_CBOR, VRF_JSON, VrfRecord, VrfRedacted, kid_of, redacted};
use crate::violation::Violation;

/// Why no statement came out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildVrfError {
    /// The statement would break a rule, and no log would admit it.
    #[error("this receipt breaks a rule: {0}")]
    Violates(#[from] Violation),
    /// Nothing was signed.
    #[error(transparent)]
    Build(#[from] BuildError),
}

/// A receipt on its way to becoming a statement.
#[derive(Clone, Debug)]
pub struct VrfStatement {
    receipt: Value,
    sub: String,
    chain: Chain,
    form: Form,
    redacted: bool,
}

impl VrfStatement {
    /// A statement of this receipt (JSON of section 4) about the work of the agent `sub`, the first of its chain.
    pub fn new(receipt: Value, sub: impl Into<String>) -> Self {
        VrfStatement { receipt, sub: sub.into(), chain: Chain::Genesis, form: Form::B, redacted: false }
    }

    /// As bare JSON, `application/vrf+json`, instead of a CBOR byte string.
    pub fn bare_json(self) -> Self {
        VrfStatement { form: Form::A, redacted: false, ..self }
    }

    /// By its hash alone (reading 21). Keep [`byte_string`](Self::byte_string): it is what can be disclosed.
    pub fn redacted(self) -> Self {
        VrfStatement { form: Form::B, redacted: true, ..self }
    }

    /// The receipt as a redacted statement hashes it, and as it is disclosed.
    pub fn byte_string(&self) -> Vec<u8> {
        Form::B.wrap(&jose::jcs::canonical(&self.receipt))
    }

    /// Outside any chain.
    pub fn unchained(self) -> Self {
        VrfStatement { chain: Chain::Unchained, ..self }
    }

    /// After another receipt, whose statement has this entry ID.
    pub fn after(self, previous: EntryDigest, position: u64) -> Self {
        VrfStatement { chain: Chain::Link { position, previous }, ..self }
    }

    /// Signs with a verifier's Ed25519 key, then reads the result as a log would.
    pub fn sign(&self, verifier: &dyn Signer) -> Result<SignedStatement, BuildVrfError> {
        let statement = self.builder(verifier).sign(verifier)?;
        match self.redacted {
            true => VrfRedacted::verify(&statement, None)?.disclose(&self.byte_string())?,
            false => VrfRecord::verify(&statement, None)?,
        };
        Ok(statement)
    }

    /// The statement before it is signed and checked: for those who need to change it.
    pub fn builder(&self, verifier: &dyn Signer) -> StatementBuilder {
        let did = verifier.public_key().did_key();
        let text = |text: &str| Cbor::from(text.to_owned());
        let [version, issuer, receipt_id, ..] = LABELS;
        let id = self.receipt.get("receipt_id").and_then(Value::as_str).unwrap_or_default();
        let builder = self
            .with_payload()
            .kid(kid_of(&did))
            .iss(&did)
            .sub(&self.sub)
            .label(version, text(VERSION))
            .label(issuer, text(&did))
            .label(receipt_id, text(id));
        self.with_chain(builder)
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
