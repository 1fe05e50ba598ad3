//! Native session files of coding agents, translated to conversation records
//! (draft-birkholz-verifiable-agent-conversations-00).
//!
//! A translation is a pure function of the source's bytes and the [`Settings`]: it has no clock and no random
//! numbers, so two runs give the same record and the same digest. Its steps are those of a compiler: detection of the
//! format, a reader for each format, which makes sessions of entries, redaction, and the record.
//!
//! | format | reader | session files of |
//! |---|---|---|
//! | `claude-jsonl` | `claude.rs` | Claude Code |
//! | `codex-jsonl` | `codex/` | Codex CLI |
//! | `qwen-jsonl` | `qwen.rs` | Qwen Code |
//! | `pi-jsonl` | `pi.rs` | Pi |
//! | `gemini-json` | `gemini/` | Gemini CLI, one JSON object or one object a line |
//! | `opencode-json` | `opencode/` | OpenCode: storage tree, concatenated objects, `opencode export`, rows of its database |
//! | `cursor-jsonl`, `cursor-text` | `cursor/` | Cursor agent transcripts |
//! | `cursor-composer` | `cursor/` | Cursor's composer, rows of its database |
//! | `chained-jsonl` | `chained/` | other tools, one object a line with its hash and that of the line before |
//!
//! Which lines of which files the agent wrote (`file-attribution`) is derived from the tool calls of all formats
//! (`attribution/`).
//!
//! The reader counts every native entry: kept as an entry of some type, skipped for a reason, or broken
//! ([`TranslationAccount`]). An entry of an unknown type is kept as a `system-event` with its native content. Native
//! members that have no counterpart in the record are under `native`, never next to members of the draft.
//!
//! Not here: reading files, signing and registering (the program `tabellion`), SQLite (`session-databases`), and the rules
//! of a record (`registration`).

mod account;
mod attribution;
mod blocks;
mod chained;
mod claude;
mod codex;
mod cursor;
mod detect;
mod entry;
mod envelope;
mod error;
mod format;
mod gemini;
pub mod limits;
mod lines;
mod native;
mod opencode;
mod parts;
mod pi;
mod qwen;
mod record;
mod redaction;
mod repair;
mod session;
mod size;
mod source;
mod time;
mod translate;
mod usage;

pub use account::{Diagnostic, NativeOutcome, TranslationAccount};
pub use error::TranslateError;
pub use format::Format;
pub use parts::RecordPart;
pub use record::{SessionRecord, TRANSLATOR, TRANSLATOR_VERSION};
pub use redaction::{EntryType, FieldPattern, Redaction, RedactionRule, Redactions, Selection};
pub use source::{SessionSource, SourceFile};
pub use translate::{Settings, Translation, redact, translate};
