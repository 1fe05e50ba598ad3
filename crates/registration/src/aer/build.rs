//! Creation of execution statements: from a receipt and a gateway's keys to a statement that a log can admit.

use roa::aer::{self, ExecutionReceipt, SignedReceipt};
use roa::signed::SigningError;
use scitt::header::{ContentType, HashEnvelope};
use scitt::{BuildError, SignedStatement, Signer, StatementBuilder};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{AER_JSON, AerRecord};
use crate::violation::Violation;

/// The COSE algorithm identifier of SHA-256 (RFC 9054).
pub(super) const SHA_256: i64 = -16;

/// An error from building an execution statement.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildAerError {
    /// The statement would break a rule, so no log would admit it.
    #[error("this execution receipt breaks a rule: {0}")]
    Violates(#[from] Violation),
    /// Signing the receipt failed, for example because the gateway's key is not an Ed25519 key.
    #[error(transparent)]
    Sign(#[from] SigningError),
    /// Building or signing the statement failed.
    #[error(transparent)]
    Build(#[from] BuildError),
}

/// The value of the statement's `sub`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Subject {
    #[default]
    Receipt,
    Session,
}

/// A builder for the statement of an execution receipt.
#[derive(Clone, Debug)]
pub struct AerStatement {
    receipt: Value,
    iss: Option<String>,
    kid: Option<Vec<u8>>,
    signer: Option<String>,
    subject: Subject,
    redacted: bool,
}

impl AerStatement {
    /// Creates a statement of this receipt (JSON of section 6.1). By default its `sub` is the receipt's `aer_id`, and
    /// its `iss` the did:key of the signer.
    pub fn new(receipt: Value) -> Self {
        AerStatement {
            receipt,
            iss: None,
            kid: None,
            signer: None,
            subject: Subject::Receipt,
            redacted: false,
        }
    }

    /// Sets `iss` to a gateway whose keys the policy of a log lists.
    pub fn iss(self, iss: impl Into<String>) -> Self {
        AerStatement { iss: Some(iss.into()), ..self }
    }

    /// Sets the `kid` of the statement; the default is the key's thumbprint.
    pub fn kid(self, kid: impl Into<Vec<u8>>) -> Self {
        AerStatement { kid: Some(kid.into()), ..self }
    }

    /// Sets `signer` of the receipt's signature; the default is its `gateway_id`. A policy may list several keys.
    pub fn signer(self, signer: impl Into<String>) -> Self {
        AerStatement { signer: Some(signer.into()), ..self }
    }

    /// Sets `sub` to the session, under which all its receipts are then found.
    pub fn about_session(self) -> Self {
        AerStatement { subject: Subject::Session, ..self }
    }

    /// Registers the receipt by its hash: the gateway keeps the receipt and discloses it on audit.
    pub fn redacted(self) -> Self {
        AerStatement { redacted: true, ..self }
    }

    /// Returns the canonical receipt. If it has no `signatures`, it is signed with the gateway's key.
    pub fn receipt(&self, gateway: &dyn Signer) -> Result<Vec<u8>, BuildAerError> {
        let mut receipt = self.receipt.clone();
        if let Value::Object(members) = &mut receipt
            && !members.contains_key("signatures")
        {
            let signature = match &self.signer {
                Some(signer) => aer::inner_signature(signer, &self.receipt, gateway)?,
                None => inner_signature(&self.receipt, gateway)?,
            };
            members.insert("signatures".to_owned(), json!([signature]));
        }
        Ok(jose::jcs::canonical(&receipt))
    }

    /// Signs receipt and statement with one key, and validates the result as a log would.
    pub fn sign(&self, gateway: &dyn Signer) -> Result<SignedStatement, BuildAerError> {
        self.sign_with(gateway, gateway)
    }

    /// Signs the receipt with the gateway's Ed25519 key and the statement with the issuer's key, and validates the
    /// result.
    pub fn sign_with(
        &self,
        gateway: &dyn Signer,
        issuer: &dyn Signer,
    ) -> Result<SignedStatement, BuildAerError> {
        let payload = self.receipt(gateway)?;
        let receipt = SignedReceipt::parse(&payload).map_err(Violation::from)?;
        let builder = self.builder(payload.clone(), receipt.receipt(), issuer);
        let statement = builder.sign(issuer)?;
        AerRecord::read(statement.header(), &payload)?;
        Ok(statement)
    }

    fn builder(&self, payload: Vec<u8>, receipt: &ExecutionReceipt, issuer: &dyn Signer) -> StatementBuilder {
        let key = issuer.public_key();
        let sub = match self.subject {
            Subject::Receipt => receipt.aer_id.as_str(),
            Subject::Session => receipt.session.id.as_str(),
        };
        let builder = match self.redacted {
            true => StatementBuilder::new(Sha256::digest(&payload).to_vec()).hash_envelope(&HashEnvelope {
                algorithm: SHA_256,
                preimage_content_type: Some(ContentType::Text(AER_JSON.to_owned())),
                location: None,
            }),
            false => StatementBuilder::new(payload).content_type(AER_JSON),
        };
        builder
            .kid(self.kid.clone().unwrap_or_else(|| key.thumbprint().to_vec()))
            .iss(&self.iss.clone().unwrap_or_else(|| key.did_key()))
            .sub(sub)
    }
}

/// Signs a receipt with the gateway's key, under its `gateway_id`. Returns the element for the member `signatures`.
pub fn inner_signature(receipt: &Value, gateway: &dyn Signer) -> Result<Value, SigningError> {
    let id = receipt.pointer("/border_gateway/gateway_id").and_then(Value::as_str);
    aer::inner_signature(id.unwrap_or_default(), receipt, gateway)
}
