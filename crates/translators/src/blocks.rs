//! Content blocks of the Messages API, as Claude Code and Cursor write them, and in a similar form Pi.

use serde_json::{Value, json};

use crate::account::{NativeOutcome, TranslationAccount};
use crate::entry::{Entry, REASONING, TOOL_CALL, TOOL_RESULT};
use crate::native::Native;

/// The blocks of a message: those that stay its content, and those that are entries of their own.
#[derive(Default)]
pub(crate) struct Blocks {
    /// A text, or the blocks without a counterpart among the entries, unchanged; `None` if there are none.
    pub content: Option<Value>,
    /// Tool calls, tool results and reasoning, with their position among the blocks.
    pub entries: Vec<Entry>,
}

impl Blocks {
    /// Separates the blocks of a message.
    pub fn of(content: Option<Value>, account: &mut TranslationAccount) -> Blocks {
        let Some(Value::Array(blocks)) = content else {
            return Blocks { content, entries: Vec::new() };
        };
        Blocks::separate(blocks, account, |block| {
            let kind = block.get("type").and_then(Value::as_str).unwrap_or("untyped").to_owned();
            let entry = entry(&kind, block);
            (kind, entry)
        })
    }

    /// Separates blocks: `read` returns the type of a block, and its entry or the block itself if it stays content.
    pub fn separate(
        blocks: Vec<Value>,
        account: &mut TranslationAccount,
        read: impl Fn(Value) -> (String, Result<Entry, Value>),
    ) -> Blocks {
        let (mut kept, mut entries) = (Vec::new(), Vec::new());
        for (position, block) in blocks.into_iter().enumerate() {
            let (kind, entry) = read(block);
            match entry {
                Ok(entry) => {
                    account.part(kind, NativeOutcome::Kept(entry.kind()));
                    entries.push(entry.with("block", Some(position)));
                }
                Err(block) => {
                    account.part(kind, NativeOutcome::Kept("content"));
                    kept.push(block);
                }
            }
        }
        Blocks { content: (!kept.is_empty()).then_some(Value::Array(kept)), entries }
    }

    /// Returns whether the message is nothing but tool results.
    pub fn is_results_only(&self) -> bool {
        self.content.is_none()
            && !self.entries.is_empty()
            && self.entries.iter().all(|entry| entry.kind() == TOOL_RESULT)
    }
}

/// Returns the entry of a block, or the block if it stays content.
fn entry(kind: &str, block: Value) -> Result<Entry, Value> {
    match block_type(kind) {
        Some(TOOL_CALL) => Native::of(block).map(tool_call),
        Some(TOOL_RESULT) => Native::of(block).map(tool_result),
        Some(_) => Native::of(block).map(reasoning),
        None => Err(block),
    }
}

fn block_type(kind: &str) -> Option<&'static str> {
    match kind {
        "tool_use" | "server_tool_use" | "mcp_tool_use" | "toolCall" => Some(TOOL_CALL),
        "thinking" | "redacted_thinking" => Some(REASONING),
        kind if kind.ends_with("tool_result") => Some(TOOL_RESULT),
        _ => None,
    }
}

/// Makes an entry of a tool call.
pub(crate) fn tool_call(mut block: Native) -> Entry {
    let (name, input) = (block.take_text("name"), block.take("input").or_else(|| block.take("arguments")));
    let call = block.take_text("id");
    Entry::tool_call(name, input).with("call-id", call).native(block)
}

/// Makes an entry of a tool result.
pub(crate) fn tool_result(mut block: Native) -> Entry {
    let (output, call) = (block.take("content"), block.take_text("tool_use_id"));
    let is_error = block.get("is_error").and_then(Value::as_bool);
    if is_error.is_some() {
        block.take("is_error");
    }
    Entry::tool_result(output).with("call-id", call).with("is-error", is_error).native(block)
}

fn reasoning(mut block: Native) -> Entry {
    let content = block.take("thinking").unwrap_or_else(|| json!(""));
    let encrypted = block.take_text("data");
    Entry::reasoning(content).with("encrypted", encrypted).native(block)
}
