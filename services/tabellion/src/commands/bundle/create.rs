//! `tabellion bundle create`: gathers entries, verifies everything offline with the reader's own trust, and only then
//! writes the file.

use std::io::{self, Write};
use std::path::PathBuf;

use bundle::{BundleVerdict, EvidenceBundle};
use clap::Args;
use display::counted;
use merkle::EntryDigest;
use serde::Serialize;
use verifier::{Code, StatementVerdict};

use super::claims;
use super::gather::Gatherer;
use crate::commands::receipt::entry_named;
use crate::commands::verify::{now, witness_policy};
use crate::console::files::{self, Access, Existing};
use crate::console::{Failure, Report, safe};
use crate::context::Context;
use crate::service::ServiceArgs;
use crate::trust_file::TrustFile;
use crate::verification::{UNVERIFIED, exit, with_open_checks};

#[derive(Debug, Args)]
#[command(
    before_help = "example:  tabellion bundle create --session session-1 -o session-1.bundle",
    mut_arg("timeout", |timeout| timeout.hide(true)),
    mut_arg("cacert", |cacert| cacert.hide(true))
)]
pub struct Create {
    /// Entry IDs, or files that hold the statements
    #[arg(value_name = "ENTRY", required_unless_present_any = ["session", "agent"])]
    entries: Vec<String>,
    /// Also all entries of this session
    #[arg(long, value_name = "NAME")]
    session: Vec<String>,
    /// Also all entries of this agent
    #[arg(long, value_name = "NAME")]
    agent: Vec<String>,
    /// The output file
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Require the quorum of this policy (C2SP tlog-policy)
    #[arg(long, value_name = "FILE")]
    witness_policy: Option<PathBuf>,
    /// The trust file [default: ./trust.toml, then ./tabellion-dev/trust.toml]
    #[arg(long, value_name = "FILE")]
    trust: Option<PathBuf>,
    #[command(flatten)]
    service: ServiceArgs,
}

impl Create {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let entries = self.entries.iter().map(|entry| entry_named(entry)).collect::<Result<Vec<_>, _>>()?;
        let trust = TrustFile::find(context, self.trust.as_deref())?.store;
        let witnesses = self.witness_policy.as_deref().map(witness_policy).transpose()?;
        let mut bundle = self.gather(context, &entries)?;
        claims::add_keys(&mut bundle, &trust, witnesses.as_ref());
        let verdict = bundle.verify(&trust, witnesses.as_ref(), now());
        if !verdict.is_verified() {
            return Err(unverified(&verdict));
        }
        let bytes = bundle.to_bytes();
        files::write(&self.output, &bytes, Access::Ordinary, Existing::Replace)?;
        let report = CreatedBundle::new(self.output.display().to_string(), bytes.len(), &bundle, &verdict);
        match files::is_stream(&self.output) {
            true => context.console.note(report.summary()),
            false => context.console.result(&report)?,
        }
        Ok(())
    }

    fn gather(&self, context: &Context, entries: &[EntryDigest]) -> Result<EvidenceBundle, Failure> {
        let service = self.service.connect(context)?;
        let mut gatherer = Gatherer::new(&service);
        for session in &self.session {
            if gatherer.add_session(session)?.has_more_receipts {
                context.console.note(format!(
                    "session {session} has more verification receipts than the log lists: name them by entry ID"
                ));
            }
        }
        self.agent.iter().try_for_each(|agent| gatherer.add_agent(agent))?;
        entries.iter().try_for_each(|entry| gatherer.add_entry(entry))?;
        gatherer.finish(claims::of(&service))
    }
}

/// The failure for gathered evidence that does not verify: the first part with the reason of the verdict.
fn unverified(verdict: &BundleVerdict) -> Failure {
    let code = verdict.reason.unwrap_or(Code::NotReached);
    let failure = Failure::new(exit(verdict.outcome), code.as_str(), UNVERIFIED);
    let parts = verdict.entries.iter().chain(&verdict.policies);
    let part = parts.into_iter().find(|part| part.outcome == verdict.outcome && part.reason == Some(code));
    match part {
        Some(part) => with_open_checks(named(failure, part), &part.checks),
        None => with_open_checks(failure, &verdict.checkpoint.checks),
    }
}

fn named(failure: Failure, part: &StatementVerdict) -> Failure {
    match &part.statement {
        Some(facts) => failure.fact("entry", facts.entry.to_string()),
        None => failure,
    }
}

/// A bundle that was written.
#[derive(Serialize)]
struct CreatedBundle {
    file: String,
    bytes: usize,
    entries: usize,
    policies: usize,
    log: String,
    tree_size: u64,
    witnesses: Vec<String>,
}

impl CreatedBundle {
    fn new(file: String, bytes: usize, bundle: &EvidenceBundle, verdict: &BundleVerdict) -> Self {
        let checkpoint = verdict.checkpoint.checkpoint.as_ref();
        Self {
            file,
            bytes,
            entries: bundle.entries.len(),
            policies: bundle.policies.len(),
            log: checkpoint.map_or_else(String::new, |facts| facts.origin.clone()),
            tree_size: checkpoint.map_or(0, |facts| facts.tree_size),
            witnesses: checkpoint.map_or_else(Vec::new, |facts| {
                facts.cosigned.iter().map(|cosigned| cosigned.witness.clone()).collect()
            }),
        }
    }

    fn summary(&self) -> String {
        let Self { entries, policies, log, tree_size, .. } = self;
        let witnesses = match self.witnesses.is_empty() {
            true => "no witness required".to_owned(),
            false => format!("cosigned by {}", self.witnesses.join(", ")),
        };
        format!(
            "bundled    entries {entries}, policies {policies}, of {log} at {}, {witnesses}",
            counted(*tree_size, "leaf", "leaves")
        )
    }
}

impl Report for CreatedBundle {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}", safe(&self.summary()))?;
        writeln!(out, "wrote      {} ({} bytes)", safe(&self.file), self.bytes)
    }
}
