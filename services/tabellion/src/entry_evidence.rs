//! VRF statements of a log, each fetched with the receipt that dates its registration best, and verified offline.

use std::str::FromStr;

use bytes::Bytes;
use client::ClientError;
use merkle::EntryDigest;
use scitt::{Problem, SignedStatement};
use verifier::{StatementEvidence, TrustStore};
use vrf_evidence::{EvidenceFault, VrfEvidence, VrfVerifier};

use crate::console::Failure;
use crate::service::Service;

/// The evidence that an entry gives.
pub enum EntryEvidence {
    /// A VRF statement, with the result of its verification.
    Read(Box<VrfEvidence>),
    /// The service does not serve the statement, for example because it was erased.
    NotServed(EvidenceFault),
    /// The service serves something that is not a VRF statement that keeps the rules, or not this entry.
    Wrong(EvidenceFault),
}

/// A log, and the trust with which its statements are verified. One statement is in memory at a time.
pub struct EvidenceSource<'s> {
    service: &'s Service,
    trust: &'s TrustStore,
    verifier: VrfVerifier,
    now: u64,
}

impl<'s> EvidenceSource<'s> {
    /// Creates a source whose statements are verified at `now` (Unix seconds).
    pub fn new(service: &'s Service, trust: &'s TrustStore, now: u64) -> Self {
        Self { service, trust, verifier: VrfVerifier::new(trust), now }
    }

    /// Fetches the statement of an entry with a receipt, and verifies them.
    ///
    /// # Errors
    /// If the service cannot be reached.
    pub fn fetch(&self, entry: &str) -> Result<EntryEvidence, Failure> {
        let Ok(digest) = EntryDigest::from_str(entry) else {
            let detail = "the service names something that is not an entry ID";
            return Ok(EntryEvidence::Wrong(fault("nonsense", detail)));
        };
        let (statement, receipt) = match self.service.drive(self.fetch_parts(&digest)) {
            Ok(parts) => parts,
            Err(ClientError::NotFound(problem) | ClientError::Refused { problem, .. }) => {
                return Ok(EntryEvidence::NotServed(not_served(&problem)));
            }
            Err(ClientError::Nonsense(detail)) => {
                return Ok(EntryEvidence::Wrong(fault("nonsense", &detail)));
            }
            Err(error) => return Err(error.into()),
        };
        let evidence =
            StatementEvidence { statement: statement.bytes(), receipts: &[&receipt], payload: None };
        Ok(match self.verifier.verify(&evidence, self.now) {
            Ok(evidence) => EntryEvidence::Read(Box::new(evidence)),
            Err(fault) => EntryEvidence::Wrong(fault),
        })
    }

    async fn fetch_parts(&self, entry: &EntryDigest) -> Result<(SignedStatement, Bytes), ClientError> {
        let client = &self.service.client;
        let statement = client.statement(entry).await?;
        let receipt = client.dated_receipt(&statement, self.trust, self.now).await?;
        Ok((statement, receipt))
    }

    /// Verifies a statement that no log has registered: its rules and its signature.
    pub fn verify_unregistered(&self, statement: &[u8]) -> Result<VrfEvidence, EvidenceFault> {
        let evidence = StatementEvidence { statement, ..StatementEvidence::default() };
        self.verifier.verify(&evidence, self.now)
    }
}

fn not_served(problem: &Problem) -> EvidenceFault {
    fault(problem.get_code().unwrap_or("not-served"), &problem.to_string())
}

fn fault(code: &str, detail: &str) -> EvidenceFault {
    EvidenceFault { code: code.to_owned(), detail: detail.to_owned() }
}
