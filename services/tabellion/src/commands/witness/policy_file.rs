//! The witness policy file of a log: its location, parser and output.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use tlog::policy::WitnessPolicy;

use crate::console::{Cell, Column, Console, Exit, Failure, Table, files, safe};
use crate::context::Context;
use crate::settings;

/// The columns of the list of witnesses. The first is that of the words that begin a line of the file.
const COLUMNS: &[Column] =
    &[Column::text("kind", 7), Column::text("name", 0), Column::text("url", 0), Column::text("key", 0)];

/// Which file.
#[derive(Clone, Debug, Args)]
pub struct PolicyFile {
    /// The witness policy [default: setting witness_policy]
    #[arg(long, alias = "witness-policy", value_name = "FILE")]
    policy: Option<PathBuf>,
}

impl PolicyFile {
    /// Returns the path in `--policy`, or else in the setting `witness_policy`. The file need not exist.
    pub fn path(&self, context: &Context) -> Result<PathBuf, Failure> {
        if let Some(path) = &self.policy {
            return Ok(path.clone());
        }
        let configured = context.settings(Vec::new())?.path("witness_policy");
        configured.map_err(|mistake| settings::refuse(vec![mistake]))?.ok_or_else(|| {
            Failure::new(Exit::Usage, "no-witness-policy", "no witness policy is configured")
                .fact("setting", "witness_policy")
                .hint("tabellion witness list --policy witnesses.txt")
        })
    }
}

/// Reads a policy file.
pub fn read(path: &Path) -> Result<WitnessPolicy, Failure> {
    parse(path, &files::read_text(path)?)
}

/// Parses the text of a policy file; `path` is named in the error message.
pub fn parse(path: &Path, text: &str) -> Result<WitnessPolicy, Failure> {
    text.parse().map_err(|why: tlog::policy::NotAPolicy| {
        Failure::new(
            Exit::Usage,
            "witness-policy-unusable",
            format!("{} is not a witness policy", path.display()),
        )
        .fact("because", why.to_string())
        .hint("tabellion help formats")
    })
}

/// A policy, for output.
#[derive(Serialize)]
pub struct PolicyListing {
    file: String,
    /// The witness or group that must cosign a checkpoint before it is served; null if none has to.
    quorum: Option<String>,
    /// The group and quorum lines of the file.
    rule: Vec<String>,
    witnesses: Vec<ListedWitness>,
}

#[derive(Serialize)]
struct ListedWitness {
    name: String,
    key: String,
    url: Option<String>,
}

impl PolicyListing {
    /// Describes the policy in this file.
    pub fn of(path: &Path, policy: &WitnessPolicy) -> Self {
        let text = policy.to_string();
        let is_rule = |line: &&str| line.starts_with("group ") || line.starts_with("quorum ");
        let one = |witness: &tlog::policy::PolicyWitness| ListedWitness {
            name: witness.name.clone(),
            key: witness.key.to_string(),
            url: witness.url.clone(),
        };
        Self {
            file: path.display().to_string(),
            quorum: policy.quorum_name().map(str::to_owned),
            rule: text.lines().filter(is_rule).map(str::to_owned).collect(),
            witnesses: policy.witnesses().iter().map(one).collect(),
        }
    }
}

impl PolicyListing {
    /// Prints the witnesses and the rule.
    pub fn print(&self, console: &Console) -> Result<(), Failure> {
        console.print(self, |out| self.write(out, Table::of(console, COLUMNS)))
    }

    fn write(&self, out: &mut dyn Write, table: Table) -> io::Result<()> {
        let rows: Vec<Vec<Cell>> = self.witnesses.iter().map(ListedWitness::row).collect();
        table.write(out, &rows)?;
        self.rule.iter().try_for_each(|line| {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            writeln!(out, "{word:7}  {}", safe(rest))
        })
    }
}

impl ListedWitness {
    fn row(&self) -> Vec<Cell> {
        let url = self.url.as_deref().unwrap_or("(no URL: the log does not submit to it)");
        vec![Cell::text("witness"), Cell::text(&self.name), Cell::text(url), Cell::vkey(&self.key)]
    }
}
