//! Questions of the gateway's own on open streams of the legacy eras, until their answers come.
//!
//! The client answers an `elicitation/create` with a POST of its own. Its id says which question: ids carry 128 random
//! bits, so that none can be taken for an upstream's or guessed, and an answer counts only from the MCP session that was
//! asked.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use data_encoding::HEXLOWER;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::question;
use crate::limits::MAX_OPEN_QUESTIONS;

/// What begins the id of every question of ours.
const OURS: &str = "tabellion-";

/// The open questions of a process.
#[derive(Clone, Default)]
pub struct Asked(Arc<Mutex<HashMap<String, Open>>>);

struct Open {
    session: Option<String>,
    answer: oneshot::Sender<Value>,
}

/// A question that waits. It is forgotten when this is dropped.
pub struct Waiting {
    id: String,
    answer: oneshot::Receiver<Value>,
    all: Asked,
}

impl Asked {
    /// Opens a question to the client of an MCP session. `None` if too many are open, or there is no randomness.
    #[must_use]
    pub fn open(&self, session: Option<&str>) -> Option<Waiting> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).ok()?;
        let id = format!("{OURS}{}", HEXLOWER.encode(&random));
        let (sender, answer) = oneshot::channel();
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if open.len() >= MAX_OPEN_QUESTIONS {
            return None;
        }
        open.insert(id.clone(), Open { session: session.map(str::to_owned), answer: sender });
        drop(open);
        Some(Waiting { id, answer, all: self.clone() })
    }

    /// Takes a client's JSON-RPC response, if it has the form of an answer to us: then it is for nobody else, and is
    /// swallowed whether or not anybody waits for it.
    #[must_use]
    pub fn take(&self, session: Option<&str>, response: &Value) -> bool {
        let Some(id) = response.get("id").and_then(Value::as_str).filter(|id| id.starts_with(OURS)) else {
            return false;
        };
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if open.get(id).is_some_and(|open| open.session.as_deref() == session) {
            if let Some(open) = open.remove(id) {
                let _ = open.answer.send(response.get("result").cloned().unwrap_or(Value::Null));
            }
        }
        true
    }
}

impl Waiting {
    /// The question as a JSON-RPC request.
    #[must_use]
    pub fn request(&self, words: &str) -> Value {
        json!({
            "jsonrpc": "2.0",
            "id": self.id,
            "method": "elicitation/create",
            "params": { "message": words, "requestedSchema": question::schema() },
        })
    }

    /// Waits for the answer: the elicitation's result, or null if the client answered with an error or never will.
    pub async fn answer(&mut self) -> Value {
        (&mut self.answer).await.unwrap_or(Value::Null)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.all.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[tokio::test]
    async fn an_answer_reaches_the_question_it_names() {
        let asked = Asked::default();
        let mut waiting = asked.open(Some("m-1")).unwrap();
        let id = waiting.request("?")["id"].clone();
        let answer = json!({ "jsonrpc": "2.0", "id": id, "result": { "action": "accept" } });
        assert!(asked.take(Some("m-1"), &answer));
        assert_eq!(waiting.answer().await, json!({ "action": "accept" }));
    }

    #[tokio::test]
    async fn another_sessions_answer_is_swallowed_and_answers_nothing() {
        let asked = Asked::default();
        let waiting = asked.open(Some("m-1")).unwrap();
        let answer = json!({ "id": waiting.request("?")["id"], "result": { "action": "accept" } });
        assert!(asked.take(Some("m-2"), &answer));
        assert_eq!(asked.0.lock().unwrap().len(), 1, "the question is still open");
    }

    #[test]
    fn a_response_that_is_the_upstreams_is_left_to_it() {
        let asked = Asked::default();
        for id in [json!(7), json!("7"), json!(null)] {
            assert!(!asked.take(None, &json!({ "id": id, "result": {} })));
        }
    }

    #[test]
    fn a_question_that_nobody_waits_for_is_forgotten() {
        let asked = Asked::default();
        drop(asked.open(None));
        assert!(asked.0.lock().unwrap().is_empty());
    }
}
