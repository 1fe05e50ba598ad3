//! The process that all modern requests share, and the routing of its messages.
//!
//! Two clients may use the same ids, so the gateway replaces each request's id, progress token and subscription id on
//! the way to the child, and restores them on the way back. A disconnect of the client cancels its request with
//! `notifications/cancelled`.
//!
//! A message that names its request goes to that request. A log message does not: it goes to the only open request that
//! asked for log messages. If there are several, it is dropped, because it may not be meant for their clients.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bytes::Bytes;
use futures::{StreamExt, stream};
use http::StatusCode;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::catalog::{self, Catalog};
use super::child::{Child, Gone, Lines, Program};
use super::mirrors::DeclaredHeader;
use crate::limits;
use crate::upstream::text::{Edits, Json, RpcKind, RpcMessage, meta};
use crate::upstream::{AnswerBody, UpstreamAnswer, UpstreamError, answer};

const ENDED: &str = "the server's process ended";

/// A running child process, with its open requests.
#[derive(Debug)]
pub struct RunningChild {
    child: Child,
    waiting: Mutex<OpenRequests>,
    catalog: tokio::sync::Mutex<Catalog>,
}

#[derive(Debug, Default)]
struct OpenRequests {
    calls: HashMap<i64, OpenRequest>,
    next: i64,
    closed: bool,
}

/// An open request.
#[derive(Debug)]
struct OpenRequest {
    /// The raw JSON of the id, as the client wrote it.
    id: String,
    token: Option<String>,
    wants_log: bool,
    to: mpsc::UnboundedSender<ClientMessage>,
    unread: Arc<AtomicUsize>,
}

/// A message for a client, with the client's own ids.
#[derive(Debug)]
struct ClientMessage {
    text: Bytes,
    status: StatusCode,
    last: bool,
}

impl RunningChild {
    /// Starts the child.
    ///
    /// # Errors
    /// If the process does not start.
    pub fn start(program: &Program, name: &Arc<str>) -> std::io::Result<Arc<Self>> {
        let (child, lines) = Child::start(program, name)?;
        let running =
            Arc::new(Self { child, waiting: Mutex::default(), catalog: tokio::sync::Mutex::default() });
        tokio::spawn(hear(Arc::downgrade(&running), lines, Arc::clone(name)));
        Ok(running)
    }

    /// Returns whether the child still accepts messages.
    pub fn is_alive(&self) -> bool {
        self.child.is_alive()
    }

    /// Ends the child, and waits until its process has exited.
    pub async fn stop(&self) {
        self.child.stop();
        self.child.gone().await;
    }

    /// Sends a notification to the child.
    ///
    /// # Errors
    /// [`UpstreamError::NeverSent`] if the child has ended.
    pub async fn tell(&self, message: &RpcMessage<'_>) -> Result<(), UpstreamError> {
        let sent = self.child.write(message.text().as_bytes()).await;
        sent.map_err(|Gone| UpstreamError::NeverSent(ENDED.to_owned()))
    }

    /// Sends a request of the gateway's own, and waits for its response.
    pub async fn answer(self: &Arc<Self>, request: &str) -> Option<Bytes> {
        let mut call = self.open(&RpcMessage::read(request)?).ok()?;
        self.child.write(&call.sent).await.ok()?;
        call.is_sent = true;
        loop {
            let message = call.next().await?;
            if message.last {
                return Some(message.text);
            }
        }
    }

    /// The parameters of a tool that have headers, from the cache or the child's `tools/list`. Empty if the child does
    /// not answer: that is no reason to fail a call.
    pub async fn declared(self: &Arc<Self>, tool: &str, request: &RpcMessage<'_>) -> Vec<DeclaredHeader> {
        let mut catalog = self.catalog.lock().await;
        if let Some(known) = catalog.get(tool) {
            return known.to_vec();
        }
        catalog.asking();
        let mut cursor = None;
        for _ in 0..limits::CATALOG_PAGES {
            let page = catalog::page(request, cursor.as_deref());
            let Ok(Some(text)) = timeout(limits::PROBE_TIME, self.answer(&page)).await else { break };
            let answer = std::str::from_utf8(&text).ok().and_then(RpcMessage::read);
            cursor = answer.and_then(|answer| catalog.learn(&answer));
            if cursor.is_none() {
                break;
            }
        }
        catalog.get(tool).unwrap_or_default().to_vec()
    }

    /// Forwards a client's request.
    ///
    /// # Errors
    /// [`UpstreamError::NeverSent`] if the child has ended, or [`UpstreamError::Lost`] if it ends before it answers.
    pub async fn request(
        self: &Arc<Self>,
        message: &RpcMessage<'_>,
    ) -> Result<UpstreamAnswer, UpstreamError> {
        let mut call = match self.open(message) {
            Ok(call) => call,
            Err(NotOpened::TooMany) => {
                return Ok(answer::busy(
                    message.id().map(Json::raw),
                    "too many requests are open at this server",
                ));
            }
            Err(NotOpened::Gone) => return Err(UpstreamError::NeverSent(ENDED.to_owned())),
        };
        let sent = self.child.write(&call.sent).await;
        sent.map_err(|Gone| UpstreamError::NeverSent(ENDED.to_owned()))?;
        call.is_sent = true;
        match timeout(limits::FIRST_MESSAGE_TIME, call.next()).await {
            Err(_) => Ok(answer::events(as_events(call, None))),
            Ok(None) => Err(UpstreamError::Lost(ENDED.to_owned())),
            Ok(Some(message)) if message.last => Ok(answer::json(message.status, message.text)),
            Ok(Some(message)) => {
                Ok(answer::events(as_events(call, Some(answer::event(None, &message.text)))))
            }
        }
    }

    fn open(self: &Arc<Self>, message: &RpcMessage<'_>) -> Result<OpenCall, NotOpened> {
        let mut waiting = self.waiting();
        if waiting.closed {
            return Err(NotOpened::Gone);
        }
        if waiting.calls.len() >= limits::SHARED_CALLS {
            return Err(NotOpened::TooMany);
        }
        waiting.next += 1;
        let ours = waiting.next;
        let token = message.meta(meta::PROGRESS_TOKEN);
        let mut edits = Edits::of(message.text());
        for part in [message.id(), token].into_iter().flatten() {
            edits.replace(part, ours.to_string());
        }
        let (to, messages) = mpsc::unbounded_channel();
        let unread = Arc::new(AtomicUsize::new(0));
        let call = OpenRequest {
            id: message.id().map_or("null", Json::raw).to_owned(),
            token: token.map(|token| token.raw().to_owned()),
            wants_log: message.meta(meta::LOG_LEVEL).is_some(),
            to,
            unread: Arc::clone(&unread),
        };
        waiting.calls.insert(ours, call);
        Ok(OpenCall {
            running: Arc::clone(self),
            ours,
            messages,
            unread,
            sent: edits.done(),
            is_sent: false,
            answered: false,
        })
    }

    /// Delivers a child's message to the request that it belongs to.
    fn bring(&self, message: &RpcMessage<'_>, name: &str) {
        if message.kind == RpcKind::Request {
            return self.refuse(message, name);
        }
        let mut waiting = self.waiting();
        let Some(ours) = waiting.whose(message) else {
            return tracing::debug!(server = %name, "a message that belongs to nobody");
        };
        let last = message.kind == RpcKind::Response;
        let Some(call) = waiting.calls.get(&ours) else { return };
        let message =
            ClientMessage { text: call.restored(message), status: answer::modern_status(message), last };
        let unread = call.unread.fetch_add(message.text.len(), Ordering::Relaxed);
        let too_much = !last && unread > limits::UNREAD_BYTES;
        if call.to.send(message).is_err() || last || too_much {
            waiting.calls.remove(&ours);
        }
        if too_much {
            tracing::warn!(server = %name, "a client does not read: its stream is cut");
            drop(waiting);
            self.cancel(ours, "the client does not read");
        }
    }

    /// Refuses a request of the server: the modern era has none, and the server would wait for a response forever.
    fn refuse(&self, message: &RpcMessage<'_>, name: &str) {
        tracing::warn!(server = %name, "a request of the server, which this revision does not have");
        let id = message.id().map_or("null", Json::raw);
        let answer = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"there are no requests of servers in this revision"}}}}"#
        );
        self.child.write_later(answer.as_bytes());
    }

    fn cancel(&self, ours: i64, why: &str) {
        self.child.write_later(
            format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{ours},"reason":"{why}"}}}}"#
            )
            .as_bytes(),
        );
    }

    fn waiting(&self) -> MutexGuard<'_, OpenRequests> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum NotOpened {
    TooMany,
    Gone,
}

impl OpenRequests {
    fn whose(&self, message: &RpcMessage<'_>) -> Option<i64> {
        if message.kind == RpcKind::Response {
            return message.id()?.integer();
        }
        if let Some(subscription) = message.meta(meta::SUBSCRIPTION) {
            return subscription.integer();
        }
        match message.method()?.as_str() {
            "notifications/progress" => message.param(meta::PROGRESS_TOKEN)?.integer(),
            "notifications/message" => {
                let mut wanted = self.calls.iter().filter(|(_, call)| call.wants_log);
                wanted.next().filter(|_| wanted.next().is_none()).map(|(ours, _)| *ours)
            }
            _ => None,
        }
    }
}

impl OpenRequest {
    /// The message with the client's own id, progress token and subscription id.
    fn restored(&self, message: &RpcMessage<'_>) -> Bytes {
        let is_progress = message.method().as_deref() == Some("notifications/progress");
        let token = message.param(meta::PROGRESS_TOKEN).filter(|_| is_progress);
        let mut edits = Edits::of(message.text());
        for (part, text) in [
            (message.id(), Some(&self.id)),
            (message.meta(meta::SUBSCRIPTION), Some(&self.id)),
            (message.at(&["result", "_meta", meta::SUBSCRIPTION]), Some(&self.id)),
            (token, self.token.as_ref()),
        ] {
            if let (Some(part), Some(text)) = (part, text) {
                edits.replace(part, text);
            }
        }
        edits.done()
    }
}

/// The client's side of an open request. Dropping it before the response arrived cancels the request.
struct OpenCall {
    running: Arc<RunningChild>,
    ours: i64,
    messages: mpsc::UnboundedReceiver<ClientMessage>,
    unread: Arc<AtomicUsize>,
    /// The request's text with the gateway's ids.
    sent: Bytes,
    /// False while the child has not taken the request: then there is nothing to cancel.
    is_sent: bool,
    answered: bool,
}

impl OpenCall {
    async fn next(&mut self) -> Option<ClientMessage> {
        let message = self.messages.recv().await;
        if let Some(message) = &message {
            self.unread.fetch_sub(message.text.len(), Ordering::Relaxed);
        }
        self.answered = message.as_ref().is_none_or(|message| message.last);
        message
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        let open = self.running.waiting().calls.remove(&self.ours).is_some();
        if open && self.is_sent && !self.answered {
            self.running.cancel(self.ours, "the client went away");
        }
    }
}

fn as_events(call: OpenCall, first: Option<Bytes>) -> AnswerBody {
    let first = stream::iter(first.into_iter().map(Ok));
    let rest = stream::unfold(Some(call), |call| async move {
        let mut call = call?;
        match timeout(limits::KEEP_ALIVE, call.next()).await {
            Err(_) => Some((Ok(answer::ALIVE), Some(call))),
            Ok(Some(message)) => {
                let text = answer::event(None, &message.text);
                Some((Ok(text), (!message.last).then_some(call)))
            }
            Ok(None) => Some((Err(UpstreamError::Lost(ENDED.to_owned())), None)),
        }
    });
    first.chain(rest).boxed()
}

async fn hear(running: Weak<RunningChild>, mut lines: Lines, name: Arc<str>) {
    while let Some(line) = lines.recv().await {
        let Some(running) = running.upgrade() else { return };
        match std::str::from_utf8(&line).ok().and_then(RpcMessage::read) {
            Some(message) => running.bring(&message, &name),
            None => tracing::debug!(server = %name, "a line that is not a message"),
        }
    }
    if let Some(running) = running.upgrade() {
        let mut waiting = running.waiting();
        waiting.closed = true;
        waiting.calls.clear();
    }
}
