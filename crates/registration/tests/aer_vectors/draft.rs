//! An execution statement whose every part can be made wrong.

use registration::aer::{AER_JSON, inner_signature};
use scitt::header::{ContentType, HashEnvelope};
use scitt::{Signer, SigningKey, StatementBuilder};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use testkit::{GATEWAY, KID, aer_json, gateway};

/// The parts of a statement. It starts out as one that keeps every rule: a permit of the tests' gateway.
pub struct Draft {
    payload: Vec<u8>,
    iss: String,
    kid: Vec<u8>,
    sub: String,
    signer: SigningKey,
    redacted: bool,
}

impl Draft {
    /// A permit that keeps every rule, changed and then signed by the gateway.
    pub fn changed(change: impl FnOnce(&mut Value)) -> Draft {
        let mut receipt = aer_json(0);
        change(&mut receipt);
        Draft::of(receipt)
    }

    /// This receipt, signed by the gateway.
    pub fn of(mut receipt: Value) -> Draft {
        let signature = inner_signature(&receipt, &gateway()).unwrap();
        if receipt.get("signatures").is_none() {
            receipt["signatures"] = json!([signature]);
        }
        Draft::of_json(&jose::jcs::canonical(&receipt)).about(&receipt)
    }

    /// A receipt that keeps every rule and is signed, changed after that.
    pub fn tampered(change: impl FnOnce(&mut Value)) -> Draft {
        let mut receipt = signed();
        change(&mut receipt);
        Draft::of_json(&jose::jcs::canonical(&receipt)).about(&receipt)
    }

    /// Exactly these bytes.
    pub fn of_json(json: &[u8]) -> Draft {
        Draft {
            payload: json.to_vec(),
            iss: GATEWAY.to_owned(),
            kid: KID.as_bytes().to_vec(),
            sub: String::new(),
            signer: gateway(),
            redacted: false,
        }
        .about(&aer_json(0))
    }

    fn about(self, receipt: &Value) -> Draft {
        self.sub(receipt["aer_id"].as_str().unwrap_or_default())
    }

    pub fn sub(self, sub: &str) -> Draft {
        Draft { sub: sub.to_owned(), ..self }
    }

    /// Another issuer, under its key's did:key.
    pub fn by(self, signer: SigningKey) -> Draft {
        let (iss, kid) = (signer.public_key().did_key(), signer.public_key().thumbprint().to_vec());
        Draft { iss, kid, signer, ..self }
    }

    /// Registered by its SHA-256.
    pub fn redacted(self) -> Draft {
        Draft { redacted: true, ..self }
    }

    pub fn sign(self) -> Vec<u8> {
        let builder = match self.redacted {
            true => {
                StatementBuilder::new(Sha256::digest(&self.payload).to_vec()).hash_envelope(&HashEnvelope {
                    algorithm: -16,
                    preimage_content_type: Some(ContentType::Text(AER_JSON.to_owned())),
                    location: None,
                })
            }
            false => StatementBuilder::new(self.payload).content_type(AER_JSON),
        };
        builder.kid(self.kid).iss(&self.iss).sub(&self.sub).encode(&self.signer).unwrap()
    }
}

/// The permit that keeps every rule, with the gateway's signature.
pub fn signed() -> Value {
    let mut receipt = aer_json(0);
    receipt["signatures"] = json!([inner_signature(&receipt, &gateway()).unwrap()]);
    receipt
}

/// Its canonical JSON, with one piece of text replaced.
pub fn text_with(from: &str, to: &str) -> Draft {
    let text = String::from_utf8(jose::jcs::canonical(&signed())).unwrap();
    assert!(text.contains(from), "{from} is not in {text}");
    Draft::of_json(text.replacen(from, to, 1).as_bytes())
}
