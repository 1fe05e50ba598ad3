//! `tabellion record search`: finds entries of records by text, tool, type and time.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use translators::EntryType;

use super::document::{self, EntryPlace, text};
use crate::console::{Failure, Report, safe};
use crate::context::Context;

/// Characters of an entry's text that a result shows.
const EXCERPT: usize = 100;

#[derive(Debug, Args)]
pub struct Search {
    /// Records, signed or not
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// A text in the entry, in any case
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,
    /// The tool that was called
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// The type of the entry
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<EntryType>,
    /// The earliest time (RFC 3339)
    #[arg(long, value_name = "TIME")]
    since: Option<Timestamp>,
    /// The latest time (RFC 3339)
    #[arg(long, value_name = "TIME")]
    until: Option<Timestamp>,
}

impl Search {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let mut found = RecordMatches { entries: Vec::new() };
        for file in &self.files {
            let record = document::read(file)?;
            document::each_entry(&record, &mut |place, entry| {
                if self.matches(entry, place.time.and_then(document::instant)) {
                    found.entries.push(RecordMatch::of(file.display().to_string(), place, entry));
                }
            });
        }
        context.console.result(&found)
    }

    fn matches(&self, entry: &Value, time: Option<Timestamp>) -> bool {
        let is = |name: &str, wanted: &str| entry[name].as_str() == Some(wanted);
        self.kind.is_none_or(|kind| is("type", kind.name()))
            && self.tool.as_deref().is_none_or(|tool| is("type", "tool-call") && is("name", tool))
            && self.text.as_deref().is_none_or(|text| contains(entry, &text.to_lowercase()))
            && self.since.is_none_or(|since| time.is_some_and(|time| time >= since))
            && self.until.is_none_or(|until| time.is_some_and(|time| time <= until))
    }
}

/// Returns whether a text of the entry contains this one, which is in lower case. Children are entries of their own.
fn contains(entry: &Value, wanted: &str) -> bool {
    match entry {
        Value::String(text) => text.to_lowercase().contains(wanted),
        Value::Array(items) => items.iter().any(|item| contains(item, wanted)),
        Value::Object(members) => {
            members.iter().any(|(name, value)| name != "children" && contains(value, wanted))
        }
        _ => false,
    }
}

#[derive(Serialize)]
struct RecordMatches {
    entries: Vec<RecordMatch>,
}

#[derive(Serialize)]
struct RecordMatch {
    file: String,
    pointer: String,
    #[serde(rename = "type")]
    kind: String,
    time: String,
    text: String,
}

impl RecordMatch {
    fn of(file: String, place: &EntryPlace<'_>, entry: &Value) -> Self {
        let body = format!("{} {}", text(entry, "name"), document::text_of(entry));
        RecordMatch {
            file,
            pointer: place.pointer.clone(),
            kind: text(entry, "type").to_owned(),
            time: place.time.and_then(document::instant).map(|time| time.to_string()).unwrap_or_default(),
            text: body.trim().chars().take(EXCERPT).collect(),
        }
    }
}

impl Report for RecordMatches {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        for RecordMatch { file, pointer, kind, time, text } in &self.entries {
            let text: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
            writeln!(
                out,
                "{}#{}  {}  {}  {}",
                safe(file),
                safe(pointer),
                safe(time),
                safe(kind),
                safe(&text)
            )?;
        }
        writeln!(out, "{} found", self.entries.len())
    }
}
