//! The JSON that an agent gives to its hook. It may be hostile: only a session's name and the path of its file are used,
//! and both are checked.

use std::path::PathBuf;

use jose::json::{Limits, MAX_DEPTH, parse_strict};
use serde_json::Value;

use super::agent::CodingAgent;
use crate::console::{Exit, Failure};

/// Maximum size of an event in bytes. Codex sends the messages of the turn with it.
const MAX_EVENT: usize = 8 << 20;
/// Maximum length of a session's name.
const MAX_NAME: usize = 128;

/// The end of a session, or of a turn.
#[derive(Debug, PartialEq, Eq)]
pub struct SessionEvent {
    /// The session's name: letters, digits, hyphens and underscores.
    pub session: String,
    /// The session's file, if the agent names it.
    pub transcript: Option<PathBuf>,
}

impl SessionEvent {
    /// Reads an event; `None` if it is one that ends nothing.
    ///
    /// # Errors
    /// Code `hook-input` for anything that the agent does not send.
    pub fn parse(agent: CodingAgent, bytes: &[u8]) -> Result<Option<Self>, Failure> {
        let event = parse_strict(bytes, Limits { bytes: MAX_EVENT, depth: MAX_DEPTH })
            .map_err(|error| refused(agent, &format!("it is not strict JSON: {error}")))?;
        if !event.is_object() {
            return Err(refused(agent, "it is not an object"));
        }
        let (kind, ends, names): (_, &[&str], &[&str]) = match agent {
            CodingAgent::ClaudeCode => ("hook_event_name", &["SessionEnd", "Stop"], &["session_id"]),
            CodingAgent::Codex => ("type", &["agent-turn-complete"], &["thread-id"]),
            CodingAgent::Cursor => {
                ("hook_event_name", &["sessionEnd", "stop"], &["conversation_id", "session_id"])
            }
        };
        let found = event[kind].as_str().ok_or_else(|| refused(agent, &format!("{kind} is not text")))?;
        if !ends.contains(&found) {
            return Ok(None);
        }
        let session = names.iter().find_map(|name| event[*name].as_str()).filter(|name| is_name(name));
        let session =
            session.ok_or_else(|| refused(agent, &format!("{} is not a name of a session", names[0])))?;
        Ok(Some(Self { session: session.to_owned(), transcript: transcript(agent, &event)? }))
    }
}

fn transcript(agent: CodingAgent, event: &Value) -> Result<Option<PathBuf>, Failure> {
    match &event["transcript_path"] {
        Value::Null => Ok(None),
        Value::String(path) if path.starts_with('/') && !path.contains('\0') => Ok(Some(path.into())),
        _ => Err(refused(agent, "transcript_path is not an absolute path")),
    }
}

fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    !text.is_empty() && text.len() <= MAX_NAME && text.chars().all(plain)
}

fn refused(agent: CodingAgent, found: &str) -> Failure {
    Failure::new(Exit::Usage, "hook-input", format!("this is not an event of {}", agent.name()))
        .fact("found", found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_events_of_each_agent_are_read() {
        for (agent, event, session, transcript) in [
            (
                CodingAgent::ClaudeCode,
                r#"{"session_id":"abc-1","transcript_path":"/h/.claude/projects/p/abc-1.jsonl","cwd":"/p",
                    "permission_mode":"default","hook_event_name":"SessionEnd","reason":"other"}"#,
                "abc-1",
                Some("/h/.claude/projects/p/abc-1.jsonl"),
            ),
            (
                CodingAgent::Codex,
                r#"{"type":"agent-turn-complete","thread-id":"b5f6","turn-id":"12","cwd":"/p","client":"codex-tui",
                    "input-messages":["fix"],"last-assistant-message":"done"}"#,
                "b5f6",
                None,
            ),
            (
                CodingAgent::Cursor,
                r#"{"conversation_id":"cd-2","generation_id":"g","hook_event_name":"sessionEnd","session_id":"cd-2",
                    "reason":"completed","duration_ms":5,"transcript_path":null,"workspace_roots":["/p"]}"#,
                "cd-2",
                None,
            ),
        ] {
            let read = SessionEvent::parse(agent, event.as_bytes()).unwrap().unwrap();
            let expected =
                SessionEvent { session: session.to_owned(), transcript: transcript.map(PathBuf::from) };
            assert_eq!(read, expected, "{agent:?}");
        }
    }

    #[test]
    fn an_event_that_ends_nothing_is_passed_over() {
        let event = br#"{"hook_event_name":"PreToolUse","session_id":"a"}"#;
        assert_eq!(SessionEvent::parse(CodingAgent::ClaudeCode, event).unwrap(), None);
    }

    #[test]
    fn hostile_events_are_refused() {
        let deep = format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000));
        for event in [
            "",
            "[]",
            "{",
            &deep,
            r#"{"hook_event_name":"SessionEnd"}"#,
            r#"{"hook_event_name":"SessionEnd","session_id":"../../etc"}"#,
            r#"{"hook_event_name":"SessionEnd","session_id":"a","session_id":"b"}"#,
            r#"{"hook_event_name":"SessionEnd","session_id":"a","transcript_path":"relative"}"#,
            r#"{"hook_event_name":"SessionEnd","session_id":"a","transcript_path":{}}"#,
            r#"{"hook_event_name":7,"session_id":"a"}"#,
        ] {
            let refused = SessionEvent::parse(CodingAgent::ClaudeCode, event.as_bytes()).unwrap_err();
            assert!(refused.to_text().contains("[hook-input]"), "{event}");
        }
    }
}
