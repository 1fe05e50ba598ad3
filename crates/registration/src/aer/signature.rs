//! The gateway's signatures within a receipt, over its canonical form without them (section 6.1; ).
//!
//! The statement that contains the receipt has its own signature. A log's COSE receipts are never among these
//! signatures: they are stored separately, because the receipt's bytes may not change after it is signed.

use data_encoding::BASE64URL_NOPAD;
use jose::members::quote;
use scitt::{Algorithm, PublicKey};
use serde_json::Value;

use super::members::{At, Members};
use super::rule::AerRule;
use crate::limits::MAX_AER_SIGNATURES;
use crate::violation::Violation;

/// The draft's name of the algorithm.
pub(super) const ALG: &str = "EdDSA";

/// A signature whose form is valid, but which is not yet verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InnerSignature {
    /// The name of the signer, as the gateway states it.
    pub signer: String,
    bytes: Vec<u8>,
}

impl InnerSignature {
    pub(super) fn read_all(top: &Members<'_>) -> Result<Vec<InnerSignature>, Violation> {
        let Value::Array(items) = top.required("signatures")? else {
            return Err(top.broken(AerRule::Member, "signatures", "an array is needed here"));
        };
        if items.is_empty() || items.len() > MAX_AER_SIGNATURES {
            let detail = format!("{} signatures, from 1 to {MAX_AER_SIGNATURES} are needed", items.len());
            return Err(top.broken(AerRule::Signatures, "signatures", &detail));
        }
        items.iter().enumerate().map(|(i, item)| InnerSignature::read(item, At::Signature(i))).collect()
    }

    fn read(item: &Value, at: At) -> Result<InnerSignature, Violation> {
        let item = Members::open(item, at, &["signer", "alg", "sig"])?;
        let signer = item.text("signer")?;
        let algorithm = item.raw("alg")?;
        if algorithm != ALG {
            return Err(item.unfit(AerRule::SignatureAlgorithm, "alg", algorithm, "\"EdDSA\""));
        }
        let text = item.raw("sig")?;
        match BASE64URL_NOPAD.decode(text.as_bytes()) {
            Ok(bytes) if bytes.len() == 64 => Ok(InnerSignature { signer, bytes }),
            _ => {
                let needed = "64 bytes in base64url without padding or prefix";
                Err(item.unfit(AerRule::SignatureForm, "sig", text, needed))
            }
        }
    }

    /// Verifies the signature over this content with an Ed25519 key; malleable signatures and weak keys are rejected.
    pub fn is_by(&self, key: &PublicKey, content: &[u8]) -> bool {
        key.verify(Algorithm::EdDsa, content, &self.bytes).is_ok()
    }
}

/// Verifies every signature with the keys that `of` returns for its signer. A signature without a key, or one that does
/// not verify, refuses the receipt, even if the others verify.
pub(super) fn check_all<'k>(
    signatures: &[InnerSignature],
    content: &[u8],
    of: impl Fn(&str) -> Vec<&'k PublicKey>,
) -> Result<(), Violation> {
    for (i, signature) in signatures.iter().enumerate() {
        let keys = of(&signature.signer);
        if keys.is_empty() {
            let detail = format!("no key of the gateway is called {}", quote(&signature.signer));
            return Err(AerRule::Signer.in_payload(format!("/signatures/{i}/signer"), detail));
        }
        if !keys.iter().any(|key| signature.is_by(key, content)) {
            let detail = format!("not a signature of {} over this receipt", quote(&signature.signer));
            return Err(AerRule::Signature.in_payload(format!("/signatures/{i}/sig"), detail));
        }
    }
    Ok(())
}
