//! Transcripts in plain text: `agent-transcripts/ID.txt` of older versions.
//!
//! A line `user:` or `assistant:` begins a turn. In a turn, a line that begins with `[Thinking]`, `[Tool call]` or
//! `[Tool result]` begins a block, which ends at the next one, and thoughts and the arguments of a call also at an empty
//! line. The markers are all that the format has: a text that contains one looks the same.

use serde_json::{Map, Value};

use super::CLI_NAME;
use crate::account::{NativeOutcome, TranslationAccount};
use crate::entry::{ASSISTANT, Entry, REASONING, TOOL_CALL, TOOL_RESULT, USER};
use crate::repair::REPLACED;
use crate::session::Session;
use crate::source::SourceFile;

const MARKERS: [(&str, &str); 3] =
    [("[Thinking]", REASONING), ("[Tool call]", TOOL_CALL), ("[Tool result]", TOOL_RESULT)];

/// Returns whether a file begins with a turn.
pub(crate) fn recognizes(bytes: &[u8]) -> bool {
    let mut lines = bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let first = lines.find(|line| !line.is_empty()).and_then(|line| std::str::from_utf8(line).ok());
    first.is_some_and(|line| turn(line).is_some())
}

/// Reads the session of a file. Bytes that are not UTF-8 are replaced, and noted.
pub(crate) fn read(file: &SourceFile, account: &mut TranslationAccount) -> Vec<Session> {
    let text = String::from_utf8_lossy(file.content());
    if matches!(text, std::borrow::Cow::Owned(_)) {
        account.remark(&file.path, REPLACED);
    }
    let mut reader = TextReader { role: USER, block: None, entries: Vec::new(), account };
    text.lines().for_each(|line| reader.read(line));
    reader.end_block();
    let entries = reader.entries;
    if entries.is_empty() {
        return Vec::new();
    }
    let (id, cli_name) = (file.stem().to_owned(), Some(CLI_NAME.to_owned()));
    vec![Session { id, cli_name, entries, ..Session::default() }]
}

/// Returns whose turn a line begins.
fn turn(line: &str) -> Option<&'static str> {
    match line.trim_end() {
        "user:" => Some(USER),
        "assistant:" => Some(ASSISTANT),
        _ => None,
    }
}

/// A block of a turn.
struct Block {
    kind: &'static str,
    /// The rest of the line with the marker.
    title: String,
    lines: Vec<String>,
}

struct TextReader<'a> {
    role: &'static str,
    block: Option<Block>,
    entries: Vec<Entry>,
    account: &'a mut TranslationAccount,
}

impl TextReader<'_> {
    fn read(&mut self, line: &str) {
        let marker =
            MARKERS.iter().find_map(|(marker, kind)| Some((*kind, line.strip_prefix(marker)?.trim())));
        if let Some(role) = turn(line) {
            self.role = role;
            self.begin_block(role, "");
        } else if let Some((kind, title)) = marker {
            self.begin_block(kind, title);
        } else if line.trim().is_empty() && self.ends_at_empty_lines() {
            self.begin_block(self.role, "");
        } else if self.block.is_none() {
            self.begin_block(self.role, "");
            self.add(line);
        } else {
            self.add(line);
        }
    }

    fn add(&mut self, line: &str) {
        self.block.iter_mut().for_each(|block| block.lines.push(line.to_owned()));
    }

    fn ends_at_empty_lines(&self) -> bool {
        self.block.as_ref().is_some_and(|block| matches!(block.kind, TOOL_CALL | REASONING))
    }

    fn begin_block(&mut self, kind: &'static str, title: &str) {
        self.end_block();
        self.block = Some(Block { kind, title: title.to_owned(), lines: Vec::new() });
    }

    fn end_block(&mut self) {
        let Some(entry) = self.block.take().and_then(Block::into_entry) else { return };
        self.account.total += 1;
        self.account.entry("block", NativeOutcome::Kept(entry.kind()));
        self.entries.push(entry);
    }
}

impl Block {
    /// Makes the entry; `None` for a message without text.
    fn into_entry(self) -> Option<Entry> {
        let text = self.lines.join("\n");
        let text = text.trim_matches('\n');
        let with_title = [self.title.as_str(), text].join("\n");
        match self.kind {
            TOOL_CALL => Some(Entry::tool_call(Some(self.title), Some(arguments(&self.lines)))),
            TOOL_RESULT => {
                Some(Entry::tool_result(Some(text.into())).native_member("name", Some(self.title)))
            }
            REASONING => Some(Entry::reasoning(with_title.trim_matches('\n').into())),
            kind => (!text.is_empty()).then(|| Entry::message(kind, Some(text.into()))),
        }
    }
}

/// Parses the arguments of a call: lines `  NAME: VALUE`, and lines that continue a value. In another form they stay a
/// text.
fn arguments(lines: &[String]) -> Value {
    let mut arguments: Map<String, Value> = Map::new();
    let mut last: Option<(String, Vec<&str>)> = None;
    for line in lines {
        match (argument(line), &mut last) {
            (Some((name, value)), _) if !arguments.contains_key(name) => {
                arguments.extend(last.replace((name.to_owned(), vec![value])).map(joined));
            }
            (_, Some((_, values))) => values.push(line),
            (_, None) => return lines.join("\n").into(),
        }
    }
    arguments.extend(last.map(joined));
    Value::Object(arguments)
}

fn argument(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.strip_prefix("  ")?.split_once(':')?;
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_name.then(|| (name, value.strip_prefix(' ').unwrap_or(value)))
}

fn joined((name, values): (String, Vec<&str>)) -> (String, Value) {
    (name, values.join("\n").into())
}
