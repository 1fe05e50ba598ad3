//! Reader for Gemini CLI: `~/.gemini/tmp/PROJECT/chats/session-*.json` and `.jsonl`.
//!
//! Older versions write one JSON object with all messages. Newer ones write a line for each change, from which
//! `history` restores the messages. Files of either kind may be joined or cut off.

mod history;
mod message;

use serde_json::Value;

use crate::account::TranslationAccount;
use crate::lines;
use crate::native::Native;
use crate::session::{Models, Session};
use crate::source::SourceFile;
use history::{History, Item};
use message::StatedResults;

/// Returns whether a line or document is one of Gemini CLI's.
pub(crate) fn recognizes(value: &Value) -> bool {
    let has = |name: &str| value.get(name).is_some();
    (has("sessionId") && (has("projectHash") || has("messages"))) || has("$set") || has("$rewindTo")
}

/// Reads the session of a file.
pub(crate) fn read(file: &SourceFile, account: &mut TranslationAccount) -> Vec<Session> {
    let history = match lines::document(&file.path, file.content(), account) {
        Ok(document) => match Native::of(document) {
            Ok(document) => History::of_document(document, account),
            Err(_) => return Vec::new(),
        },
        Err(_) => History::of_texts(lines::read_mixed(file, account), account),
    };
    let nothing = history.items.is_empty() && history.head.text("sessionId").is_none();
    if nothing { Vec::new() } else { vec![session(file, history, account)] }
}

fn session(file: &SourceFile, history: History, account: &mut TranslationAccount) -> Session {
    let mut head = history.head;
    history.other_sessions.iter().for_each(|other| account.remark_other_session(&file.path, other));
    let mut models = Models::default();
    let values = history.items.iter().filter_map(Item::message);
    let named = values.filter_map(|message| message.text("model").map(str::to_owned));
    named.for_each(|model| models.add(&model));
    let id = head.take_text("sessionId").unwrap_or_else(|| file.stem().to_owned());
    let (start, end) = (head.take_time("startTime"), head.take_time("lastUpdated"));
    let are_repeated = are_repeated(&history.items);
    let items = history.items.into_iter().zip(are_repeated);
    let entries = items.filter_map(|(item, is_repeated)| item.entry(is_repeated, account)).collect();
    Session {
        id,
        start,
        end,
        models,
        provider: Some("google".to_owned()),
        cli_name: Some("gemini-cli".to_owned()),
        root_digest: head.text("projectHash").map(str::to_owned),
        native: head.rest(),
        entries,
        ..Session::default()
    }
}

/// Returns of each item whether it is a message that only repeats the results of tool calls.
fn are_repeated(items: &[Item]) -> Vec<bool> {
    let stated = StatedResults::of(items.iter().filter_map(Item::message));
    items.iter().map(|item| item.message().is_some_and(|message| stated.has(message))).collect()
}
