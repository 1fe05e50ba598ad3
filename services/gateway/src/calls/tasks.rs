//! Calls that go on as tasks (V-37): admitted once, when the task is created, and settled with its last result.
//!
//! Both forms are supported: the experimental one of 2025-11-25 (`result.task`, then `tasks/result`) and the modern
//! extension (`resultType: "task"`, then `tasks/get` until a status is final).
//!
//! Tasks are remembered in memory. The owner of an unknown task is not known (after a restart, or if its call was not
//! admitted here): requests about it are refused on record, like those about another caller's task. On an advisory route
//! they pass. `tasks/list` names no task, and passes. Notifications about a task reach only those who may request it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use admission::decide::{FollowUp, Ruling, Task};
use admission::principal::{Caller, Era, Principal};
use admission::rules::Posture;
use async_trait::async_trait;
use bytes::Bytes;
use moka::policy::EvictionPolicy;
use moka::sync::Cache;
use vap::audit::CallStatus;
use vap::reason::Reason;

use super::additions::{Additions, EVIDENCE, VerdictSlot};
use super::answer_stream::{AnswerStream, UnrelatedTap, clean};
use super::ending::{Ending, outcome_of};
use super::task_error::TaskError;
use super::{Calls, Shared};
use crate::decision_writer::{CallOutcomeReport, RefusalJob};
use crate::frame::RawId;
use crate::frame::reply::{self, Reply};
use crate::front::unanswered;
use crate::limits::{KNOWN_TASK_IDLE, MAX_KNOWN_TASKS, MAX_NAMESAKES};
use crate::mcp::Inbound;
use crate::relay::Response;
use crate::relay::{self, AwaitedRequest, Over, Passing, Tap, Unanswered};
use crate::upstream::fields;
use crate::upstream::request::VERSION;
use crate::upstream::text::may_be_message;

/// Prefix of the methods about tasks.
pub const METHODS: &str = "tasks/";
/// The method that waits for the result of a task (2025-11-25).
pub const RESULT: &str = "tasks/result";
/// The method about tasks that names none.
const LIST: &str = "tasks/list";
/// The method that gives a task the inputs that its tool asks for.
const UPDATE: &str = "tasks/update";
/// The first protocol revision with tasks. Revisions are dates, so their text order is their order.
const FIRST_WITH_TASKS: &str = "2025-11-25";
/// The status of a task that has a tool's result without an error.
const COMPLETED: &str = "completed";
/// The status of a task that has failed; in 2025-11-25 also of one with a tool's result that has `isError`.
const FAILED: &str = "failed";
/// The statuses of a task that are final.
const FINAL: [&str; 3] = [COMPLETED, FAILED, "cancelled"];

/// The tasks of admitted calls. Servers choose the names, so two sessions may each have a task of the same name.
#[derive(Clone)]
pub struct Tasks(Cache<Name, Namesakes>);

/// A route, and the server's name for a task on it.
type Name = (Arc<str>, String);
/// The tasks of one name, newest first, at most [`MAX_NAMESAKES`].
type Namesakes = Arc<Vec<Arc<KnownTask>>>;

/// A task with its unsettled call. If it is evicted, the outcome is `unknown`.
struct KnownTask {
    task: Task,
    /// `true` if the caller's answers get the gateway's `_meta` members.
    annotated: bool,
    ending: Mutex<Option<Ending>>,
    /// The members that the last result was given; it may be requested again.
    given: OnceLock<Additions>,
    /// `true` once the server said that the task has failed.
    has_failed: AtomicBool,
}

impl Default for Tasks {
    fn default() -> Self {
        let all = Cache::builder().max_capacity(MAX_KNOWN_TASKS).time_to_idle(KNOWN_TASK_IDLE);
        Self(all.eviction_policy(EvictionPolicy::lru()).build())
    }
}

impl Tasks {
    /// Remembers the task of an unsettled call.
    pub fn keep(&self, task_id: String, ending: Ending) {
        let task = Task {
            principal: owner(&ending.caller),
            session_id: ending.session_id().map(str::to_owned),
            reservation: None,
            tool: ending.tool.clone(),
        };
        let (name, annotated) = ((ending.route.clone(), task_id), ending.is_annotated());
        let (ending, given, has_failed) = (Mutex::new(Some(ending)), OnceLock::new(), AtomicBool::new(false));
        let known = KnownTask { task, annotated, ending, given, has_failed };
        self.0.entry(name).and_upsert_with(|before| {
            let before = before.map(|entry| entry.into_value().to_vec()).unwrap_or_default();
            let all = std::iter::once(Arc::new(known)).chain(before);
            Arc::new(all.take(MAX_NAMESAKES).collect())
        });
    }

    /// Returns whether the answers about a task of this name get the gateway's `_meta` members.
    pub fn is_annotated(&self, route: &Arc<str>, task_id: String) -> bool {
        self.named(route, task_id).iter().any(|known| known.annotated)
    }

    fn named(&self, route: &Arc<str>, task_id: String) -> Namesakes {
        self.0.get(&(route.clone(), task_id)).unwrap_or_default()
    }
}

impl Shared {
    /// Returns whether a caller may read the state of a task of this name: as in a request about it, without inputs.
    pub(super) fn may_read_about_task(&self, route: &Arc<str>, caller: &Caller, task_id: String) -> bool {
        let all = self.tasks.named(route, task_id);
        let may = |known: &Arc<KnownTask>| {
            let request = FollowUp { inputs: None };
            self.writer.denied_follow_up(route, caller, &known.task, request).is_none()
        };
        all.iter().any(may) || (all.is_empty() && self.passes_unknown_tasks(route))
    }

    /// Returns whether the route decides nothing about tasks that are not known.
    fn passes_unknown_tasks(&self, route: &str) -> bool {
        self.writer.rules_of(route).posture == Posture::Advisory
    }
}

impl Calls {
    /// Handles a request about a task.
    pub(super) async fn task(&self, inbound: Inbound) -> Response {
        let Some(id) = inbound.frame.id().cloned() else { return super::refused::no_id() };
        // Any JSON type is accepted: an upstream may take a number for the name.
        let as_written = || inbound.frame.param("taskId").map(str::to_owned);
        let task_id = inbound.frame.param_string("taskId").or_else(as_written);
        let all = task_id.map(|task_id| self.shared.tasks.named(&self.route, task_id)).unwrap_or_default();
        let known = match self.may_follow_up(&inbound, &all) {
            Ok(known) => known,
            Err(ruling) => return self.refuse_follow_up(inbound, ruling, &id).await,
        };
        let annotated = known.as_ref().is_some_and(|known| known.annotated);
        let passage = AnswerStream { annotated, ..self.passage(&inbound.caller, Some(id.clone())) };
        let fetches_result = inbound.frame.method() == Some(RESULT);
        let request = AwaitedRequest { id: &id, era: inbound.era };
        match (relay::ask(&*inbound.endpoint.upstream, inbound.exchange, &inbound.client).await, known) {
            (Ok(answer), Some(known)) => {
                // Another answer is not the server's about the task.
                let is_refusal = !answer.status.is_success();
                let fetches_result = fetches_result && !is_refusal && !answer.is_unsent;
                let passage = AnswerStream { is_refusal, ..passage };
                let last = Last { id: id.clone(), known, passage, fetches_result };
                let tap = self.shared.resumable.wrap(
                    (&self.route, &inbound.caller),
                    &inbound.frame,
                    &answer,
                    Box::new(last),
                );
                relay::watch(answer, tap, Some(request)).await
            }
            (Ok(answer), None) => {
                relay::watch(answer, Box::new(UnrelatedTap { passage }), Some(request)).await
            }
            (Err(Unanswered::Upstream(error)), _) => unanswered(Some(&id), &error),
            (Err(Unanswered::Cancelled), _) => relay::cancelled(),
        }
    }

    /// Returns the task that the request follows up: only the caller of its call may, and its inputs must pass the
    /// rules. `None` if the request passes without a known task.
    fn may_follow_up(
        &self,
        inbound: &Inbound,
        all: &[Arc<KnownTask>],
    ) -> Result<Option<Arc<KnownTask>>, Box<Ruling>> {
        let (writer, caller) = (&self.shared.writer, &inbound.caller);
        let method = inbound.frame.method().unwrap_or_default();
        let mut refused = None;
        for known in all {
            let has_inputs = known.annotated && method == UPDATE;
            let request = FollowUp { inputs: inbound.frame.param("inputResponses").filter(|_| has_inputs) };
            match writer.denied_follow_up(&self.route, caller, &known.task, request) {
                None => return Ok(Some(known.clone())),
                // Another session's task may have the same name.
                Some(ruling) if ruling.reason == Some(Reason::WrongPrincipal) => refused = Some(ruling),
                Some(ruling) => return Err(ruling),
            }
        }
        let passes = || self.shared.passes_unknown_tasks(&self.route) || method == LIST;
        match refused {
            Some(ruling) => Err(ruling),
            None if passes() => Ok(None),
            None => Err(writer.denied_unknown_task(&self.route, caller, method)),
        }
    }

    /// Returns whether the revision of a request has tasks. In the legacy eras it is that of the header, or else that of the
    /// session, or else the one that MCP assumes, which has none (2025-03-26).
    fn has_tasks(&self, inbound: &Inbound) -> bool {
        let stated = fields::text(&inbound.exchange.headers, &VERSION).map(str::to_owned);
        let session = inbound.caller.mcp_session.as_deref();
        let revision = stated.or_else(|| self.shared.clients.revision(&self.route, session?));
        inbound.era == Era::Modern || revision.is_some_and(|revision| revision.as_str() >= FIRST_WITH_TASKS)
    }

    /// Records the refusal of a request about a task. The answer is a JSON-RPC error, since there is no tool result.
    async fn refuse_follow_up(&self, inbound: Inbound, ruling: Box<Ruling>, id: &RawId) -> Response {
        let has_tasks = self.has_tasks(&inbound);
        let Inbound { caller, invocation, frame, era, .. } = inbound;
        let error = TaskError::of(&frame, (era, has_tasks), ruling.reason.as_ref());
        let mut additions = Additions::default();
        additions.echo(invocation.as_ref());
        let (route, invocation) =
            (self.route.to_string(), invocation.map(|invocation| invocation.invocation));
        let method = frame.method().unwrap_or_default().to_owned();
        let decision =
            self.shared.writer.refuse(RefusalJob { route, caller, method, ruling, invocation }).await;
        self.count(&decision);
        additions.verdict(VerdictSlot::default(), &decision.text);
        if let Some(evidence) = &decision.evidence {
            additions.put(EVIDENCE, evidence.to_json());
        }
        if let Some(required) = error.required {
            additions.put("requiredCapabilities", required.to_owned());
        }
        let reason = decision.verdict.verification.reason.as_ref().map(Reason::to_string).unwrap_or_default();
        let words = format!("This request about a task was denied ({reason}).");
        relay::json(error.status, reply::error(Some(id), error.code, &words, Some(&additions.object())))
    }
}

/// A tap that looks for a task's last result.
struct Last {
    id: RawId,
    known: Arc<KnownTask>,
    passage: AnswerStream,
    /// `true` if this is the server's answer to [`RESULT`].
    fetches_result: bool,
}

#[async_trait]
impl Tap for Last {
    async fn message(&mut self, text: Bytes) -> Passing {
        let Ok(reply) = Reply::parse(text.clone()) else {
            return if self.known.annotated && may_be_message(&text) {
                Passing::Withheld
            } else {
                Passing::Untouched
            };
        };
        if !reply.answers(&self.id) {
            return self.passage.unrelated(&reply).await;
        }
        let Some(last) = self.last_result(&reply) else {
            return if self.known.annotated { clean(&reply) } else { Passing::Untouched };
        };
        let ending = self.known.ending.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(ending) = ending {
            let additions = ending.settle_task(last.outcome(&reply)).await;
            let _ = self.known.given.set(additions);
        }
        match self.known.annotated {
            true => last.annotated(&reply, self.known.given.get()),
            false => Passing::Untouched,
        }
    }

    async fn over(&mut self, _: Over) -> Option<Bytes> {
        None
    }
}

impl Last {
    /// Reads a final answer. In 2025-11-25 a task that has failed may have a JSON-RPC error as its result.
    fn last_result(&self, reply: &Reply) -> Option<LastResult> {
        let (has_failed, era) = (&self.known.has_failed, self.passage.caller.era);
        if status_of(reply).as_deref() == Some(FAILED)
            && !has_failed.swap(true, Ordering::Relaxed)
            && era == Era::Legacy
        {
            let time = self.passage.shared.patience.failed_result;
            tokio::spawn(settle_unless_fetched(Arc::downgrade(&self.known), time));
        }
        match self.fetches_result && reply.is_error() && has_failed.load(Ordering::Relaxed) {
            true => Some(LastResult { status: CallStatus::Errored, nested: None }),
            false => LastResult::of(reply, era),
        }
    }
}

/// Settles the call of a failed task whose result its client has not fetched within `time`, as some clients never do. Its
/// cost is not known, so the reservation stays spent.
async fn settle_unless_fetched(known: Weak<KnownTask>, time: Duration) {
    tokio::time::sleep(time).await;
    let Some(known) = known.upgrade() else { return };
    let ending = known.ending.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(ending) = ending {
        let outcome = CallOutcomeReport { status: CallStatus::Unknown, cost: None, result: None };
        let _ = known.given.set(ending.settle_task(outcome).await);
    }
}

/// The last result of a task.
struct LastResult {
    status: CallStatus,
    /// The tool's result, if it is nested in the answer (`tasks/get`).
    nested: Option<Reply>,
}

impl LastResult {
    /// Reads a final answer: the tool's result by itself (`tasks/result`), or one of the [`FINAL`] statuses, `completed`
    /// and in the legacy era [`FAILED`] only with the result. `None` for any other.
    fn of(reply: &Reply, era: Era) -> Option<Self> {
        if reply.result_member("content").is_some() || reply.is_tool_error() {
            return Some(Self { status: outcome_of(reply).status, nested: None });
        }
        let status = status_of(reply).filter(|status| FINAL.contains(&status.as_str()))?;
        let nested = reply.result_member("result").and_then(by_itself);
        let status = match (status.as_str(), &nested) {
            (_, Some(nested)) => outcome_of(nested).status,
            // In the first form the result is fetched separately, and states its cost.
            (COMPLETED, None) => return None,
            (FAILED, None) if era == Era::Legacy => return None,
            (FAILED, None) => CallStatus::Errored,
            // The effects of a cancelled call are not known (V-12).
            (_, None) => CallStatus::Unknown,
        };
        Some(Self { status, nested })
    }

    fn outcome(&self, reply: &Reply) -> CallOutcomeReport {
        CallOutcomeReport { status: self.status, ..outcome_of(self.nested.as_ref().unwrap_or(reply)) }
    }

    /// Adds the cost of the call to the answer, and removes names that a tool must not use (V-5).
    fn annotated(&self, reply: &Reply, given: Option<&Additions>) -> Passing {
        let additions = given.cloned().unwrap_or_default();
        let Ok(reply) = Reply::parse(reply.without_gateway_members(Additions::dropped())) else {
            return Passing::Withheld;
        };
        let spliced = match &self.nested {
            None => reply.with_meta(&additions.members(), Additions::dropped()),
            Some(nested) => {
                let result = by_itself_again(&nested.with_meta(&additions.members(), Additions::dropped()));
                reply.edited(&[("result", result.as_deref())], &[], Additions::dropped())
            }
        };
        Passing::Replaced(spliced)
    }
}

/// Returns the status of the task in an answer.
fn status_of(reply: &Reply) -> Option<String> {
    let holder = reply.result_member("task").or_else(|| reply.result())?;
    Some(jose::json::parse_text(holder).ok()?.get("status")?.as_str()?.to_owned())
}

/// Returns the principal that may make requests about the task of a call. A gateway that was restarted did not see a
/// server issue the caller's MCP session, but the task is that session's all the same.
fn owner(caller: &Caller) -> Option<Principal> {
    Principal::of(caller.presumed().as_ref().unwrap_or(caller), None)
}

/// Wraps a nested result in an answer of its own.
fn by_itself(result: &str) -> Option<Reply> {
    Reply::parse(reply::result(&RawId::string("task"), result)).ok()
}

fn by_itself_again(answer: &Bytes) -> Option<String> {
    Reply::parse(answer.clone()).ok()?.result().map(str::to_owned)
}
