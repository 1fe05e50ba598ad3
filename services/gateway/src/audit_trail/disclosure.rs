//! The disclosure of a record: its statement, its key, and the texts that it commits to.

use std::collections::BTreeMap;

use data_encoding::BASE64;
use jose::BrokenRule;
use registration::{Violation, check_content};
use scitt::SignedStatement;
use serde::{Deserialize, Serialize};
use vap::audit::{AuditRecord, VAP_AUDIT};
use vap::record_key::RecordKey;

use super::disclosed_record::DisclosedRecord;
use crate::annex::Text;

/// A record of a gateway with the texts that it commits to.
///
/// The key opens this record and no other. With it, texts that are left out can be guessed and tried, so that a short one
/// is not secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Disclosure {
    /// The statement S as registered, in base64.
    pub statement: String,
    /// The log's receipt, in base64, if the gateway has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt: Option<String>,
    /// The key of the record, in base64url.
    pub key: String,
    /// The committed texts by member, in canonical JSON.
    pub texts: BTreeMap<String, Text>,
}

/// The reason why a disclosure cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DisclosureError {
    /// A member is not base64.
    #[error("{0} is not base64")]
    Base64(&'static str),
    /// The key is not 32 bytes.
    #[error("the key is 32 bytes in base64url")]
    Key,
    /// The statement cannot be parsed.
    #[error("the statement cannot be parsed: {0}")]
    Statement(#[from] scitt::Malformed),
    /// The statement has no payload in it.
    #[error("the statement has no payload")]
    Payload,
    /// The statement is of another content type.
    #[error("the statement is not {VAP_AUDIT}")]
    ContentType,
    /// The statement breaks a rule of audit records, such as that the gateway is its issuer.
    #[error("the statement is not an audit record of its issuer: {0}")]
    Rule(Violation),
    /// The payload is not an audit record.
    #[error("the payload is not an audit record: {0}")]
    Record(#[from] BrokenRule),
}

impl Disclosure {
    /// Parses the statement.
    ///
    /// # Errors
    /// [`DisclosureError::Base64`] or [`DisclosureError::Statement`].
    pub fn signed_statement(&self) -> Result<SignedStatement, DisclosureError> {
        let bytes =
            BASE64.decode(self.statement.as_bytes()).map_err(|_| DisclosureError::Base64("the statement"))?;
        Ok(SignedStatement::parse(bytes)?)
    }

    /// Returns the bytes of the log's receipt, if there is one.
    ///
    /// # Errors
    /// [`DisclosureError::Base64`].
    pub fn receipt_bytes(&self) -> Result<Option<Vec<u8>>, DisclosureError> {
        let decode = |text: &String| BASE64.decode(text.as_bytes());
        self.receipt.as_ref().map(decode).transpose().map_err(|_| DisclosureError::Base64("the receipt"))
    }

    /// Reads the record, and compares each text with what it commits to. The statement's signature is not verified.
    ///
    /// # Errors
    /// [`DisclosureError`] if the disclosure is malformed; a text that the record does not commit to is not an error but a
    /// [`TextProof::Contradicted`](super::TextProof::Contradicted).
    pub fn open(&self) -> Result<DisclosedRecord, DisclosureError> {
        let key = RecordKey::from_text(&self.key).ok_or(DisclosureError::Key)?;
        let statement = self.signed_statement()?;
        if statement.header().content_type().and_then(|content_type| content_type.as_text())
            != Some(VAP_AUDIT)
        {
            return Err(DisclosureError::ContentType);
        }
        check_content(&statement, None).map_err(DisclosureError::Rule)?;
        let record = AuditRecord::read(statement.payload().ok_or(DisclosureError::Payload)?)?;
        Ok(DisclosedRecord::new(statement.digest(), &record, &key, &self.texts))
    }

    /// Adds the log's receipt.
    #[must_use]
    pub fn with_receipt(mut self, receipt: &[u8]) -> Self {
        self.receipt = Some(BASE64.encode(receipt));
        self
    }

    /// Keeps only the texts of these members.
    #[must_use]
    pub fn with_members(mut self, members: &[String]) -> Self {
        self.texts.retain(|member, _| members.contains(member));
        self
    }
}
