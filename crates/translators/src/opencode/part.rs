//! Parts of OpenCode's messages other than texts.

use serde_json::{Value, json};

use super::take_time;
use crate::entry::Entry;
use crate::native::Native;

/// Members of a provider's metadata that hold encrypted reasoning.
const ENCRYPTED: [&str; 2] = ["reasoningEncryptedContent", "encryptedContent"];

/// Makes the entries of a part: a tool part is a call and, once it has ended, a result.
pub(super) fn entries(mut part: Native) -> Vec<Entry> {
    match part.text("type") {
        Some("tool") => tool(part),
        Some("reasoning") => vec![reasoning(part)],
        _ => {
            let kind = part.take_text("type").unwrap_or_else(|| "untyped".to_owned());
            let id = part.take_text("id");
            let time = take_time(&mut part, "start");
            vec![Entry::event(kind, part.rest()).with("id", id).at(time)]
        }
    }
}

fn reasoning(mut part: Native) -> Entry {
    part.take("type");
    let id = part.take_text("id");
    let content = part.take("text").unwrap_or_else(|| json!(""));
    let time = take_time(&mut part, "start");
    let encrypted = part.get("metadata").and_then(encrypted).map(str::to_owned);
    Entry::reasoning(content).with("id", id).with("encrypted", encrypted).at(time).native(part)
}

fn encrypted(metadata: &Value) -> Option<&str> {
    let providers = metadata.as_object()?.values();
    providers.chain([metadata]).find_map(|of| ENCRYPTED.iter().find_map(|name| of.get(*name)?.as_str()))
}

fn tool(mut part: Native) -> Vec<Entry> {
    part.take("type");
    let mut state = part.take_object("state").unwrap_or_default();
    let (id, call, name) = (part.take_text("id"), part.take_text("callID"), part.take_text("tool"));
    let input = state.take("input");
    let start = take_time(&mut state, "start");
    let result = result(&mut state, call.clone());
    part.put_object("state", state.rest());
    let entry = Entry::tool_call(name, input).with("id", id).with("call-id", call).at(start).native(part);
    std::iter::once(entry).chain(result).collect()
}

/// Makes the result of a tool part that has ended. A command that ended with another exit code than 0 has failed,
/// even if its state is `completed`.
fn result(state: &mut Native, call: Option<String>) -> Option<Entry> {
    let failed = match state.text("status") {
        Some("completed") => false,
        Some("error") => true,
        _ => return None,
    };
    let status = state.take_text("status");
    let output = state.take("output").or_else(|| state.take("error"));
    let exit = state.get("metadata").and_then(|metadata| metadata.get("exit")?.as_i64());
    let end = take_time(state, "end");
    let entry = Entry::tool_result(output).with("call-id", call).with("status", status);
    Some(entry.with("is-error", Some(failed || exit.is_some_and(|code| code != 0))).at(end))
}
