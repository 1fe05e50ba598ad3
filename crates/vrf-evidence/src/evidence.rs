//! Offline verification of a VRF statement: the rules of the format, its signature, and a trusted log's receipt.
//!
//! The signature is always required, whatever the trust store leaves to the log, because the statement's worth is the
//! verifier's word. A did:key needs no trust anchor: the key is in the name. Any other issuer needs one.

use std::fmt;

use merkle::EntryDigest;
use registration::Violation;
use registration::vrf::{Chain, Receipt, Verdict, VrfHeaders, VrfRecord, VrfRedacted};
use scitt::SignedStatement;
use serde::Serialize;
use verifier::{
    Check, CheckName, CheckState, Code, IssuerSignature, StatementEvidence, StatementVerdict, TrustStore,
    VerificationOutcome,
};

/// A verifier of VRF statements under one trust store.
#[derive(Debug)]
pub struct VrfVerifier {
    trust: TrustStore,
}

/// A VRF statement that keeps every rule of the format, with the result of its verification.
#[derive(Clone, Debug)]
pub struct VrfEvidence {
    /// The entry ID: SHA-256 of the statement.
    pub entry: EntryDigest,
    /// The verifier (`iss`).
    pub issuer: String,
    /// The agent whose work was verified (`sub`).
    pub subject: String,
    /// The receipt's identifier.
    pub receipt_id: String,
    /// The position in the chain of this verifier about this agent.
    pub chain: Chain,
    /// The receipt and its JSON; `None` if only its hash is registered and it was not disclosed.
    pub record: Option<VrfRecord>,
    /// The verified signature of the log and that of the verifier, and all other checks.
    pub checks: StatementVerdict,
    /// The result.
    pub outcome: VerificationOutcome,
}

/// A reason for which a statement is not evidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EvidenceFault {
    /// The broken rule of the format, or the code of the check that failed or was not done.
    pub code: String,
    /// The place and the compared values. It may quote the statement: escape it before printing.
    pub detail: String,
}

impl VrfVerifier {
    /// Creates a verifier that trusts these logs and issuers.
    pub fn new(trust: &TrustStore) -> Self {
        let self_certified = trust.self_certified || !trust.is_empty();
        let trust =
            TrustStore { self_certified, issuer_signature: IssuerSignature::Required, ..trust.clone() };
        VrfVerifier { trust }
    }

    /// Verifies a statement at `now` (Unix seconds). `evidence.payload` is a detached payload or, for a statement that
    /// contains the hash of its receipt, the disclosed receipt.
    ///
    /// # Errors
    /// An [`EvidenceFault`] if the bytes are not a VRF statement that keeps every rule. A bad signature or log receipt is
    /// no error here, but an [`outcome`](VrfEvidence::outcome).
    pub fn verify(&self, evidence: &StatementEvidence<'_>, now: u64) -> Result<VrfEvidence, EvidenceFault> {
        let statement = SignedStatement::parse(evidence.statement.to_vec()).map_err(|error| {
            EvidenceFault { code: Code::MalformedStatement.as_str().to_owned(), detail: error.to_string() }
        })?;
        let contents = VrfContents::read(&statement, evidence.payload)?;
        let checks = verifier::verify(evidence, &self.trust, now);
        Ok(VrfEvidence {
            entry: statement.digest(),
            issuer: contents.headers.issuer.as_str().to_owned(),
            subject: contents.headers.sub,
            receipt_id: contents.headers.receipt_id,
            chain: contents.headers.chain,
            record: contents.record,
            outcome: checks.outcome,
            checks,
        })
    }
}

/// The parts of a statement that keeps the rules.
struct VrfContents {
    headers: VrfHeaders,
    record: Option<VrfRecord>,
}

impl VrfContents {
    fn read(statement: &SignedStatement, given: Option<&[u8]>) -> Result<Self, Violation> {
        let header = statement.header();
        if header.hash_envelope().is_none() {
            let record = VrfRecord::of_statement(statement, given)?;
            return Ok(VrfContents { headers: VrfHeaders::read(header)?, record: Some(record) });
        }
        let redacted = VrfRedacted::read(header, statement.payload().unwrap_or_default())?;
        let record = given.map(|receipt| redacted.disclose(receipt)).transpose()?;
        Ok(VrfContents { headers: redacted.headers, record })
    }
}

impl VrfEvidence {
    /// Returns whether log receipt, signature and rules all hold.
    pub fn is_verified(&self) -> bool {
        self.outcome == VerificationOutcome::Verified
    }

    /// Returns whether the agent verified its own work (`iss` equals `sub`).
    pub fn is_self_issued(&self) -> bool {
        self.issuer == self.subject
    }

    /// The receipt, if it is known.
    pub fn receipt(&self) -> Option<&Receipt> {
        self.record.as_ref().map(|record| &record.receipt)
    }

    /// The verdict, if the receipt is known.
    pub fn verdict(&self) -> Option<Verdict> {
        self.receipt().map(|receipt| receipt.verdict)
    }

    /// The reason for which the statement is not verified.
    pub fn fault(&self) -> Option<EvidenceFault> {
        if self.is_verified() {
            return None;
        }
        let code = self.checks.reason.map_or("not-verified", Code::as_str).to_owned();
        Some(EvidenceFault { code, detail: self.checks.why().to_owned() })
    }

    /// The earliest time at which a trusted log is proven to have the statement, in Unix seconds. It was registered then, or
    /// before: only the receipt of its batch has the time of the registration.
    pub fn in_log_by(&self) -> Option<i64> {
        let verified = self.checks.receipts.iter().filter(|receipt| receipt.verified);
        verified.filter_map(|receipt| receipt.iat).min()
    }

    /// The time of the verification in Unix seconds, `None` if the receipt is not known: the one that the verifier states, or
    /// that of the log's receipt if it is earlier, since a verifier could state a later time than the real one. A log's
    /// receipt of a tree that has grown since then bounds it less.
    pub fn dated_at(&self) -> Option<i64> {
        let stated = i64::try_from(self.receipt()?.verified_at.unix_seconds).ok()?;
        Some(self.in_log_by().map_or(stated, |latest| latest.min(stated)))
    }

    /// Returns whether the check was done and passed for the statement.
    pub fn passed(&self, name: CheckName) -> bool {
        let passed = |check: &Check| check.state == CheckState::Ok;
        self.checks.checks_named(name).any(passed)
    }
}

impl From<Violation> for EvidenceFault {
    fn from(violation: Violation) -> Self {
        Self {
            code: violation.rule.as_str().to_owned(),
            detail: format!("{}: {}", violation.place, violation.detail),
        }
    }
}

impl fmt::Display for EvidenceFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.code, self.detail)
    }
}

#[cfg(test)]
mod tests {
    use scitt::Signer;
    use testkit::{NOW, receipt, receipt_json, verifier, vrf};

    use super::*;

    fn verify(statement: &[u8], trust: &TrustStore) -> Result<VrfEvidence, EvidenceFault> {
        VrfVerifier::new(trust).verify(&StatementEvidence { statement, ..StatementEvidence::default() }, NOW)
    }

    #[test]
    fn without_a_log_a_signed_receipt_is_read_and_not_verified() {
        let trust = TrustStore { self_certified: true, ..TrustStore::default() };
        let evidence = verify(vrf(1).bytes(), &trust).expect("it keeps the rules");
        assert_eq!(evidence.outcome, VerificationOutcome::NotVerified);
        assert_eq!(evidence.fault().expect("a reason").code, "no-receipt");
        assert!(evidence.passed(CheckName::IssuerSignature));
        assert_eq!((evidence.verdict(), evidence.in_log_by()), (Some(Verdict::Pass), None));
    }

    #[test]
    fn what_breaks_a_rule_is_no_evidence() {
        let mut json = receipt_json(1);
        json["verdict"] = "fail".into();
        let broken = registration::vrf::VrfStatement::new(json, testkit::AGENT);
        let broken = broken.builder(&verifier()).sign(&verifier()).expect("a fixed key signs");
        let fault = verify(broken.bytes(), &TrustStore::default()).expect_err("one test passed");
        assert_eq!(fault.code, "vrf-verdict-meaning");
        let junk = verify(b"junk", &TrustStore::default()).expect_err("no statement");
        assert_eq!(junk.code, "malformed-statement");
    }

    #[test]
    fn a_changed_statement_fails() {
        let mut bytes = vrf(1).bytes().to_vec();
        *bytes.last_mut().expect("a signature") ^= 1;
        let trust = TrustStore { self_certified: true, ..TrustStore::default() };
        let evidence = verify(&bytes, &trust).expect("it keeps the rules");
        assert_eq!(evidence.outcome, VerificationOutcome::Failed);
        assert_eq!(evidence.fault().expect("a reason").code, "issuer-signature-invalid");
    }

    #[test]
    fn a_redacted_receipt_is_known_once_it_is_disclosed() {
        let statement = receipt(1).redacted();
        let signed = statement.sign(&verifier()).expect("it keeps the rules");
        let hidden = verify(signed.bytes(), &TrustStore::default()).expect("it keeps the rules");
        assert_eq!((hidden.verdict(), &*hidden.issuer), (None, &*verifier().public_key().did_key()));
        let receipt = statement.byte_string();
        let given =
            StatementEvidence { statement: signed.bytes(), payload: Some(&receipt), ..Default::default() };
        let disclosed =
            VrfVerifier::new(&TrustStore::default()).verify(&given, NOW).expect("it is the receipt");
        assert_eq!(disclosed.verdict(), Some(Verdict::Pass));
    }
}
