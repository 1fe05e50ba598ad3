//! `tabellion witness add`: adds a witness to the policy file, and optionally sets the quorum.
//!
//! The rest of the file is unchanged, including comments. The command can only set a quorum of all witnesses; other
//! groups must be written by hand.

use std::path::Path;

use clap::Args;
use tlog::key::VerifierKey;
use tlog::policy::WitnessPolicy;

use super::policy_file::{self, PolicyFile, PolicyListing};
use crate::console::files::{self, Access, Existing};
use crate::console::{Exit, Failure};
use crate::context::Context;

/// The name of the group of all witnesses.
const ALL: &str = "witnesses";

#[derive(Debug, Args)]
#[command(
    before_help = "example:  tabellion witness add w1 VKEY https://w1.example --policy witnesses.txt --quorum 1"
)]
pub struct Add {
    /// The witness's name in the policy
    name: String,
    /// The witness's verifier key, of type 0x04
    #[arg(value_name = "VKEY")]
    key: String,
    /// The witness's base URL, without add-checkpoint
    url: Option<String>,
    #[command(flatten)]
    file: PolicyFile,
    /// Required number of cosigning witnesses
    #[arg(long, value_name = "K")]
    quorum: Option<usize>,
}

impl Add {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let key = self.key()?;
        let path = self.file.path(context)?;
        let before = match path.exists() {
            true => files::read_text(&path)?,
            false => "quorum none\n".to_owned(),
        };
        let policy = policy_file::parse(&path, &before)?;
        let mut lines: Vec<String> = before.lines().map(str::to_owned).collect();
        lines.insert(place_of_witness(&lines), self.line());
        if let Some(k) = self.quorum {
            require(&mut lines, &policy, k, &self.name)?;
        }
        let after = lines.join("\n") + "\n";
        let policy = self.accepted(&key, &path, &after)?;
        files::write(&path, after.as_bytes(), Access::Ordinary, Existing::Replace)?;
        if self.quorum.is_none() && policy.quorum_name().is_some() {
            context.console.note("note  it counts towards no quorum yet: see --quorum");
        }
        context.console.note("note  a running service takes it up when it is started again");
        PolicyListing::of(&path, &policy).print(&context.console)
    }

    fn key(&self) -> Result<VerifierKey, Failure> {
        let key: Result<VerifierKey, _> = self.key.parse();
        key.map_err(|why| refused(format!("{}: {why}", self.key)))
    }

    fn line(&self) -> String {
        let url = self.url.as_ref().map_or_else(String::new, |url| format!(" {url}"));
        format!("witness {} {}{url}", self.name, self.key)
    }

    /// Parses the new contents, and checks that they contain the witness as intended: a name with a space would be
    /// parsed differently.
    fn accepted(&self, key: &VerifierKey, path: &Path, after: &str) -> Result<WitnessPolicy, Failure> {
        let policy: WitnessPolicy = after
            .parse()
            .map_err(|why: tlog::policy::NotAPolicy| refused(format!("{}: {why}", path.display())))?;
        let is_it = |witness: &tlog::policy::PolicyWitness| {
            witness.name == self.name && witness.key == *key && witness.url == self.url
        };
        match policy.witnesses().iter().any(is_it) {
            true => Ok(policy),
            false => Err(refused("a name has no spaces".into())),
        }
    }
}

fn refused(why: String) -> Failure {
    Failure::new(Exit::Usage, "witness-not-added", "the witness cannot be added").fact("because", why)
}

/// Returns the line for a new witness: after the last one, or before the first group or quorum.
fn place_of_witness(lines: &[String]) -> usize {
    let first = |words: &[&str]| lines.iter().position(|line| words.contains(&first_word(line)));
    let after_last = lines.iter().rposition(|line| first_word(line) == "witness").map(|last| last + 1);
    after_last.or_else(|| first(&["group", "quorum"])).unwrap_or(lines.len())
}

/// Replaces the quorum by one of [`ALL`] witnesses, unless the file has other groups.
fn require(lines: &mut Vec<String>, policy: &WitnessPolicy, k: usize, new: &str) -> Result<(), Failure> {
    let has_groups = lines.iter().any(|line| first_word(line) == "group" && words(line).nth(1) != Some(ALL));
    if has_groups {
        return Err(Failure::new(Exit::Usage, "witness-not-added", "the file has groups of its own")
            .why("which of them the new witness belongs to, and how many must agree, only you know")
            .hint("write the group and quorum lines into the file, and leave out --quorum"));
    }
    lines.retain(|line| !matches!(first_word(line), "group" | "quorum"));
    let names: Vec<&str> = policy.witnesses().iter().map(|one| one.name.as_str()).chain([new]).collect();
    lines.push(format!("group {ALL} {k} {}", names.join(" ")));
    lines.push(format!("quorum {ALL}"));
    Ok(())
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split([' ', '\t']).filter(|word| !word.is_empty())
}

fn first_word(line: &str) -> &str {
    words(line).next().unwrap_or_default()
}
