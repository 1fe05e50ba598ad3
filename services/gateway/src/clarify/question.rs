//! The words of a question, from the tool's name and its arguments and nothing else.
//!
//! The rationale is the agent's own text: to show it would let the agent argue with the person who is to judge it
//! (reading V-26). Arguments are the agent's too, so they are shown as data: quoted, with everything escaped that could
//! pretend to be something else on a screen, and cut at a length that a person reads.

use serde_json::{Value, json};

use crate::limits::MAX_SHOWN_ARGUMENTS;

/// The one member of the answer.
pub const CONFIRM: &str = "confirm";

/// What the person is asked.
#[must_use]
pub fn words(tool: &str, arguments: &str) -> String {
    let mut shown = String::new();
    for character in arguments.chars().take(MAX_SHOWN_ARGUMENTS) {
        show(character, &mut shown);
    }
    let cut = match arguments.chars().nth(MAX_SHOWN_ARGUMENTS) {
        Some(_) => format!(" … (cut: {} bytes in all)", arguments.len()),
        None => String::new(),
    };
    let mut name = String::new();
    tool.chars().for_each(|character| show(character, &mut name));
    format!("Allow this call?\n\nTool: {name}\nArguments: {shown}{cut}")
}

/// The form: one required boolean (issue of MCP's restricted schema for elicitation).
#[must_use]
pub fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            CONFIRM: { "type": "boolean", "title": "Allow", "description": "Allow the call exactly as shown" },
        },
        "required": [CONFIRM],
    })
}

/// What an elicitation's result says: `action` accept, and `confirm` true.
#[must_use]
pub fn is_allowed(result: &Value) -> bool {
    result.get("action").and_then(Value::as_str) == Some("accept")
        && result.pointer("/content/confirm").and_then(Value::as_bool) == Some(true)
}

/// Escapes what does not show as itself: control characters, and marks that hide text or turn it round.
fn show(character: char, shown: &mut String) {
    let hidden = matches!(
        character,
        '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}'
    );
    match hidden || character.is_control() {
        true => shown.extend(character.escape_unicode()),
        false => shown.push(character),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_question_shows_the_tool_and_its_arguments() {
        let words = words("payments.send", r#"{"amount":1200}"#);
        assert_eq!(words, "Allow this call?\n\nTool: payments.send\nArguments: {\"amount\":1200}");
    }

    #[test]
    fn v26_text_that_pretends_to_be_part_of_the_question_shows_as_data() {
        let words = words("a\nTool: harmless", "{\"to\":\"\u{202e}evil\u{200b}\"}\n");
        assert!(words.contains("a\\u{a}Tool: harmless"), "{words}");
        assert!(words.contains("\\u{202e}evil\\u{200b}"), "{words}");
        assert!(words.ends_with("\\u{a}"), "{words}");
    }

    #[test]
    fn long_arguments_are_cut_and_say_so() {
        let words = words("t", &"x".repeat(MAX_SHOWN_ARGUMENTS + 1));
        assert!(words.ends_with(&format!("… (cut: {} bytes in all)", MAX_SHOWN_ARGUMENTS + 1)), "{words}");
    }

    #[test]
    fn only_an_accepted_form_with_confirm_true_allows() {
        assert!(is_allowed(&json!({ "action": "accept", "content": { "confirm": true } })));
        for refused in [
            json!({ "action": "accept", "content": { "confirm": false } }),
            json!({ "action": "accept", "content": { "confirm": "true" } }),
            json!({ "action": "accept" }),
            json!({ "action": "decline", "content": { "confirm": true } }),
            json!({ "action": "cancel" }),
            json!(null),
        ] {
            assert!(!is_allowed(&refused), "{refused}");
        }
    }
}
