//! Signed receipts: the gateway's signatures over the canonical form without them (section 6.1; ).
//!
//! The statement on a log that contains the receipt has its own signature. A log's COSE receipts are never among these
//! signatures: they are stored separately, because the receipt's bytes may not change after it is signed.

use jose::BrokenRule;
use jose::members::{Rule, quote};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use scitt::{PublicKey, Signer};
use serde_json::{Value, json};

use super::receipt::ExecutionReceipt;
use super::rule::AerRule;
use super::{read, wire};
use crate::signed::{ObjectSignature, SIGNATURES, SigningError, content, object_signature};
use crate::text::AerId;

/// An execution receipt with its bytes. Its signatures have the right form; [`verify`](SignedReceipt::verify) verifies
/// them.
#[derive(Clone, Debug, PartialEq)]
pub struct SignedReceipt {
    receipt: ExecutionReceipt,
    signatures: Vec<ObjectSignature>,
    /// The content that the signatures sign.
    content: Vec<u8>,
    /// The canonical form, with signatures.
    bytes: Vec<u8>,
    document: Value,
}

/// The error of [`ExecutionReceipt::sign`].
#[derive(Debug, thiserror::Error)]
pub enum SignReceiptError {
    /// The receipt would break a rule, so no log would admit it.
    #[error("this execution receipt breaks a rule: {0}")]
    Rule(#[from] BrokenRule),
    /// The key cannot sign.
    #[error(transparent)]
    Sign(#[from] SigningError),
}

impl ExecutionReceipt {
    /// Signs the receipt with a gateway's Ed25519 key, under the key's name in the registry, and reads the result as a
    /// log would.
    ///
    /// # Errors
    /// [`SignReceiptError`] if the receipt breaks a rule, for example by a name that is too long, or if the key cannot
    /// sign it.
    pub fn sign(&self, signer: &str, key: &dyn Signer) -> Result<SignedReceipt, SignReceiptError> {
        let mut document = wire::document(self);
        let signature = inner_signature(signer, &document, key)?;
        if let Value::Object(members) = &mut document {
            members.insert(SIGNATURES.to_owned(), json!([signature]));
        }
        Ok(SignedReceipt::parse(&jose::jcs::canonical(&document))?)
    }
}

/// Signs the JSON of a receipt, which need not keep the rules. Returns the element for the member `signatures`.
///
/// # Errors
/// [`SigningError`] if the key is not an Ed25519 key, or cannot sign.
pub fn inner_signature(signer: &str, receipt: &Value, key: &dyn Signer) -> Result<Value, SigningError> {
    object_signature(signer, &content(receipt.clone()), key)
}

impl SignedReceipt {
    /// Parses a receipt from its canonical JSON.
    ///
    /// # Errors
    /// [`BrokenRule`] with the name of an [`AerRule`].
    pub fn parse(bytes: &[u8]) -> Result<SignedReceipt, BrokenRule> {
        let document = read::canonical_json(bytes)?;
        let (receipt, signatures) = read::receipt(&document)?;
        let content = content(document.clone());
        Ok(SignedReceipt { receipt, signatures, content, bytes: bytes.to_vec(), document })
    }

    /// Returns the contents of the receipt.
    pub fn receipt(&self) -> &ExecutionReceipt {
        &self.receipt
    }

    /// Returns the receipt's identifier.
    pub fn aer_id(&self) -> &AerId {
        &self.receipt.aer_id
    }

    /// Returns the signatures in order.
    pub fn signatures(&self) -> &[ObjectSignature] {
        &self.signatures
    }

    /// Returns the canonical JSON: the payload of the receipt's statement.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the JSON of the receipt.
    pub fn document(&self) -> &Value {
        &self.document
    }

    /// Verifies every signature with the keys that `keys_of` returns for its signer. A signature without a key, or one
    /// that does not verify, refuses the receipt, even if the others verify.
    ///
    /// # Errors
    /// [`BrokenRule`] with the first signature that fails.
    pub fn verify<'k>(&self, keys_of: impl Fn(&str) -> Vec<&'k PublicKey>) -> Result<(), BrokenRule> {
        for (position, signature) in self.signatures.iter().enumerate() {
            let signer = signature.signer.as_str();
            let keys = keys_of(signer);
            if keys.is_empty() {
                let detail = format!("no key of the gateway is called {}", quote(signer));
                return Err(AerRule::Signer.broken(format!("/signatures/{position}/signer"), detail));
            }
            if !keys.iter().any(|key| signature.is_by(key, &self.content)) {
                let detail = format!("not a signature of {} over this receipt", quote(signer));
                return Err(AerRule::Signature.broken(format!("/signatures/{position}/sig"), detail));
            }
        }
        Ok(())
    }
}

impl JsonSchema for SignedReceipt {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ExecutionReceipt".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        wire::schema(generator)
    }
}
