//! `tabellion record show`: the conversation as text. Everything in a record is untrusted, so every line is escaped.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use display::counted;
use serde::Serialize;
use serde_json::Value;

use super::document::{self, text, time_text};
use crate::console::{Failure, Report, safe};
use crate::context::Context;

#[derive(Debug, Args)]
pub struct Show {
    /// The record, signed or not
    file: PathBuf,
    /// Maximum lines of each entry; 0 is all
    #[arg(long, value_name = "N", default_value_t = 12)]
    lines: usize,
}

impl Show {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let record = document::read(&self.file)?;
        let lines = if self.lines == 0 { usize::MAX } else { self.lines };
        context.console.result(&Conversation { record, lines })
    }
}

/// A record; as JSON it is the record itself.
#[derive(Serialize)]
struct Conversation {
    #[serde(flatten)]
    record: Value,
    #[serde(skip)]
    lines: usize,
}

impl Report for Conversation {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        let session = &self.record["session"];
        let agent = &session["agent-meta"];
        let line = |values: [&str; 2]| safe(values.join(" ").trim()).into_owned();
        writeln!(out, "session    {}", safe(text(session, "session-id")))?;
        writeln!(out, "agent      {}", line([text(agent, "cli-name"), text(agent, "model-id")]))?;
        let (start, end) = (time_text(session, "session-start"), time_text(session, "session-end"));
        writeln!(out, "time       {}", line([&start, &end]))?;
        let mut written = Ok(());
        document::each_entry(&self.record, &mut |place, entry| {
            if written.is_ok() {
                written = self.entry(out, place.depth, entry);
            }
        });
        written?;
        writeln!(out, "nothing was verified: `tabellion record verify` does that")
    }
}

impl Conversation {
    fn entry(&self, out: &mut dyn Write, depth: usize, entry: &Value) -> io::Result<()> {
        let indent = "  ".repeat(depth);
        let failed = if entry["is-error"] == true { "failed" } else { "" };
        let time = time_text(entry, "timestamp");
        let mut words =
            vec![text(entry, "type"), text(entry, "name"), text(entry, "event-type"), failed, &time];
        words.retain(|word| !word.is_empty());
        writeln!(out, "{indent}{}", safe(&words.join("  ")))?;
        let body = document::text_of(entry);
        for line in body.lines().take(self.lines) {
            writeln!(out, "{indent}  {}", safe(line))?;
        }
        match body.lines().count().saturating_sub(self.lines) {
            0 => Ok(()),
            more => writeln!(out, "{indent}  … {}: --lines 0", counted(more, "more line", "more lines")),
        }
    }
}
