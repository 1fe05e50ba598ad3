//! `tabellion agent view`: statistics of an agent's verification receipts, computed from the verified statements of a
//! log and not from the service's own summary.
//!
//! All pages are read as of one tree size, that of the first page, so that the result can be computed again. The list of
//! entries is the service's: `tabellion audit` reads every entry and shows whether some were left out.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use serde_json::Value as Json;
use vrf_evidence::{AgentStatistics, VerdictCounts, VrfEvidence};

use crate::commands::verify::now;
use crate::console::{Exit, Failure, Report, safe};
use crate::context::Context;
use crate::entry_evidence::{EntryEvidence, EvidenceSource};
use crate::service::{Service, ServiceArgs, percent_encoded, served_list};
use crate::trust_file::TrustFile;

#[derive(Debug, Args)]
pub struct View {
    /// The agent (`sub` of the receipts)
    agent: String,
    /// Count only the receipts of this verifier
    #[arg(long, value_name = "DID")]
    issuer: Option<String>,
    /// The trust file [default: ./trust.toml, then ./tabellion-dev/trust.toml]
    #[arg(long, value_name = "FILE")]
    trust: Option<PathBuf>,
    #[command(flatten)]
    service: ServiceArgs,
}

impl View {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let trust = TrustFile::find(context, self.trust.as_deref())?.store;
        let service = self.service.connect(context)?;
        let source = EvidenceSource::new(&service, &trust, now());
        let view = self.counted(&service, &source)?;
        if view.is_empty() {
            return Err(Failure::new(Exit::NotFound, "not-found", "the log holds no such receipt"));
        }
        context.console.result(&view)?;
        match view.statistics.unverified {
            0 => Ok(()),
            _ => Err(Failure::already_printed(Exit::NotVerified)),
        }
    }

    fn counted(&self, service: &Service, source: &EvidenceSource<'_>) -> Result<AgentView, Failure> {
        let mut view = AgentView::new(&self.agent, self.issuer.as_deref());
        service.pages(self.first_page(), |page: Json| {
            let indexed_to = page.get("indexed_to").and_then(Json::as_u64).unwrap_or_default();
            let tree_size = *view.tree_size.get_or_insert(indexed_to);
            for entry in served_list(&page, "entries")?.iter().filter(|entry| is_receipt_of(entry, tree_size))
            {
                view.add(source, entry)?;
            }
            Ok(())
        })?;
        view.pass_rate = view.statistics.pass_rate();
        Ok(view)
    }

    fn first_page(&self) -> String {
        let issuer = self.issuer.as_ref().map(|iss| format!("&issuer={}", percent_encoded(iss)));
        format!("v1/entries?subject={}{}", percent_encoded(&self.agent), issuer.unwrap_or_default())
    }
}

/// Returns whether an entry of the tree of this size is a verification receipt.
fn is_receipt_of(entry: &Json, tree_size: u64) -> bool {
    let index = entry.get("index").and_then(Json::as_u64);
    entry.pointer("/facts/receipt_id").is_some() && index.is_some_and(|index| index < tree_size)
}

#[derive(Serialize)]
struct AgentView {
    agent: String,
    /// The verifier whose receipts alone are counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    issuer: Option<String>,
    /// The tree size at which the entries were listed.
    tree_size: Option<u64>,
    pass_rate: Option<f64>,
    /// The entry IDs that were counted.
    #[serde(skip)]
    counted: BTreeSet<String>,
    #[serde(flatten)]
    statistics: AgentStatistics,
}

impl AgentView {
    fn new(agent: &str, issuer: Option<&str>) -> Self {
        Self {
            agent: agent.to_owned(),
            issuer: issuer.map(str::to_owned),
            tree_size: None,
            pass_rate: None,
            counted: BTreeSet::new(),
            statistics: AgentStatistics::default(),
        }
    }

    /// Verifies and counts an entry. One that the service lists again is counted once.
    fn add(&mut self, source: &EvidenceSource<'_>, entry: &Json) -> Result<(), Failure> {
        let id = entry.get("entry_id").and_then(Json::as_str).unwrap_or_default();
        if !self.counted.insert(id.to_owned()) {
            return Ok(());
        }
        match source.fetch(id)? {
            EntryEvidence::Read(evidence) if self.is_about(&evidence) => self.statistics.add(&evidence),
            EntryEvidence::Read(evidence) => {
                let detail = format!("it is about {}, by {}", evidence.subject, evidence.issuer);
                let fault = vrf_evidence::EvidenceFault { code: "nonsense".into(), detail };
                self.statistics.add_unverified(id.to_owned(), fault);
            }
            EntryEvidence::NotServed(fault) | EntryEvidence::Wrong(fault) => {
                self.statistics.add_unverified(id.to_owned(), fault);
            }
        }
        Ok(())
    }

    fn is_about(&self, evidence: &VrfEvidence) -> bool {
        let is_of_issuer = self.issuer.as_ref().is_none_or(|issuer| *issuer == evidence.issuer);
        evidence.subject == self.agent && is_of_issuer
    }

    fn is_empty(&self) -> bool {
        let AgentStatistics { counts, self_issued, redacted, unverified, .. } = &self.statistics;
        counts.receipts + self_issued.receipts + redacted + unverified == 0
    }
}

impl Report for AgentView {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        let statistics = &self.statistics;
        writeln!(out, "agent        {}", safe(&self.agent))?;
        if let Some(issuer) = &self.issuer {
            writeln!(out, "issuer       {}", safe(issuer))?;
        }
        let rate = self.pass_rate.map(|rate| format!(", pass rate {rate}")).unwrap_or_default();
        writeln!(out, "receipts     {}{rate}", in_words(&statistics.counts))?;
        groups(out, "tier", &statistics.by_tier)?;
        groups(out, "task type", &statistics.by_task_type)?;
        groups(out, "issuer", &statistics.by_issuer)?;
        let own = &statistics.self_issued;
        writeln!(out, "self-issued  {} ({} pass), not counted above", own.receipts, own.pass)?;
        writeln!(out, "redacted     {}, not counted above", statistics.redacted)?;
        writeln!(out, "unverified   {}, not counted above", statistics.unverified)?;
        for entry in &statistics.unverified_entries {
            writeln!(out, "  {}  {}: {}", safe(&entry.entry), safe(&entry.code), safe(&entry.detail))?;
        }
        if statistics.truncated {
            writeln!(out, "some groups were left out, because there are too many")?;
        }
        writeln!(
            out,
            "as of tree size {}; every statement was verified here",
            self.tree_size.unwrap_or_default()
        )
    }
}

fn groups(out: &mut dyn Write, kind: &str, groups: &BTreeMap<String, VerdictCounts>) -> io::Result<()> {
    for (value, counts) in groups {
        writeln!(out, "  {kind:10} {}  {}", safe(value), in_words(counts))?;
    }
    Ok(())
}

fn in_words(counts: &VerdictCounts) -> String {
    let VerdictCounts { receipts, pass, fail, partial, error } = counts;
    format!("{receipts}: {pass} pass, {fail} fail, {partial} partial, {error} error")
}
