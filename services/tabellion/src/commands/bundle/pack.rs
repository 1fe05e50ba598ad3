//! `tabellion bundle NAME… -o FILE`: gathers entries, verifies everything offline with the reader's own trust, and only
//! then writes the file.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use bundle::{BundleVerdict, EvidenceBundle};
use clap::{Args, ValueEnum};
use display::counted;
use merkle::EntryDigest;
use serde::Serialize;
use verifier::{Code, StatementVerdict, TrustStore};

use super::claims;
use super::gather::Gatherer;
use crate::commands::receipt::entry_named;
use crate::commands::verify::{now, witness_policy};
use crate::console::files::{self, Access, Existing};
use crate::console::{Failure, Report, safe};
use crate::context::Context;
use crate::service::{Service, ServiceArgs};
use crate::trust_file::TrustFile;
use crate::verification::{UNVERIFIED, exit, with_open_checks};

#[derive(Debug, Args)]
pub struct Pack {
    /// Names, entry IDs, or files with a statement
    #[arg(value_name = "SESSION|AGENT|ENTRY", required = true)]
    names: Vec<String>,
    /// Take each name as a session, agent or entry
    #[arg(long, value_name = "KIND", hide_possible_values = true)]
    kind: Option<NamedKind>,
    /// The output file
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Require the quorum of this witness policy
    #[arg(long, value_name = "FILE")]
    witness_policy: Option<PathBuf>,
    /// The trust file [default: as tabellion verify]
    #[arg(long, value_name = "FILE")]
    trust: Option<PathBuf>,
}

/// The kind of thing that a name on the command line stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum NamedKind {
    /// All entries of a session.
    Session,
    /// All entries of an agent.
    Agent,
    /// The entry with this ID, or of the statement in this file.
    Entry,
}

impl NamedKind {
    /// Returns the kind of entry IDs and of files; only the log knows whether another name is a session or an agent.
    fn of(name: &str) -> Option<Self> {
        let is_entry = name.parse::<EntryDigest>().is_ok() || Path::new(name).is_file();
        is_entry.then_some(Self::Entry)
    }
}

impl Pack {
    pub fn run(self, context: &Context, service: &ServiceArgs) -> Result<(), Failure> {
        let trust = TrustFile::find(context, self.trust.as_deref())?.store;
        let witnesses = self.witness_policy.as_deref().map(witness_policy).transpose()?;
        let mut bundle = self.gather(context, &service.connect(context)?, &trust)?;
        claims::add_keys(&mut bundle, &trust, witnesses.as_ref());
        let verdict = bundle.verify(&trust, witnesses.as_ref(), now());
        if !verdict.is_verified() {
            return Err(unverified(&verdict));
        }
        let bytes = bundle.to_bytes();
        files::write(&self.output, &bytes, Access::Ordinary, Existing::Replace)?;
        let report = PackedBundle::new(self.output.display().to_string(), bytes.len(), &bundle, &verdict);
        match files::is_stream(&self.output) {
            true => context.console.note(report.summary()),
            false => context.console.result(&report)?,
        }
        Ok(())
    }

    fn gather(
        &self,
        context: &Context,
        service: &Service,
        trust: &TrustStore,
    ) -> Result<EvidenceBundle, Failure> {
        let mut gatherer = Gatherer::new(service, trust);
        self.names.iter().try_for_each(|name| self.add(&mut gatherer, name))?;
        for session in gatherer.sessions_with_more_receipts() {
            context.console.note(format!(
                "session {session} has more verification receipts than the log lists: name them by entry ID"
            ));
        }
        gatherer.finish(claims::of(service))
    }

    fn add(&self, gatherer: &mut Gatherer<'_>, name: &str) -> Result<(), Failure> {
        match self.kind.or_else(|| NamedKind::of(name)) {
            Some(NamedKind::Session) => gatherer.add_session(name),
            Some(NamedKind::Agent) => gatherer.add_agent(name),
            Some(NamedKind::Entry) => gatherer.add_entry(&entry_named(name)?),
            None => gatherer.add_session_or_agent(name),
        }
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
struct PackedBundle {
    file: String,
    bytes: usize,
    entries: usize,
    policies: usize,
    log: String,
    tree_size: u64,
    witnesses: Vec<String>,
}

impl PackedBundle {
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

impl Report for PackedBundle {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}", safe(&self.summary()))?;
        writeln!(out, "wrote      {} ({} bytes)", safe(&self.file), self.bytes)
    }
}
