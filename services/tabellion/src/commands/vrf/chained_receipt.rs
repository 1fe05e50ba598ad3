//! Verification of a chained receipt's statement: it is fetched, verified offline with the log's receipt, and compared
//! with the service's description.

use std::str::FromStr;

use merkle::EntryDigest;
use registration::vrf::{Chain as Labels, VrfHeaders};
use scitt::SignedStatement;
use serde::{Deserialize, Serialize};
use verifier::{Code, StatementEvidence, TrustStore, VerificationOutcome};

use crate::commands::verify::now;
use crate::console::Failure;
use crate::service::Service;

/// A receipt of a chain, as the service describes it, with the result of its verification.
#[derive(Deserialize, Serialize)]
pub(super) struct ChainedReceipt {
    pub(super) entry_id: String,
    pub(super) index: u64,
    pub(super) position: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) previous: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) receipt_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) verdict: Option<String>,
    /// The result of the verification, which is not part of the service's answer.
    #[serde(skip_deserializing, flatten)]
    pub(super) checked: Option<ReceiptCheck>,
}

/// The result of verifying a receipt's statement.
#[derive(Serialize)]
pub(super) struct ReceiptCheck {
    #[serde(skip)]
    pub(super) outcome: VerificationOutcome,
    verified: bool,
    /// The reason, if the statement is not verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
}

impl ReceiptCheck {
    fn new(outcome: VerificationOutcome, reason: Option<String>) -> Self {
        Self { outcome, verified: outcome == VerificationOutcome::Verified, reason }
    }

    /// Fetches and verifies the statement of a receipt in the chain `(issuer, subject)`.
    pub(super) fn fetch(
        service: &Service,
        (issuer, subject): (&str, &str),
        receipt: &ChainedReceipt,
        trust: &TrustStore,
    ) -> Result<Self, Failure> {
        let failed = |reason: String| Ok(Self::new(VerificationOutcome::Failed, Some(reason)));
        let Ok(entry) = EntryDigest::from_str(&receipt.entry_id) else {
            return failed("the service gives something that is no entry ID".to_owned());
        };
        let path = format!("v1/entries/{entry}/transparent");
        let bytes = service.block_on(service.client.bytes_as(&path, "application/cose"))?;
        let verdict = verifier::verify(
            &StatementEvidence { statement: &bytes, ..StatementEvidence::default() },
            trust,
            now(),
        );
        if verdict.outcome == VerificationOutcome::Failed {
            return failed(verdict.reason.map_or("not-verified", Code::as_str).to_owned());
        }
        let statement = match SignedStatement::parse(bytes) {
            Ok(statement) if statement.digest() == entry => statement,
            _ => return failed("the service gives another statement".to_owned()),
        };
        match contradiction(&statement, (issuer, subject), receipt) {
            Some(why) => failed(why),
            None => Ok(Self::new(verdict.outcome, verdict.reason.map(|code| code.as_str().to_owned()))),
        }
    }
}

/// Describes a contradiction between the statement and the service's description; `None` if they agree.
fn contradiction(
    statement: &SignedStatement,
    (issuer, subject): (&str, &str),
    receipt: &ChainedReceipt,
) -> Option<String> {
    let header = statement.header();
    let labels = match VrfHeaders::read(header) {
        Ok(labels) => labels,
        Err(violation) => return Some(violation.to_string()),
    };
    if header.claims().and_then(|claims| claims.iss()) != Some(issuer) || labels.sub != subject {
        return Some("it is of another chain".to_owned());
    }
    let (position, previous) = match labels.chain {
        Labels::Unchained => return Some("it is of no chain".to_owned()),
        Labels::Genesis => (0, None),
        Labels::Link { position, previous } => (position, Some(previous.to_string())),
    };
    let agrees = position == receipt.position && previous == receipt.previous;
    (!agrees).then(|| {
        format!("it says that it is number {position}, after {}", previous.as_deref().unwrap_or("none"))
    })
}
