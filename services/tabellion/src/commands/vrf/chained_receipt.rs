//! Verification of a chained receipt: its statement is fetched, verified offline with the log's receipt, and compared
//! with the service's description. The same for a refused statement that the service reports as a fork.

use data_encoding::BASE64URL_NOPAD;
use registration::vrf::Chain as Labels;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use verifier::{CheckName, VerificationOutcome};
use vrf_evidence::{EvidenceFault, VrfEvidence};

use crate::console::Failure;
use crate::entry_evidence::{EntryEvidence, EvidenceSource};
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

/// A refused receipt whose position another receipt has.
#[derive(Deserialize, Serialize)]
pub(super) struct ChainFork {
    pub(super) number: u64,
    pub(super) rule: String,
    pub(super) registered: String,
    pub(super) refused: String,
    /// True if the refused statement was fetched, and its issuer signed it for a position of this chain.
    #[serde(skip_deserializing)]
    pub(super) proven: bool,
    /// The reason, if it is not proven.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
}

/// The verifier and the agent of a chain.
#[derive(Clone, Copy)]
pub(super) struct ChainName<'n> {
    pub(super) issuer: &'n str,
    pub(super) subject: &'n str,
}

impl ReceiptCheck {
    fn new(outcome: VerificationOutcome, reason: Option<String>) -> Self {
        Self { outcome, verified: outcome == VerificationOutcome::Verified, reason }
    }

    /// Fetches and verifies the statement of a receipt in this chain.
    pub(super) fn fetch(
        source: &EvidenceSource<'_>,
        chain: ChainName<'_>,
        receipt: &ChainedReceipt,
    ) -> Result<Self, Failure> {
        let failed = |reason: String| Self::new(VerificationOutcome::Failed, Some(reason));
        Ok(match source.fetch(&receipt.entry_id)? {
            EntryEvidence::Wrong(fault) => failed(fault.to_string()),
            EntryEvidence::NotServed(fault) => Self::new(VerificationOutcome::NotVerified, Some(fault.code)),
            EntryEvidence::Read(evidence) => match contradiction(&evidence, chain, receipt) {
                Some(why) => failed(why),
                None => Self::new(evidence.outcome, evidence.fault().map(|fault| fault.code)),
            },
        })
    }
}

/// Describes a contradiction between the statement and the service's description; `None` if they agree.
fn contradiction(evidence: &VrfEvidence, chain: ChainName<'_>, receipt: &ChainedReceipt) -> Option<String> {
    let (position, previous) = match place(evidence, chain) {
        Ok(place) => place,
        Err(why) => return Some(why),
    };
    if (position, &previous) != (receipt.position, &receipt.previous) {
        let previous = previous.as_deref().unwrap_or("none");
        return Some(format!("it says that it is number {position}, after {previous}"));
    }
    let verdict = evidence.verdict().map(|verdict| verdict.as_str());
    (verdict != receipt.verdict.as_deref())
        .then(|| format!("its verdict is {}", verdict.unwrap_or("not disclosed")))
}

/// The position that a statement claims in this chain, and its predecessor.
fn place(evidence: &VrfEvidence, chain: ChainName<'_>) -> Result<(u64, Option<String>), String> {
    if evidence.issuer != chain.issuer || evidence.subject != chain.subject {
        return Err("it is of another chain".to_owned());
    }
    match evidence.chain {
        Labels::Unchained => Err("it is of no chain".to_owned()),
        Labels::Genesis => Ok((0, None)),
        Labels::Link { position, previous } => Ok((position, Some(previous.to_string()))),
    }
}

impl ChainFork {
    /// Fetches the refused statement, and checks that its issuer signed it for the place of the registered receipt.
    pub(super) fn prove(
        &mut self,
        service: &Service,
        source: &EvidenceSource<'_>,
        chain: ChainName<'_>,
        receipts: &[ChainedReceipt],
    ) -> Result<(), Failure> {
        let after = self.number.checked_sub(1).map(|before| format!("&after={before}")).unwrap_or_default();
        let page: Json =
            service.block_on(service.client.json(&format!("v1/equivocations?limit=1{after}")))?;
        let proof = self.refused_statement(&page).and_then(|statement| {
            let registered = receipts.iter().find(|receipt| receipt.entry_id == self.registered);
            self.claims_the_place(&statement, source, chain, registered)
        });
        (self.proven, self.reason) = (proof.is_ok(), proof.err());
        Ok(())
    }

    fn refused_statement(&self, page: &Json) -> Result<Vec<u8>, String> {
        let report = page.pointer("/equivocations/0").filter(|report| report["number"] == self.number);
        let statement = report.and_then(|report| report.pointer("/refused/statement")?.as_str());
        let statement = statement.ok_or("the service does not serve the refused statement")?;
        BASE64URL_NOPAD.decode(statement.as_bytes()).map_err(|error| error.to_string())
    }

    fn claims_the_place(
        &self,
        statement: &[u8],
        source: &EvidenceSource<'_>,
        chain: ChainName<'_>,
        registered: Option<&ChainedReceipt>,
    ) -> Result<(), String> {
        let describe = |fault: EvidenceFault| fault.to_string();
        let refused = source.verify_unregistered(statement).map_err(describe)?;
        if refused.entry.to_string() != self.refused {
            return Err("the service serves another statement".to_owned());
        }
        if !refused.passed(CheckName::IssuerSignature) {
            return Err("the issuer's signature is not verified".to_owned());
        }
        let (position, previous) = place(&refused, chain)?;
        let registered = registered.ok_or("the receipt that has its place is not of this chain")?;
        match position == registered.position || (previous.is_some() && previous == registered.previous) {
            true => Ok(()),
            false => Err(format!("it claims position {position}, not that of the registered receipt")),
        }
    }
}
