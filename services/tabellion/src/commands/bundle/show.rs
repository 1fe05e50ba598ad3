//! `tabellion bundle show`: lists the contents of a bundle, or prints the keys that it claims.

use std::io::{self, Write};
use std::path::PathBuf;

use bundle::{BundleEntry, BundleSelection, EvidenceBundle};
use clap::Args;
use display::counted;
use scitt::SignedStatement;
use serde::Serialize;

use crate::commands::verify::input;
use crate::console::{Failure, Report, safe};
use crate::context::Context;

#[derive(Debug, Args)]
pub struct Show {
    /// The bundle
    file: PathBuf,
    /// Print the keys that the bundle claims, as a trust file
    #[arg(long)]
    keys: bool,
}

impl Show {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let bundle = input::bundle(&self.file)?;
        match self.keys {
            true => context.console.result(&ClaimedKeys { trust: bundle.claims.trust }),
            false => context.console.result(&BundleContents::of(bundle)),
        }
    }
}

/// The trust file that a bundle claims.
#[derive(Serialize)]
struct ClaimedKeys {
    trust: String,
}

impl Report for ClaimedKeys {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(
            out,
            "# Claimed by the bundle: compare each key with one from another source before you trust it."
        )?;
        self.trust.lines().try_for_each(|line| writeln!(out, "{}", safe(line)))
    }
}

/// The contents of a bundle; nothing is verified.
#[derive(Serialize)]
struct BundleContents {
    version: u64,
    created_at: String,
    log_url: String,
    checkpoint: String,
    entries: Vec<EntryContents>,
    policies: Vec<EntryContents>,
    selections: Vec<BundleSelection>,
    #[serde(skip_serializing_if = "Option::is_none")]
    witness_policy: Option<String>,
    verified: bool,
}

/// An entry of a bundle.
#[derive(Serialize)]
struct EntryContents {
    index: u64,
    /// `None` if the statement is malformed.
    entry_id: Option<String>,
    iss: Option<String>,
    sub: Option<String>,
    content_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
    has_payload: bool,
}

impl BundleContents {
    fn of(bundle: EvidenceBundle) -> Self {
        Self {
            version: bundle.version,
            created_at: bundle.claims.created_at,
            log_url: bundle.claims.log_url,
            checkpoint: bundle.checkpoint,
            entries: bundle.entries.iter().map(EntryContents::of).collect(),
            policies: bundle.policies.iter().map(EntryContents::of).collect(),
            selections: bundle.selections,
            witness_policy: bundle.claims.witness_policy,
            verified: false,
        }
    }
}

impl EntryContents {
    fn of(entry: &BundleEntry) -> Self {
        let statement = SignedStatement::parse(entry.statement.clone()).ok();
        let header = statement.as_ref().map(SignedStatement::header);
        Self {
            index: entry.proof.index,
            entry_id: statement.as_ref().map(|statement| statement.digest().to_string()),
            iss: header.and_then(|header| header.iss()).map(str::to_owned),
            sub: header.and_then(|header| header.sub()).map(str::to_owned),
            content_type: header.and_then(|header| header.content_type()).map(ToString::to_string),
            policy: entry.admitted_by.as_ref().map(|admitted_by| admitted_by.policy),
            rule: entry.admitted_by.as_ref().map(|admitted_by| admitted_by.rule.clone()),
            has_payload: entry.payload.is_some(),
        }
    }

    fn line(&self, out: &mut dyn Write) -> io::Result<()> {
        let texts = [&self.entry_id, &self.content_type, &self.iss, &self.sub];
        let [id, content_type, iss, sub] = texts.map(|text| safe(text.as_deref().unwrap_or("-")));
        writeln!(out, "{:>8}  {id}  {content_type}  {iss}  {sub}", self.index)
    }
}

impl Report for BundleContents {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "made at    {} from {}", safe(&self.created_at), safe(&self.log_url))?;
        for selection in &self.selections {
            let (by, name) = (selection.by.as_str(), safe(&selection.name));
            let entries = counted(selection.entries.len(), "entry", "entries");
            let leaves = counted(selection.indexed_to, "leaf", "leaves");
            writeln!(out, "{by:9}  {name}: {entries} among {leaves}")?;
        }
        self.checkpoint.lines().try_for_each(|line| writeln!(out, "checkpoint {}", safe(line)))?;
        writeln!(out, "policies")?;
        self.policies.iter().try_for_each(|policy| policy.line(out))?;
        writeln!(out, "entries")?;
        self.entries.iter().try_for_each(|entry| entry.line(out))?;
        writeln!(out, "nothing was verified: `tabellion verify` does that")
    }
}
