//! Signed statements of the gateway's records, and the address of each at the log.
//!
//! A statement is a COSE_Sign1 over the record's canonical JSON, with the evidence key's RFC 9679 thumbprint as
//! `kid`, the gateway as `iss` and the stream as `sub`. The unprotected header is empty, so the message is the
//! statement S, its SHA-256 is the entry ID, and the entry's address is known before the log has the entry.
//!
//! Not here: the content of a record (`admission::record`).

use std::sync::Arc;

use bytes::Bytes;
use merkle::EntryDigest;
use registration::agentroa::AGENTROA_CHAIN;
use registration::jwk_set::JWK_SET;
use roa::aer::AER_JSON;
use scitt::header::{ContentType, HashEnvelope};
use scitt::{BuildError, Signer, StatementBuilder};
use sha2::{Digest, Sha256};
use vap::audit::VAP_AUDIT;

use crate::authority::ChainToRegister;
use crate::config::ReceiptForm;

/// The COSE algorithm identifier of SHA-256 (RFC 9054).
const SHA_256: i64 = -16;
/// The CWT ID claim, `cti` (RFC 8392, 3.1.7).
const CTI: i64 = 7;

/// The gateway's two signing keys (R-1: an evidence key signs statements, a verdict key signs verdicts).
#[derive(Clone)]
pub struct WriterKeys {
    /// The evidence key, which signs statements.
    pub evidence: Arc<dyn Signer>,
    /// The verdict key, which signs Verdicts.
    pub verdict: Arc<dyn Signer>,
    /// The public verdict keys as a JWK Set: the active one first, then the retired ones. Registered at the log when it
    /// changes.
    pub jwk_set: serde_json::Value,
}

/// A statement and its entry ID.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedRecord {
    /// SHA-256 of the statement.
    pub id: EntryDigest,
    /// The statement S, stored and sent to the log in exactly these bytes.
    pub statement: Bytes,
}

/// Builds and signs the gateway's statements.
#[derive(Clone)]
pub struct RecordSigner {
    evidence: Arc<dyn Signer>,
    kid: [u8; 32],
    issuer: String,
    log: String,
}

impl RecordSigner {
    /// A signer of statements of `issuer` for the log with the public URL `log`.
    pub fn new(evidence: Arc<dyn Signer>, issuer: &str, log: &str) -> Self {
        let kid = evidence.public_key().thumbprint();
        Self { evidence, kid, issuer: issuer.to_owned(), log: log.trim_end_matches('/').to_owned() }
    }

    /// Returns the gateway's name, the `iss` of its statements.
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Signs the statement of a stream's audit record.
    ///
    /// # Errors
    /// [`BuildError`] if the signer fails, or the record cannot be the payload of a statement.
    pub fn audit_record(&self, record: Vec<u8>, stream: &str) -> Result<SignedRecord, BuildError> {
        self.sign(StatementBuilder::new(record).content_type(VAP_AUDIT).sub(stream))
    }

    /// Signs the statement of an execution receipt: its bytes never change after the receipt is signed.
    ///
    /// # Errors
    /// [`BuildError`] if the signer fails.
    pub fn execution_receipt(
        &self,
        receipt: &[u8],
        aer_id: &str,
        form: ReceiptForm,
    ) -> Result<SignedRecord, BuildError> {
        let builder = match form {
            ReceiptForm::Plain => StatementBuilder::new(receipt).content_type(AER_JSON),
            ReceiptForm::Hash => {
                StatementBuilder::new(Sha256::digest(receipt).to_vec()).hash_envelope(&HashEnvelope {
                    algorithm: SHA_256,
                    preimage_content_type: Some(ContentType::Text(AER_JSON.to_owned())),
                    location: None,
                })
            }
        };
        self.sign(builder.sub(aer_id))
    }

    /// Signs the statement of a delegation chain. It has no time, so that a chain that is registered again is the same entry
    ///
    ///
    /// # Errors
    /// [`BuildError`] if the signer fails.
    pub fn delegation_chain(&self, chain: ChainToRegister) -> Result<SignedRecord, BuildError> {
        let digest = chain.digest.to_string();
        self.sign(StatementBuilder::new(chain.canonical).content_type(AGENTROA_CHAIN).sub(&digest))
    }

    /// Signs the statement of a key set. The time and the number `seq` make it unique, so that a set which was
    /// registered before can be registered again.
    ///
    /// # Errors
    /// [`BuildError`] if the signer fails.
    pub fn jwk_set(&self, set: Vec<u8>, now: i64, seq: u64) -> Result<SignedRecord, BuildError> {
        let builder = StatementBuilder::new(set).content_type(JWK_SET).sub(&self.issuer).iat(now);
        self.sign(builder.claim(CTI, seq.to_be_bytes().to_vec().into()))
    }

    /// Returns the URL of an entry at the log.
    pub fn audit_ref(&self, id: EntryDigest) -> String {
        format!("{}/entries/{id}", self.log)
    }

    fn sign(&self, builder: StatementBuilder) -> Result<SignedRecord, BuildError> {
        let statement = builder.kid(self.kid).iss(&self.issuer).sign(&self.evidence)?;
        Ok(SignedRecord { id: statement.digest(), statement: statement.bytes().clone() })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use scitt::SignedStatement;

    use super::*;

    fn record_signer() -> RecordSigner {
        RecordSigner::new(Arc::new(testkit::gateway()), testkit::GATEWAY, "https://log.example/")
    }

    #[test]
    fn a_record_becomes_one_statement_however_often_it_is_signed() {
        let record = jose::jcs::canonical(&testkit::decision_json("s-1", 3));
        let signed = record_signer().audit_record(record.clone(), "s-1").unwrap();
        assert_eq!(signed, record_signer().audit_record(record.clone(), "s-1").unwrap());
        let statement = SignedStatement::parse(signed.statement.clone()).unwrap();
        assert_eq!(statement.bytes(), &signed.statement, "nothing stands beside it");
        assert_eq!(statement.digest(), signed.id);
        assert_eq!(statement.payload().unwrap(), &record[..]);
        statement.header().require_scitt().unwrap();
        statement.verify_with(testkit::gateway().public_key(), None).unwrap();
    }

    #[test]
    fn a_statement_says_whose_key_it_is_and_which_stream() {
        let record = jose::jcs::canonical(&testkit::decision_json("s-1", 3));
        let signed = record_signer().audit_record(record, "s-1").unwrap();
        let statement = SignedStatement::parse(signed.statement).unwrap();
        let header = statement.header();
        assert_eq!(header.kid().unwrap()[..], testkit::gateway().public_key().thumbprint());
        let claims = header.claims().unwrap();
        assert_eq!((claims.iss(), claims.sub()), (Some(testkit::GATEWAY), Some("s-1")));
    }

    #[test]
    fn an_entry_has_its_address_before_the_log_has_the_entry() {
        let id = EntryDigest::of(b"a statement");
        assert_eq!(record_signer().audit_ref(id), format!("https://log.example/entries/{id}"));
    }
}
