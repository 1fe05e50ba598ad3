//! The gateway's own questions on open streams of the legacy eras, until they are answered.
//!
//! The client answers an `elicitation/create` with a POST of its own, whose id names the question: an id has 128 random
//! bits, so that it can be neither guessed nor confused with an upstream's, and an answer counts only from the MCP
//! session that was asked.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use admission::clarify::{HumanAnswer, SCHEMA};
use data_encoding::HEXLOWER;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::frame::RawId;
use crate::limits::MAX_OPEN_QUESTIONS;

/// Prefix of the ids of the gateway's own questions.
const OURS: &str = "tabellion-";

/// The open questions of this process.
#[derive(Clone, Default)]
pub struct OpenQuestions {
    /// The questions by their JSON-RPC id.
    open: Arc<Mutex<HashMap<String, AskedQuestion>>>,
}

struct AskedQuestion {
    mcp_session: Option<String>,
    answer: oneshot::Sender<Value>,
}

/// An open question. Dropping it removes it from [`OpenQuestions`].
pub struct WaitingQuestion {
    id: String,
    answer: oneshot::Receiver<Value>,
    all: OpenQuestions,
}

impl OpenQuestions {
    /// Opens a question to the client of an MCP session. `None` if [`MAX_OPEN_QUESTIONS`] are open, or there is no
    /// randomness.
    #[must_use]
    pub fn open(&self, session: Option<&str>) -> Option<WaitingQuestion> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).ok()?;
        let id = format!("{OURS}{}", HEXLOWER.encode(&random));
        let (sender, answer) = oneshot::channel();
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.len() >= MAX_OPEN_QUESTIONS {
            return None;
        }
        open.insert(id.clone(), AskedQuestion { mcp_session: session.map(str::to_owned), answer: sender });
        drop(open);
        Some(WaitingQuestion { id, answer, all: self.clone() })
    }

    /// Takes a client's JSON-RPC response, by its id and the text of its result. Returns whether the id has the form of
    /// the gateway's own: then the response is not passed on, even if no such question is open.
    #[must_use]
    pub fn take(&self, session: Option<&str>, id: &RawId, result: Option<&str>) -> bool {
        let Some(id) = id.as_str().filter(|id| id.starts_with(OURS)) else { return false };
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let is_of_session = open.get(id).is_some_and(|question| question.mcp_session.as_deref() == session);
        if let Some(question) = is_of_session.then(|| open.remove(id)).flatten() {
            let result = result.and_then(|text| jose::json::parse_text(text).ok());
            let _ = question.answer.send(result.unwrap_or_default());
        }
        true
    }
}

impl WaitingQuestion {
    /// Returns the question as a JSON-RPC request.
    #[must_use]
    pub fn request(&self, words: &str) -> Value {
        json!({
            "jsonrpc": "2.0",
            "id": self.id,
            "method": "elicitation/create",
            "params": { "message": words, "requestedSchema": schema() },
        })
    }

    /// Waits for the answer. A client that answers with an error declines.
    pub async fn answer(&mut self) -> HumanAnswer {
        (&mut self.answer).await.map_or(HumanAnswer::Unanswered, |result| read(&result))
    }
}

impl Drop for WaitingQuestion {
    fn drop(&mut self) {
        self.all.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}

/// Returns the schema of the form, for `requestedSchema`.
#[must_use]
pub fn schema() -> Value {
    jose::json::parse_text(SCHEMA).unwrap_or_default()
}

/// Reads the result of an elicitation. Only an accepted form whose `confirm` is true is [`HumanAnswer::Confirmed`].
#[must_use]
pub fn read(result: &Value) -> HumanAnswer {
    let accepted = result.get("action").and_then(Value::as_str) == Some("accept");
    match accepted && result.pointer("/content/confirm").and_then(Value::as_bool) == Some(true) {
        true => HumanAnswer::Confirmed,
        false => HumanAnswer::Declined,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[tokio::test]
    async fn an_answer_reaches_the_question_it_names() {
        let asked = OpenQuestions::default();
        let mut waiting = asked.open(Some("m-1")).unwrap();
        let id = RawId::string(waiting.request("?")["id"].as_str().unwrap());
        let result = json!({ "action": "accept", "content": { "confirm": true } }).to_string();
        assert!(asked.take(Some("m-1"), &id, Some(&result)));
        assert_eq!(waiting.answer().await, HumanAnswer::Confirmed);
    }

    #[tokio::test]
    async fn another_sessions_answer_is_swallowed_and_answers_nothing() {
        let asked = OpenQuestions::default();
        let waiting = asked.open(Some("m-1")).unwrap();
        let id = RawId::string(waiting.request("?")["id"].as_str().unwrap());
        assert!(asked.take(Some("m-2"), &id, Some(r#"{"action":"accept"}"#)));
        assert_eq!(asked.open.lock().unwrap().len(), 1, "the question is still open");
    }

    #[test]
    fn a_response_that_is_the_upstreams_is_left_to_it() {
        let asked = OpenQuestions::default();
        for id in ["7", "\"7\""] {
            assert!(!asked.take(None, &RawId::read(id).unwrap(), Some("{}")));
        }
    }

    #[test]
    fn a_question_that_nobody_waits_for_is_forgotten() {
        let asked = OpenQuestions::default();
        drop(asked.open(None));
        assert!(asked.open.lock().unwrap().is_empty());
    }

    #[test]
    fn only_an_accepted_form_with_confirm_true_says_yes() {
        assert_eq!(
            read(&json!({ "action": "accept", "content": { "confirm": true } })),
            HumanAnswer::Confirmed
        );
        for no in [
            json!({ "action": "accept", "content": { "confirm": false } }),
            json!({ "action": "accept", "content": { "confirm": "true" } }),
            json!({ "action": "accept" }),
            json!({ "action": "decline", "content": { "confirm": true } }),
            json!({ "action": "cancel" }),
            json!(null),
        ] {
            assert_eq!(read(&no), HumanAnswer::Declined, "{no}");
        }
    }
}
