//! The output about a VRF statement that was verified together with its log receipt.

use std::io::{self, Write};

use registration::vrf::Chain;
use serde::Serialize;
use vrf_evidence::{EvidenceFault, VrfEvidence};

use crate::console::{Report, safe};
use crate::show;

#[derive(Serialize)]
pub struct EvidenceSummary {
    verified: bool,
    /// The reason, if the statement is not verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<EvidenceFault>,
    entry: String,
    issuer: String,
    agent: String,
    self_issued: bool,
    receipt_id: String,
    /// The contents of the receipt; `None` if it is not disclosed.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    receipt: Option<ReceiptSummary>,
    chain: String,
    log: Option<String>,
    position: Option<String>,
    /// The latest time of the registration.
    in_log_by: Option<i64>,
}

#[derive(Serialize)]
struct ReceiptSummary {
    verdict: &'static str,
    tier: Option<i64>,
    passed: u64,
    total: u64,
    output: String,
    task_id: Option<String>,
    task_type: Option<String>,
    verified_at: u64,
}

impl EvidenceSummary {
    pub fn of(evidence: &VrfEvidence) -> Self {
        let log_receipt = evidence.checks.receipts.first();
        Self {
            verified: evidence.is_verified(),
            fault: evidence.fault(),
            entry: evidence.entry.to_string(),
            issuer: evidence.issuer.clone(),
            agent: evidence.subject.clone(),
            self_issued: evidence.is_self_issued(),
            receipt_id: evidence.receipt_id.clone(),
            receipt: evidence.receipt().map(|receipt| ReceiptSummary {
                verdict: receipt.verdict.as_str(),
                tier: receipt.tier,
                passed: receipt.results.passed,
                total: receipt.results.total,
                output: receipt.output.clone(),
                task_id: receipt.task_id.clone(),
                task_type: receipt.task_type.clone(),
                verified_at: receipt.verified_at.unix_seconds,
            }),
            chain: describe(&evidence.chain),
            log: log_receipt.and_then(|receipt| receipt.log.clone()),
            position: log_receipt.and_then(|receipt| receipt.position.as_ref()).map(ToString::to_string),
            in_log_by: evidence.in_log_by(),
        }
    }

    fn lines(&self) -> Vec<(&'static str, String)> {
        let verdict = self.receipt.as_ref().map(|receipt| {
            let tier = receipt.tier.map_or_else(|| "none".into(), |tier| tier.to_string());
            format!("{} ({} of {}), tier {tier}", receipt.verdict, receipt.passed, receipt.total)
        });
        let own = if self.self_issued { " (the agent itself)" } else { "" };
        let mut lines = vec![
            ("issuer", format!("{}{own}", self.issuer)),
            ("agent", self.agent.clone()),
            ("verdict", verdict.unwrap_or_else(|| "not disclosed".into())),
        ];
        if let Some(receipt) = &self.receipt {
            lines.push(("work", receipt.output.clone()));
            lines.extend(receipt.task_id.clone().map(|task| ("task", task)));
        }
        lines.extend([
            ("receipt", self.receipt_id.clone()),
            ("chain", self.chain.clone()),
            ("entry", self.entry.clone()),
        ]);
        lines.extend(self.log.clone().map(|log| ("log", log)));
        lines.extend(self.position.clone().map(|position| ("position", position)));
        lines.extend(self.in_log_by.map(|at| ("in log by", show::time(at))));
        lines
    }
}

/// Describes the position of a receipt in its chain.
pub fn describe(chain: &Chain) -> String {
    match chain {
        Chain::Unchained => "outside any chain".into(),
        Chain::Genesis => "first of its chain".into(),
        Chain::Link { position, previous } => format!("number {position}, after {previous} (not looked up)"),
    }
}

impl Report for EvidenceSummary {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        for (name, value) in self.lines() {
            writeln!(out, "{name:10}  {}", safe(&value))?;
        }
        match &self.fault {
            None => {
                writeln!(out, "verified (offline): rules of the format, verifier's signature, log receipt")
            }
            Some(fault) => writeln!(out, "not verified: {}", safe(&fault.to_string())),
        }
    }
}
