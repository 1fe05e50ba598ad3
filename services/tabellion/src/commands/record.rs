//! `tabellion record`: conversation records of coding agents. Session files are imported, redacted, signed and verified
//! without a service.

mod checkpoint;
mod document;
mod hook;
mod import;
mod redact;
mod redaction_args;
mod registering;
mod search;
mod show;
mod sign;
mod sources;
mod verify;
mod watch;
mod who;
mod writing;

use clap::Subcommand;

use crate::console::Failure;
use crate::context::Context;

#[derive(Debug, Subcommand)]
#[command(before_help = "example:  tabellion record import session.jsonl --key key.pem")]
pub enum Record {
    /// Translate session files of coding agents to records, and sign them
    #[command(before_help = "example:  tabellion record import session.jsonl --key key.pem")]
    Import(import::Import),
    /// Record sessions of Claude Code, Codex and Cursor when they end
    #[command(subcommand)]
    Hook(hook::Hook),
    /// Sign a record, with its trace-metadata
    #[command(before_help = "example:  tabellion record sign session.record.json --key key.pem")]
    Sign(sign::Sign),
    /// Check a signed record: signature, rules, trace-metadata, attached receipts
    #[command(before_help = "example:  tabellion record verify session.record.json.cose")]
    Verify(verify::Verify),
    /// Show the conversation
    #[command(before_help = "example:  tabellion record show session.record.json")]
    Show(show::Show),
    /// Leave secrets, fields or types of entries out of a record, as a new record
    #[command(before_help = "example:  tabellion record redact a.record.json --without reasoning -o b.json")]
    Redact(redact::Redact),
    /// Find entries by text, tool, type and time
    #[command(before_help = "example:  tabellion record search a.record.json --tool Bash --text rm")]
    Search(search::Search),
    /// Tell who wrote a line of a file, from the file attribution of records
    #[command(before_help = "example:  tabellion record who src/main.rs:12 --record a.record.json")]
    Who(who::Who),
}

impl Record {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Import(import) => import.run(context),
            Self::Hook(hook) => hook.run(context),
            Self::Sign(sign) => sign.run(context),
            Self::Verify(verify) => verify.run(context),
            Self::Show(show) => show.run(context),
            Self::Redact(redact) => redact.run(context),
            Self::Search(search) => search.run(context),
            Self::Who(who) => who.run(context),
        }
    }
}
