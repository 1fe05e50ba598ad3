//! Detection of a source's format, by the first line or document that only one format has.

use serde_json::Value;

use crate::format::Format;
use crate::source::SessionSource;
use crate::{chained, claude, codex, cursor, gemini, lines, opencode};

/// A test whether a line or document is one of a format's.
type Recognizer = fn(&Value) -> bool;

/// Detects the format of a source. Several files are the storage tree of OpenCode, as other formats have one file for
/// each session.
pub(crate) fn detect(source: &SessionSource) -> Option<Format> {
    let [only] = source.files() else {
        return (!source.files().is_empty()).then_some(Format::OpenCode);
    };
    let first = lines::sample(&only.bytes);
    let by_lines = first.iter().filter(|line| line.is_object()).find_map(of_value);
    by_lines.or_else(|| lines::first_document(&only.bytes).as_ref().and_then(of_value))
}

/// Returns the format that a line or document belongs to. The order matters: lines of Claude Code are the least
/// specific.
fn of_value(value: &Value) -> Option<Format> {
    let recognizers: [(Format, Recognizer); 6] = [
        (Format::Chained, chained::recognizes),
        (Format::Codex, codex::recognizes),
        (Format::Cursor, cursor::recognizes),
        (Format::Gemini, gemini::recognizes),
        (Format::OpenCode, opencode::recognizes),
        (Format::Claude, claude::recognizes),
    ];
    recognizers.into_iter().find(|(_, recognizes)| recognizes(value)).map(|(format, _)| format)
}
