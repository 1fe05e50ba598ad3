//! The output about a VRF statement whose rules and signature were verified.

use std::io::{self, Write};

use registration::vrf::{Chain, VrfOptions, VrfRecord, VrfRedacted};
use scitt::{PublicKey, SignedStatement};
use serde::Serialize;

use super::broken;
use super::evidence_summary::describe;
use crate::console::{Exit, Failure, Report, safe};

#[derive(Serialize)]
pub struct VrfSummary {
    entry: String,
    issuer: String,
    agent: String,
    receipt_id: String,
    /// The receipt's hash, if the statement is redacted.
    #[serde(skip_serializing_if = "Option::is_none")]
    redacted: Option<String>,
    /// The contents of the receipt; `None` if it is not disclosed.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    outcome: Option<VrfVerification>,
    chain: String,
    verified: bool,
}

#[derive(Serialize)]
struct VrfVerification {
    verdict: &'static str,
    tier: Option<i64>,
    passed: u64,
    total: u64,
    output: String,
}

/// The additional inputs for checking a statement.
#[derive(Default)]
pub struct VrfInputs {
    /// The payload of a detached statement (`--payload`).
    pub payload: Option<Vec<u8>>,
    /// The receipt that a redacted statement contains the hash of (`--disclosed`).
    pub disclosed: Option<Vec<u8>>,
    /// The options of a policy (`--policy`) that the receipt must satisfy.
    pub options: Option<VrfOptions>,
    /// The verifier's key (`--key`); the key in its did:key if `None`.
    pub key: Option<PublicKey>,
}

impl VrfSummary {
    pub fn of(statement: &SignedStatement, given: &VrfInputs) -> Result<Self, Failure> {
        if statement.header().hash_envelope().is_some() {
            return Self::of_redacted(statement, given);
        }
        if given.disclosed.is_some() {
            return Err(Failure::new(
                Exit::Usage,
                "not-redacted",
                "the statement holds its receipt: there is nothing to disclose",
            ));
        }
        let payload = given.payload.as_deref();
        let record = match &given.key {
            Some(key) => VrfRecord::verify_with(statement, payload, key),
            None => VrfRecord::verify(statement, payload),
        };
        let record = record.map_err(|violation| broken(&violation))?;
        let receipt_id = record.receipt.receipt_id.clone();
        let outcome = VrfVerification::of(statement, &record, given)?;
        Ok(Self { outcome: Some(outcome), ..Self::header(statement, receipt_id, &record.chain) })
    }

    fn of_redacted(statement: &SignedStatement, given: &VrfInputs) -> Result<Self, Failure> {
        if given.disclosed.is_none() && given.options.is_some() {
            return Err(Failure::new(
                Exit::Usage,
                "not-disclosed",
                "the statement holds the hash of its receipt: a policy can be asked once that is disclosed",
            ));
        }
        let payload = given.payload.as_deref();
        let redacted = match &given.key {
            Some(key) => VrfRedacted::verify_with(statement, payload, key),
            None => VrfRedacted::verify(statement, payload),
        };
        let redacted = redacted.map_err(|violation| broken(&violation))?;
        let disclosed = given.disclosed.as_deref().map(|shown| redacted.disclose(shown)).transpose();
        let disclosed = disclosed.map_err(|violation| broken(&violation))?;
        Ok(Self {
            redacted: Some(redacted.receipt_hash()),
            outcome: disclosed.map(|record| VrfVerification::of(statement, &record, given)).transpose()?,
            ..Self::header(statement, redacted.headers.receipt_id.clone(), &redacted.headers.chain)
        })
    }

    fn header(statement: &SignedStatement, receipt_id: String, chain: &Chain) -> Self {
        let header = statement.header();
        Self {
            entry: statement.digest().to_string(),
            issuer: header.iss().unwrap_or_default().to_owned(),
            agent: header.sub().unwrap_or_default().to_owned(),
            receipt_id,
            redacted: None,
            outcome: None,
            chain: describe(chain),
            verified: true,
        }
    }
}

impl VrfVerification {
    fn of(statement: &SignedStatement, record: &VrfRecord, given: &VrfInputs) -> Result<Self, Failure> {
        let receipt = &record.receipt;
        if let Some(options) = &given.options {
            let taken = options.take_header(&record.issuer, statement.header().algorithm());
            taken.and_then(|()| options.take(receipt)).map_err(|violation| broken(&violation))?;
        }
        Ok(Self {
            verdict: receipt.verdict.as_str(),
            tier: receipt.tier,
            passed: receipt.results.passed,
            total: receipt.results.total,
            output: receipt.output.clone(),
        })
    }

    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        let tier = self.tier.map_or_else(|| "none".into(), |tier| tier.to_string());
        writeln!(
            out,
            "      verdict               {} ({} of {}), tier {tier}",
            self.verdict, self.passed, self.total
        )?;
        writeln!(out, "      work                  {}", safe(&self.output))
    }
}

impl Report for VrfSummary {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "ok    format and signature  {}", safe(&self.issuer))?;
        if let (Some(hash), Some(_)) = (&self.redacted, &self.outcome) {
            writeln!(out, "ok    disclosed receipt     {hash}")?;
        }
        writeln!(out, "      agent                 {}", safe(&self.agent))?;
        match (&self.outcome, &self.redacted) {
            (Some(outcome), _) => outcome.human(out)?,
            (None, Some(hash)) => writeln!(out, "      verdict               not disclosed: {hash}")?,
            (None, None) => {}
        }
        writeln!(out, "      receipt               {}", safe(&self.receipt_id))?;
        writeln!(out, "      chain                 {}", self.chain)?;
        writeln!(out, "      entry                 {}", self.entry)?;
        writeln!(out, "the verifier said so; whether a log has it, `tabellion verify` tells")
    }
}
