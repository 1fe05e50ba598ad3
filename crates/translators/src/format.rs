//! Native formats, by the names of the draft (section 3.11.2, `trace-format-id`).

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// A native format of session files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    /// Claude Code.
    Claude,
    /// Codex CLI.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// Qwen Code. The name is ours.
    Qwen,
    /// Pi. The name is ours.
    Pi,
    /// OpenCode.
    OpenCode,
    /// Cursor's transcripts, lines of JSON.
    Cursor,
    /// Cursor's older transcripts in plain text. The name is ours.
    CursorText,
    /// The database of Cursor's composer. The name is ours.
    CursorComposer,
    /// Lines that contain their hash and that of the line before. The name is ours.
    Chained,
}

impl Format {
    /// All formats.
    pub const ALL: [Format; 10] = [
        Self::Claude,
        Self::Codex,
        Self::Gemini,
        Self::Qwen,
        Self::Pi,
        Self::OpenCode,
        Self::Cursor,
        Self::CursorText,
        Self::CursorComposer,
        Self::Chained,
    ];

    /// The name of the format.
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude-jsonl",
            Self::Codex => "codex-jsonl",
            Self::Gemini => "gemini-json",
            Self::Qwen => "qwen-jsonl",
            Self::Pi => "pi-jsonl",
            Self::OpenCode => "opencode-json",
            Self::Cursor => "cursor-jsonl",
            Self::CursorText => "cursor-text",
            Self::CursorComposer => "cursor-composer",
            Self::Chained => "chained-jsonl",
        }
    }

    /// The names of all formats, separated by commas.
    pub fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|format| format.name() == name);
        found.ok_or_else(|| format!("the formats are {}", Self::names()))
    }
}

impl Serialize for Format {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}
