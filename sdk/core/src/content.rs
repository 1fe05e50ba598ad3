//! The rules of content types, such as VRF receipts and conversation records.

use registration::{ContentCheck, check_content};
use scitt::SignedStatement;
use serde::Deserialize;
use serde_json::{Value, json};
use verifier::{CheckName, StatementEvidence, TrustStore};

use crate::bytes::ByteString;
use crate::error::CoreError;
use crate::statements::parse;

/// Checks a statement against the rules of its content type that depend on the statement alone. Signatures, the rules of a
/// log's policy and those about other entries are not considered.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckContent {
    statement: ByteString,
    /// The payload of a detached statement, or the content of which the statement holds the hash.
    content: Option<ByteString>,
}

impl CheckContent {
    pub(crate) fn check(self) -> Result<Value, CoreError> {
        let statement = parse(self.statement)?;
        let content = self.content.map(|content| content.0);
        let extent = match check_content(&statement, content.as_deref()) {
            Ok(ContentCheck::NoRules) => "no-rules",
            Ok(ContentCheck::Complete) => "complete",
            Ok(ContentCheck::HeaderOnly) => "header-only",
            Ok(ContentCheck::PayloadMissing) => "payload-missing",
            Err(violation) => {
                let what = format!("{} (at {})", violation.detail, violation.place);
                return Err(CoreError::new(violation.rule.as_str(), what));
            }
        };
        refuse_other(&statement, content.as_deref())?;
        Ok(json!({ "checked": extent }))
    }
}

/// Refuses content that is not the one in the statement, or of which it does not hold the hash. Whether a detached payload is the
/// one that was signed, only the signature tells.
fn refuse_other(statement: &SignedStatement, content: Option<&[u8]>) -> Result<(), CoreError> {
    let Some(content) = content.filter(|_| !statement.is_detached()) else { return Ok(()) };
    let evidence = StatementEvidence {
        statement: statement.bytes(),
        payload: Some(content),
        ..StatementEvidence::default()
    };
    let verdict = verifier::verify(&evidence, &TrustStore::default(), 0);
    let compared = verdict.checks_named(CheckName::Payload).next();
    match compared.and_then(|check| Some((check.code?, &check.detail))) {
        Some((code, detail)) => Err(CoreError::new(code.as_str(), detail)),
        None => Ok(()),
    }
}
