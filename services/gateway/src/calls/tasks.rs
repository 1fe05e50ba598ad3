//! Calls that go on as tasks (V-37): admitted once, when the task is made; settled with its last result.
//!
//! Both forms are read: the experimental one of 2025-11-25 (`result.task`, then `tasks/result`) and the modern extension
//! (`resultType: "task"`, then `tasks/get` until a status is final). A task that is not remembered (the gateway was
//! restarted, or its call was never admitted here) is the upstream's business alone.

use std::sync::{Arc, Mutex, PoisonError};

use admission::decide::{Dice, FollowUp, Scene, Task, follow_up};
use admission::principal::Principal;
use async_trait::async_trait;
use bytes::Bytes;
use http::StatusCode;
use jiff::Timestamp;
use moka::sync::Cache;
use serde_json::Value;

use super::Calls;
use super::ending::Ending;
use super::refused::REFUSED;
use crate::frame::RawId;
use crate::frame::reply::{self, Reply};
use crate::front::{Inbound, Response, unanswered};
use crate::limits::{KNOWN_TASK_IDLE, MAX_KNOWN_TASKS};
use crate::relay::{self, Over, Passing, Tap};

/// What begins the methods of tasks.
pub const METHODS: &str = "tasks/";
/// What a task is when nothing more comes of it.
const FINAL: [&str; 3] = ["completed", "failed", "cancelled"];

/// The tasks of admitted calls.
#[derive(Clone)]
pub struct Tasks(Cache<String, Arc<Known>>);

/// A task, and what its call still owes. Forgotten, its outcome is `unknown`.
struct Known {
    task: Task,
    ending: Mutex<Option<Ending>>,
}

impl Default for Tasks {
    fn default() -> Self {
        Self(Cache::builder().max_capacity(MAX_KNOWN_TASKS).time_to_idle(KNOWN_TASK_IDLE).build())
    }
}

impl Tasks {
    /// Remembers a task.
    pub fn keep(&self, task_id: String, ending: Ending) {
        let task = Task {
            principal: Principal::of(&ending.caller, None),
            session_id: ending.session_id().map(str::to_owned),
            reservation: None,
            tool: ending.tool.clone(),
        };
        self.0.insert(task_id, Arc::new(Known { task, ending: Mutex::new(Some(ending)) }));
    }
}

impl Calls {
    /// A request about a task.
    pub(super) async fn task(&self, inbound: Inbound) -> Response {
        let Some(id) = inbound.frame.id().cloned() else { return super::refused::no_id() };
        let known =
            inbound.frame.param_string("taskId").and_then(|task_id| self.shared.tasks.0.get(&task_id));
        if let Some(refusal) = known.as_ref().and_then(|known| self.refused_task(&inbound, known, &id)) {
            return relay::json(StatusCode::OK, refusal);
        }
        match (inbound.route.upstream.exchange(inbound.exchange).await, known) {
            (Ok(answer), Some(known)) => relay::watch(answer, Box::new(Last { id, known })).await,
            (Ok(answer), None) => relay::pass(answer),
            (Err(error), _) => unanswered(Some(&id), &error),
        }
    }

    /// Only whose call it was may ask about its task, and what it brings for the tool is subject to the rules.
    fn refused_task(&self, inbound: &Inbound, known: &Known, id: &RawId) -> Option<Bytes> {
        let inputs =
            inbound.frame.param("inputResponses").filter(|_| inbound.frame.method() == Some("tasks/update"));
        let (rules, caller) = (&*self.rules, &inbound.caller);
        let scene = Scene { rules, caller, now: Timestamp::now(), dice: Dice::default() };
        let ruling = follow_up(&scene, &known.task, FollowUp { inputs })?;
        let code = ruling.reason.as_ref().map(|reason| reason.as_str().into_owned()).unwrap_or_default();
        let data = serde_json::json!({ "reason": code }).to_string();
        Some(reply::error(
            Some(id),
            REFUSED,
            &format!("this request about a task is refused ({code})"),
            Some(&data),
        ))
    }
}

/// Looks for a task's last result.
struct Last {
    id: RawId,
    known: Arc<Known>,
}

#[async_trait]
impl Tap for Last {
    async fn message(&mut self, text: Bytes) -> Passing {
        let Ok(reply) = Reply::parse(text) else { return Passing::Untouched };
        if !reply.answers(&self.id) {
            return Passing::Untouched;
        }
        let Some(last) = last(&reply) else { return Passing::Untouched };
        let ending = self.known.ending.lock().unwrap_or_else(PoisonError::into_inner).take();
        match ending {
            Some(ending) => ending.settle_task(&reply, last.nested.as_deref()).await,
            None => Passing::Untouched,
        }
    }

    async fn over(&mut self, _: Over) -> Option<Bytes> {
        None
    }
}

/// The last result of a task.
struct LastResult {
    /// Where the tool's result stands within the answer (`tasks/get`).
    nested: Option<String>,
}

/// The id of the task that a call became.
pub fn created(reply: &Reply) -> Option<String> {
    let of =
        |text: &str| serde_json::from_str::<Value>(text).ok()?.get("taskId")?.as_str().map(str::to_owned);
    match (reply.result_member("task"), reply.result_member("resultType")) {
        (Some(task), _) => of(task),
        (None, Some(r#""task""#)) => of(reply.result()?),
        (None, _) => None,
    }
}

/// What is final: the tool's result by itself (`tasks/result`), or a status that nothing follows.
fn last(reply: &Reply) -> Option<LastResult> {
    if reply.result_member("content").is_some() || reply.result_member("isError").is_some() {
        return Some(LastResult { nested: None });
    }
    let holder = reply.result_member("task").or_else(|| reply.result())?;
    let status = serde_json::from_str::<Value>(holder).ok()?.get("status")?.as_str()?.to_owned();
    let nested = reply.result_member("result").map(str::to_owned);
    // In the first form the result of a completed task is fetched by itself, and says what it cost.
    let is_over = FINAL.contains(&status.as_str()) && (nested.is_some() || status != "completed");
    is_over.then_some(LastResult { nested })
}
