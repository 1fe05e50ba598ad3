//! Chats of Cursor's composer: rows `composerData:CHAT` and `bubbleId:CHAT:MESSAGE` of the table `cursorDiskKV` in
//! `globalStorage/state.vscdb`.
//!
//! A chat lists its messages in order, or in older versions contains them. A message (`type` 1: the user's, 2: the
//! model's) has at most one thought and one tool call.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::CLI_NAME;
use crate::account::{NativeOutcome, TranslationAccount};
use crate::entry::{ASSISTANT, Entry, REASONING, SYSTEM_EVENT, TOOL_CALL, TOOL_RESULT, USER};
use crate::lines;
use crate::native::Native;
use crate::session::{Models, Session};
use crate::source::{SessionSource, SourceFile};
use crate::usage::{TokenUsage, count};

const CHAT: &str = "composerData:";
const MESSAGE: &str = "bubbleId:";
/// The states of a call that did not do what it should.
const FAILED: [&str; 2] = ["error", "cancelled"];

/// Returns whether rows are those of the composer.
pub(crate) fn recognizes(source: &SessionSource) -> bool {
    source.files().iter().any(|row| row.path.starts_with(CHAT) || row.path.starts_with(MESSAGE))
}

/// Reads the chats of a database. A chat without messages is not a session.
pub(crate) fn read(source: &SessionSource, account: &mut TranslationAccount) -> Vec<Session> {
    let (chats, others): (Vec<&SourceFile>, Vec<&SourceFile>) =
        source.files().iter().partition(|row| row.path.starts_with(CHAT));
    let mut messages = stored_messages(&others, account);
    let mut sessions = Vec::new();
    for row in chats {
        let Some(chat) = object(row, account) else { continue };
        let id = row.path[CHAT.len()..].to_owned();
        let own = messages.remove(&id).unwrap_or_default();
        sessions.extend(session(id, chat, own, account));
    }
    for _ in messages.into_values().flatten() {
        account.entry("bubbleId", NativeOutcome::Skipped("belongs to no session of the source"));
    }
    sessions
}

/// Returns the messages in rows of their own, by chat and message.
fn stored_messages(
    rows: &[&SourceFile],
    account: &mut TranslationAccount,
) -> BTreeMap<String, BTreeMap<String, Native>> {
    let mut messages: BTreeMap<String, BTreeMap<String, Native>> = BTreeMap::new();
    for row in rows {
        let Some(value) = object(row, account) else { continue };
        match row.path.strip_prefix(MESSAGE).and_then(|key| key.split_once(':')) {
            Some((chat, message)) => {
                messages.entry(chat.to_owned()).or_default().insert(message.to_owned(), value);
            }
            None => account.entry("bubbleId", NativeOutcome::Skipped("its key names no chat and message")),
        }
    }
    messages
}

/// Parses the value of a row; `None` if it is broken.
fn object(row: &SourceFile, account: &mut TranslationAccount) -> Option<Native> {
    account.total += 1;
    let object = lines::document(&row.path, &row.bytes, account)
        .and_then(|value| Native::of(value).map_err(|_| "no object".to_owned()));
    object.map_err(|reason| account.broken(&row.path, None, reason)).ok()
}

fn session(
    id: String,
    mut chat: Native,
    mut stored: BTreeMap<String, Native>,
    account: &mut TranslationAccount,
) -> Option<Session> {
    let mut messages = contained(&mut chat, account);
    let listed = chat.take_array("fullConversationHeadersOnly").unwrap_or_default();
    let names = listed.iter().filter_map(|header| header.get("bubbleId")?.as_str());
    messages.extend(names.filter_map(|name| stored.remove(name)));
    messages.extend(stored.into_values());
    if messages.is_empty() {
        account.entry("composerData", NativeOutcome::Skipped("a chat without messages"));
        return None;
    }
    account.entry("composerData", NativeOutcome::Kept("session"));
    let mut models = Models::default();
    let named = messages.iter().filter_map(model).map(str::to_owned);
    let of_chat =
        chat.get("modelConfig").and_then(|config| config.get("modelName")?.as_str().map(str::to_owned));
    of_chat.into_iter().chain(named).for_each(|model| models.add(&model));
    chat.drop_if("composerId", Some(&id));
    let entries = messages.into_iter().map(|message| entry(message, account)).collect();
    Some(Session {
        id,
        start: chat.take_time("createdAt"),
        end: chat.take_time("lastUpdatedAt"),
        models,
        cli_name: Some(CLI_NAME.to_owned()),
        native: chat.rest(),
        entries,
        ..Session::default()
    })
}

/// Takes the messages that a chat of an older version contains.
fn contained(chat: &mut Native, account: &mut TranslationAccount) -> Vec<Native> {
    let messages = chat.take_array("conversation").unwrap_or_default();
    account.total += messages.len() as u64;
    let as_object = |value| Native::of(value).unwrap_or_else(|value| Native::single("value", value));
    messages.into_iter().map(as_object).collect()
}

fn model(message: &Native) -> Option<&str> {
    message.get("modelInfo")?.get("modelName")?.as_str()
}

fn entry(mut message: Native, account: &mut TranslationAccount) -> Entry {
    let kind = match message.get("type").and_then(Value::as_u64) {
        Some(1) => USER,
        Some(2) => ASSISTANT,
        _ => {
            account.entry("bubbleId", NativeOutcome::Kept(SYSTEM_EVENT));
            return Entry::event("bubble", message.rest());
        }
    };
    account.entry("bubbleId", NativeOutcome::Kept(kind));
    message.take("type");
    let model = if kind == ASSISTANT { model(&message).map(str::to_owned) } else { None };
    let usage = message.get("tokenCount").map(token_usage).unwrap_or_default();
    let (id, content, time) =
        (message.take_text("bubbleId"), message.take("text"), message.take("createdAt"));
    let thought = message.take_object("thinking").map(|thought| reasoning(thought, account));
    let call = message.take_object("toolFormerData").map(|call| call_and_result(call, account));
    let children = thought.into_iter().chain(call.into_iter().flatten()).collect();
    let content = content.filter(|content| *content != json!(""));
    let entry = Entry::message(kind, content).with("id", id).with("model-id", model).at(time).usage(usage);
    entry.native(message).children(children)
}

fn token_usage(tokens: &Value) -> TokenUsage {
    let (input, output) = (count(tokens, "inputTokens"), count(tokens, "outputTokens"));
    TokenUsage { input, output, ..TokenUsage::default() }
}

fn reasoning(mut thought: Native, account: &mut TranslationAccount) -> Entry {
    account.part("thinking", NativeOutcome::Kept(REASONING));
    let content = thought.take("text").unwrap_or_else(|| json!(""));
    Entry::reasoning(content).native(thought)
}

fn call_and_result(mut call: Native, account: &mut TranslationAccount) -> Vec<Entry> {
    account.part("toolFormerData", NativeOutcome::Kept(TOOL_CALL));
    let (id, name) = (call.take_text("toolCallId"), call.take_text("name"));
    let input = call.take("rawArgs").or_else(|| call.take("params")).map(lines::parsed);
    let result = call.take("result").map(|output| {
        account.part("toolFormerData/result", NativeOutcome::Kept(TOOL_RESULT));
        let status = call.take_text("status");
        let is_rejected = call.text("userDecision") == Some("rejected");
        let is_failed = status.as_deref().map(|status| FAILED.contains(&status));
        let is_error = if is_rejected { Some(true) } else { is_failed };
        let result = Entry::tool_result(Some(output)).with("call-id", id.clone());
        result.with("status", status).with("is-error", is_error)
    });
    let entry = Entry::tool_call(name, input).with("call-id", id).native(call);
    std::iter::once(entry).chain(result).collect()
}
