//! Detection of a source's format, by the first line or document that only one format has.

use serde_json::Value;

use crate::format::Format;
use crate::source::SessionSource;
use crate::{chained, claude, codex, cursor, gemini, lines, opencode, pi, qwen};

/// A test whether a line or document is one of a format's.
type Recognizer = fn(&Value) -> bool;

/// Detects the format of a source. Several files are the storage tree of OpenCode, as other formats have one file for
/// each session.
pub(crate) fn detect(source: &SessionSource) -> Option<Format> {
    if source.is_rows() {
        let is_composer = cursor::composer::recognizes(source);
        return Some(if is_composer { Format::CursorComposer } else { Format::OpenCode });
    }
    let [only] = source.files() else {
        return (!source.files().is_empty()).then_some(Format::OpenCode);
    };
    let first = lines::sample(only.content());
    let by_lines = first.iter().filter(|line| line.is_object()).find_map(of_value);
    let by_document = || lines::first_document(only.content()).as_ref().and_then(of_value);
    let by_text = || cursor::text::recognizes(only.content()).then_some(Format::CursorText);
    by_lines.or_else(by_document).or_else(by_text)
}

/// Returns the format that a line or document belongs to. The order matters: lines of Claude Code are the least
/// specific.
fn of_value(value: &Value) -> Option<Format> {
    let recognizers: [(Format, Recognizer); 8] = [
        (Format::Chained, chained::recognizes),
        (Format::Codex, codex::recognizes),
        (Format::Cursor, cursor::lines::recognizes),
        (Format::Gemini, gemini::recognizes),
        (Format::OpenCode, opencode::recognizes),
        (Format::Qwen, qwen::recognizes),
        (Format::Pi, pi::recognizes),
        (Format::Claude, claude::recognizes),
    ];
    recognizers.into_iter().find(|(_, recognizes)| recognizes(value)).map(|(format, _)| format)
}
