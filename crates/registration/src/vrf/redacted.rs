//! Verification receipts registered by their hash (section 8.2, RFC 9995; reading 21).
//!
//! The payload is the SHA-256 of the payload of an `application/vrf+cbor` statement: the byte string with its head. The
//! labels are present, so an issuer's chain continues without a gap, but the log does not know the receipt's contents,
//! not even the verdict. [`VrfRedacted::disclose`] checks a disclosed byte string against the statement.
//!
//! Not here: the policy's decision about such a statement, and encryption of undisclosed receipts.

use scitt::header::{ContentType, Header};
use scitt::{HashEnvelope, PublicKey, SignedStatement};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::form::{self, Form};
use super::headers::VrfHeaders;
use super::receipt::Receipt;
use super::rule::VrfRule;
use super::{VRF_CBOR, VrfRecord, check_signature, key_of_issuer, unlike};
use crate::facts::Facts;
use crate::profile::ProfileRecord;
use crate::violation::Violation;

/// The COSE algorithm identifier of SHA-256 (RFC 9054).
const SHA_256: i64 = -16;

/// A VRF statement that contains the hash of a receipt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VrfRedacted {
    /// The parsed protected header.
    pub headers: VrfHeaders,
    /// The SHA-256 digest of the receipt's byte string.
    pub receipt: [u8; 32],
}

impl VrfRedacted {
    /// Parses a statement's protected header and payload. The signature is not verified here.
    pub fn read(header: &Header, payload: &[u8]) -> Result<VrfRedacted, Violation> {
        check_envelope(header)?;
        let receipt = payload.try_into().map_err(|_| {
            VrfRule::RedactedEnvelope.in_payload("", format!("{} bytes are not SHA-256", payload.len()))
        })?;
        let headers = VrfHeaders::read(header)?;
        headers.stand_alone()?;
        Ok(VrfRedacted { headers, receipt })
    }

    /// Verifies a statement without a policy: its rules, and its signature with the key in its `iss`.
    pub fn verify(statement: &SignedStatement, detached: Option<&[u8]>) -> Result<VrfRedacted, Violation> {
        VrfRedacted::verify_with(statement, detached, &key_of_issuer(statement)?)
    }

    /// Verifies a statement without a policy: its rules, and its signature with this key, which the caller trusts for its
    /// `iss`.
    pub fn verify_with(
        statement: &SignedStatement,
        detached: Option<&[u8]>,
        key: &PublicKey,
    ) -> Result<VrfRedacted, Violation> {
        let payload = statement.payload().or(detached).unwrap_or_default();
        let redacted = VrfRedacted::read(statement.header(), payload)?;
        check_signature(statement, detached, key).map(|()| redacted)
    }

    /// Checks a disclosed receipt: it must have the hash in the statement, and keep every rule that a log would have
    /// checked.
    pub fn disclose(&self, byte_string: &[u8]) -> Result<VrfRecord, Violation> {
        if Sha256::digest(byte_string)[..] != self.receipt {
            return Err(VrfRule::Disclosure.in_payload("", "the statement has the SHA-256 of other bytes"));
        }
        let json = form::canonical_json(Form::B.open(byte_string)?)?;
        let receipt = Receipt::read(&json)?;
        self.headers.agree_with(&receipt)?;
        let VrfHeaders { issuer, chain, .. } = self.headers.clone();
        Ok(VrfRecord { form: Form::B, receipt, issuer, chain, document: json })
    }

    /// The hash in the format of receipts: `sha256:` and 64 hexadecimal digits.
    pub fn receipt_hash(&self) -> String {
        format!("sha256:{}", data_encoding::HEXLOWER.encode(&self.receipt))
    }
}

impl ProfileRecord for VrfRedacted {
    fn facts(&self, facts: &mut Facts) {
        facts.put("redacted", true.into());
        facts.text("receipt_id", &self.headers.receipt_id);
        facts.text("receipt_hash", &self.receipt_hash());
        self.headers.chain.state(facts);
    }

    fn document(&self) -> serde_json::Value {
        json!({ "redacted": true, "receipt_id": self.headers.receipt_id, "vrf_version": self.headers.version })
    }
}

/// The hash envelope for redacted receipts.
pub(super) fn envelope() -> HashEnvelope {
    HashEnvelope { algorithm: SHA_256, preimage_content_type: Some(VRF_CBOR.into()), location: None }
}

fn check_envelope(header: &Header) -> Result<(), Violation> {
    let refuse = |label, detail: String| Err(VrfRule::RedactedEnvelope.in_header(label, detail));
    let Some(envelope) = header.hash_envelope() else {
        return refuse("258", "the statement does not say that its payload is a hash".to_owned());
    };
    if envelope.algorithm != SHA_256 {
        return refuse("258", format!("hash algorithm {} is not SHA-256 (-16)", envelope.algorithm));
    }
    let preimage = envelope.preimage_content_type.as_ref().and_then(ContentType::as_text).unwrap_or_default();
    match Form::of_content_type(preimage) {
        Some(Form::B) => Ok(()),
        _ => refuse("259", unlike(preimage, VRF_CBOR)),
    }
}
