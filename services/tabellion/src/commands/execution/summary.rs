//! The output about an execution receipt that was created or verified.

use std::io::{self, Write};

use roa::aer::ExecutionReceipt;
use scitt::SignedStatement;
use serde::Serialize;

use crate::console::{Report, safe};

#[derive(Serialize)]
pub struct ExecutionSummary {
    entry: String,
    issuer: String,
    gateway: String,
    aer_id: String,
    session: String,
    agent: String,
    capability: String,
    input_hash: String,
    decision: &'static str,
    denial_reason: Option<&'static str>,
    denial_code: Option<String>,
    mode: &'static str,
    redacted: bool,
    verified: bool,
    registered: bool,
}

impl ExecutionSummary {
    /// Summarizes a statement whose signatures were verified or just created.
    pub fn of(statement: &SignedStatement, receipt: &ExecutionReceipt) -> Self {
        let denial = receipt.outcome.denial();
        let iss = statement.header().iss();
        Self {
            entry: statement.digest().to_string(),
            issuer: iss.unwrap_or_default().to_owned(),
            gateway: receipt.gateway.id.to_string(),
            aer_id: receipt.aer_id.to_string(),
            session: receipt.session.id.to_string(),
            agent: receipt.session.agent.to_string(),
            capability: receipt.action.capability(),
            input_hash: receipt.action.input_hash.to_string(),
            decision: receipt.outcome.as_str(),
            denial_reason: denial.map(|denial| denial.reason.as_str()),
            denial_code: denial.and_then(|denial| denial.code()).map(str::to_owned),
            mode: receipt.mode.as_str(),
            redacted: statement.header().hash_envelope().is_some(),
            verified: true,
            registered: false,
        }
    }

    /// States whether a log's receipt of the statement was verified, too.
    pub fn registered(self, registered: bool) -> Self {
        Self { registered, ..self }
    }

    fn decided(&self) -> String {
        let reason = self.denial_reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        let code = self.denial_code.as_ref().map(|code| format!(" ({code})")).unwrap_or_default();
        let mode = if self.mode == "normal" { "" } else { ", in degraded operation" };
        format!("{}{reason}{code}{mode}", self.decision)
    }
}

impl Report for ExecutionSummary {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        let form = if self.redacted { "format and signatures, by its hash" } else { "format and signatures" };
        writeln!(out, "ok    {form}")?;
        for (name, value) in [
            ("issuer", safe(&self.issuer)),
            ("gateway", safe(&self.gateway)),
            ("decision", safe(&self.decided())),
            ("call", safe(&self.capability)),
            ("input", safe(&self.input_hash)),
            ("agent", safe(&self.agent)),
            ("session", safe(&self.session)),
            ("receipt", safe(&self.aer_id)),
            ("entry", safe(&self.entry)),
        ] {
            writeln!(out, "      {name:10}  {value}")?;
        }
        match self.registered {
            true => writeln!(out, "the gateway signed it, and the log's receipt verifies"),
            false => writeln!(out, "the gateway signed it; `tabellion verify` says whether a log has it"),
        }
    }
}
