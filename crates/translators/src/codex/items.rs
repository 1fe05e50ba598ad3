//! Response items of Codex: messages, reasoning, tool calls and their results.

use jose::json::parse_text;
use serde_json::{Value, json};

use crate::entry::{ASSISTANT, Entry, USER};
use crate::lines;
use crate::native::Native;

/// Beginnings of a tool's output that are followed by the exit code.
const EXIT_CODE: [&str; 2] = ["Exit code: ", "Process exited with code "];
/// Number of lines of an output that may state the exit code.
const STATUS_LINES: usize = 4;

/// Makes an entry of an item; one of an unknown type is an event with this name.
pub(super) fn entry(mut item: Native, name: &str) -> Entry {
    let kind = item.text("type").unwrap_or_default().to_owned();
    if kind == "message" || (kind.is_empty() && item.text("role").is_some()) {
        return message(item);
    }
    match kind.as_str() {
        "reasoning" => reasoning(item),
        "function_call" | "custom_tool_call" | "tool_call" => {
            let name = item.take_text("name").or_else(|| item.take_object("function")?.take_text("name"));
            let input = item.take("arguments").map(lines::parsed).or_else(|| item.take("input"));
            call(item, name, input)
        }
        "local_shell_call" => special_call(item, "local_shell", "action"),
        "web_search_call" => special_call(item, "web_search", "action"),
        "tool_search_call" => special_call(item, "tool_search", "arguments"),
        "image_generation_call" => special_call(item, "image_generation", "revised_prompt"),
        "function_call_output" | "custom_tool_call_output" => result(item, "output"),
        "tool_search_output" => result(item, "tools"),
        "tool_result" | "function_result" => result(item, "result"),
        _ => Entry::event(name, item.rest()),
    }
}

/// A message. Only assistants are assistants: what the developer or the system says to the model is a `user` entry that
/// keeps its native role.
fn message(mut item: Native) -> Entry {
    item.drop_if("type", Some("message"));
    let kind = if item.text("role") == Some(ASSISTANT) { ASSISTANT } else { USER };
    item.drop_if("role", Some(kind));
    let (id, content) = (item.take_text("id"), item.take("content").or_else(|| item.take("message")));
    let model = if kind == ASSISTANT { item.take_text("model") } else { None };
    Entry::message(kind, content).with("id", id).with("model-id", model).native(item)
}

fn reasoning(mut item: Native) -> Entry {
    item.take("type");
    let (id, encrypted) = (item.take_text("id"), item.take_text("encrypted_content"));
    let texts: Vec<String> =
        ["summary", "content"].into_iter().flat_map(|name| all_texts(&mut item, name)).collect();
    Entry::reasoning(json!(texts.join("\n\n"))).with("id", id).with("encrypted", encrypted).native(item)
}

/// Takes a member that is a list of texts; a list with other elements stays.
fn all_texts(item: &mut Native, name: &str) -> Vec<String> {
    let texts = item.get(name).and_then(Value::as_array).and_then(|parts| parts.iter().map(text).collect());
    match texts {
        Some(texts) => {
            item.take(name);
            texts
        }
        None => Vec::new(),
    }
}

fn text(part: &Value) -> Option<String> {
    part.get("text").and_then(Value::as_str).map(str::to_owned)
}

fn special_call(mut item: Native, name: &str, input: &str) -> Entry {
    let input = item.take(input);
    call(item, Some(name.to_owned()), input)
}

fn call(mut item: Native, name: Option<String>, input: Option<Value>) -> Entry {
    let (id, call) = (item.take_text("id"), item.take_text("call_id"));
    Entry::tool_call(name, input).with("id", id).with("call-id", call).native(item)
}

fn result(mut item: Native, output: &str) -> Entry {
    let (id, call, status) = (item.take_text("id"), item.take_text("call_id"), item.take_text("status"));
    let output = item.take(output);
    let is_error = output.as_ref().and_then(exit_code).map(|code| code != 0);
    let entry = Entry::tool_result(output).with("id", id).with("call-id", call);
    entry.with("status", status).with("is-error", is_error).native(item)
}

/// Returns the exit code that an output states, in one of the forms of several versions.
fn exit_code(output: &Value) -> Option<i64> {
    let inside = |output: &Value| {
        let code =
            output.pointer("/metadata/exit_code").or(output.get("exitCode")).or(output.get("exit_code"));
        code.and_then(Value::as_i64)
    };
    match output {
        Value::String(text) => parse_text(text).ok().as_ref().and_then(inside).or_else(|| stated_in(text)),
        other => inside(other),
    }
}

fn stated_in(text: &str) -> Option<i64> {
    let codes = text.lines().take(STATUS_LINES);
    codes
        .filter_map(|line| EXIT_CODE.iter().find_map(|start| line.strip_prefix(start)))
        .next()?
        .trim()
        .parse()
        .ok()
}
