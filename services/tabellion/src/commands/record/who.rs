//! `tabellion record who`: tells who wrote a line of a file, from the file attribution of records (section 3.9 of the
//! draft). The answer is what the records say: nothing is compared with the file.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::Args;
use serde::Serialize;
use serde_json::Value;

use super::document::{self, text};
use crate::console::{Exit, Failure, Report, safe};
use crate::context::Context;
use crate::show;

#[derive(Debug, Args)]
pub struct Who {
    /// The file, relative to its repository, and the line
    #[arg(value_name = "FILE:LINE")]
    place: LineOfFile,
    /// Records, signed or not
    #[arg(long = "record", value_name = "FILE", required = true)]
    records: Vec<PathBuf>,
}

/// A line of a file, counted from 1.
#[derive(Clone, Debug)]
struct LineOfFile {
    path: String,
    line: u64,
}

impl FromStr for LineOfFile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (path, line) = text.rsplit_once(':').ok_or("expected FILE:LINE")?;
        let line = line.parse().ok().filter(|line| *line > 0).ok_or("lines are numbers from 1")?;
        Ok(LineOfFile { path: path.strip_prefix("./").unwrap_or(path).to_owned(), line })
    }
}

impl Who {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let mut found = Attributions { attributions: Vec::new() };
        for file in &self.records {
            let record = document::read(file)?;
            found.attributions.extend(self.place.attributions(&record, file));
        }
        if found.attributions.is_empty() {
            let LineOfFile { path, line } = &self.place;
            let what = format!("no record names the author of line {line} of {path}");
            return Err(Failure::new(Exit::NotFound, "not-attributed", what));
        }
        context.console.result(&found)
    }
}

impl LineOfFile {
    fn attributions<'r>(
        &'r self,
        record: &'r Value,
        file: &'r Path,
    ) -> impl Iterator<Item = Attribution> + 'r {
        let files = show::items(&record["file-attribution"], "files").iter();
        let conversations = files
            .filter(|file| file["path"].as_str() == Some(&self.path))
            .flat_map(|file| show::items(file, "conversations"));
        conversations.flat_map(move |conversation| {
            let ranges = show::items(conversation, "ranges").iter().filter(|range| self.is_in(range));
            ranges.map(move |range| Attribution::of(record, file, conversation, range))
        })
    }

    fn is_in(&self, range: &Value) -> bool {
        (show::number(range, "start-line")..=show::number(range, "end-line")).contains(&self.line)
    }
}

#[derive(Serialize)]
struct Attributions {
    attributions: Vec<Attribution>,
}

#[derive(Serialize)]
struct Attribution {
    record: String,
    session: String,
    contributor: String,
    model: String,
    start_line: u64,
    end_line: u64,
}

impl Attribution {
    fn of(record: &Value, file: &Path, conversation: &Value, range: &Value) -> Self {
        let contributor =
            range.get("contributor").or(conversation.get("contributor")).unwrap_or(&Value::Null);
        let kind = text(contributor, "type");
        Attribution {
            record: file.display().to_string(),
            session: text(&record["session"], "session-id").to_owned(),
            contributor: if kind.is_empty() { "unknown" } else { kind }.to_owned(),
            model: text(contributor, "model-id").to_owned(),
            start_line: show::number(range, "start-line"),
            end_line: show::number(range, "end-line"),
        }
    }
}

impl Report for Attributions {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        for Attribution { record, session, contributor, model, start_line, end_line } in &self.attributions {
            writeln!(
                out,
                "{} {}  lines {start_line} to {end_line}  session {}  in {}",
                safe(contributor),
                safe(model),
                safe(session),
                safe(record)
            )?;
        }
        Ok(())
    }
}
